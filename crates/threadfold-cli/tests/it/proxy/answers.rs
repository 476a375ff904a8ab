//! Answers of the provider on their way to the agent.

use std::{
    convert::Infallible,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    Request, Response,
    body::{Bytes, Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use threadfold_testing::shared::Folder;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

use super::{
    MESSAGES, Process, Served, WINDOW,
    agent::Agent,
    count, options, run,
    upstream::{DIALECTS, GEMINI, Upstream},
};

#[test]
fn a_refusal_within_a_stream_is_a_refusal() {
    super::learns_its_window(true);
}

#[test]
fn a_refusal_that_no_compaction_helps_reaches_the_agent_as_it_came() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(10).await);
        upstream.seen.refuses_in_streams.store(true, Ordering::Relaxed);
        let proxy = Served::in_folder(options(&upstream, None), &folder).await;
        let mut agent = Agent::new(&proxy.url(), MESSAGES, true);
        let error = agent.turn(0).await.unwrap_err();
        assert!(error.contains("prompt is too long"), "{error}");
    });
}

#[test]
fn the_providers_counts_are_learnt() {
    run(async {
        let rows = DIALECTS.into_iter().chain(GEMINI);
        for (row, streams) in rows.zip([true, false, true, false, true, true]) {
            let refused = async |reports: bool| {
                let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
                // The proxy thinks of three bytes.
                upstream.seen.bytes_per_token.store(2, Ordering::Relaxed);
                upstream.seen.reports.store(reports, Ordering::Relaxed);
                let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
                let mut agent = Agent::new(&proxy.url(), row, streams);
                for number in 0..40 {
                    agent.turn(number).await.unwrap();
                }
                count(&upstream.seen.refused)
            };
            let (silent, reporting) = (refused(false).await, refused(true).await);
            assert!(reporting < silent && reporting <= 1, "{reporting} of {silent}");
        }
    });
}

#[test]
fn a_smaller_thread_that_is_refused_for_another_reason_gives_way_to_the_agents_own() {
    run(async {
        let upstream = Upstream::start(WINDOW * 10).await;
        let mut agent = Agent::new(&upstream.url(), MESSAGES, false);
        for number in 0..12 {
            agent.turn(number).await.unwrap();
        }
        agent.messages.push(threadfold::Message::user("And now?"));
        *upstream.seen.only.lock().unwrap() = Some(agent.body());
        let folder = Folder::new();
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW / 2)), &folder).await;
        agent.moved_to(&proxy.url());
        agent.ask().await.unwrap();
        assert_eq!(upstream.seen.illegal.lock().unwrap().len(), 1);
    });
}

#[test]
fn what_is_packed_stays_packed() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let proxy = Served::in_folder(options(&upstream, Some(WINDOW)), &folder).await;
        let client = super::client();
        let post = |path: &str| client.post(format!("{}{path}", proxy.url()));
        let other = post("/v1/files").header("accept-encoding", "gzip").send().await.unwrap();
        assert_eq!(other.headers()["content-encoding"], "gzip");
        assert_eq!(other.bytes().await.unwrap(), "{\"unknown\":true}");
        // A refusal has to be read.
        let agent = Agent::new(&proxy.url(), MESSAGES, false);
        let messages = || post("/v1/messages").header("content-type", "application/json");
        let answer = messages().header("accept-encoding", "gzip").body(agent.body());
        answer.send().await.unwrap();
        assert!(!upstream.seen.last.lock().unwrap().1.contains("gzip"));
        // A body that the proxy cannot read goes on as it came.
        let packed = messages().header("content-encoding", "zstd").body("(packed");
        packed.send().await.unwrap();
        let (_, headers, body) = upstream.seen.last.lock().unwrap().clone();
        assert!(headers.contains("zstd") && body == "(packed", "{headers}");
    });
}

/// A provider whose answer never ends. It says when its connection is given up.
async fn endless(left: Arc<Notify>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let service = service_fn(async |_: Request<Incoming>| {
            let piece = || Ok::<_, io::Error>(Frame::data(Bytes::from(vec![b'x'; 64 * 1024])));
            let body = StreamBody::new(stream::repeat_with(piece).boxed());
            Ok::<_, Infallible>(Response::new(body))
        });
        let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        left.notify_one();
    });
    url
}

/// A provider that refuses the first request for its length, and all others with status 500 and a
/// body of which the end is late.
async fn stalling() -> String {
    const TOO_LONG: &str = r#"{"type": "error", "error": {"type": "invalid_request_error",
        "message": "prompt is too long: 9000 tokens > 3000 maximum"}}"#;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let asked = Arc::clone(&asked);
            tokio::spawn(async move {
                let service = service_fn(async |request: Request<Incoming>| {
                    let _ = request.into_body().collect().await;
                    let is_first = asked.fetch_add(1, Ordering::Relaxed) == 0;
                    let frame =
                        |text: &'static str| Ok::<_, io::Error>(Frame::data(Bytes::from(text)));
                    let late = stream::once(async move {
                        tokio::time::sleep(Duration::from_secs(8)).await;
                        frame("the server failed\"}}")
                    });
                    let (status, body) = match is_first {
                        true => (400, stream::iter([frame(TOO_LONG)]).boxed()),
                        false => {
                            let begun = stream::iter([frame("{\"error\": {\"message\": \"")]);
                            (500, begun.chain(late).boxed())
                        }
                    };
                    let answer = Response::builder().status(status);
                    let answer = answer.header("content-type", "application/json");
                    Ok::<_, Infallible>(answer.body(StreamBody::new(body)).unwrap())
                });
                let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
            });
        }
    });
    url
}

#[test]
fn a_refusal_whose_body_is_late_is_a_refusal() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW * 10).await);
        let options =
            super::ProxyOptions { anthropic: stalling().await, ..options(&upstream, None) };
        let proxy = Served::in_folder(options, &folder).await;
        let mut agent = Agent::new(&upstream.url(), MESSAGES, false);
        for number in 0..20 {
            agent.turn(number).await.unwrap();
        }
        agent.messages.push(threadfold::Message::user("And now?"));
        agent.moved_to(&proxy.url());
        let error = agent.ask().await.unwrap_err();
        assert!(error.starts_with("400") && error.contains("prompt is too long"), "{error}");
        let rows = rusqlite::Connection::open(folder.join("threads.db")).unwrap();
        let kept = |table: &str| -> i64 {
            rows.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
        };
        assert_eq!((kept("proxy_views"), kept("proxy_windows")), (0, 0));
    });
}

#[test]
fn what_came_before_an_answer_broke_off_reaches_the_agent() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let anthropic = format!("http://{}", listener.local_addr().unwrap());
        let event = "event: content_block_delta\ndata: {\"type\": \"content_block_delta\", \
            \"index\": 0, \"delta\": {\"type\": \"text_delta\", \"text\": \"Well\"}}\n\n";
        let provider = tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let _ = socket.read(&mut [0; 4_096]).await;
                let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\
                    content-length: 9999\r\n\r\n";
                for piece in [head, event, event, event] {
                    let _ = socket.write_all(piece.as_bytes()).await;
                }
            }
        });
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let options = super::ProxyOptions { anthropic, ..options(&upstream, Some(WINDOW)) };
        let proxy = Served::in_folder(options, &folder).await;
        let agent = Agent::new(&proxy.url(), MESSAGES, true);
        let url = format!("{}/v1/messages", proxy.url());
        for _ in 0..100 {
            let answer = agent.post(&url).body(agent.body()).send().await.unwrap();
            let mut pieces = answer.bytes_stream();
            let mut whole = Vec::new();
            while let Some(Ok(piece)) = pieces.next().await {
                whole.extend_from_slice(&piece);
            }
            assert_eq!(String::from_utf8(whole).unwrap(), event.repeat(3));
        }
        provider.abort();
    });
}

#[test]
fn a_client_that_reads_nothing_is_left() {
    run(async {
        let (folder, left) = (Folder::new(), Arc::new(Notify::new()));
        let url = endless(Arc::clone(&left)).await;
        let upstream = Upstream::start(WINDOW).await;
        let options = super::ProxyOptions {
            openai: url,
            stall: Duration::from_millis(50),
            ..options(&upstream, Some(WINDOW))
        };
        let proxy = Served::in_folder(options, &folder).await;
        let mut client = TcpStream::connect(proxy.address).await.unwrap();
        let head = format!("GET /v1/files HTTP/1.1\r\nhost: {}\r\n\r\n", proxy.address);
        client.write_all(head.as_bytes()).await.unwrap();
        // The client holds its end open and takes nothing. Without the limit this waits for ever.
        left.notified().await;
        drop(client);
    });
}

#[test]
fn a_process_that_is_killed_within_any_request_finds_its_views_again() {
    run(async {
        let (folder, upstream) = (Folder::new(), Upstream::start(WINDOW).await);
        let mut agent = Agent::new("", MESSAGES, true);
        for number in 0..16 {
            let mut process = Process::start(&upstream, WINDOW, &folder).await;
            agent.moved_to(&process.url);
            agent.turn(number).await.unwrap();
            // Another request is on its way when the process is killed, further on each time.
            agent.messages.push(threadfold::Message::user("And then?"));
            let mut asked = Box::pin(agent.ask());
            for _ in 0..number {
                if futures::poll!(&mut asked).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            process.end().await;
            drop(asked);
            agent.messages.pop();
        }
        assert_eq!(*upstream.seen.illegal.lock().unwrap(), Vec::<String>::new());
        assert_eq!(count(&upstream.seen.refused), 0);
    });
}
