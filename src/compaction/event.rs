//! The events of a compaction.

use serde::{Deserialize, Serialize};

use crate::{
    compact::CompactReport,
    log::Rung,
    message::{CompactionId, CompactionReason, Text, ThreadId, Timestamp, Usage},
};

/// An event of a compaction. Each compaction has one start, any number of events after it, and
/// exactly one end: `Completed`, `Failed` or `Cancelled`.
///
/// In serde it is an object with a `status` and the fields of the event, as in
/// [`SessionEvent`](crate::session::SessionEvent). The statuses of the ends are also those of the
/// Agent Client Protocol. [`acp`] converts events to updates of that protocol, [`api`] to events
/// for web pages.
///
/// [`acp`]: crate::session::acp
/// [`api`]: crate::session::api
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionEvent {
    /// The compaction began.
    Started {
        /// The id of the compaction.
        id: CompactionId,
        /// The thread.
        thread: ThreadId,
        /// The time of the event.
        at: Timestamp,
        /// The reason of the compaction.
        reason: CompactionReason,
        /// The strategy.
        strategy: Text,
    },
    /// A model is called.
    Progress {
        /// The id of the compaction.
        id: CompactionId,
        /// The number of finished calls.
        done: usize,
        /// The expected number of calls.
        total: usize,
    },
    /// A model wrote a piece of the summary.
    SummaryDelta {
        /// The id of the compaction.
        id: CompactionId,
        /// The text of the piece.
        text: Text,
    },
    /// The compaction was carried out.
    Completed {
        /// The id of the compaction.
        id: CompactionId,
        /// The thread.
        thread: ThreadId,
        /// The time of the event.
        at: Timestamp,
        /// Sizes before and after, and the retention.
        report: CompactReport,
        /// The tokens of all model calls.
        usage: Usage,
        /// The strategies that were tried, in order, if the strategy is a ladder. The one that made
        /// the plan has no failure. It is the last one, unless a later one kept even fewer facts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rungs: Vec<Rung>,
    },
    /// The compaction failed, and the thread is unchanged.
    Failed {
        /// The id of the compaction.
        id: CompactionId,
        /// The thread.
        thread: ThreadId,
        /// The time of the event.
        at: Timestamp,
        /// The text of the error.
        error: Text,
    },
    /// The stream of events was dropped before the commit, and the thread is unchanged.
    Cancelled {
        /// The id of the compaction.
        id: CompactionId,
        /// The thread.
        thread: ThreadId,
        /// The time at which the session noticed the cancellation.
        at: Timestamp,
    },
}

impl CompactionEvent {
    /// The id of the compaction.
    #[must_use]
    pub fn id(&self) -> CompactionId {
        match self {
            Self::Started { id, .. }
            | Self::Progress { id, .. }
            | Self::SummaryDelta { id, .. }
            | Self::Completed { id, .. }
            | Self::Failed { id, .. }
            | Self::Cancelled { id, .. } => *id,
        }
    }

    /// The strategy that was used, and those that failed before it, in order. `None` if the first
    /// one succeeded, and for all events except [`Completed`](Self::Completed).
    ///
    /// ```
    /// use threadfold::{Usage, compact::CompactReport, log::Rung};
    /// use threadfold::{message::{CompactionId, Timestamp}, session::CompactionEvent};
    ///
    /// let mut failed = Rung::new("summarize");
    /// failed.failure = Some("no model".into());
    /// let completed = |rungs| -> Result<_, threadfold::message::InvalidValue> {
    ///     let (id, at, report) = (CompactionId(0), Timestamp(0), CompactReport::default());
    ///     let (thread, usage) = ("main".parse()?, Usage::default());
    ///     Ok(CompactionEvent::Completed { id, thread, at, report, usage, rungs })
    /// };
    /// let event = completed(vec![failed.clone(), Rung::new("digest")])?;
    /// assert_eq!(event.fallback(), Some((&Rung::new("digest"), &[failed][..])));
    /// assert_eq!(completed(vec![Rung::new("summarize")])?.fallback(), None);
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn fallback(&self) -> Option<(&Rung, &[Rung])> {
        let Self::Completed { rungs, .. } = self else { return None };
        let at = rungs.iter().position(|rung| rung.failure.is_none())?;
        let (failed, rest) = rungs.split_at_checked(at)?;
        rest.first().filter(|_| !failed.is_empty()).map(|used| (used, failed))
    }

    /// Whether this event ends its compaction.
    ///
    /// ```
    /// use threadfold::{message::CompactionId, session::CompactionEvent};
    ///
    /// let id = CompactionId(0);
    /// assert!(!CompactionEvent::Progress { id, done: 4, total: 4 }.is_end());
    /// let (thread, at) = ("main".parse()?, threadfold::message::Timestamp(0));
    /// assert!(CompactionEvent::Cancelled { id, thread, at }.is_end());
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn is_end(&self) -> bool {
        match self {
            Self::Completed { .. } | Self::Failed { .. } | Self::Cancelled { .. } => true,
            Self::Started { .. } | Self::Progress { .. } | Self::SummaryDelta { .. } => false,
        }
    }
}
