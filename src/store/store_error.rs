//! `StoreError`: why an operation of a store failed.

use std::{error::Error, sync::Arc};

use super::lease::Lease;
use crate::{
    compaction::{CompactionError, CompactionErrorKind},
    log::{LogError, LogId},
    message::{Text, ThreadId},
};

pub(super) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why an operation of a store failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The stored log has another length than the caller expects; another writer may have appended.
    #[error("{}", conflict(*.expected, *.found))]
    Conflict {
        /// The number of events that the caller expects.
        expected: u64,
        /// The number of stored events.
        found: u64,
    },
    /// The stored log was deleted after events were stored in it. If the caller's log is whole,
    /// [`Journal::kept_by`](super::Journal::kept_by) stores it again.
    #[error("the stored log is gone: it was deleted when it had {events} events")]
    Deleted {
        /// The number of events that were stored.
        events: u64,
    },
    /// The store holds another log of the same thread: the caller's log was deleted or never
    /// stored, and another writer created the thread again.
    #[error("the stored log of thread {thread} is another log than the one that was read")]
    OtherLog {
        /// The thread.
        thread: ThreadId,
        /// The id of the caller's log.
        expected: Option<LogId>,
        /// The id of the stored log.
        found: Option<LogId>,
    },
    /// The file is a symbolic link. Links are not followed, because they may lead out of the
    /// folder.
    #[error("{place} is a symbolic link; links are not followed")]
    Link {
        /// The path.
        place: Text,
    },
    /// Another worker has the lease of the thread.
    #[error("worker {} holds thread {} until {}", .lease.worker, .lease.thread, .lease.expires)]
    Held {
        /// Its lease.
        lease: Lease,
    },
    /// The lease was taken over by another worker, was released, ended when the thread was deleted,
    /// or is for another thread.
    #[error("lease {fence} of thread {thread} is not valid any more")]
    LeaseLost {
        /// The thread.
        thread: ThreadId,
        /// The fence of the lease.
        fence: u64,
    },
    /// The `seq` of an event does not continue the log.
    #[error("expected event {expected}, found event {found}")]
    OutOfOrder {
        /// The next `seq`.
        expected: u64,
        /// The `seq` of the event.
        found: u64,
    },
    /// An event is longer than reading accepts.
    #[error("event {seq} has {bytes} bytes; the maximum that can be read again is {limit}")]
    TooLong {
        /// The `seq` of the event.
        seq: u64,
        /// Its length as stored, in bytes.
        bytes: u64,
        /// The maximum bytes of an event.
        limit: u64,
    },
    /// The file holds the log of another thread, for example on a file system that ignores case.
    #[error("{place} holds the log of thread {found}, not of {expected}")]
    OtherThread {
        /// The path.
        place: Text,
        /// The requested thread.
        expected: ThreadId,
        /// The thread in the header.
        found: ThreadId,
    },
    /// The stored data are not a log that this build can read.
    #[error("{place}: {source}")]
    Unreadable {
        /// The path.
        place: Text,
        /// The error of reading.
        source: LogError,
    },
    /// The storage medium failed.
    #[error("{place}: {source}")]
    Medium {
        /// The file, table or host that failed.
        place: Text,
        /// The error of the medium.
        source: Arc<dyn Error + Send + Sync>,
    },
}

fn conflict(expected: u64, found: u64) -> String {
    match expected {
        0 => format!("the thread exists already: the stored log has {found} events"),
        _ if found < expected => {
            format!("the stored log was cut: it has {found} events, and had {expected} before")
        }
        _ => format!(
            "another writer appended: the stored log has {found} events, and had {expected} before"
        ),
    }
}

impl StoreError {
    /// Returns a [`Medium`](Self::Medium) error.
    #[must_use]
    pub fn medium(place: impl Into<Text>, source: impl Error + Send + Sync + 'static) -> Self {
        Self::Medium { place: place.into(), source: Arc::new(source) }
    }

    /// Returns an [`Unreadable`](Self::Unreadable) error.
    pub(super) fn unreadable(place: impl Into<Text>, source: LogError) -> Self {
        Self::Unreadable { place: place.into(), source }
    }

    /// Whether some of the events may be stored in spite of the error.
    pub(super) fn is_in_doubt(&self) -> bool {
        match self {
            Self::Unreadable { .. } | Self::Medium { .. } => true,
            Self::Conflict { .. }
            | Self::Deleted { .. }
            | Self::OtherLog { .. }
            | Self::Link { .. }
            | Self::Held { .. }
            | Self::LeaseLost { .. }
            | Self::OutOfOrder { .. }
            | Self::TooLong { .. }
            | Self::OtherThread { .. } => false,
        }
    }
}

impl CompactionError {
    /// The error of the store that the log reports, if it is one.
    pub(crate) fn of_log_store(&self) -> Option<&StoreError> {
        let is_log =
            matches!(self.kind, CompactionErrorKind::Facts(_) | CompactionErrorKind::Store(_));
        self.source().filter(|_| is_log)?.downcast_ref()
    }
}

impl From<StoreError> for CompactionError {
    fn from(error: StoreError) -> Self {
        Self::of_store(CompactionErrorKind::Store, error)
    }
}
