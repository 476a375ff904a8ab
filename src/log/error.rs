//! The error of a log.

use std::io;

use super::event::KINDS;
use crate::{
    compact::CompactError,
    message::{CompactionId, InvalidValue, Text},
};

pub(super) type Result<T, E = LogError> = std::result::Result<T, E>;

/// Why a log cannot be read, appended to, replayed or undone. The log is unchanged in every case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The number of the event to append is not the next one of the log.
    #[error("expected event {expected}, found event {found}")]
    Seq {
        /// The number of the next event.
        expected: u64,
        /// The number of the event.
        found: u64,
    },
    /// The truncation does not fit the thread.
    #[error("a cut from {from} to {len} messages does not fit a thread of {found}")]
    Truncated {
        /// The number of messages that the truncation expects in the thread.
        from: usize,
        /// The number of messages that should stay.
        len: usize,
        /// The number of messages in the thread.
        found: usize,
    },
    /// The plan of a compaction does not fit the thread.
    #[error(transparent)]
    Plan(#[from] CompactError),
    /// The id belongs to an earlier compaction, which may have failed.
    #[error("compaction {id} is in the log already")]
    IdUsed {
        /// The id.
        id: CompactionId,
    },
    /// Tool results are nested so deep that the log could not be read again.
    #[error(transparent)]
    Nesting(#[from] InvalidValue),
    /// The record of a compaction cannot be read, so it is neither applied nor appended.
    #[error("the record of the compaction cannot be read")]
    Malformed,
    /// The answer needs earlier events than the log holds in memory. They are in the store:
    /// [`Journal::read_whole`](crate::store::Journal::read_whole).
    #[error("the log holds only the events from {base} on in memory; this needs earlier ones")]
    NotHeld {
        /// The number of the first event that is held.
        base: u64,
    },

    /// The log holds no such compaction.
    #[error("compaction {id} is not in the log")]
    UnknownCompaction {
        /// The id of the compaction.
        id: CompactionId,
    },
    /// The compaction failed, so there is nothing to undo.
    #[error("compaction {id} failed, so there is nothing to undo")]
    FailedCompaction {
        /// The id of the compaction.
        id: CompactionId,
    },
    /// The compaction was skipped when the log was read, because its plan does not fit the thread.
    #[error("compaction {id} was not applied, so there is nothing to undo")]
    SkippedCompaction {
        /// The id of the compaction.
        id: CompactionId,
    },
    /// The compaction was undone already.
    #[error("compaction {id} was undone already")]
    UndoneCompaction {
        /// The id of the compaction.
        id: CompactionId,
    },
    /// The compaction was not undone, so there is nothing to redo.
    #[error("compaction {id} was not undone, so there is nothing to redo")]
    StandingCompaction {
        /// The id of the compaction.
        id: CompactionId,
    },
    /// A later compaction must be undone first.
    #[error("compaction {id} cannot be undone before compaction {by}, which follows it")]
    CoveredCompaction {
        /// The id of the compaction.
        id: CompactionId,
        /// The id of the latest standing compaction.
        by: CompactionId,
    },
    /// Messages that the compaction kept were truncated since, so the log does not determine which
    /// of the earlier messages to restore.
    #[error("messages that compaction {id} left were dropped since, so it cannot be undone")]
    TruncatedCompaction {
        /// The id of the compaction.
        id: CompactionId,
    },

    /// The reader failed.
    #[error("{reason}")]
    Io {
        /// The kind of the failure.
        kind: io::ErrorKind,
        /// The error of the reader, as text.
        reason: Text,
    },
    /// The input is empty or ends within its header, so no event was ever stored in it.
    #[error("the log has no complete header, only {bytes} bytes of one")]
    NoHeader {
        /// The length of the input in bytes.
        bytes: u64,
    },
    /// The first line is not the header of a log.
    #[error("not a log of threadfold: the first line is not a header")]
    NotALog,
    /// The log was written by a build with another form.
    #[error("the log has version {found}; this build reads {expected}")]
    Version {
        /// The version of the log.
        found: u32,
        /// The version that this build reads.
        expected: u32,
    },
    /// A line that is not the last is not JSON.
    #[error("line {line} of the log is broken: {reason}")]
    Broken {
        /// The line; the header is line 1.
        line: u64,
        /// The message of the parser, and the column.
        reason: Text,
    },
    /// A line is JSON, but not an event with its number and time.
    #[error("line {line} of the log is not an event: {reason}")]
    NotAnEvent {
        /// The line; the header is line 1.
        line: u64,
        /// The message of the parser, and the column.
        reason: Text,
    },
    /// An event has a kind that this build does not know: the kind is damaged, or a newer build
    /// wrote the event.
    #[error("event {seq} has the unknown kind {kind:?}; this build knows {}", KINDS.join(", "))]
    UnknownKind {
        /// The number of the event.
        seq: u64,
        /// The kind, cut after 40 characters.
        kind: Text,
    },
    /// A line is longer than the options allow.
    #[error("line {line} of the log has more than {limit} bytes")]
    LineTooLong {
        /// The line; the header is line 1.
        line: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// An event is missing, repeated or on the wrong line.
    #[error("line {line} of the log holds event {found} instead of event {expected}")]
    Misplaced {
        /// The line; the header is line 1.
        line: u64,
        /// The number of the next event.
        expected: u64,
        /// The number of the event.
        found: u64,
    },
}

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> Self {
        Self::Io { kind: error.kind(), reason: error.to_string().into() }
    }
}
