//! One fuzz case of stored logs, shared by the fuzz target and by the bounded run in the tests.

#![allow(clippy::expect_used, reason = "a test stops where something is not as it must be")]

use threadfold::{
    log::{EventLog, Loaded},
    message::Timestamp,
};

/// Reads bytes as the lines of a log, adds a header if they have none, and checks the invariants of
/// a readable log.
///
/// # Panics
///
/// If an invariant does not hold.
pub fn check(bytes: &[u8]) {
    let _ = EventLog::read(bytes).map(|read| check_read(bytes, read));
    let header = b"{\"log\":\"threadfold\",\"major\":1,\"thread\":\"main\"}\n";
    let headed = [header.as_slice(), bytes].concat();
    let _ = EventLog::read(headed.as_slice()).map(|read| check_read(&headed, read));
}

fn check_read(bytes: &[u8], read: Loaded) {
    let torn = read.torn.unwrap_or(0);
    assert_eq!(read.end + torn, bytes.len() as u64);
    let complete = usize::try_from(read.end).ok().and_then(|end| bytes.get(..end));
    let again = EventLog::read(complete.expect("the end is within the input"));
    let again = again.expect("a log that was read once can be read again");
    assert_eq!((&again.log, again.torn), (&read.log, None));

    let mut written = Vec::new();
    read.log.write(&mut written).expect("a vector takes everything");
    let again = EventLog::read(written.as_slice()).expect("a written log can be read");
    assert_eq!((&again.log, again.torn), (&read.log, None));
    assert_eq!(again.log.replay(), read.log.replay());
    assert!(again.log.sources().eq(read.log.sources()) && again.log.times().eq(read.log.times()));
    assert_eq!(again.log.skipped(), read.log.skipped());
    check_thread(read.log);
}

fn check_thread(mut log: EventLog) {
    let mut live = log.replay();
    assert_eq!((log.sources().count(), log.times().count()), (live.len(), live.len()));
    let standing: Vec<_> = log.standing().map(|record| record.id).collect();
    for id in standing.into_iter().rev() {
        let covered = log.covered(id).expect("the compaction is not undone");
        assert!(covered.iter().all(|run| run.start < run.end && run.end <= log.len()));
        let Ok(plan) = log.undo(Timestamp(0), id) else { return };
        plan.apply(&mut live).expect("a plan that takes back fits");
        assert_eq!(log.replay(), live);
    }
}
