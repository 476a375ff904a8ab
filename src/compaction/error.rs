//! Why a compaction failed, or could not be stored.

use std::{error::Error, fmt, sync::Arc};

use crate::{
    compact::CompactError,
    log::LogError,
    message::{InvalidValue, Redactor, Usage},
    strategy::{Failed, StrategyError},
};

pub(crate) type Result<T, E = CompactionError> = std::result::Result<T, E>;

/// Why a compaction failed or could not be stored, and what its model calls cost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompactionError {
    /// What failed.
    pub kind: CompactionErrorKind,
    /// The tokens of all calls, as far as the models reported them.
    pub usage: Usage,
    /// The number of calls.
    pub calls: usize,
}

/// What failed in a compaction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CompactionErrorKind {
    /// The strategy gave up, or its proposal was rejected. Nothing changed, except that one event
    /// in the log reports the failure; if there was nothing to compact, the log is unchanged too.
    Strategy(StrategyError),
    /// The facts of earlier messages could not be read from the store. Nothing changed.
    Facts(Arc<dyn Error + Send + Sync>),
    /// The plan was made for another thread. Thread and log are unchanged.
    Stale(CompactError),
    /// The log rejected the event: it cannot be replayed, or another compaction has the same id.
    /// Thread and log are unchanged.
    Log(LogError),
    /// The driver passed an input that the compaction did not request. This is a bug in the driver.
    Unexpected(InvalidValue),
    /// The compaction is in thread and log, but could not be written to the store. The next write
    /// stores it.
    Store(Arc<dyn Error + Send + Sync>),
}

impl CompactionError {
    /// Returns the error of a strategy that called no model.
    ///
    /// ```
    /// use threadfold::{drive::CompactionError, strategy::StrategyError};
    ///
    /// let error = StrategyError::NothingToCompact { reason: "one message".into() };
    /// assert!(CompactionError::new(error).is_nothing_to_compact());
    /// ```
    #[must_use]
    pub fn new(error: impl Into<StrategyError>) -> Self {
        CompactionErrorKind::Strategy(error.into()).into()
    }

    /// Returns the error of a store.
    pub(crate) fn of_store(
        kind: fn(Arc<dyn Error + Send + Sync>) -> CompactionErrorKind,
        source: impl Error + Send + Sync + 'static,
    ) -> Self {
        kind(Arc::new(source)).into()
    }

    /// Returns the error with the cost of these calls.
    pub(crate) fn after(self, usage: Usage, calls: usize) -> Self {
        Self { usage, calls, ..self }
    }

    /// Whether the thread needed no compaction and no model was called.
    #[must_use]
    pub fn is_nothing_to_compact(&self) -> bool {
        self.calls == 0 && self.strategy().is_some_and(StrategyError::is_nothing_to_compact)
    }

    /// The strategy's error, if a strategy failed.
    #[must_use]
    pub fn strategy(&self) -> Option<&StrategyError> {
        if let CompactionErrorKind::Strategy(error) = &self.kind { Some(error) } else { None }
    }

    /// Redacts the texts of a strategy's error.
    pub(super) fn redact(&mut self, redactor: &dyn Redactor) {
        if let CompactionErrorKind::Strategy(error) = &mut self.kind {
            error.redact(redactor);
        }
    }
}

impl fmt::Display for CompactionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, error): (_, &dyn fmt::Display) = match &self.kind {
            CompactionErrorKind::Strategy(error) => ("", error),
            CompactionErrorKind::Log(error) => ("", error),
            CompactionErrorKind::Unexpected(error) => ("", error),
            CompactionErrorKind::Stale(error) => ("the plan does not fit the thread: ", error),
            CompactionErrorKind::Facts(error) => {
                ("nothing was compacted, because earlier facts could not be read: ", error)
            }
            CompactionErrorKind::Store(error) => ("what happened could not be stored yet: ", error),
        };
        write!(f, "{what}{error}")
    }
}

impl Error for CompactionError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            // The text of this error already includes that of the inner error, so return the source
            // of the inner error.
            CompactionErrorKind::Strategy(error) => error.source(),
            CompactionErrorKind::Log(error) => error.source(),
            CompactionErrorKind::Unexpected(error) => error.source(),
            CompactionErrorKind::Stale(error) => Some(error),
            CompactionErrorKind::Facts(error) | CompactionErrorKind::Store(error) => {
                Some(error.as_ref())
            }
        }
    }
}

impl From<CompactionErrorKind> for CompactionError {
    fn from(kind: CompactionErrorKind) -> Self {
        Self { kind, usage: Usage::default(), calls: 0 }
    }
}

impl From<Failed> for CompactionError {
    fn from(Failed { error, usage, calls }: Failed) -> Self {
        Self::new(error).after(usage, calls)
    }
}

impl From<CompactError> for CompactionError {
    fn from(error: CompactError) -> Self {
        CompactionErrorKind::Stale(error).into()
    }
}

impl From<LogError> for CompactionError {
    fn from(error: LogError) -> Self {
        CompactionErrorKind::Log(error).into()
    }
}

impl From<InvalidValue> for CompactionError {
    fn from(error: InvalidValue) -> Self {
        CompactionErrorKind::Unexpected(error).into()
    }
}
