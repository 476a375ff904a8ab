//! What a log refuses, and what it leaves out.

use crate::{
    compact::StalePlan,
    message::{CompactionId, NestingError, Text},
};

/// Why an event cannot be appended. The log is untouched in every case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The event stands in another place of the log that it comes from.
    #[error("event {expected} is next in the log, not event {found}")]
    Seq {
        /// The place in the log that is next.
        expected: u64,
        /// The place that the event names.
        found: u64,
    },
    /// Events that were not understood come from reading only.
    #[error("an event of kind {kind:?} that was not understood cannot be appended")]
    Unread {
        /// Its kind.
        kind: Text,
    },
    /// A cut from the end is not one of this thread.
    #[error("a cut from {from} to {len} messages does not fit a thread of {found}")]
    Truncated {
        /// How many messages there were to be.
        from: usize,
        /// How many were to stay.
        len: usize,
        /// How many there are.
        found: usize,
    },
    /// A compaction was planned for another thread.
    #[error(transparent)]
    Plan(#[from] StalePlan),
    /// Another compaction has the number, or had it and failed.
    #[error("compaction {id} is in the log already")]
    IdUsed {
        /// The number.
        id: CompactionId,
    },
    /// A compaction cannot be undone.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// Results stand in each other so deep that the log could not be read again.
    #[error(transparent)]
    Nesting(#[from] NestingError),
    /// The log holds a message that cannot be read, so its thread is not known.
    #[error("the message of event {seq} cannot be read, so nothing can follow it")]
    Unreadable {
        /// The event.
        seq: u64,
    },
}

/// Why a compaction cannot be undone. Nothing is changed in any case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UndoError {
    /// The log holds no such compaction.
    #[error("compaction {id} is not in the log")]
    Unknown {
        /// Its number.
        id: CompactionId,
    },
    /// It came to nothing.
    #[error("compaction {id} failed, so there is nothing to undo")]
    Failed {
        /// Its number.
        id: CompactionId,
    },
    /// It was left out when the log was read, because it does not fit.
    #[error("compaction {id} was not carried out, so there is nothing to undo")]
    Skipped {
        /// Its number.
        id: CompactionId,
    },
    /// It was undone already.
    #[error("compaction {id} was undone already")]
    Undone {
        /// Its number.
        id: CompactionId,
    },
    /// A later one stands on it; the latest is undone first.
    #[error("compaction {id} cannot be undone while compaction {by} stands on it")]
    Covered {
        /// Its number.
        id: CompactionId,
        /// The latest one that stands.
        by: CompactionId,
    },
    /// The log holds a message that cannot be read, so its thread is not known.
    #[error("the message of event {seq} cannot be read, so nothing can be undone")]
    Unreadable {
        /// The event.
        seq: u64,
    },
    /// Messages that it left were dropped from the end, and the log does not say which of those
    /// before it were to go with them.
    #[error("messages that compaction {id} left were dropped since, so it cannot be undone")]
    Truncated {
        /// Its number.
        id: CompactionId,
    },
}

/// Why the thread of a log is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A message cannot be read. A thread that silently lacks one would be another thread.
    #[error("the message of event {seq} cannot be read")]
    Unreadable {
        /// The event.
        seq: u64,
    },
}

/// An event that was left out, because it does not fit what stands before it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// Its place in the log.
    pub seq: u64,
    /// Why.
    pub reason: SkipReason,
}

/// Why an event was left out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// It cannot be read.
    #[error("it cannot be read")]
    Malformed,
    /// It is a compaction that was planned for another thread.
    #[error(transparent)]
    Plan(#[from] StalePlan),
    /// It is a compaction with a number that another one has.
    #[error("compaction {id} is in the log already")]
    IdUsed {
        /// The number.
        id: CompactionId,
    },
    /// It undoes what cannot be undone.
    #[error(transparent)]
    Undo(#[from] UndoError),
}
