//! A server that shares its store, when it loses its lease.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use server::router;
use threadfold::{
    ThreadStore,
    message::{ThreadId, Timestamp},
    store::{LeaseStore, MemoryStore},
};

use crate::{client::Client, judge::Judge};

#[tokio::test]
async fn a_turn_that_lost_its_lease_ends_and_stores_nothing_more() {
    let (judge, store) = (Arc::new(Judge::default()), Arc::new(MemoryStore::default()));
    let router = router(judge.shared(store.clone()));
    let (client, stop) = (Client { router, thread: "u1".to_owned() }, judge.stop("u1-t0"));
    let mut events = client.send("u1-t0 stop-within").await;
    events.until(stop.arrived.notified()).await;
    let thread: ThreadId = "u1".parse().unwrap();
    let before = store.load(&thread).await.unwrap().log;

    // The clock of the other server is far ahead.
    let (later, second) = (Timestamp(u64::MAX / 2), Duration::from_secs(1));
    let taken = store.acquire_lease(&thread, "another", later, second).await.unwrap();
    let mut last = String::new();
    while let Some(event) = events.next().await {
        last = event["type"].as_str().unwrap().to_owned();
    }
    assert!(["aborted", "failed"].contains(&last.as_str()), "{last}");
    drop(events);
    assert_eq!(judge.running.load(Ordering::SeqCst), 0);
    assert_eq!(store.load(&thread).await.unwrap().log, before);

    store.release_lease(&taken).await.unwrap();
    stop.open.notify_one();
    let kinds = client.go_on().await.kinds().await;
    assert_eq!(kinds.last().map(String::as_str), Some("turn_ended"));
}

#[tokio::test]
async fn a_queued_text_outlives_the_session_of_a_dropped_turn() {
    let (judge, store) = (Arc::new(Judge::default()), Arc::new(MemoryStore::default()));
    let router = router(judge.shared(store));
    let (client, stop) = (Client { router, thread: "u1".to_owned() }, judge.stop("u1-t0"));
    let mut events = client.send("u1-t0 stop-within").await;
    events.until(stop.arrived.notified()).await;
    client.queue("u1-t1 plain").await;
    drop(events);
    let kinds = client.send("u1-t2 plain").await.kinds().await;
    assert_eq!(kinds, ["queued_message", "turn_ended", "turn_ended"]);
}
