//! Appending to a log, storing it, reading, replaying and undoing, at 1,000, 10,000 and 100,000
//! messages.
//!
//! `cargo bench --bench log` prints the table that `benches/README.md` explains, relative to
//! parsing the same lines to `serde_json::Value` and to a copy of them. The thread is compacted to
//! its last ten messages after every thousand, except in the log whose one compaction is undone.
//! The last rows are logs of one kind of text each.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use std::hint::black_box;

use threadfold::{
    Message, Plan,
    compact::{Insert, Splice},
    log::{CompactionRecord, Event, EventLog, write_event},
    message::{CompactionId, CompactionReason, Timestamp},
};
use yardstick::{Tables, is_test, memcpy_of, row, thread, values};

fn main() {
    let sizes: &[usize] = if is_test() { &[200] } else { &[1_000, 10_000, 100_000] };
    let mut tables = Tables::default();
    for count in sizes {
        measure(&mut tables, thread::thread(*count));
    }
    let count = if is_test() { 100 } else { 10_000 };
    for (name, text) in TEXTS {
        println!("texts only: {name}");
        let texts = (0..count).map(|_| Message::user(text.repeat(1_000 / text.len())));
        measure(&mut Tables::default(), texts.collect());
    }
}

const TEXTS: [(&str, &str); 3] = [
    ("plain", "the quick brown fox jumps over "),
    ("code with line breaks and quotes", "let a = \"b\";\n"),
    ("beyond ASCII", "漢字かな交じり文"),
];

fn measure(tables: &mut Tables, messages: Vec<Message>) {
    let count = messages.len();
    let once = compacted_once(&messages);
    let log = log_of(messages);
    let mut stored = Vec::new();
    log.write(&mut stored).expect("a vector takes everything");
    let repetitions = (300_000 / count.max(1)).clamp(5, 100);
    let nothing = || ();
    let mut buffer = Vec::with_capacity(stored.len());
    let events = || log.events().iter().map(|event| event.event.clone()).collect::<Vec<_>>();
    let append = |events: Vec<Event>| {
        let mut log = EventLog::new(log.thread_id().clone());
        for (at, event) in events.into_iter().enumerate() {
            log.append(Timestamp(at as u64), event).expect("it fits");
        }
        log
    };
    let message = Event::MessageAppended(Message::user("And now?"));
    let rows = vec![
        values(&stored, repetitions),
        memcpy_of(&stored, repetitions),
        row("read", repetitions, nothing, |()| EventLog::read(stored.as_slice())),
        row("read and replay", repetitions, nothing, |()| {
            EventLog::read(stored.as_slice()).map(|read| read.log.replay())
        }),
        row("replay what is read", repetitions, nothing, |()| log.replay()),
        row("sources", repetitions, nothing, |()| log.sources().count()),
        row("append all, from the first on", repetitions, events, append),
        row(
            "append one, behind all",
            repetitions,
            || {
                // A cloned vector has no spare capacity, so the first append copies it.
                let mut log = log.clone();
                log.append(Timestamp(0), message.clone()).expect("it fits");
                (log, message.clone())
            },
            |(mut log, event)| {
                log.append(Timestamp(0), event).expect("it fits");
                log
            },
        ),
        row(
            "undo a compaction of nearly all",
            repetitions,
            || once.clone(),
            |mut log| (log.undo(Timestamp(0), CompactionId(0)).expect("it stands"), log),
        ),
        row("write", repetitions, nothing, |()| {
            buffer.clear();
            for event in log.events() {
                write_event(&mut buffer, event).expect("a vector takes everything");
            }
            black_box(buffer.len())
        }),
    ];
    tables.print("messages, as lines", count, stored.len(), rows);
}

/// The log of these messages. Every thousand the thread is compacted to its last ten.
fn log_of(messages: Vec<Message>) -> EventLog {
    let mut log = EventLog::new("main".parse().expect("an id"));
    let mut len = 0;
    for (number, message) in messages.into_iter().enumerate() {
        let at = Timestamp(number as u64);
        log.append(at, Event::MessageAppended(message)).expect("it fits");
        len += 1;
        if number % 1_000 == 999 {
            compact_to_ten(&mut log, len);
            len = 11;
        }
    }
    log
}

/// The log of these messages with one compaction at the end.
fn compacted_once(messages: &[Message]) -> EventLog {
    let mut log = EventLog::new("main".parse().expect("an id"));
    for message in messages {
        let event = Event::MessageAppended(message.clone());
        log.append(Timestamp(0), event).expect("it fits");
    }
    compact_to_ten(&mut log, messages.len());
    log
}

fn compact_to_ten(log: &mut EventLog, len: usize) {
    let insert = vec![Insert::Message { message: Message::user("So far, so good.") }];
    let plan = Plan::from_splices(len, vec![Splice { at: 0..len - 10, insert }]);
    let (id, reason) = (log.next_compaction(), CompactionReason::Threshold);
    let record = CompactionRecord::new(id, reason, "summarize", plan);
    log.append(Timestamp(0), Event::Compacted(Box::new(record))).expect("it fits");
}
