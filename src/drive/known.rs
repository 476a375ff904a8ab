//! What a strategy learns of a thread besides its messages.

use std::sync::Arc;

use crate::{
    ledger::Ledger,
    log::{EventLog, Thread},
    message::CompactionId,
    retention::Facts,
    strategy::Snapshot,
};

/// What a caller knows of a thread whose log does not hold all of it, redacted if there is a redactor.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) next_compaction: CompactionId,
    pub(crate) rules: Arc<Ledger>,
    pub(crate) facts: Option<Arc<Facts>>,
}

/// Returns a snapshot of a thread, with the times of its messages and their numbers from the log.
pub(crate) fn logged_snapshot(thread: &Thread, log: &EventLog) -> Snapshot {
    let snapshot = Snapshot::of(thread);
    match log.projection() {
        Ok(projection) => snapshot.with_times(projection.times(log)).with_numbers(
            projection.sources.iter().map(|source| log.arrival_number(source.seq())).collect(),
        ),
        Err(_) => snapshot,
    }
}
