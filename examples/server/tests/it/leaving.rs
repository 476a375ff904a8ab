//! A client that leaves, over a socket.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use server::{Threads, router};
use threadfold::store::MemoryStore;
use tokio::{net::TcpListener, sync::oneshot, task, time};

use crate::{client::Client, judge::Judge};

const PATIENCE: Duration = Duration::from_secs(20);

/// Sends a text over a socket of its own, and reads until the first event.
fn begin(address: SocketAddr, text: &str) -> TcpStream {
    let body = format!("{{\"text\":\"{text}\"}}");
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "POST /threads/u1/turns HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).unwrap();
    let (mut read, mut piece) = (Vec::new(), [0; 1_024]);
    while !String::from_utf8_lossy(&read).contains("text_delta") {
        let count = socket.read(&mut piece).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&piece[..count]);
    }
    socket
}

async fn until(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            task::yield_now().await;
        }
    };
    time::timeout(PATIENCE, wait).await.expect("it never holds");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_socket_ends_the_turn_and_the_thread_continues() {
    let judge = Arc::new(Judge::default());
    let threads: Threads = judge.threads(Arc::new(MemoryStore::default()), 8);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (end, ended) = oneshot::channel::<()>();
    let served = axum::serve(listener, router(threads.clone()))
        .with_graceful_shutdown(async { drop(ended.await) });
    let served = task::spawn(served.into_future());

    let socket = task::spawn_blocking(move || begin(address, "u1-t0 stop-within")).await.unwrap();
    judge.stop("u1-t0").arrived.notified().await;
    assert_eq!(judge.running.load(Ordering::SeqCst), 1);
    drop(socket);
    until(|| judge.running.load(Ordering::SeqCst) == 0).await;

    let client = Client { router: router(threads), thread: "u1".to_owned() };
    let kinds = client.send("u1-t1 tool").await.kinds().await;
    assert_eq!(kinds.last().map(String::as_str), Some("turn_ended"));
    end.send(()).unwrap();
    served.await.unwrap().unwrap();
    assert_eq!(*judge.complaints.lock().unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_late_client_sees_the_answer_so_far() {
    let judge = Arc::new(Judge::default());
    let threads = judge.threads(Arc::new(MemoryStore::default()), 8);
    let client = Client { router: router(threads), thread: "u1".to_owned() };
    let stop = judge.stop("u1-t0");
    let mut events = client.send("u1-t0 stop-within").await;
    events.until(stop.arrived.notified()).await;
    let seen = client.show().await;
    assert_eq!((&seen["busy"], &seen["answer"]), (&true.into(), &"This is ".into()));
    assert_eq!(seen["messages"][0]["text"], "u1-t0 stop-within");
    stop.open.notify_one();
    events.kinds().await;
    let seen = client.show().await;
    assert_eq!((&seen["busy"], seen["answer"].is_null()), (&false.into(), true));
    assert_eq!(seen["messages"][1]["from"], "assistant");
}

#[tokio::test]
async fn a_queued_text_keeps_its_session_in_memory() {
    let judge = Arc::new(Judge::default());
    let threads = judge.threads(Arc::new(MemoryStore::default()), 1);
    let server = router(threads);
    let client = Client { router: server.clone(), thread: "u1".to_owned() };
    let stop = judge.stop("u1-t0");
    let mut events = client.send("u1-t0 stop-within").await;
    events.until(stop.arrived.notified()).await;
    client.queue("u1-t1 plain").await;
    // The turn that would have taken the text is dropped.
    drop(events);
    for other in 2..6 {
        let client = Client { router: server.clone(), thread: format!("u{other}") };
        client.send(&format!("u{other}-t0 plain")).await.kinds().await;
    }
    let kinds = client.send("u1-t2 plain").await.kinds().await;
    assert_eq!(kinds, ["queued_message", "turn_ended", "turn_ended"]);
}
