//! The counts of a simulation.

use std::{collections::BTreeMap, ops::AddAssign};

/// The counts of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) turns: u64,
    /// Requests of the conversation.
    pub(crate) requests: u64,
    /// Requests for summaries.
    pub(crate) summaries: u64,
    /// The maximum number of requests in one turn.
    pub(crate) max_requests: u64,
    /// The maximum number of requests for summaries in one compaction.
    pub(crate) max_summaries: u64,
    /// Compactions that were carried out, by reason.
    pub(crate) compactions: BTreeMap<&'static str, u64>,
    /// Automatic compactions of calm sessions by the soft trigger.
    pub(crate) calm_soft: u64,
    /// All automatic compactions of calm sessions.
    pub(crate) calm: u64,
    /// Compactions that failed.
    pub(crate) failed: u64,
    /// Compactions whose stream was dropped.
    pub(crate) cancelled: u64,
    /// Compactions that were undone.
    pub(crate) undone: u64,
    /// Turns in which the model failed.
    pub(crate) model_failures: u64,
    /// Requests that a provider refused because they exceed its window.
    pub(crate) overflows: u64,
    /// Failures of the store.
    pub(crate) store_failures: u64,
    /// Turns that were refused because they cannot fit.
    pub(crate) refused: u64,
    /// Streams that were dropped.
    pub(crate) dropped: u64,
    /// Turns that were aborted.
    pub(crate) aborted: u64,
    /// Messages that were queued and sent.
    pub(crate) queued: u64,
    /// Sessions that were resumed from the store.
    pub(crate) resumed: u64,
    /// Events in the log.
    pub(crate) events: u64,
}

impl Tally {
    /// The share of automatic compactions of calm sessions by the soft trigger, in percent; `None`
    /// if there were none.
    pub(crate) fn soft_percent(&self) -> Option<u64> {
        (self.calm_soft * 100).checked_div(self.calm)
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.turns += other.turns;
        self.requests += other.requests;
        self.summaries += other.summaries;
        self.max_requests = self.max_requests.max(other.max_requests);
        self.max_summaries = self.max_summaries.max(other.max_summaries);
        for (reason, count) in other.compactions {
            *self.compactions.entry(reason).or_default() += count;
        }
        self.calm_soft += other.calm_soft;
        self.calm += other.calm;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.undone += other.undone;
        self.model_failures += other.model_failures;
        self.overflows += other.overflows;
        self.store_failures += other.store_failures;
        self.refused += other.refused;
        self.dropped += other.dropped;
        self.aborted += other.aborted;
        self.queued += other.queued;
        self.resumed += other.resumed;
        self.events += other.events;
    }
}
