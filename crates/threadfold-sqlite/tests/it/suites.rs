//! The conformance suites, and properties of this store that they do not check.

use std::sync::Arc;

use futures::executor::block_on;
use threadfold::{
    Message,
    log::{Event, LogId, LoggedEvent},
    message::Timestamp,
    store::{Journal, JsonlStore, LeaseStore, StoreError, ThreadStore},
};
use threadfold_testing::{conformance, faulty_store};

use crate::support::{Folder, append, id, open, said, texts};

#[test]
fn the_store_conforms() {
    let (folder, mut count) = (Folder::new(), 0);
    let make = || {
        count += 1;
        Box::new(open(&folder.join(count.to_string()))) as _
    };
    block_on(conformance::store(make)).unwrap_or_else(|breach| panic!("{breach}"));
    let failing = |place: usize| {
        let store = open(&folder.join(format!("failing-{place}")));
        (place <= 3).then(|| Box::new(faulty_store(store, &[None, Some(place)])) as _)
    };
    block_on(conformance::failing_store(failing)).unwrap_or_else(|breach| panic!("{breach}"));
}

#[test]
fn the_leases_conform() {
    let (folder, mut count) = (Folder::new(), 0);
    let make = || {
        count += 1;
        Box::new(open(&folder.join(count.to_string()))) as _
    };
    block_on(conformance::leases(make)).unwrap_or_else(|breach| panic!("{breach}"));
}

#[test]
fn eight_workers_share_two_hundred_threads_for_ten_minutes() {
    let folder = Folder::new();
    let worked = block_on(conformance::workers(Arc::new(open(&folder))));
    worked.unwrap_or_else(|breach| panic!("{breach}"));
}

#[test]
fn lines_are_stored_byte_for_byte_as_in_files() {
    let folder = Folder::new();
    let odd = r#"{"seq":0,"at":7,"event":{"compacted":{"b":1.0,"a":[1e2,"\u00e4\u0000"]}}}"#;
    let odd: LoggedEvent = serde_json::from_str(odd).unwrap();
    let events = [odd, said(1, "a\n\r\"\\\u{0}\u{2028}\u{1f600}"), said(2, "")];
    append(&open(&folder), "t", &events).unwrap();
    append(&JsonlStore::open(&*folder).unwrap(), "t", &events).unwrap();

    let file = std::fs::read_to_string(folder.join("t.jsonl")).unwrap();
    let database = rusqlite::Connection::open(folder.join("threads.db")).unwrap();
    let mut rows = database.prepare("SELECT event FROM events ORDER BY seq").unwrap();
    let rows = rows.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let rows: Vec<String> = rows.map(Result::unwrap).collect();
    assert_eq!(rows, file.lines().skip(1).collect::<Vec<_>>());
}

#[test]
fn a_recreated_log_is_not_mistaken_for_the_earlier_one() {
    let folder = Folder::new();
    let store = open(&folder);
    let thread = id("t");
    let write =
        |log, seq: u64| block_on(store.append(&thread, Some(LogId(log)), seq, &[said(seq, "hi")]));
    write(1, 0).unwrap();
    write(1, 1).unwrap();
    block_on(store.delete(&thread)).unwrap();
    assert!(matches!(write(1, 2), Err(StoreError::Conflict { expected: 2, found: 0 })));
    write(2, 0).unwrap();
    let other = write(1, 1).unwrap_err();
    let (ours, found) = (Some(LogId(1)), Some(LogId(2)));
    assert!(
        matches!(&other, StoreError::OtherLog { expected, found: stored, .. }
            if (*expected, *stored) == (ours, found)),
        "{other}"
    );
    assert_eq!(block_on(store.load(&thread)).unwrap().id, found);
}

#[test]
fn a_dropped_write_is_completed_before_the_next_load() {
    let folder = Folder::new();
    let store = open(&folder);
    let (thread, events) = (id("t"), [said(0, "hi")]);
    let mut write = store.append(&thread, None, 0, &events);
    let polled = futures::FutureExt::now_or_never(&mut write);
    drop(write);
    drop(polled);
    assert_eq!(texts(&store, "t"), ["hi"]);

    drop(store.append(&thread, None, 1, &[said(1, "never polled")]));
    assert_eq!(texts(&store, "t"), ["hi"]);
}

#[test]
fn many_threads_are_listed_once_and_sorted() {
    let folder = Folder::new();
    let store = Arc::new(open(&folder));
    let names: Vec<_> = (0..150).map(|index| id(&format!("thread-{index:03}"))).collect();
    for (index, thread) in names.iter().enumerate().rev() {
        let mut journal = block_on(Journal::open(store.clone(), thread.clone())).unwrap();
        let text = Message::user(format!("I am {index}."));
        journal.append(Timestamp(1), Event::MessageAppended(text)).unwrap();
        block_on(journal.flush()).unwrap();
    }
    assert_eq!(block_on(store.list()).unwrap(), names);
    assert_eq!(texts(&store, "thread-042"), ["I am 42."]);
}

#[test]
fn an_erased_thread_leaves_no_bytes_in_the_files() {
    let folder = Folder::new();
    let (store, thread, other) = (open(&folder), id("t-secret"), id("other"));
    let secret = "the lamp is from 1874";
    for thread in [&thread, &other] {
        let text = if *thread == other { "kept" } else { secret };
        block_on(store.append(thread, None, 0, &[said(0, text)])).unwrap();
    }
    let ten = std::time::Duration::from_secs(10);
    block_on(store.acquire_lease(&thread, secret, Timestamp(0), ten)).unwrap();
    assert!(holds(&folder, secret) && holds(&folder, "lamp"), "it is in the files");

    block_on(store.erase(&thread)).unwrap();
    for text in [secret, "1874", "lamp"] {
        assert!(!holds(&folder, text), "{text} is left");
    }
    assert_eq!(texts(&store, other.as_str()), ["kept"]);
    assert!(!holds(&folder, thread.as_str()), "the name is left");
    assert_eq!(block_on(store.list()).unwrap(), [other]);
}

/// Whether a file of the database holds this text.
fn holds(folder: &std::path::Path, text: &str) -> bool {
    let files = ["threads.db", "threads.db-wal"].map(|name| std::fs::read(folder.join(name)));
    let holds = |bytes: &Vec<u8>| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    files.iter().flatten().any(holds)
}
