//! Appending to a log, storing it, reading and replaying it, at 1,000, 10,000 and 100,000 messages.
//!
//! `cargo bench --bench log` prints, for each operation and size, the least, middle and most
//! milliseconds of some repetitions, the ratio to parsing the same lines to `serde_json::Value` in
//! the same run, and the exponent of growth from the size before. Every thousand messages the
//! thread is compacted to its end. Last come logs of one kind of text each.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use std::hint::black_box;

use serde_json::Value;
use threadfold::{
    Message, Plan,
    compact::{Insert, Splice},
    log::{CompactionRecord, Event, EventLog, write_event},
    message::{CompactionReason, Timestamp},
    testing::generate::legal_thread_from,
};
use yardstick::{Spread, exponent, milliseconds, time};

mod yardstick;

type Row = (&'static str, Spread);

fn main() {
    // `cargo test` runs benches too; it wants to see that they run, not how fast.
    let quick = std::env::args().any(|argument| argument == "--test");
    let sizes: &[usize] = if quick { &[200] } else { &[1_000, 10_000, 100_000] };
    let mut before: Vec<(usize, Spread)> = Vec::new();
    for count in sizes {
        let rows = measure(&log_of(legal_thread_from(7, *count)), *count);
        before = print(*count, rows, &before);
    }
    let count = if quick { 100 } else { 10_000 };
    for (name, text) in TEXTS {
        println!("texts only: {name}");
        let texts = (0..count).map(|_| Message::user(text.repeat(1_000 / text.len())));
        print(count, measure(&log_of(texts.collect()), count), &[]);
    }
}

const TEXTS: [(&str, &str); 3] = [
    ("plain", "the quick brown fox jumps over "),
    ("code with line breaks and quotes", "let a = \"b\";\n"),
    ("beyond ASCII", "漢字かな交じり文"),
];

fn print(count: usize, rows: Vec<Row>, before: &[(usize, Spread)]) -> Vec<(usize, Spread)> {
    println!(
        "{:<34} {:>9} {:>10} {:>10} {:>10} {:>9} {:>9}",
        "operation", "messages", "least ms", "middle ms", "most ms", "x Value", "exponent"
    );
    let value = rows[0].1;
    for (index, (name, spread)) in rows.iter().enumerate() {
        let growth = before.get(index).map(|small| exponent(*small, (count, *spread)));
        println!(
            "{name:<34} {count:>9} {:>10} {:>10} {:>10} {:>9.4} {:>9}",
            milliseconds(spread.least),
            milliseconds(spread.middle),
            milliseconds(spread.most),
            spread.over(value),
            growth.map(|growth| format!("{growth:.2}")).unwrap_or_default(),
        );
    }
    println!();
    rows.into_iter().map(|(_, spread)| (count, spread)).collect()
}

fn measure(log: &EventLog, count: usize) -> Vec<Row> {
    let mut stored = Vec::new();
    log.write(&mut stored).expect("a vector takes everything");
    let lines = || stored.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let value = |line: &[u8]| serde_json::from_slice::<Value>(line).expect("JSON");
    let repetitions = (300_000 / count.max(1)).clamp(5, 100);
    let nothing = || ();
    let mut buffer = Vec::with_capacity(stored.len());
    let append = |events: Vec<Event>| {
        let mut log = EventLog::new(log.thread_id().clone());
        for (at, event) in events.into_iter().enumerate() {
            log.append(Timestamp(at as u64), event).expect("it fits");
        }
        log
    };
    let events = || log.iter().map(|event| event.event.clone()).collect();
    vec![
        ("parse to Value, a line at a time", {
            time(repetitions, nothing, |()| lines().map(value).collect::<Vec<_>>())
        }),
        ("read", time(repetitions, nothing, |()| EventLog::read(stored.as_slice()))),
        ("read and replay", {
            let work = |()| EventLog::read(stored.as_slice()).map(|read| read.log.replay());
            time(repetitions, nothing, work)
        }),
        ("replay what is read", time(repetitions, nothing, |()| log.replay())),
        ("projection", time(repetitions, nothing, |()| log.projection())),
        ("append, from the first on", time(repetitions, events, append)),
        ("write", {
            time(repetitions, nothing, |()| {
                buffer.clear();
                log.iter().for_each(|event| {
                    write_event(&mut buffer, event).expect("a vector takes everything");
                });
                black_box(buffer.len())
            })
        }),
        ("copy the lines (memcpy)", time(repetitions, nothing, |()| stored.clone())),
    ]
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
            let insert = vec![Insert::Message { message: Message::user("So far, so good.") }];
            let plan = Plan::from_splices(len, vec![Splice { at: 0..len - 10, insert }]);
            let (id, reason) = (log.next_compaction(), CompactionReason::Threshold);
            let record = CompactionRecord::new(id, reason, "summarize", plan);
            log.append(at, Event::Compacted(Box::new(record))).expect("it fits");
            len = 11;
        }
    }
    log
}
