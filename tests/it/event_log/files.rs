//! The cases under `testdata/log`.
//!
//! Sections are events, in order: `append` (each message of the thread in it is one), `compact
//! A..B` (the thread in it replaces the messages from A to B), `truncate FROM LEN`, `undo N`,
//! `fail`, `event` (its JSON, as stored). Then come `expect`, the thread that is sent after repair;
//! `skipped`, the numbers of the skipped events; and `counts`.

use threadfold::{
    Plan,
    compact::{Insert, Splice},
    legality,
    log::{CompactionFailure, CompactionRecord, Event, EventLog, LoggedEvent},
    message::{CompactionId, CompactionReason, Timestamp},
};
use threadfold_testing::{
    notation,
    shared::cases::{Case, read},
};

#[test]
fn every_case_replays_to_its_expected_thread() {
    for case in read(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/log")).unwrap() {
        check(&case);
    }
}

fn check(case: &Case) {
    let name = &case.name;
    let log = log_of(case);
    let mut stored = Vec::new();
    log.write(&mut stored).unwrap();
    let read = EventLog::read(stored.as_slice()).unwrap();
    assert_eq!((&read.log, read.torn), (&log, None), "{name}: reads back otherwise");
    for log in [log, read.log] {
        let messages = log.replay();
        let (sent, _) = legality::repair(messages.clone());
        let expected = notation::parse(case.section("expect").expect(name)).expect(name);
        assert_eq!(notation::write(&sent), notation::write(&expected), "{name}");
        let skipped = case.section("skipped").unwrap_or_default().lines();
        let skipped: Vec<u64> = skipped.map(|line| line.parse().unwrap()).collect();
        let found: Vec<u64> = log.skipped().iter().map(|(seq, _)| *seq).collect();
        assert_eq!(found, skipped, "{name}");
        let counts = format!("events {}\nmessages {}\n", log.len(), messages.len());
        assert_eq!(case.section("counts").unwrap_or(&counts), counts, "{name}");
        assert_eq!(log.sources().count(), messages.len(), "{name}");
    }
}

/// The log of a case, as a store reads it; no event of a case may be refused.
fn log_of(case: &Case) -> EventLog {
    let mut log = EventLog::new("main".parse().unwrap());
    for (name, body) in &case.sections {
        let (word, rest) = name.split_once(' ').unwrap_or((name.as_str(), ""));
        let thread = || notation::parse(body).unwrap();
        match word {
            "append" => {
                thread().into_iter().for_each(|it| push(&mut log, Event::MessageAppended(it)))
            }
            "compact" => {
                let event = compacted(&log, rest, thread().into_iter());
                push(&mut log, event);
            }
            "truncate" => {
                let (from, len) = rest.split_once(' ').unwrap();
                let (from, len) = (from.parse().unwrap(), len.parse().unwrap());
                push(&mut log, Event::Truncated { from, len });
            }
            "undo" => {
                let id = CompactionId(rest.parse().unwrap());
                push(&mut log, Event::CompactionUndone { id });
            }
            "fail" => {
                let id = log.next_compaction();
                let failure = CompactionFailure::new(id, CompactionReason::Threshold, "s", "x");
                push(&mut log, Event::CompactionFailed(Box::new(failure)));
            }
            "event" => push(&mut log, serde_json::from_str(body).unwrap()),
            "expect" | "skipped" | "counts" => {}
            _ => panic!("{}: there is no section {name}", case.name),
        }
    }
    log
}

fn push(log: &mut EventLog, event: Event) {
    // Times run backwards: only the order of the log counts.
    let event = LoggedEvent { seq: log.len(), at: Timestamp(1_000 - log.len()), event };
    log.append_logged(event).unwrap();
}

fn compacted(
    log: &EventLog,
    words: &str,
    insert: impl Iterator<Item = threadfold::Message>,
) -> Event {
    let mut words = words.split(' ');
    let (from, to) = words.next().unwrap().split_once("..").unwrap();
    let at = from.parse().unwrap()..to.parse().unwrap();
    let insert = insert.map(|message| Insert::Message { message }).collect();
    // The length that the plan is for, where it is not that of the thread.
    let before = words.next().map(|before| before.parse().unwrap());
    let before = before.unwrap_or_else(|| log.replay().len());
    let plan = Plan::from_splices(before, vec![Splice { at, insert }]);
    let id = log.next_compaction();
    let record = CompactionRecord::new(id, CompactionReason::default(), "mine", plan);
    Event::Compacted(Box::new(record))
}
