//! What happens during one compaction, as a host sees it.

use serde::{Deserialize, Serialize};

use crate::{
    compact::CompactReport,
    log::RungReport,
    message::{CompactionId, CompactionReason, Text, ThreadId, Timestamp, Usage},
};

/// What becomes of one compaction: one start, any number of other events, and exactly one end,
/// which is the completion, the failure or the cancellation.
///
/// In serde it is an object with a `status` and the fields of the event, as [`SessionEvent`](crate::session::SessionEvent) says. The
/// statuses are our own, but those of the ends are also the Agent Client Protocol's; [`acp`] gives the
/// updates of that protocol, and [`api`] what web pages listen for.
///
/// [`acp`]: crate::session::acp
/// [`api`]: crate::session::api
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionEvent {
    /// It began.
    Started {
        /// Its number in the log.
        id: CompactionId,
        /// The thread.
        thread: ThreadId,
        /// When.
        at: Timestamp,
        /// Why.
        reason: CompactionReason,
        /// The strategy.
        strategy: Text,
    },
    /// A model is asked.
    Progress {
        /// Its number in the log.
        id: CompactionId,
        /// How many calls are done.
        done: usize,
        /// How many there will be, as far as is known.
        total: usize,
    },
    /// A piece of what a model writes for it.
    SummaryDelta {
        /// Its number in the log.
        id: CompactionId,
        /// The piece.
        text: Text,
    },
    /// It was carried out.
    Completed {
        /// Its number in the log.
        id: CompactionId,
        /// The thread.
        thread: ThreadId,
        /// When.
        at: Timestamp,
        /// What it did, in numbers.
        report: CompactReport,
        /// What it cost.
        usage: Usage,
        /// What was tried, in order, where the strategy tries others. What did it has no failure; it
        /// is the last, unless what was tried after it keeps even less.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rungs: Vec<RungReport>,
    },
    /// It came to nothing; the thread is as it was.
    Failed {
        /// Its number in the log.
        id: CompactionId,
        /// The thread.
        thread: ThreadId,
        /// When.
        at: Timestamp,
        /// What went wrong.
        error: Text,
    },
    /// The stream of events was dropped before it ended; the thread is as it was.
    Cancelled {
        /// Its number in the log.
        id: CompactionId,
        /// The thread.
        thread: ThreadId,
        /// When that was noticed.
        at: Timestamp,
    },
}

impl CompactionEvent {
    /// The number of the compaction.
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

    /// The strategy that did it, and those that were tried before it in vain, in order; `None`
    /// where the first that was tried did it, and for all other events than
    /// [`Completed`](Self::Completed).
    ///
    /// ```
    /// use threadfold::{Usage, compact::CompactReport, log::RungReport};
    /// use threadfold::{message::{CompactionId, Timestamp}, session::CompactionEvent};
    ///
    /// let mut failed = RungReport::new("summarize");
    /// failed.failure = Some("no model".into());
    /// let completed = |rungs| -> Result<_, threadfold::message::InvalidValue> {
    ///     let (id, at, report) = (CompactionId(0), Timestamp(0), CompactReport::default());
    ///     let (thread, usage) = ("main".parse()?, Usage::default());
    ///     Ok(CompactionEvent::Completed { id, thread, at, report, usage, rungs })
    /// };
    /// let event = completed(vec![failed.clone(), RungReport::new("digest")])?;
    /// assert_eq!(event.fallback(), Some((&RungReport::new("digest"), &[failed][..])));
    /// assert_eq!(completed(vec![RungReport::new("summarize")])?.fallback(), None);
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn fallback(&self) -> Option<(&RungReport, &[RungReport])> {
        match self {
            Self::Completed { rungs, .. } => {
                let at = rungs.iter().position(|rung| rung.failure.is_none())?;
                let (failed, rest) = rungs.split_at_checked(at)?;
                rest.first().filter(|_| !failed.is_empty()).map(|used| (used, failed))
            }
            Self::Started { .. }
            | Self::Progress { .. }
            | Self::SummaryDelta { .. }
            | Self::Failed { .. }
            | Self::Cancelled { .. } => None,
        }
    }

    /// Whether it is the last event of its compaction.
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
