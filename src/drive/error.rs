//! Why a compaction came to nothing, or could not be kept.

use crate::{
    compact::CompactError, compaction::DriveError, log::LogError, message::UnexpectedInput,
    store::StoreError,
};

/// Why a compaction came to nothing, or could not be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompactionError {
    /// The strategy gave up, or its proposal was refused. The log has one event more, which says
    /// so; everything else is as it was. Where there was nothing to compact the log is, too.
    #[error(transparent)]
    Strategy(#[from] DriveError),
    /// The archive could not be written. The log has one event more, which says so; everything else
    /// is as it was, and what the archive may have got is invisible.
    #[error("nothing was compacted, because the archive could not be written: {0}")]
    Archive(#[source] StoreError),
    /// The thread is not the one that the log tells of: it was changed beside it. Both are as they
    /// were, and no model was asked.
    #[error("thread and log differ from message {message} on")]
    Diverged {
        /// The first message that differs, or that only one of the two has.
        message: usize,
    },
    /// The plan does not fit the thread. Thread and log are as they were.
    #[error("the plan does not fit the thread: {0}")]
    Stale(#[from] CompactError),
    /// The log refused the event, because a message in it cannot be read or another event has the
    /// number of the compaction. Thread and log are as they were.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The driver gave the compaction what it had not asked for. This is a defect of the driver.
    #[error(transparent)]
    Unexpected(#[from] UnexpectedInput),
    /// What happened is in thread and log, but not yet in the store; the next write brings it there.
    #[error("what happened could not be stored yet: {0}")]
    Store(#[from] StoreError),
}

impl CompactionError {
    /// Whether there was nothing to do, and nothing was asked: the thread is fine as it is.
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
        match self {
            Self::Strategy(failed) => failed.is_nothing_to_compact(),
            Self::Archive(_)
            | Self::Diverged { .. }
            | Self::Stale(_)
            | Self::Log(_)
            | Self::Unexpected(_)
            | Self::Store(_) => false,
        }
    }
}
