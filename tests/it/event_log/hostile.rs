//! Arbitrary events in arbitrary order cause no panic, and the work grows linearly with the log.

use proptest::{collection::vec, prelude::*};
use threadfold::{
    Message,
    log::{Event, EventLog, LoggedEvent},
    message::{CompactionId, Timestamp},
};
use threadfold_testing::generate::junk_thread;

use super::{compact, log_of, say, splice};
use crate::support::tries::tries;

/// The JSON of a well-formed event with arbitrary content.
fn event() -> impl Strategy<Value = String> {
    let number = || prop_oneof![9 => 0_u64..6, 1 => Just(u64::MAX)];
    let place = || prop_oneof![19 => 0_u64..7, 1 => Just(u64::MAX)];
    let insert = prop_oneof![
        (place(), vec(0_u32..3, 0..3)).prop_map(|(message, blocks)| {
            format!(r#"{{"part":{{"message":{message},"blocks":{blocks:?}}}}}"#)
        }),
        Just(r#"{"message":{"message":{"role":"user","content":[]}}}"#.to_owned()),
    ];
    let splice = (place(), place(), vec(insert, 0..3)).prop_map(|(start, end, insert)| {
        let insert = insert.join(",");
        format!(r#"{{"at":{{"start":{start},"end":{end}}},"insert":[{insert}]}}"#)
    });
    let plan = (place(), vec(splice, 0..3));
    prop_oneof![
        4 => junk_thread(1..2).prop_filter_map("a message", |messages| {
            let message = serde_json::to_string(messages.first()?).ok()?;
            Some(format!(r#"{{"message_appended":{message}}}"#))
        }),
        4 => (number(), plan).prop_map(|(id, (before, splices))| {
            let splices = splices.join(",");
            let plan = format!(r#"{{"version":1,"before":{before},"splices":[{splices}]}}"#);
            let reason = r#"{"type":"threshold"}"#;
            format!(r#"{{"compacted":{{"id":{id},"reason":{reason},"strategy":"s","plan":{plan}}}}}"#)
        }),
        2 => number().prop_map(|id| format!(r#"{{"compaction_undone":{{"id":{id}}}}}"#)),
        2 => (place(), place()).prop_map(|(from, len)| {
            format!(r#"{{"truncated":{{"from":{from},"len":{len}}}}}"#)
        }),
        1 => number().prop_map(|id| format!(r#"{{"compacted":{{"id":{id}}}}}"#)),
        1 => number().prop_map(|id| format!(r#"{{"compaction_failed":{{"id":{id}}}}}"#)),
        1 => Just(r#"{"compacted":[]}"#.to_owned()),
    ]
}

/// Calls every method of an arbitrary log.
fn ask(log: &EventLog) {
    assert_eq!(log.times().count(), log.replay().len());
    for id in (0..7).chain([u64::MAX]).map(CompactionId) {
        let stands = log.standing().any(|record| record.id == id);
        let covered = log.covered(id);
        assert_eq!(covered.is_some(), stands);
        let covered = covered.unwrap_or_default();
        assert!(covered.windows(2).all(|pair| pair[0].end < pair[1].start));
        if let Ok(plan) = log.undo_plan(id) {
            let mut live = log.replay();
            plan.apply(&mut live).unwrap();
            let mut undone = log.clone();
            let _ = undone.undo(Timestamp(0), id).unwrap();
            assert_eq!(undone.replay(), live);
        }
    }
    assert!(log.compaction(log.next_compaction()).is_none());
}

proptest! {
    #![proptest_config(tries(400))]

    #[test]
    fn well_formed_events_in_any_order_never_panic(events in vec(event(), 0..30)) {
        let mut stored = "{\"log\":\"threadfold\",\"major\":1,\"thread\":\"main\"}\n".to_owned();
        for (seq, event) in events.iter().enumerate() {
            stored.push_str(&format!("{{\"seq\":{seq},\"at\":0,\"event\":{event}}}\n"));
        }
        let read = EventLog::read(stored.as_bytes()).unwrap();
        prop_assert_eq!(read.log.len(), events.len() as u64);
        ask(&read.log);
        let mut again = Vec::new();
        read.log.write(&mut again).unwrap();
        prop_assert_eq!(EventLog::read(again.as_slice()).unwrap().log, read.log);
    }
}

#[test]
fn compacting_and_undoing_repeatedly_stays_fast() {
    // Thousands of messages, all of them removed and restored thousands of times.
    let count = 20_000;
    let mut log = log_of(&[]);
    (0..count).for_each(|number| say(&mut log, &number.to_string()));
    let odd = (0..count).step_by(2).map(|at| splice(at..at + 1, &["other"])).collect();
    compact(&mut log, odd);
    let before = log.replay();
    for _ in 0..count / 2 {
        let id = log.next_compaction();
        let plan = threadfold::Plan::from_splices(count, vec![splice(0..count - 1, &["all"])]);
        let record = threadfold::log::CompactionRecord::new(id, Default::default(), "s", plan);
        log.append(Timestamp(0), Event::Compacted(Box::new(record))).unwrap();
        let event = Event::CompactionUndone { id };
        log.append(Timestamp(0), event).unwrap();
    }
    assert_eq!(log.replay(), before);
}

#[test]
fn a_log_of_any_length_is_read_in_one_pass() {
    // The thread is compacted every thousand messages; the log grows and the thread does not.
    let mut log = log_of(&[]);
    for number in 0..100_000_u64 {
        let event = Event::MessageAppended(Message::user("x"));
        let event = LoggedEvent { seq: log.len(), at: Timestamp(number), event };
        log.append_logged(event).unwrap();
        if number % 1_000 == 999 {
            let len = log.replay().len();
            compact(&mut log, vec![splice(0..len - 10, &["so far"])]);
        }
    }
    assert_eq!(log.replay().len(), 11);
    assert_eq!(log.standing().count(), 100);
    let last = log.standing().next_back().unwrap().id;
    assert_eq!(
        log.covered(last).unwrap().iter().map(|run| run.end - run.start).sum::<u64>(),
        99_990
    );
}

#[test]
fn a_summary_of_many_cuts_is_resolved_in_one_pass() {
    // Each of the messages replaces those of all cuts. Listing them separately would take the
    // product.
    let count = 20_000;
    let texts = vec!["x"; 2 * count];
    let mut log = log_of(&texts);
    let mut splices: Vec<_> = (0..count).map(|at| splice(2 * at..2 * at + 1, &[])).collect();
    splices.push(splice(2 * count - 1..2 * count, &vec!["y"; count]));
    compact(&mut log, splices);
    let len = log.replay().len();
    compact(&mut log, vec![splice(0..len, &["all"])]);
    assert_eq!(log.covered(CompactionId(1)), Some(vec![0..2 * count as u64]));
}

#[test]
fn keeping_a_large_block_repeatedly_does_not_copy_it() {
    // A result of many pieces, which thousands of plans keep.
    let pieces = (0..40_000).map(|_| threadfold::ContentBlock::text("")).collect();
    let result = threadfold::message::ToolResult::new("t1", pieces);
    let mut log = log_of(&[]);
    let message = Message::new(threadfold::Role::User, vec![result.into()]);
    log.append(Timestamp(0), Event::MessageAppended(message)).unwrap();
    for _ in 0..4_000 {
        let kept = threadfold::compact::Insert::Part { message: 0, blocks: [0].into() };
        compact(&mut log, vec![threadfold::compact::Splice { at: 0..1, insert: vec![kept] }]);
    }
    let messages = log.replay();
    let Event::MessageAppended(came) = &log.events()[0].event else { unreachable!() };
    assert!(messages[0].ptr_eq(came));
}

#[test]
fn reasoning_is_searched_for_once_if_compactions_change_nothing() {
    // If every compaction read all of them, this would take a minute.
    let count = 30_000;
    let thought = threadfold::message::Thinking::new("hm", None);
    let answer = Message::new(threadfold::Role::Assistant, vec![thought.into()]);
    let mut log = log_of(&["a", "b"]);
    compact(&mut log, vec![splice(0..1, &["A"])]);
    // Compactions that do nothing, with an answer after each and many messages after the last.
    for _ in 0..count {
        let id = log.next_compaction();
        let before = 2 + id.0 as usize - 1;
        let plan = threadfold::Plan::from_splices(before, vec![]);
        let record = threadfold::log::CompactionRecord::new(id, Default::default(), "s", plan);
        log.append(Timestamp(0), Event::Compacted(Box::new(record))).unwrap();
        log.append(Timestamp(0), Event::MessageAppended(answer.clone())).unwrap();
    }
    for _ in 0..9 * count {
        log.append(Timestamp(0), Event::MessageAppended(answer.clone())).unwrap();
    }
    for id in (1..=count).rev().map(CompactionId) {
        let _ = log.undo(Timestamp(0), id).unwrap();
    }
    let _ = log.undo(Timestamp(0), CompactionId(0)).unwrap();
    let marked = log.replay();
    assert_eq!(marked.iter().filter(|message| message.prefix_rewritten).count() as u64, 10 * count);
}
