//! Appending to a store of files and loading from it, at 1,000, 10,000 and 100,000 events.
//!
//! `cargo bench --bench store` prints the table that `benches/README.md` explains, relative to
//! serializing the same events and writing them to a file in one write (and one sync if the store
//! syncs), and for loading, relative to parsing the same lines to `serde_json::Value`. The files
//! are in the build folder. The cost of a sync depends on the disk and varies most.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::Path,
};

use futures::executor::block_on;
use threadfold::{
    Message, ThreadStore,
    log::{Event, EventLog, LoggedEvent, write_event},
    message::{ThreadId, Timestamp},
    store::JsonlStore,
};
use yardstick::{Row, Tables, is_test, memcpy_of, row, thread, values};

fn main() {
    let sizes: &[usize] = if is_test() { &[200] } else { &[1_000, 10_000, 100_000] };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let (mut batches, mut ones, mut loads) = Default::default();
    for count in sizes {
        measure(&folder, *count, [&mut batches, &mut ones, &mut loads]);
    }
    fs::remove_dir_all(&folder).expect("the folder");
}

fn measure(folder: &Path, count: usize, [batches, ones, loads]: [&mut Tables; 3]) {
    let log = log_of(thread::thread(count));
    let mut stored = Vec::new();
    log.write(&mut stored).expect("a vector takes everything");
    let repetitions = (100_000 / count.max(1)).clamp(3, 50);

    println!("a batch of all events, into an empty log");
    let [never, always] = [false, true].map(|syncs| move || emptied(folder, syncs));
    let all = |store: JsonlStore| append(&store, &log, 0, log.events());
    let by_hands = folder.join("by-hand");
    let create = || {
        let _ = fs::remove_file(&by_hands);
        File::create(&by_hands).expect("a file")
    };
    let rows = vec![
        by_hand("serialise and write", create, log.events(), false, repetitions).yardstick("write"),
        by_hand("serialise, write and sync", create, log.events(), true, repetitions)
            .yardstick("sync"),
        memcpy_of(&stored, repetitions),
        row("append, no sync", repetitions, never, all),
        row("append, with its sync", repetitions, always, all),
    ];
    batches.print("events", count, stored.len(), rows);

    println!("one event, behind all of them");
    one(folder, &log, ones, count);

    println!("loading");
    let full = emptied(folder, false);
    append(&full, &log, 0, log.events());
    let rows = vec![
        values(&stored, repetitions),
        memcpy_of(&stored, repetitions),
        row(
            "read the file alone",
            repetitions,
            || (),
            |()| fs::read(folder.join("main.jsonl")).expect("a file").len(),
        ),
        row("load", repetitions, || (), |()| block_on(full.load(log.thread_id()))),
        row(
            "load the last ten",
            repetitions,
            || (),
            |()| block_on(full.load_from(log.thread_id(), log.len().saturating_sub(10))),
        ),
    ];
    loads.print("events", count, stored.len(), rows);
}

/// Appends events one by one to a stored log.
fn one(folder: &Path, log: &EventLog, tables: &mut Tables, count: usize) {
    let (mut log, text) = (log.clone(), thread::fill(thread::PROSE, 0, 1_000));
    let mut rows = Vec::new();
    for (name, yardstick, column, syncs) in [
        ("append, no sync", "serialise and write", "write", false),
        ("append, with its sync", "serialise, write and sync", "sync", true),
    ] {
        let store = emptied(folder, syncs);
        append(&store, &log, 0, log.events());
        let event = Event::MessageAppended(Message::user(text.clone()));
        log.append(Timestamp(0), event.clone()).expect("it fits");
        let last = log.since(log.len() - 1).to_vec();
        append(&store, &log, log.len() - 1, &last);
        let path = folder.join("by-hand");
        let open = || OpenOptions::new().append(true).open(&path).expect("the file from before");
        let by_hand = by_hand(yardstick, open, &last, syncs, 200);
        rows.push(by_hand.yardstick(column));
        let mut next = || {
            log.append(Timestamp(0), event.clone()).expect("it fits");
            log.since(log.len() - 1).to_vec()
        };
        let id: ThreadId = "main".parse().expect("an id");
        rows.push(row(name, 200, &mut next, |events: Vec<LoggedEvent>| {
            block_on(store.append(&id, None, events[0].seq, &events)).expect("it is appended");
        }));
    }
    tables.print("events", count, text.len(), rows);
}

/// Serializes the events and writes them to the end of a file in one write.
fn by_hand(
    name: &'static str,
    open: impl FnMut() -> File,
    events: &[LoggedEvent],
    sync: bool,
    repetitions: usize,
) -> Row {
    row(name, repetitions, open, |mut file: File| {
        let mut lines = Vec::new();
        for event in events {
            write_event(&mut lines, event).expect("a vector takes everything");
        }
        file.write_all(&lines).expect("it is written");
        if sync {
            file.sync_data().expect("it is synced");
        }
    })
}

fn append(store: &JsonlStore, log: &EventLog, len: u64, events: &[LoggedEvent]) {
    block_on(store.append(log.thread_id(), None, len, events)).expect("it is appended");
}

/// A store without a log.
fn emptied(folder: &Path, syncs: bool) -> JsonlStore {
    let _ = fs::remove_file(folder.join("main.jsonl"));
    let store = JsonlStore::open(folder).expect("a store");
    if syncs { store } else { store.without_sync() }
}

fn log_of(messages: Vec<Message>) -> EventLog {
    let mut log = EventLog::new("main".parse().expect("an id"));
    for message in messages {
        log.append(Timestamp(0), Event::MessageAppended(message)).expect("it fits");
    }
    log
}
