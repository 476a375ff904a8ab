//! Why a log refuses an event, and why a replay skips one.

use crate::{
    compact::StalePlan,
    message::{CompactionId, NestingError, Text},
};

/// Why an event cannot be appended. The log is untouched in every case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The event has another `seq` than the next one of this log.
    #[error("event {expected} is next in the log, not event {found}")]
    Seq {
        /// The `seq` of the next event.
        expected: u64,
        /// The `seq` of the event.
        found: u64,
    },
    /// This build cannot read the event. Such events may only come from reading a log.
    #[error("an event of kind {kind:?} that was not understood cannot be appended")]
    Unread {
        /// The kind of the event.
        kind: Text,
    },
    /// A truncation was made for a thread of another length.
    #[error("a cut from {from} to {len} messages does not fit a thread of {found}")]
    Truncated {
        /// The number of messages that the truncation expects.
        from: usize,
        /// The number of messages that it would keep.
        len: usize,
        /// The number of messages in the thread.
        found: usize,
    },
    /// A compaction was planned for another thread.
    #[error(transparent)]
    Plan(#[from] StalePlan),
    /// The log already holds a compaction with this id, which may have failed.
    #[error("compaction {id} is in the log already")]
    IdUsed {
        /// The id.
        id: CompactionId,
    },
    /// A compaction cannot be undone.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// Tool results are nested so deep that the log could not be read again.
    #[error(transparent)]
    Nesting(#[from] NestingError),
    /// The log holds a message that cannot be read, so its thread is unknown.
    #[error("the message of event {seq} cannot be read, so nothing can follow it")]
    Unreadable {
        /// The `seq` of its event.
        seq: u64,
    },
}

/// Why a compaction cannot be undone. The log is unchanged in every case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UndoError {
    /// The log holds no such compaction.
    #[error("compaction {id} is not in the log")]
    Unknown {
        /// Its number.
        id: CompactionId,
    },
    /// The compaction failed.
    #[error("compaction {id} failed, so there is nothing to undo")]
    Failed {
        /// Its id.
        id: CompactionId,
    },
    /// The compaction was skipped when the log was read, because it does not fit the thread.
    #[error("compaction {id} was not carried out, so there is nothing to undo")]
    Skipped {
        /// Its id.
        id: CompactionId,
    },
    /// The compaction was undone already.
    #[error("compaction {id} was undone already")]
    Undone {
        /// Its id.
        id: CompactionId,
    },
    /// A later compaction is standing. Undo the latest one first.
    #[error("compaction {id} cannot be undone while compaction {by} stands on it")]
    Covered {
        /// Its id.
        id: CompactionId,
        /// The id of the latest standing compaction.
        by: CompactionId,
    },
    /// The log holds a message that cannot be read, so its thread is unknown.
    #[error("the message of event {seq} cannot be read, so nothing can be undone")]
    Unreadable {
        /// The `seq` of its event.
        seq: u64,
    },
    /// A truncation removed messages that existed at the compaction, and the log does not say which of
    /// the messages before it belong to them.
    #[error("messages that compaction {id} left were dropped since, so it cannot be undone")]
    Truncated {
        /// Its id.
        id: CompactionId,
    },
}

/// Why the thread of a log is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A message cannot be read. A thread without it would be another thread.
    #[error("the message of event {seq} cannot be read")]
    Unreadable {
        /// The `seq` of its event.
        seq: u64,
    },
}

/// An event that a replay skipped, because it does not fit the events before it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// Its index in the log.
    pub seq: u64,
    /// Why it was skipped.
    pub reason: SkipReason,
}

/// Why an event was skipped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// The event cannot be read.
    #[error("it cannot be read")]
    Malformed,
    /// It is a compaction that was planned for another thread.
    #[error(transparent)]
    Plan(#[from] StalePlan),
    /// A compaction has the id of an earlier one.
    #[error("compaction {id} is in the log already")]
    IdUsed {
        /// The id.
        id: CompactionId,
    },
    /// The compaction to undo cannot be undone.
    #[error(transparent)]
    Undo(#[from] UndoError),
}
