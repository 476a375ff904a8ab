//! The proxy between an agent whose thread grows and a provider with a window ten times too small.

pub(crate) mod agent;
mod answers;
mod believed;
mod failures;
mod hostile;
mod lanes;
mod passing;
mod quiet;
mod stable;
pub(crate) mod upstream;

use std::{
    net::SocketAddr,
    path::Path,
    process::Stdio,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use threadfold::{CompactionStrategy, Model, Role, ThreadStore, strategy::Ladder, wire::Dialect};
use threadfold_cli::proxy::{Proxy, ProxyOptions, Views, WhenQuiet, policy};
use threadfold_sqlite::SqliteStore;
use threadfold_testing::shared::Folder;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::TcpListener,
    process::{Child, ChildStderr, Command},
    task::JoinHandle,
};

use self::{
    agent::Agent,
    upstream::{DIALECTS, GEMINI, Upstream},
};

const WINDOW: u64 = 4_000;
pub(crate) const MESSAGES: (&str, Dialect) = ("/v1/messages", Dialect::Anthropic);

/// A proxy that serves until it is dropped, as one that is killed.
pub(crate) struct Served {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Served {
    async fn start(options: ProxyOptions, store: Arc<dyn ThreadStore>, folder: &Path) -> Self {
        let views = Views::open(&folder.join("threads.db")).unwrap();
        Self::serve(Proxy::new(options, store, views).unwrap()).await
    }

    async fn serve(proxy: Proxy) -> Self {
        let proxy = Arc::new(proxy);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { address, task: tokio::spawn(proxy.serve(listener)) }
    }

    pub(crate) async fn in_folder(options: ProxyOptions, folder: &Path) -> Self {
        let store = Arc::new(SqliteStore::open(folder.join("threads.db")).unwrap());
        Self::start(options, store, folder).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// The program as a proxy, which is killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    pub(crate) url: String,
}

impl Process {
    pub(crate) async fn start(upstream: &Upstream, window: u64, folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_threadfold"));
        command.args(["proxy", "--listen", "127.0.0.1:0", "--window", &window.to_string()]);
        command.arg("--folder").arg(folder).args(["--anthropic", &upstream.url()]);
        let mut child = command.stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap().unwrap();
        let url = line.split_whitespace().find(|word| word.starts_with("http")).unwrap();
        let url = url.trim_end_matches(',').to_owned();
        Self { child, lines, url }
    }

    /// Kills the process, and returns the lines that it wrote.
    pub(crate) async fn end(&mut self) -> String {
        self.child.kill().await.unwrap();
        let mut text = String::new();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            text += &format!("{line}\n");
        }
        text
    }
}

/// A proxy before a provider with a small window, and an agent that had twenty turns through it.
pub(crate) async fn used_proxy(folder: &Path, streams: bool) -> (Upstream, Served, Agent) {
    let upstream = Upstream::start(WINDOW).await;
    let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), folder).await;
    let mut agent = Agent::new(&proxy.url(), MESSAGES, streams);
    for number in 0..20 {
        agent.turn(number).await.unwrap();
    }
    (upstream, proxy, agent)
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn options(upstream: &Upstream, window: Option<u64>) -> ProxyOptions {
    let strategy: Arc<dyn CompactionStrategy> = Arc::new(Ladder::default());
    let model: Option<Arc<dyn Model>> = None;
    ProxyOptions {
        anthropic: upstream.url(),
        openai: upstream.url(),
        gemini: upstream.url(),
        window,
        policy: policy(0.8),
        when_quiet: WhenQuiet::Nothing,
        strategy,
        model,
        shadow: false,
        max_body: 8 * 1024 * 1024,
        max_threads: 1_000,
        max_stored: u64::MAX,
        patience: Duration::from_secs(30),
        stall: Duration::from_secs(60),
    }
}

pub(crate) fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(test);
}

fn count(counter: &std::sync::atomic::AtomicUsize) -> usize {
    counter.load(Ordering::Relaxed)
}

/// A client that unpacks nothing, whatever features other crates switch on in it.
fn client() -> reqwest::Client {
    let builder = reqwest::Client::builder().no_proxy().no_gzip().no_brotli();
    builder.no_zstd().no_deflate().build().unwrap()
}

#[test]
fn a_thread_of_200_turns_goes_through_a_window_ten_times_too_small() {
    run(async {
        let agent = goes_through(MESSAGES, true, WINDOW, 200).await;
        assert!(agent.body().len() as u64 / 3 > WINDOW * 10, "{}", agent.body().len());
    });
}

#[test]
fn the_dialects_of_openai_go_through_with_and_without_streams() {
    run(async {
        for (row, streams) in DIALECTS.into_iter().skip(1).zip([false, true]) {
            goes_through(row, streams, WINDOW, 25).await;
        }
    });
}

#[test]
fn the_dialect_of_gemini_goes_through_whole_and_in_both_kinds_of_streams() {
    run(async {
        for (row, streams) in GEMINI.into_iter().zip([false, true, true]) {
            goes_through(row, streams, WINDOW, 25).await;
        }
    });
}

/// Runs an agent through a proxy that knows the window: every turn is answered, nothing is refused.
async fn goes_through(
    row: (&'static str, Dialect),
    streams: bool,
    window: u64,
    turns: usize,
) -> Agent {
    let (folder, upstream) = (Folder::new(), Upstream::start(window).await);
    let proxy = Served::in_folder(options(&upstream, Some(window)), &folder).await;
    let mut agent = Agent::new(&proxy.url(), row, streams);
    for number in 0..turns {
        agent.turn(number).await.unwrap();
    }
    let seen = &upstream.seen;
    assert_eq!(*seen.illegal.lock().unwrap(), Vec::<String>::new());
    assert_eq!((count(&seen.answered), count(&seen.refused)), (2 * turns, 0));
    agent
}

#[test]
fn without_the_proxy_the_same_thread_dies() {
    run(async {
        let upstream = Upstream::start(WINDOW).await;
        let mut agent = Agent::new(&upstream.url(), MESSAGES, true);
        for number in 0..100 {
            if let Err(error) = agent.turn(number).await {
                assert!(error.contains("prompt is too long"), "{error}");
                return;
            }
        }
        panic!("nothing was refused");
    });
}

#[test]
fn a_window_that_nobody_states_is_learnt_from_refusals_that_no_agent_sees() {
    learns_its_window(false);
}

/// Nobody states the window, and the provider refuses with a status or in its streams.
fn learns_its_window(in_streams: bool) {
    run(async {
        let rows = DIALECTS.into_iter().chain(GEMINI.into_iter().skip(1));
        for row in rows {
            let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
            upstream.seen.refuses_in_streams.store(in_streams, Ordering::Relaxed);
            let proxy = Served::in_folder(options(&upstream, None), &folder).await;
            let mut agent = Agent::new(&proxy.url(), row, true);
            for number in 0..25 {
                agent.turn(number).await.unwrap();
            }
            let seen = &upstream.seen;
            assert_eq!(*seen.illegal.lock().unwrap(), Vec::<String>::new());
            assert_eq!(count(&seen.answered), 50);
            assert!((1..8).contains(&count(&seen.refused)), "{}", count(&seen.refused));
        }
    });
}

#[test]
fn after_a_kill_at_any_request_the_next_one_finds_its_view() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let mut agent = Agent::new("", MESSAGES, true);
        let mut compacted = 0;
        for number in 0..30 {
            // Another process each time, with nothing but the folder.
            let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
            agent.moved_to(&proxy.url());
            agent.turn(number).await.unwrap();
            let rows = rusqlite::Connection::open(folder.join("threads.db")).unwrap();
            let count = "SELECT count(*) FROM proxy_views";
            compacted = rows.query_row(count, [], |row| row.get(0)).unwrap();
        }
        assert_eq!(count(&upstream.seen.refused), 0);
        // As many as one process makes: none was made again.
        assert!((2..12).contains(&compacted), "{compacted}");
    });
}

/// As two `threadfold run` in one folder, whose agents work at the same time.
#[test]
fn two_proxies_share_a_folder_and_a_third_one_finds_the_views_of_both() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let served = || Served::in_folder(options(&upstream, Some(WINDOW)), &folder);
        let (one, other) = (served().await, served().await);
        // The same thread in both, and one that only begins in the same way.
        let agent = |proxy: &Served| Agent::new(&proxy.url(), MESSAGES, true);
        let (mut first, mut second) = (agent(&one), agent(&other));
        let (mut apart, mut third) = (agent(&other), agent(&one));
        for number in 0..25 {
            let turns = futures::join!(
                first.turn(number),
                second.turn(number),
                apart.turn(number * 7),
                third.turn(number + 1_000)
            );
            let (a, b, c, d) = turns;
            a.and(b).and(c).and(d).unwrap();
        }
        let answered = count(&upstream.seen.answered);
        assert_eq!((answered, count(&upstream.seen.refused)), (4 * 50, 0));
        assert_eq!(*upstream.seen.illegal.lock().unwrap(), Vec::<String>::new());
        drop((one, other));
        let proxy = served().await;
        upstream.seen.sizes.lock().unwrap().clear();
        for agent in [&mut first, &mut second, &mut apart, &mut third] {
            agent.moved_to(&proxy.url());
            agent.turn(9_999).await.unwrap();
        }
        assert_eq!(count(&upstream.seen.refused), 0);
        let largest = upstream.seen.sizes.lock().unwrap().iter().copied().max().unwrap();
        assert!(largest as u64 / 3 <= WINDOW, "{largest}");
    });
}

#[test]
fn what_is_below_the_threshold_goes_through_byte_for_byte() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        let body = r#"{ "model" : "m", "max_tokens":1e1, "x":{"b":1,"a":1.0}, "messages":[{"role":"user","content":"hi"}]}"#;
        let client = client();
        let sent = client
            .post(format!("{}/v1/messages?beta=true", proxy.url()))
            .header("x-api-key", "sk-secret")
            .header("anthropic-beta", "one")
            .header("content-type", "application/json")
            .body(body);
        assert_eq!(sent.send().await.unwrap().status(), 200);
        let (path, headers, last) = upstream.seen.last.lock().unwrap().clone();
        assert_eq!((path.as_str(), last.as_ref()), ("/v1/messages", body.as_bytes()));
        assert!(headers.contains("sk-secret") && headers.contains("anthropic-beta"), "{headers}");
        // What no dialect has goes through too.
        let other = client.post(format!("{}/v1/embeddings", proxy.url())).body("\u{0}not json");
        assert_eq!(other.send().await.unwrap().text().await.unwrap(), "{\"unknown\":true}");
    });
}

#[test]
fn headers_that_describe_the_body_go_on_with_that_body_only() {
    run(async {
        let folder = Folder::new();
        let (upstream, proxy, agent) = used_proxy(&folder, false).await;
        let short = r#"{"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#.to_owned();
        for (body, is_same) in [(short, true), (agent.body(), false)] {
            let mut request =
                agent.post(&format!("{}/v1/messages", proxy.url())).body(body.clone());
            let names =
                ["idempotency-key", "content-md5", "digest", "content-digest", "repr-digest"];
            for name in names {
                request = request.header(name, "1");
            }
            assert_eq!(request.send().await.unwrap().status(), 200);
            let (_, headers, sent) = upstream.seen.last.lock().unwrap().clone();
            assert_eq!(sent == body, is_same);
            for name in names {
                assert_eq!(headers.contains(&format!("\"{name}\"")), is_same, "{name}: {headers}");
            }
        }
    });
}

#[test]
fn tokens_are_counted_for_the_thread_as_it_is_sent() {
    run(async {
        let folder = Folder::new();
        let (upstream, proxy, agent) = used_proxy(&folder, false).await;
        let url = format!("{}/v1/messages/count_tokens", proxy.url());
        let answer = agent.post(&url).body(agent.body()).send().await.unwrap();
        let counted: serde_json::Value = answer.text().await.unwrap().parse().unwrap();
        assert!(counted["input_tokens"].as_u64().unwrap() <= WINDOW, "{counted}");
        // If the provider refuses the smaller thread, the agent's own is counted.
        *upstream.seen.only.lock().unwrap() = Some(agent.body());
        let answer = agent.post(&url).body(agent.body()).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(upstream.seen.illegal.lock().unwrap().len(), 1);
    });
}

#[test]
fn a_branch_and_an_edited_history_are_threads_of_their_own() {
    run(async {
        let folder = Folder::new();
        let (upstream, proxy, mut agent) = used_proxy(&folder, true).await;
        let shared = agent.messages.clone();
        let mut edited = Agent::new(&proxy.url(), MESSAGES, true);
        edited.messages = shared.clone();
        edited.messages[0] = threadfold::Message::user("Something else altogether.");
        let mut branch = Agent::new(&proxy.url(), MESSAGES, true);
        branch.messages = shared;
        for number in 20..30 {
            agent.turn(number).await.unwrap();
            branch.turn(number + 1_000).await.unwrap();
            edited.turn(number).await.unwrap();
            let (_, _, last) = upstream.seen.last.lock().unwrap().clone();
            let last = String::from_utf8_lossy(&last).into_owned();
            assert!(last.contains("Something else altogether."), "the edited thread is its own");
        }
        assert_eq!(*upstream.seen.illegal.lock().unwrap(), Vec::<String>::new());
        assert_eq!(count(&upstream.seen.refused), 0);
    });
}

#[test]
fn a_client_that_goes_back_gets_its_question_and_its_results_to_the_model() {
    run(async {
        let folder = Folder::new();
        let (upstream, proxy, agent) = used_proxy(&folder, true).await;
        let mut again = Agent::new(&proxy.url(), MESSAGES, true);
        let mut went_back = 0;
        // As a client does that asks for another answer to an earlier question.
        for end in (1..agent.messages.len()).rev() {
            again.messages = agent.messages[..end].to_vec();
            let newest = again.messages.last().unwrap();
            if newest.role == Role::Assistant {
                continue;
            }
            let number = again.messages.iter().filter(|message| message.is_typed()).count() - 1;
            again.ask().await.unwrap();
            let (_, _, last) = upstream.seen.last.lock().unwrap().clone();
            let last = String::from_utf8_lossy(&last).into_owned();
            let question = format!("\"Go on with part {number}. Read it with care.");
            assert!(last.contains(&question), "message {end}: {question} in {last}");
            if !newest.is_typed() {
                let result = format!("\"src/part_{number}.rs: fn part");
                assert!(last.contains(&result), "message {end}: {result} in {last}");
            }
            went_back += 1;
        }
        assert!(went_back > 30, "{went_back}");
        assert_eq!(*upstream.seen.illegal.lock().unwrap(), Vec::<String>::new());
    });
}

#[test]
fn the_page_shows_the_threads_and_no_key_is_stored() {
    run(async {
        let folder = Folder::new();
        let (_upstream, proxy, _) = used_proxy(&folder, true).await;
        let client = client();
        let get = async |path: &str| {
            client.get(format!("{}{path}", proxy.url())).send().await.unwrap().text().await.unwrap()
        };
        let index = get("/threadfold").await;
        let link = index.split("href=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(get(link).await.contains("<html"), "{index}");
        let foreign = client.get(format!("{}/threadfold", proxy.url())).header("host", "evil.test");
        assert_eq!(foreign.send().await.unwrap().status(), 403);
        for entry in std::fs::read_dir(&*folder).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            assert!(!bytes.windows(9).any(|part| part == b"sk-secret"));
        }
    });
}
