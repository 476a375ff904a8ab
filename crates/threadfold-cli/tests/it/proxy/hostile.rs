//! Browsers, foreign keys, odd HTTP, and what a log or a folder must not hold.

use std::{process::Stdio, sync::atomic::Ordering};

use threadfold::store::ThreadStore;
use threadfold_sqlite::SqliteStore;
use threadfold_testing::shared::Folder;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use super::{
    MESSAGES, Served, WINDOW,
    agent::Agent,
    client, count, options, run,
    upstream::{DIALECTS, Upstream},
};

/// Sends bytes and reads until the server closes the connection.
async fn raw(address: std::net::SocketAddr, request: &str) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

/// Three providers, and a proxy before them.
async fn three(folder: &Folder) -> ([Upstream; 3], Served) {
    let upstreams = [
        Upstream::start(WINDOW).await,
        Upstream::start(WINDOW).await,
        Upstream::start(WINDOW).await,
    ];
    let [anthropic, openai, gemini] = &upstreams;
    let options = super::ProxyOptions {
        anthropic: anthropic.url(),
        openai: openai.url(),
        gemini: gemini.url(),
        ..options(anthropic, None)
    };
    let served = Served::in_folder(options, folder).await;
    (upstreams, served)
}

fn asked(upstream: &Upstream) -> String {
    upstream.seen.last.lock().unwrap().0.clone()
}

#[test]
fn a_page_of_another_site_reaches_nothing() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        let (client, url) = (client(), format!("{}/v1/messages", proxy.url()));
        let own = proxy.url();
        let rows = [
            ("origin", "https://evil.test", 403),
            ("origin", "http://localhost:3000", 403),
            ("origin", "null", 403),
            ("sec-fetch-site", "cross-site", 403),
            ("sec-fetch-site", "same-site", 403),
            ("content-type", "text/plain", 415),
            ("x-nothing", "", 415),
        ];
        for (name, value, status) in rows {
            let answer = client.post(&url).header(name, value).body("{}").send().await.unwrap();
            assert_eq!(answer.status(), status, "{name}: {value}");
            let page = client.get(format!("{own}/threadfold")).header(name, value).send().await;
            assert_eq!(
                page.unwrap().status(),
                if status == 403 { 403 } else { 200 },
                "{name}: {value}"
            );
        }
        assert_eq!(asked(&upstream), "");
        let preflight =
            client.request(reqwest::Method::OPTIONS, &url).header("origin", "https://a.b");
        assert_eq!(preflight.send().await.unwrap().status(), 403);
        let json = client.post(&url).header("content-type", "application/json; charset=utf-8");
        json.header("origin", &own).body("{}").send().await.unwrap();
        assert_eq!(asked(&upstream), "/v1/messages");
    });
}

#[test]
fn a_key_of_one_vendor_never_reaches_another() {
    run(async {
        let folder = Folder::new();
        let ([anthropic, openai, gemini], proxy) = three(&folder).await;
        let client = client();
        let bearer = |key: &str| ("authorization", format!("Bearer {key}"));
        let key = |name: &'static str, key: &str| (name, key.to_owned());
        // The path, the key, and the provider that gets both.
        let rows = [
            ("/v1/threads/thread_1/messages", bearer("sk-proj-1"), Some(&openai)),
            ("/v1/threads/v1/messages", bearer("sk-1"), Some(&openai)),
            ("/v1/threads/thread_1/messages", key("x-api-key", "sk-ant-1"), None),
            ("/v1/messages", bearer("sk-proj-1"), None),
            ("/v1/messages", key("x-goog-api-key", "AIza1"), None),
            ("/v1/messages", key("x-api-key", "sk-ant-1"), Some(&anthropic)),
            ("/v1/messages/batches", key("x-api-key", "sk-ant-1"), Some(&anthropic)),
            ("/v1/chat/completions", key("x-api-key", "sk-ant-1"), None),
            ("/v1/chat/completions", bearer("sk-ant-1"), None),
            ("/v1/chat/completions", bearer("AIza1"), None),
            ("/v1/chat/completions?key=AIza1", bearer("sk-1"), None),
            ("/v1/chat/completions", bearer("sk-1"), Some(&openai)),
            (
                "/v1beta/models/gemini-0:generateContent",
                key("x-goog-api-key", "AIza1"),
                Some(&gemini),
            ),
            ("/v1beta/models/gemini-0:countTokens?key=AIza1", key("x-own", "1"), Some(&gemini)),
            ("/v1beta/models/gemini-0:generateContent", bearer("sk-proj-1"), None),
            ("/v1/models", key("x-api-key", "secret"), Some(&anthropic)),
            ("/v1/models", key("x-goog-api-key", "AIza1"), Some(&gemini)),
            ("/v1/models", bearer("sk-1"), Some(&openai)),
            ("/elsewhere", bearer("sk-ant-1"), Some(&anthropic)),
            ("/elsewhere", key("x-own", "1"), Some(&openai)),
        ];
        for (path, (name, value), expected) in rows {
            let url = format!("{}{path}", proxy.url());
            let request = client.post(url).header("content-type", "application/json");
            let answer = request.header(name, &value).body("{}").send().await.unwrap();
            let answered = answer.status();
            let text = answer.text().await.unwrap();
            for upstream in [&anthropic, &openai, &gemini] {
                let is_expected = expected.is_some_and(|other| std::ptr::eq(other, upstream));
                let asked = std::mem::take(&mut *upstream.seen.last.lock().unwrap()).0;
                assert_eq!(!asked.is_empty(), is_expected, "{path} {value}: {text}");
            }
            if expected.is_none() {
                assert_eq!(answered, 403, "{path} {value}");
                assert!(text.contains("key of") && !text.contains(&value), "{text}");
            }
        }
    });
}

#[test]
fn http_is_spoken_as_it_is_defined() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let options = options(&upstream, None);
        let openai = format!("{}/base", upstream.url());
        let proxy = Served::in_folder(super::ProxyOptions { openai, ..options }, &folder).await;
        let address = proxy.address;
        let head = format!("host: {address}\r\nconnection: close\r\n\r\n");
        // The answer to HEAD states the length that the answer to GET has.
        let answer = raw(address, &format!("HEAD /v1/files HTTP/1.1\r\n{head}")).await;
        assert!(status(&answer) == "200" && answer.contains("content-length: 16\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{answer}");
        let answer = raw(address, &format!("GET /v1/files HTTP/1.1\r\n{head}")).await;
        assert!(answer.contains("content-length: 16\r\n") && answer.ends_with("true}"), "{answer}");
        assert_eq!(asked(&upstream), "/base/v1/files");
        // The server itself answers what is asked about it.
        *upstream.seen.last.lock().unwrap() = Default::default();
        let answer = raw(address, &format!("OPTIONS * HTTP/1.1\r\n{head}")).await;
        assert_eq!((status(&answer), asked(&upstream).as_str()), ("204", ""), "{answer}");
        for path in ["/v1/../x", "/v1/%2e%2E/x", "/..%2fx", "/v1\\..\\x"] {
            let answer = raw(address, &format!("GET {path} HTTP/1.1\r\n{head}")).await;
            assert_eq!((status(&answer), asked(&upstream).as_str()), ("400", ""), "{path}");
        }
        for (request, expected) in [
            (format!("GET http://evil.test/v1/files HTTP/1.1\r\n{head}"), "403"),
            (format!("CONNECT {address} HTTP/1.1\r\n{head}"), "405"),
            (format!("TRACE /v1/files HTTP/1.1\r\n{head}"), "405"),
            (format!("GET * HTTP/1.1\r\n{head}"), "400"),
            (format!("GET /v1/files HTTP/1.1\r\nhost: {address}\r\n{head}"), "400"),
            ("GET /v1/files HTTP/1.1\r\nconnection: close\r\n\r\n".to_owned(), "400"),
        ] {
            let answer = raw(address, &request).await;
            assert_eq!((status(&answer), asked(&upstream).as_str()), (expected, ""), "{request}");
            assert_eq!(answer.contains("\r\nallow: GET, HEAD, "), expected == "405", "{answer}");
        }
    });
}

#[test]
fn a_path_and_a_query_go_on_byte_for_byte() {
    run(async {
        let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let openai = format!("http://{}/base", provider.local_addr().unwrap());
        let options = super::ProxyOptions { openai, ..options(&upstream, None) };
        let proxy = Served::in_folder(options, &folder).await;
        let target = "/v1/files/it's/{1}//a|b^c\"d%7e%2Fe;f=(g)?a='b'&c=it%27s&d={[|]}^`e``&&f?/";
        let head = format!("host: {}\r\nconnection: close\r\n\r\n", proxy.address);
        let request = format!("GET {target} HTTP/1.1\r\n{head}");
        let asked = tokio::spawn(async move {
            let (mut socket, _) = provider.accept().await.unwrap();
            let mut read = Vec::new();
            while !read.ends_with(b"\r\n\r\n") {
                assert!(socket.read_buf(&mut read).await.unwrap() > 0);
            }
            socket.write_all(b"HTTP/1.1 204 X\r\n\r\n").await.unwrap();
            String::from_utf8(read).unwrap()
        });
        let answer = raw(proxy.address, &request).await;
        assert_eq!(status(&answer), "204", "{answer}");
        let asked = asked.await.unwrap();
        assert_eq!(asked.lines().next().unwrap(), format!("GET /base{target} HTTP/1.1"));
        // What the client did not send is not added, except the host.
        let mut headers: Vec<_> = asked.lines().skip(1).filter(|line| !line.is_empty()).collect();
        headers.retain(|line| !line.starts_with("host: "));
        assert_eq!(headers, Vec::<&str>::new());
    });
}

#[test]
fn a_request_within_a_request_is_never_sent() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let proxy = Served::in_folder(options(&upstream, None), &folder).await;
        let address = proxy.address;
        let inner = format!("GET /v1/smuggled HTTP/1.1\r\nhost: {address}\r\n\r\n");
        let head = format!("POST /v1/files HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        let len = inner.len();
        for request in [
            // By RFC 9112 the body is that of the chunks, and the connection is closed after it.
            format!(
                "{head}content-length: {len}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{inner}"
            ),
            format!("{head}content-length: 0\r\ncontent-length: {len}\r\n\r\n{inner}"),
            format!("{head}content-length: +{len}\r\n\r\n{inner}"),
            format!("{head}transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n{inner}"),
            format!("{head}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n{inner}"),
            format!("{head}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n{inner}"),
            format!("{head}transfer-encoding : chunked\r\n\r\n0\r\n\r\n{inner}"),
            format!("{head}content-length: {len}\r\n\r\n{inner}"),
        ] {
            raw(address, &request).await;
            assert_ne!(asked(&upstream), "/v1/smuggled", "{request}");
        }
    });
}

/// A provider that sends the head and the beginning of an answer, and nothing more.
async fn trickling(status: u16) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut open = Vec::new();
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = [0; 64 * 1024];
            while !request.contains(&b'}') {
                assert_ne!(socket.read(&mut request).await.unwrap(), 0);
            }
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: 999\r\n\r\n{{");
            socket.write_all(head.as_bytes()).await.unwrap();
            open.push(socket);
        }
    });
    url
}

#[test]
fn an_answer_that_never_ends_still_begins() {
    run(async {
        let begins = async |status: u16| {
            let folder = Folder::new();
            let upstream = Upstream::start(WINDOW).await;
            let options = options(&upstream, None);
            let anthropic = trickling(status).await;
            let options = super::ProxyOptions { anthropic, ..options };
            let proxy = Served::in_folder(options, &folder).await;
            let agent = Agent::new(&proxy.url(), MESSAGES, false);
            let url = format!("{}/v1/messages", proxy.url());
            // Without a limit this waits for ever.
            let mut answer = agent.post(&url).body(agent.body()).send().await.unwrap();
            assert_eq!(answer.status(), status);
            assert_eq!(answer.chunk().await.unwrap().unwrap(), "{");
        };
        futures::future::join_all([200, 400, 401, 404, 503].map(begins)).await;
    });
}

#[test]
fn a_refusal_with_any_status_is_sent_again_smaller() {
    run(async {
        for (row, status) in
            [(DIALECTS[1], 500), (DIALECTS[1], 503), (DIALECTS[1], 200), (DIALECTS[0], 529)]
        {
            let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
            upstream.seen.refuses_with.store(status, Ordering::Relaxed);
            let proxy = Served::in_folder(options(&upstream, None), &folder).await;
            let mut agent = Agent::new(&proxy.url(), row, false);
            for number in 0..25 {
                agent.turn(number).await.unwrap();
            }
            assert_eq!(*upstream.seen.illegal.lock().unwrap(), Vec::<String>::new());
            assert!(count(&upstream.seen.refused) > 0);
        }
    });
}

#[test]
fn a_provider_cannot_switch_the_protocol() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let anthropic = format!("http://{}", listener.local_addr().unwrap());
        let switches = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = socket.read(&mut [0; 4_096]).await;
            let answer = "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\
                connection: upgrade\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
            let _ = socket.write_all(answer.as_bytes()).await;
        });
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let options = super::ProxyOptions { anthropic, ..options(&upstream, None) };
        let proxy = Served::in_folder(options, &folder).await;
        let agent = Agent::new(&proxy.url(), MESSAGES, false);
        let url = format!("{}/v1/messages", proxy.url());
        let answer = agent.post(&url).body(agent.body()).send().await.unwrap();
        assert_eq!(answer.status(), 502);
        switches.abort();
    });
}

#[test]
fn a_stream_that_is_declared_as_text_is_read() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        upstream.seen.refuses_in_streams.store(true, Ordering::Relaxed);
        upstream.seen.says_plain.store(true, Ordering::Relaxed);
        let proxy = Served::in_folder(options(&upstream, None), &folder).await;
        let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
        for number in 0..25 {
            agent.turn(number).await.unwrap();
        }
        assert!(count(&upstream.seen.refused) > 0);
    });
}

#[test]
fn counts_are_learnt_from_a_stream_that_never_says_done() {
    run(async {
        let refused = async |reports: bool| {
            let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
            upstream.seen.bytes_per_token.store(2, Ordering::Relaxed);
            upstream.seen.reports.store(reports, Ordering::Relaxed);
            upstream.seen.never_says_done.store(true, Ordering::Relaxed);
            let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
            let mut agent = Agent::new(&proxy.url(), DIALECTS[1], true);
            agent.is_lenient = true;
            for number in 0..40 {
                agent.turn(number).await.unwrap();
            }
            count(&upstream.seen.refused)
        };
        let (silent, reporting) = (refused(false).await, refused(true).await);
        assert!(reporting < silent && reporting <= 1, "{reporting} of {silent}");
    });
}

#[test]
fn pages_are_framed_by_nobody_and_run_nothing() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
        agent.messages.push(threadfold::Message::user("<style>x</style><script>alert(1)</script>"));
        for number in 0..20 {
            agent.turn(number).await.unwrap();
        }
        let client = client();
        let get = async |path: &str| {
            let answer = client.get(format!("{}{path}", proxy.url())).send().await.unwrap();
            let policy = answer.headers()["content-security-policy"].to_str().unwrap().to_owned();
            (answer.status().as_u16(), policy, answer.text().await.unwrap())
        };
        let (_, _, index) = get("/threadfold").await;
        let link = index.split("href=\"").nth(1).unwrap().split('"').next().unwrap();
        for path in ["/threadfold", link, "/threadfold/threads/%22%3E%3Cscript%3E", "/threadfold/x"]
        {
            let (_, policy, page) = get(path).await;
            assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
            assert!(
                policy.contains("default-src 'none'") && !policy.contains("unsafe"),
                "{policy}"
            );
            assert!(!page.contains("<script"), "{path}");
            // One sheet, allowed by its hash.
            let sheets = page.matches("<style>").count();
            assert_eq!(policy.matches("'sha256-").count(), sheets, "{path}: {policy}");
        }
        assert_eq!(get("/threadfold/threads/%22%3E%3Cscript%3E").await.0, 404);
    });
}

#[test]
fn a_folder_keeps_the_newest_threads() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let options = super::ProxyOptions { max_threads: 2, ..options(&upstream, Some(WINDOW)) };
        let proxy = Served::in_folder(options, &folder).await;
        let mut agents = Vec::new();
        for name in 0..4 {
            let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
            agent.messages.push(threadfold::Message::user(format!("I am {name}.")));
            for number in 0..15 {
                agent.turn(number).await.unwrap();
            }
            agents.push(agent);
        }
        let store = SqliteStore::open(folder.join("threads.db")).unwrap();
        assert_eq!(store.list().await.unwrap().len(), 2);
        // A thread that was deleted goes on.
        agents[0].turn(15).await.unwrap();
        assert_eq!(*upstream.seen.illegal.lock().unwrap(), Vec::<String>::new());
        assert_eq!(count(&upstream.seen.refused), 0);
    });
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        // The name that an earlier build used for its own table.
        let theirs = rusqlite::Connection::open(folder.join("views.db")).unwrap();
        theirs
            .execute_batch("CREATE TABLE views (name TEXT); INSERT INTO views VALUES ('x')")
            .unwrap();
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
        for number in 0..15 {
            agent.turn(number).await.unwrap();
        }
        let rows = theirs.query_row("SELECT count(*) FROM views", [], |row| row.get::<_, i64>(0));
        assert_eq!(rows, Ok(1));
    });
}

#[test]
fn a_body_of_very_many_messages_passes_as_it_came() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW * 100).await);
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        let agent = Agent::new(&proxy.url(), MESSAGES, false);
        let message = r#"{"role":"user","content":"x"},"#.repeat(50_000);
        let body = format!("{{\"messages\":[{}]}}", message.trim_end_matches(','));
        agent
            .post(&format!("{}/v1/messages", proxy.url()))
            .body(body.clone())
            .send()
            .await
            .unwrap();
        assert!(upstream.seen.last.lock().unwrap().2 == body.as_bytes());
    });
}

#[test]
fn standard_error_holds_no_text_of_a_thread_or_a_provider() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_threadfold"));
        command.args(["proxy", "--listen", "127.0.0.1:0", "--window", "500", "--folder"]);
        command.arg(&*folder).args(["--anthropic", &upstream.url()]);
        let mut process = command.stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut errors = BufReader::new(process.stderr.take().unwrap());
        let mut started = String::new();
        errors.read_line(&mut started).await.unwrap();
        let url = started.split_whitespace().find(|word| word.starts_with("http")).unwrap();
        let url = url.trim_end_matches(',');
        let agent = Agent::new(url, MESSAGES, false);
        let long = "The password is hunter42. ".repeat(200);
        let bodies: [Vec<u8>; 6] = [
            format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"{long}\\ud83d\"}}]}}")
                .into(),
            format!("{{\"messages\":[{{\"role\":\"hunter42\",\"content\":\"{long}\"}}]}}").into(),
            format!("{{\"max_tokens\":\"hunter42\",\"messages\":\"{long}\"}}").into(),
            format!("{{\"model\":\"m\",\"model\":\"hunter42\",\"messages\":[\"{long}\"]}}").into(),
            format!("{{\"messages\":[{long}").into(),
            [b"{\"messages\":[\"", long.as_bytes(), b"\xff\"]}"].concat(),
        ];
        let count = bodies.len();
        for body in bodies {
            agent.post(&format!("{url}/v1/messages")).body(body).send().await.unwrap();
        }
        let whole = format!("{{\"messages\":\"{long}\"}}");
        let path = format!("{url}/v1/messages");
        for coding in ["gzip", "hunter42, secrets of a thread", "identity"] {
            let request = agent.post(&path).header("content-encoding", coding);
            request.body(whole.clone()).send().await.unwrap();
        }
        let stored = format!("{{\"previous_response_id\":\"hunter42\",\"input\":\"{long}\"}}");
        agent.post(&path).body(stored).send().await.unwrap();
        // The provider refuses the smaller thread, and quotes it.
        let mut agent = agent;
        for number in 0..4 {
            agent.messages.push(threadfold::Message::user(format!("{number} {long}")));
            agent.messages.push(threadfold::Message::assistant(long.clone()));
        }
        agent.messages.push(threadfold::Message::user("And now?"));
        *upstream.seen.only.lock().unwrap() = Some(agent.body());
        let _ = agent.ask().await;
        process.start_kill().unwrap();
        let mut printed = started;
        errors.read_to_string(&mut printed).await.unwrap();
        assert!(printed.matches("passed through").count() >= count - 1, "{printed}");
        for line in [
            "a body of 5,215 bytes: its content encoding is gzip, which is not read",
            "a body of 5,215 bytes: its content encoding is unknown, which is not read",
            "a body of 5,215 bytes: messages: expected",
            "a body of 5,246 bytes: the provider stores the beginning of its thread \
             (previous_response_id)",
            "bytes: the body is not UTF-8, from byte 5214",
        ] {
            assert_eq!(printed.matches(line).count(), 1, "{line}: {printed}");
        }
        assert!(!printed.contains("hunter42") && !printed.contains("this thread"), "{printed}");
    });
}

#[test]
fn the_provider_stops_for_a_client_that_goes_away() {
    run(async {
        let (folder, provider) = (Folder::new(), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let upstream = Upstream::start(WINDOW).await;
        let anthropic = format!("http://{}", provider.local_addr().unwrap());
        let options = super::ProxyOptions { anthropic, ..options(&upstream, Some(WINDOW)) };
        let proxy = Served::in_folder(options, &folder).await;
        let body = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            proxy.address,
            body.len()
        );
        let mut client = TcpStream::connect(proxy.address).await.unwrap();
        client.write_all(head.as_bytes()).await.unwrap();
        let (mut asked, _) = provider.accept().await.unwrap();
        let mut read = Vec::new();
        while !read.ends_with(body.as_bytes()) {
            assert!(asked.read_buf(&mut read).await.unwrap() > 0);
        }
        drop(client);
        // No answer was begun, so this ends only if the proxy lets the provider go.
        let rest = asked.read_to_end(&mut read);
        tokio::time::timeout(std::time::Duration::from_secs(20), rest).await.unwrap().unwrap();
    });
}

#[cfg(unix)]
#[test]
fn a_program_that_is_ended_takes_its_name_out_of_the_folder() {
    run(async {
        // One that these tests were started to ignore, as by `nohup`, is ignored there too.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap());
        let hangup = (ignored & 1 == 0).then_some("HUP");
        for signal in ["INT", "TERM"].into_iter().chain(hangup) {
            let folder = Folder::new();
            let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_threadfold"));
            command.args(["proxy", "--listen", "127.0.0.1:0", "--folder"]).arg(&*folder);
            let mut process = command.stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
            let mut errors = BufReader::new(process.stderr.take().unwrap()).lines();
            while let Some(line) = errors.next_line().await.unwrap() {
                if line.contains("Ctrl-C stops") {
                    break;
                }
            }
            let running = || {
                let rows = rusqlite::Connection::open(folder.join("threads.db")).unwrap();
                let count = "SELECT count(*) FROM proxy_running";
                rows.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap()
            };
            while running() == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            let kill = ["-s", signal, &process.id().unwrap().to_string()].map(str::to_owned);
            tokio::process::Command::new("kill").args(kill).status().await.unwrap();
            let ended = tokio::time::timeout(std::time::Duration::from_secs(60), process.wait());
            assert_eq!(ended.await.unwrap().unwrap().code(), Some(0), "{signal}");
            assert!(!folder.join("threads.db-wal").exists(), "{signal}");
            assert_eq!(running(), 0, "{signal}");
        }
    });
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_deleted_under_a_proxy_has_a_line() {
    run(async {
        let folder = Folder::new();
        let state = folder.join("state");
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_threadfold"));
        command.args(["proxy", "--listen", "127.0.0.1:0", "--folder"]).arg(&state);
        let mut process = command.stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut errors = BufReader::new(process.stderr.take().unwrap()).lines();
        while let Some(line) = errors.next_line().await.unwrap() {
            if line.contains("Ctrl-C stops") {
                std::fs::remove_dir_all(&state).unwrap();
            }
            if line.contains("the database of the folder is gone") {
                return;
            }
        }
        panic!("nothing was said");
    });
}
