//! Undone, refused and covered compactions.

use threadfold::{
    ContentBlock, Message, Role,
    compact::{Insert, Splice},
    log::{Event, LogError},
    message::{CompactionId, Json, Thinking, Timestamp},
};

use super::{append, compact, compacted, log_of, say, splice, texts};

const FIRST: CompactionId = CompactionId(0);
const SECOND: CompactionId = CompactionId(1);

#[test]
fn compactions_are_undone_from_the_latest_backwards() {
    let mut log = log_of(&["a", "b", "c"]);
    compact(&mut log, vec![splice(0..2, &["ab"])]);
    say(&mut log, "d");
    compact(&mut log, vec![splice(0..2, &["abc"])]);
    say(&mut log, "e");
    let covered = LogError::CoveredCompaction { id: FIRST, by: SECOND };
    assert_eq!(log.undo(Timestamp(9), FIRST), Err(covered));
    let _ = log.undo(Timestamp(9), SECOND).unwrap();
    assert_eq!(texts(&log.replay()), ["ab", "c", "d", "e"]);
    let _ = log.undo(Timestamp(9), FIRST).unwrap();
    assert_eq!(texts(&log.replay()), ["a", "b", "c", "d", "e"]);
    assert_eq!(log.undo(Timestamp(9), FIRST), Err(LogError::UndoneCompaction { id: FIRST }));
    assert_eq!(log.next_compaction(), CompactionId(2));
    assert_eq!(log.compaction(FIRST).unwrap().id, FIRST);
    assert_eq!(log.standing().count(), 0);
}

#[test]
fn a_compaction_whose_result_was_truncated_cannot_be_undone() {
    let mut log = log_of(&["a", "b", "c"]);
    compact(&mut log, vec![splice(0..2, &["ab"])]);
    say(&mut log, "d");
    append(&mut log, Event::Truncated { from: 3, len: 2 });
    assert!(log.undo_plan(FIRST).is_ok());
    append(&mut log, Event::Truncated { from: 2, len: 1 });
    say(&mut log, "e");
    say(&mut log, "f");
    assert_eq!(log.undo(Timestamp(9), FIRST), Err(LogError::TruncatedCompaction { id: FIRST }));
    assert_eq!(texts(&log.replay()), ["ab", "e", "f"]);
}

#[test]
fn events_that_cannot_be_replayed_are_refused() {
    let mut log = log_of(&["a", "b", "c"]);
    compact(&mut log, vec![splice(0..2, &["ab"])]);
    let part =
        |message, blocks| Splice { at: 0..1, insert: vec![Insert::Part { message, blocks }] };
    let used = |log| {
        let Event::Compacted(mut record) = compacted(log, vec![splice(0..1, &[])]) else {
            unreachable!()
        };
        record.id = FIRST;
        Event::Compacted(record)
    };
    let rows = [
        (
            Event::Truncated { from: 3, len: 1 },
            "a cut from 3 to 1 messages does not fit a thread of 2",
        ),
        (
            Event::Truncated { from: 2, len: 3 },
            "a cut from 2 to 3 messages does not fit a thread of 2",
        ),
        (
            compacted(&log, vec![splice(1..2, &[]), splice(0..1, &[])]),
            "splice 1 of the plan is out of order or out of range",
        ),
        (
            compacted(&log, vec![part(0, [1].into())]),
            "splice 0 of the plan keeps blocks of message 0 that are not there",
        ),
        (
            compacted(&log, vec![part(1, [0].into())]),
            "splice 0 of the plan keeps blocks of message 1 that are not there",
        ),
        (used(&log), "compaction 0 is in the log already"),
        (Event::CompactionUndone { id: SECOND }, "compaction 1 is not in the log"),
        (
            Event::Malformed { kind: "compacted".into(), data: Json::default() },
            "the record of the compaction cannot be read",
        ),
    ];
    let before = log.clone();
    for (event, reason) in rows {
        assert_eq!(log.append(Timestamp(9), event).unwrap_err().to_string(), reason);
        assert_eq!((&log, log.replay()), (&before, before.replay()));
    }
}

#[test]
fn later_reasoning_is_marked_and_restored_messages_are_unchanged() {
    let reasons = |text: &str| {
        let thinking = Thinking::new(text, Some("sig".into()));
        Message::new(Role::Assistant, vec![thinking.into(), ContentBlock::text(text)])
    };
    let mut log = log_of(&["a", "b"]);
    append(&mut log, Event::MessageAppended(reasons("c")));
    let all = Insert::Part { message: 2, blocks: [0, 1].into() };
    compact(&mut log, vec![splice(0..2, &["ab"]), Splice { at: 2..3, insert: vec![all] }]);
    append(&mut log, Event::MessageAppended(reasons("d")));
    let marks = |log: &threadfold::log::EventLog| {
        let messages = log.replay();
        messages.iter().map(|message| message.prefix_rewritten).collect::<Vec<_>>()
    };
    assert_eq!(marks(&log), [false, true, false]);
    let plan = log.undo_plan(FIRST).unwrap();
    let mut live = log.replay();
    plan.apply(&mut live).unwrap();
    let _ = log.undo(Timestamp(9), FIRST).unwrap();
    assert_eq!(marks(&log), [false, false, false, true]);
    assert_eq!(log.replay(), live);
}

#[test]
fn a_compaction_covers_all_messages_that_its_messages_represent() {
    let mut log = log_of(&["a", "b"]);
    append(&mut log, Event::LocalNotice { text: "hm".into() });
    say(&mut log, "c");
    say(&mut log, "d");
    // `b` stays, and `a` and `c` are removed.
    compact(&mut log, vec![splice(0..1, &[]), splice(2..3, &["ac"])]);
    assert_eq!(log.covered(FIRST), Some(vec![0..1, 3..4]));
    say(&mut log, "e");
    // The summary is removed, and with it the messages that it replaced.
    let keep_d = Insert::Part { message: 2, blocks: [0].into() };
    let insert = vec![Insert::Message { message: Message::user("abc") }, keep_d];
    compact(&mut log, vec![Splice { at: 0..3, insert }]);
    assert_eq!(log.covered(SECOND), Some(vec![0..2, 3..4]));
    assert!(log.sources().eq([(7, Some(SECOND)), (4, None), (6, None)]));
    assert!(log.times().eq([1_007, 1_004, 1_006].map(Timestamp)));
    let _ = log.undo(Timestamp(9), SECOND).unwrap();
    assert_eq!((log.covered(SECOND), log.covered(CompactionId(9))), (None, None));
    assert_eq!(log.covered(FIRST), Some(vec![0..1, 3..4]));
}

#[test]
fn messages_that_are_dropped_without_a_replacement_are_not_covered() {
    let mut log = log_of(&["a", "b", "c", "d"]);
    compact(&mut log, vec![splice(0..1, &["A"]), splice(1..2, &["B"]), splice(3..4, &[])]);
    assert_eq!(log.covered(FIRST), Some(vec![0..2]));
    // Each of the two replaces its own messages.
    compact(&mut log, vec![splice(1..2, &["b again"])]);
    assert_eq!(log.covered(SECOND), Some(vec![1..2]));
}
