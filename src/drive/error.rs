//! Why a compaction failed, or could not be stored.

use crate::{
    compact::CompactError, compaction::DriveError, log::LogError, message::UnexpectedInput,
    store::StoreError,
};

/// Why a compaction failed, or could not be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompactionError {
    /// The strategy gave up, or its proposal was rejected. Nothing changed except for one event in
    /// the log that reports it; if there was nothing to compact, the log is unchanged too.
    #[error(transparent)]
    Strategy(#[from] DriveError),
    /// The archive could not be written. Nothing changed except for one event in the log that
    /// reports it. Entries that the archive may have stored are not visible.
    #[error("nothing was compacted, because the archive could not be written: {0}")]
    Archive(#[source] StoreError),
    /// Thread and log hold different messages: one was changed without the other. Both are
    /// unchanged, and no model was called.
    #[error("thread and log differ from message {message} on")]
    Diverged {
        /// Index of the first message that differs, or that only one of the two has.
        message: usize,
    },
    /// The plan was made for another thread. Thread and log are unchanged.
    #[error("the plan does not fit the thread: {0}")]
    Stale(#[from] CompactError),
    /// The log rejected the event: it cannot be replayed, or another compaction has the same id.
    /// Thread and log are unchanged.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The driver passed an input that the compaction did not ask for. This is a bug of the driver.
    #[error(transparent)]
    Unexpected(#[from] UnexpectedInput),
    /// The compaction is in thread and log but not in the store yet. The next write stores it.
    #[error("what happened could not be stored yet: {0}")]
    Store(#[from] StoreError),
}

impl CompactionError {
    /// Whether the thread needed no compaction and no model was called.
    ///
    /// ```
    /// use threadfold::drive::{CompactionError, DriveError};
    /// use threadfold::strategy::StrategyError;
    ///
    /// let error = StrategyError::NothingToCompact { reason: "one message".into() };
    /// let error = CompactionError::from(DriveError::new(error));
    /// assert!(error.is_nothing_to_compact());
    /// ```
    #[must_use]
    pub fn is_nothing_to_compact(&self) -> bool {
        matches!(self, Self::Strategy(failed) if failed.is_nothing_to_compact())
    }
}
