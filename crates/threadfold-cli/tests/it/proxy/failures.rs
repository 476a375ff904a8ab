//! Whatever fails inside of the proxy, the agent's own request is sent.

use std::{
    fmt, io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use threadfold::{
    CompactionStrategy, ContentBlock, Message, Model, Role, ThreadStore,
    log::{Loaded, LogId, LoggedEvent},
    message::{Answer, ModelError, ModelErrorKind, Request, StopReason, Thinking, ThreadId},
    store::{MemoryStore, StoreError},
    strategy::{Ask, Digest, ModelRole, Proposal, StrategyError, Summarize, View},
};
use threadfold_testing::{faulty_store, shared::Folder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{
    MESSAGES, Process, Served, WINDOW,
    agent::Agent,
    count, options, run,
    upstream::{Seen, Upstream},
    used_proxy,
};

#[derive(Debug)]
struct Panics;

#[threadfold::async_trait]
impl CompactionStrategy for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    async fn propose(&self, _: &View, _: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        panic!("by intention")
    }
}

/// Asks the model whatever fits.
#[derive(Debug)]
struct Asks;

#[threadfold::async_trait]
impl CompactionStrategy for Asks {
    fn name(&self) -> &str {
        "asks"
    }

    async fn propose(&self, _: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        let request = Request::new(vec![threadfold::Message::user("What was it?")]);
        ask.question(ModelRole::Conversation, request).await?;
        Err(StrategyError::NeedsModel)
    }
}

#[derive(Debug)]
struct Never;

#[threadfold::async_trait]
impl Model for Never {
    async fn complete(&self, _: Request) -> Result<Answer, ModelError> {
        std::future::pending().await
    }
}

#[derive(Debug)]
struct Down;

#[threadfold::async_trait]
impl Model for Down {
    async fn complete(&self, _: Request) -> Result<Answer, ModelError> {
        Err(ModelError::new(ModelErrorKind::Authentication, "no key"))
    }
}

/// Writes summaries, and keeps what it was asked.
#[derive(Debug, Default)]
struct Writes(Mutex<Vec<Request>>);

#[threadfold::async_trait]
impl Model for Writes {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        self.0.lock().unwrap().push(request);
        let answer = threadfold::Message::assistant("They wrote some lines.");
        Ok(Answer::new(answer, StopReason::EndTurn, None))
    }
}

/// The body that the provider got last for this agent.
async fn sent(agent: &Agent, upstream: &Upstream) -> (Result<(), String>, bool) {
    let answer = agent.ask().await.map(drop);
    let is_own = upstream.seen.last.lock().unwrap().2 == agent.body().as_bytes();
    (answer, is_own)
}

/// An agent whose thread is over the threshold of the proxy, and fits the provider.
async fn full(upstream: &Upstream) -> Agent {
    let mut agent = Agent::new(&upstream.url(), MESSAGES, false);
    for number in 0..12 {
        agent.turn(number).await.unwrap();
    }
    agent.messages.push(threadfold::Message::user("And now?"));
    agent
}

#[test]
fn a_strategy_that_panics_leaves_the_work_to_a_digest_and_one_that_never_ends_nothing() {
    run(async {
        let upstream = Upstream::start(WINDOW * 10).await;
        let mut agent = full(&upstream).await;
        let (panics, waits) =
            (options(&upstream, Some(WINDOW / 2)), options(&upstream, Some(WINDOW / 2)));
        let panics = super::ProxyOptions { strategy: Arc::new(Panics), ..panics };
        let waits = super::ProxyOptions {
            strategy: Arc::new(Asks),
            model: Some(Arc::new(Never)),
            patience: Duration::from_millis(20),
            ..waits
        };
        for (options, is_own) in [(panics, false), (waits, true)] {
            let folder = Folder::new();
            let proxy = Served::in_folder(options, &folder).await;
            agent.moved_to(&proxy.url());
            assert_eq!(sent(&agent, &upstream).await, (Ok(()), is_own));
        }
    });
}

#[test]
fn a_summarizer_that_is_down_leaves_the_work_to_a_digest() {
    run(async {
        let upstream = Upstream::start(WINDOW / 2).await;
        let mut agent = full(&Upstream::start(WINDOW * 10).await).await;
        let options = super::ProxyOptions {
            strategy: Arc::new(Summarize::default()),
            model: Some(Arc::new(Down)),
            ..options(&upstream, Some(WINDOW / 2))
        };
        let folder = Folder::new();
        let proxy = Served::in_folder(options, &folder).await;
        agent.moved_to(&proxy.url());
        assert_eq!(sent(&agent, &upstream).await, (Ok(()), false));
        assert_eq!(count(&upstream.seen.refused), 0);
    });
}

#[test]
fn a_request_for_a_summary_has_no_tools_of_the_agent() {
    run(async {
        for name in ["ladder", "summarize", "chunked"] {
            let upstream = Upstream::start(WINDOW * 3).await;
            let roomy = Upstream::start(WINDOW * 99).await;
            let mut agent = full(&roomy).await;
            // Over the threshold, with room for the request for a summary.
            while agent.body().len() < WINDOW as usize * 3 * 7 / 2 {
                agent.turn(agent.messages.len()).await.unwrap();
            }
            agent.messages.push(threadfold::Message::user("And now?"));
            let writer = Arc::new(Writes::default());
            let options = super::ProxyOptions {
                strategy: threadfold_cli::proxy::strategy(name).unwrap(),
                model: Some(Arc::clone(&writer) as Arc<dyn Model>),
                ..options(&upstream, Some(WINDOW * 3))
            };
            let folder = Folder::new();
            let proxy = Served::in_folder(options, &folder).await;
            agent.moved_to(&proxy.url());
            assert_eq!(sent(&agent, &upstream).await, (Ok(()), false), "{name}");
            let asked = writer.0.lock().unwrap().clone();
            assert!(!asked.is_empty(), "{name}");
            for request in asked {
                let calls = request.messages.iter().flat_map(|message| message.tool_uses()).count();
                let is_agents = request.tools.iter().any(|tool| tool.name == "read");
                assert_eq!((is_agents, calls), (false, 0), "{name}");
            }
        }
    });
}

#[test]
fn with_a_store_that_is_full_threads_stay_small_from_memory() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let store = faulty_store(MemoryStore::default(), &[Some(0); 100]);
        let options = options(&upstream, Some(WINDOW));
        let proxy = Served::start(options, Arc::new(store), &folder).await;
        let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
        for number in 0..25 {
            agent.turn(number).await.unwrap();
        }
        assert_eq!(*upstream.seen.illegal.lock().unwrap(), Vec::<String>::new());
        assert_eq!(count(&upstream.seen.refused), 0);
    });
}

/// A store in memory that does something before it reads a log, and may fail then.
struct Reads<F>(MemoryStore, F);

impl<F> fmt::Debug for Reads<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reads").field(&self.0).finish()
    }
}

#[threadfold::async_trait]
impl<F: Fn() -> Result<(), StoreError> + Send + Sync> ThreadStore for Reads<F> {
    async fn append(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        self.0.append(thread, log, expected_len, events).await
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        self.1()?;
        self.0.load(thread).await
    }

    async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
        self.0.list().await
    }

    async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.0.delete(thread).await
    }
}

#[test]
fn a_log_that_cannot_be_read_now_is_continued_later_if_the_request_fits() {
    run(async {
        // A moment, and until the end.
        for (failures, logs) in [(1, 1..=1), (usize::MAX, 2..=9)] {
            let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
            let busy = Arc::new(AtomicUsize::new(0));
            // The next so many reads fail, as of a disk that is busy.
            let left = Arc::clone(&busy);
            let read = move || {
                let less = |left: usize| left.checked_sub(1);
                match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
                    Ok(_) => Err(StoreError::medium("a busy disk", io::Error::other("not now"))),
                    Err(_) => Ok(()),
                }
            };
            let store = Arc::new(Reads(MemoryStore::default(), read));
            let kept = Arc::clone(&store) as Arc<dyn ThreadStore>;
            let proxy = Served::start(options(&upstream, Some(WINDOW)), kept, &folder).await;
            let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
            for number in 0..20 {
                agent.turn(number).await.unwrap();
            }
            assert_eq!(store.list().await.unwrap().len(), 1);
            busy.store(failures, Ordering::Relaxed);
            for number in 20..60 {
                agent.turn(number).await.unwrap();
            }
            assert!(busy.load(Ordering::Relaxed) < failures, "a log was read");
            let found = store.list().await.unwrap().len();
            assert!(logs.contains(&found), "{found} logs after {failures} failures");
            assert_eq!(*upstream.seen.illegal.lock().unwrap(), Vec::<String>::new());
            assert_eq!(count(&upstream.seen.refused), 0);
        }
    });
}

#[test]
fn pages_that_are_slow_keep_no_request_waiting() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let (gate, closed) = std::sync::mpsc::channel::<()>();
        // A read holds its thread until the gate is gone.
        let closed = Mutex::new(closed);
        let read = move || {
            let _ = closed.lock().unwrap().recv();
            Ok::<_, StoreError>(())
        };
        let store = Arc::new(Reads(MemoryStore::default(), read));
        let proxy = Served::start(options(&upstream, Some(WINDOW)), store, &folder).await;
        // Opened in any case, so that a failure ends.
        let opens = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(5));
            drop(gate);
        });
        let url = format!("{}/threadfold/threads/one", proxy.url());
        let mut pages = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let page = super::client().get(&url).send();
            pages.spawn(async move { page.await.unwrap().status().as_u16() });
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        Agent::new(&proxy.url(), MESSAGES, true).turn(0).await.unwrap();
        assert!(!opens.is_finished(), "the agent waited");
        assert_eq!(pages.join_all().await, [404; 4]);
        opens.join().unwrap();
    });
}

#[test]
fn a_log_that_can_never_be_read_is_left_behind_with_a_line() {
    run(async {
        let folder = Folder::new();
        let (upstream, first, mut agent) = used_proxy(&folder, true).await;
        drop(first);
        let rows = rusqlite::Connection::open(folder.join("threads.db")).unwrap();
        let thread: String =
            rows.query_row("SELECT thread FROM logs", [], |row| row.get(0)).unwrap();
        for (damage, why) in [
            ("UPDATE events SET event = 'no event'; DELETE FROM bases", "is not read"),
            ("DELETE FROM logs; DELETE FROM events; DELETE FROM bases", "is gone"),
        ] {
            rows.execute_batch(damage).unwrap();
            let mut process = Process::start(&upstream, WINDOW, &folder).await;
            agent.moved_to(&process.url);
            for number in 20..32 {
                agent.turn(number).await.unwrap();
            }
            let lines = process.end().await;
            let line = lines.lines().find(|line| line.contains("begins anew"));
            let line = line.unwrap_or_else(|| panic!("{why}: {lines}"));
            assert!(line.contains("thread-") && line.contains(why), "{lines}");
            assert_eq!(line.contains(&thread), why == "is not read", "{lines}");
        }
        assert_eq!(*upstream.seen.illegal.lock().unwrap(), Vec::<String>::new());
        assert_eq!(count(&upstream.seen.refused), 0);
    });
}

#[test]
fn a_branch_of_a_thread_that_is_not_stored_has_nothing_of_the_other_branch() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let store = faulty_store(MemoryStore::default(), &[Some(0); 1_000]);
        let proxy = Served::start(options(&upstream, Some(WINDOW)), Arc::new(store), &folder).await;
        let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
        for number in 0..20 {
            agent.turn(number).await.unwrap();
        }
        let mut branch = Agent::new(&proxy.url(), MESSAGES, true);
        branch.messages = agent.messages.clone();
        for number in 7_000..7_020 {
            agent.turn(number).await.unwrap();
        }
        for number in 9_000..9_020 {
            branch.turn(number).await.unwrap();
            let (_, _, sent) = upstream.seen.last.lock().unwrap().clone();
            let sent = String::from_utf8_lossy(&sent).into_owned();
            assert!(!sent.contains("part 70") && !sent.contains("part_70"), "{number}: {sent}");
        }
        assert_eq!(*upstream.seen.illegal.lock().unwrap(), Vec::<String>::new());
        assert_eq!(count(&upstream.seen.refused), 0);
    });
}

#[test]
fn views_that_cannot_be_read_are_passed_over_with_a_line() {
    run(async {
        let folder = Folder::new();
        let (upstream, first, mut agent) = used_proxy(&folder, true).await;
        drop(first);
        let rows = rusqlite::Connection::open(folder.join("threads.db")).unwrap();
        // One is no JSON, others stand for more messages than their link, or for none.
        rows.execute("UPDATE proxy_views SET messages = '[{\"role\":', covers = covers + 1", [])
            .unwrap();
        let mut proxy = Process::start(&upstream, WINDOW, &folder).await;
        agent.moved_to(&proxy.url);
        for number in 20..30 {
            agent.turn(number).await.unwrap();
        }
        assert_eq!(*upstream.seen.illegal.lock().unwrap(), Vec::<String>::new());
        assert_eq!(count(&upstream.seen.refused), 0);
        let lines = proxy.end().await;
        assert!(lines.contains("a view is not read: it is damaged"), "{lines}");
        // Each is looked for once, not with every request.
        let views = rows.query_row("SELECT count(*) FROM proxy_views", [], |row| row.get(0));
        assert!(lines.matches("it is damaged").count() <= views.unwrap(), "{lines}");
    });
}

#[test]
fn databases_that_are_destroyed_under_the_proxy_change_nothing_for_the_agent() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
        for number in 0..30 {
            if number == 10 {
                for entry in std::fs::read_dir(&*folder).unwrap() {
                    std::fs::write(entry.unwrap().path(), "No database.".repeat(1_000)).unwrap();
                }
            }
            agent.turn(number).await.unwrap();
        }
        assert_eq!(*upstream.seen.illegal.lock().unwrap(), Vec::<String>::new());
        assert_eq!(count(&upstream.seen.refused), 0);
        drop(proxy);
        // A new proxy does not begin on such files, and says which it is.
        let error = super::Views::open(&folder.join("threads.db")).unwrap_err().to_string();
        assert!(error.contains("threads.db") && error.contains("--folder"), "{error}");
    });
}

#[test]
fn a_shadow_changes_nothing() {
    run(async {
        let upstream = Upstream::start(WINDOW * 10).await;
        let mut agent = full(&upstream).await;
        let folder = Folder::new();
        let options = options(&upstream, Some(WINDOW / 2));
        let options = super::ProxyOptions { shadow: true, ..options };
        let proxy = Served::in_folder(options, &folder).await;
        agent.moved_to(&proxy.url());
        assert_eq!(sent(&agent, &upstream).await, (Ok(()), true));
    });
}

#[test]
fn a_shadow_in_a_used_folder_changes_nothing() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW * 10).await);
        let small = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        let mut agent = Agent::new(&small.url(), MESSAGES, true);
        for number in 0..20 {
            agent.turn(number).await.unwrap();
        }
        assert_eq!(sent(&agent, &upstream).await, (Ok(()), false));
        drop(small);
        let options = options(&upstream, Some(WINDOW));
        let options = super::ProxyOptions { shadow: true, ..options };
        let proxy = Served::in_folder(options, &folder).await;
        agent.moved_to(&proxy.url());
        assert_eq!(sent(&agent, &upstream).await, (Ok(()), true));
        let url = format!("{}/v1/messages/count_tokens", proxy.url());
        agent.post(&url).body(agent.body()).send().await.unwrap();
        assert_eq!(upstream.seen.last.lock().unwrap().2, agent.body());
    });
}

#[test]
fn a_refusal_for_another_reason_and_a_provider_that_is_gone_reach_the_agent() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
        let url = format!("{}/v1/messages", proxy.url());
        let illegal = agent.post(&url).body("{\"messages\": 5}").send().await.unwrap();
        assert_eq!(illegal.status(), 400);
        assert!(illegal.text().await.unwrap().contains("messages"));
        agent.messages.push(threadfold::Message::user("Hi."));
        let address = upstream.address;
        drop(upstream);
        let gone = agent.ask().await.unwrap_err();
        let words = format!("{address} cannot be reached: ");
        assert!(gone.starts_with("502") && gone.contains(&words), "{gone}");
    });
}

#[test]
fn what_happened_instead_of_an_answer_is_said() {
    run(async {
        let begun = "HTTP/1.1 400 X\r\ncontent-length: 999\r\n\r\n{";
        let rows =
            [("", "broke the connection off before it answered"), (begun, "broke its answer off")];
        for (answer, words) in rows {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let provider = tokio::spawn(async move {
                let (mut socket, _) = listener.accept().await.unwrap();
                let _ = socket.read(&mut [0; 4_096]).await;
                let _ = socket.write_all(answer.as_bytes()).await;
            });
            let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
            let anthropic = format!("http://{address}");
            let options = super::ProxyOptions { anthropic, ..options(&upstream, Some(WINDOW)) };
            let proxy = Served::in_folder(options, &folder).await;
            let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
            agent.messages.push(Message::user("Hi."));
            let error = agent.ask().await.unwrap_err();
            assert!(error.starts_with("502") && error.contains(words), "{error}");
            assert!(!error.contains("cannot be reached"), "{error}");
            provider.await.unwrap();
        }
    });
}

#[test]
fn bodies_and_headers_are_limited() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let options = options(&upstream, Some(WINDOW));
        let options = super::ProxyOptions { max_body: 1_000, ..options };
        let proxy = Served::in_folder(options, &folder).await;
        let url = format!("{}/v1/messages", proxy.url());
        let client = super::client();
        let json = || client.post(&url).header("content-type", "application/json");
        let long = json().body("x".repeat(1_001)).send().await.unwrap();
        assert_eq!(long.status(), 413);
        for (bytes, status) in [(60_000, 400), (66_000, 431), (100_000, 431)] {
            let answer =
                json().body("{}").header("x-long", "x".repeat(bytes)).send().await.unwrap();
            assert_eq!(answer.status(), status, "{bytes}");
        }
        let lines = (0..120).map(|number| {
            let name = reqwest::header::HeaderName::try_from(format!("x-{number}")).unwrap();
            (name, "1".parse().unwrap())
        });
        let answer = json().body("{}").headers(lines.collect()).send().await.unwrap();
        assert_eq!(answer.status(), 431);
        let words = answer.text().await.unwrap();
        assert!(words.contains("more than 100 headers"), "{words}");
        let many = json().header("x-long", "x".repeat(150_000)).send().await;
        let many = many.map(|answer| answer.status().as_u16());
        assert!(matches!(many, Err(_) | Ok(400 | 431)), "{many:?}");
        assert_eq!(count(&upstream.seen.answered), 0);
    });
}

#[test]
fn reasoning_that_is_bound_to_other_messages_is_left_out_after_the_refusal() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let proxy = Served::in_folder(options(&upstream, None), &folder).await;
        let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
        let answer = |signature: &str| {
            let thought = Thinking::new("Hm.", Some(signature.into())).into();
            Message::new(Role::Assistant, vec![thought, ContentBlock::text("Yes.")])
        };
        let elsewhere = answer("signed-elsewhere");
        agent.messages = vec![Message::user("Is it?"), elsewhere, Message::user("And now?")];
        *upstream.seen.lie.lock().unwrap() = "messages.1.content.0: Invalid `signature` in \
            `thinking` block. The block is bound to a different conversation.";
        upstream.seen.lies.store(1, Ordering::Relaxed);
        agent.ask().await.unwrap();
        assert_eq!((count(&upstream.seen.refused), count(&upstream.seen.answered)), (1, 1));
        let sent = upstream.seen.last.lock().unwrap().2.clone();
        let sent = String::from_utf8_lossy(&sent);
        assert!(!sent.contains("signed-elsewhere") && sent.contains("Yes."), "{sent}");
        // The thread goes on without it, and with what was thought later.
        agent.messages.extend([answer("signed-here"), Message::user("And then?")]);
        let shared = agent.messages.clone();
        for number in 0..3 {
            agent.turn(number).await.unwrap();
            let sent = upstream.seen.last.lock().unwrap().2.clone();
            let sent = String::from_utf8_lossy(&sent);
            assert!(!sent.contains("signed-elsewhere") && sent.contains("signed-here"), "{sent}");
        }
        assert_eq!(count(&upstream.seen.refused), 1);
        // Another thread keeps its reasoning, and what is refused later is left out too.
        agent.messages = [&[Message::user("Another.")], &shared[1..]].concat();
        agent.ask().await.unwrap();
        let sent = upstream.seen.last.lock().unwrap().2.clone();
        assert!(String::from_utf8_lossy(&sent).contains("signed-elsewhere"));
        agent.messages = shared;
        upstream.seen.lies.store(1, Ordering::Relaxed);
        for _ in 0..2 {
            agent.ask().await.unwrap();
            let sent = upstream.seen.last.lock().unwrap().2.clone();
            assert!(!String::from_utf8_lossy(&sent).contains("signed-"));
        }
        assert_eq!(count(&upstream.seen.refused), 2);
    });
}

/// An agent whose thread has reasoning that the provider refused once, and a proxy that knows it.
async fn refused_reasoning(upstream: &Upstream, url: &str) -> Agent {
    let mut agent = Agent::new(url, MESSAGES, false);
    let thought = Thinking::new("Hm.", Some("signed-elsewhere".into())).into();
    let answer = Message::new(Role::Assistant, vec![thought, ContentBlock::text("Yes.")]);
    agent.messages = vec![Message::user("Is it?"), answer, Message::user("And now?")];
    *upstream.seen.lie.lock().unwrap() = "The block is bound to a different conversation.";
    upstream.seen.lies.store(1, Ordering::Relaxed);
    agent.ask().await.unwrap();
    assert_eq!(count(&upstream.seen.refused), 1);
    agent
}

#[test]
fn without_refused_reasoning_an_error_of_another_kind_arrives_once() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let mut process = Process::start(&upstream, WINDOW, &folder).await;
        let agent = refused_reasoning(&upstream, &process.url).await;
        *upstream.seen.lie.lock().unwrap() = "top_k: is not supported";
        upstream.seen.lies.store(1, Ordering::Relaxed);
        let error = agent.ask().await.unwrap_err();
        assert!(error.starts_with("400") && error.contains("top_k"), "{error}");
        assert_eq!((count(&upstream.seen.refused), count(&upstream.seen.answered)), (2, 1));
        let lines = process.end().await;
        assert!(!lines.contains("a smaller thread"), "{lines}");
    });
}

#[test]
fn without_refused_reasoning_the_agents_own_thread_follows_a_smaller_one() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW * 10).await);
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        let mut agent = refused_reasoning(&upstream, &proxy.url()).await;
        let long = "A line of a long story.\n".repeat(400);
        for _ in 0..3 {
            let more = [Message::assistant(long.as_str()), Message::user("Another one.")];
            agent.messages.extend(more);
        }
        *upstream.seen.lie.lock().unwrap() = "messages.3: is not allowed";
        upstream.seen.lies.store(1, Ordering::Relaxed);
        upstream.seen.sizes.lock().unwrap().clear();
        agent.ask().await.unwrap();
        let sizes = upstream.seen.sizes.lock().unwrap().clone();
        assert!(sizes.len() == 2 && sizes[0] < sizes[1], "{sizes:?}");
        let sent = upstream.seen.last.lock().unwrap().2.clone();
        let sent = String::from_utf8_lossy(&sent);
        assert!(sent.contains("Yes.") && !sent.contains("signed-elsewhere"), "{sent}");
    });
}

#[test]
fn reasoning_that_one_model_refuses_another_model_gets() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let proxy = Served::in_folder(options(&upstream, None), &folder).await;
        let agent = refused_reasoning(&upstream, &proxy.url()).await;
        let url = format!("{}/v1/messages", proxy.url());
        for (model, is_left_out) in [("unheard-of", true), ("other", false)] {
            let body = agent.body().replacen("unheard-of", model, 1);
            assert_eq!(agent.post(&url).body(body).send().await.unwrap().status(), 200);
            let sent = upstream.seen.last.lock().unwrap().2.clone();
            let has = String::from_utf8_lossy(&sent).contains("signed-elsewhere");
            assert_eq!(has, !is_left_out, "{model}");
        }
    });
}

/// Fills the target, and has the provider refuse the next request for its reasoning.
#[derive(Debug)]
struct Meanwhile(Arc<Seen>);

#[threadfold::async_trait]
impl CompactionStrategy for Meanwhile {
    fn name(&self) -> &str {
        "meanwhile"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        self.0.lies.store(1, Ordering::Relaxed);
        Digest::default().propose(view, ask).await
    }
}

#[test]
fn what_was_compacted_for_a_length_is_kept_although_reasoning_is_refused_too() {
    for reasoning_first in [true, false] {
        run(async {
            let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
            let mut options = options(&upstream, None);
            if !reasoning_first {
                options.strategy = Arc::new(Meanwhile(Arc::clone(&upstream.seen)));
            }
            let proxy = Served::in_folder(options, &folder).await;
            let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
            let long = "A line of a long story.\n".repeat(400);
            agent.messages = vec![Message::user("Tell me stories.")];
            for _ in 0..3 {
                let thought = Thinking::new("Hm.", Some("signed-elsewhere".into())).into();
                let story = vec![thought, ContentBlock::text(long.as_str())];
                agent.messages.push(Message::new(Role::Assistant, story));
                agent.messages.push(Message::user("Another one."));
            }
            let seen = &upstream.seen;
            *seen.lie.lock().unwrap() = "The block is bound to a different conversation.";
            seen.lies.store(usize::from(reasoning_first), Ordering::Relaxed);
            agent.ask().await.unwrap();
            assert_eq!((count(&seen.refused), count(&seen.answered)), (2, 1), "{reasoning_first}");
            let sent = seen.last.lock().unwrap().2.clone();
            assert!(!String::from_utf8_lossy(&sent).contains("signed-elsewhere"));
            // The view is kept, so the next request is neither refused nor compacted.
            agent.messages.extend([Message::assistant("There was one."), Message::user("And?")]);
            agent.ask().await.unwrap();
            assert_eq!((count(&seen.refused), count(&seen.answered)), (2, 2), "{reasoning_first}");
        });
    }
}
