//! What happened in a simulation, in numbers.

use std::{collections::BTreeMap, ops::AddAssign};

/// What happened in a simulation, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) turns: u64,
    /// Requests of the conversation.
    pub(crate) requests: u64,
    /// Requests for summaries.
    pub(crate) summaries: u64,
    /// The estimated tokens of the fullest request of either kind.
    pub(crate) fullest: u64,
    /// The most requests that one turn took.
    pub(crate) max_requests: u64,
    /// The most requests for summaries that one compaction took.
    pub(crate) max_summaries: u64,
    /// Compactions that were carried out, by reason.
    pub(crate) compactions: BTreeMap<&'static str, u64>,
    /// Compactions that came to nothing.
    pub(crate) failed: u64,
    /// Compactions whose stream was dropped.
    pub(crate) cancelled: u64,
    /// Compactions that were taken back.
    pub(crate) undone: u64,
    /// Turns that the model failed.
    pub(crate) model_failures: u64,
    /// Times that the store failed.
    pub(crate) store_failures: u64,
    /// Turns that were refused because they cannot fit.
    pub(crate) refused: u64,
    /// Streams that were dropped.
    pub(crate) dropped: u64,
    /// Turns that were aborted.
    pub(crate) aborted: u64,
    /// Messages that were queued and sent.
    pub(crate) queued: u64,
    /// Sessions that were taken up again from the store.
    pub(crate) resumed: u64,
    /// Events in the log.
    pub(crate) events: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        let Self { turns, requests, summaries, fullest, max_requests, max_summaries, .. } = other;
        self.turns += turns;
        self.requests += requests;
        self.summaries += summaries;
        self.fullest = self.fullest.max(fullest);
        self.max_requests = self.max_requests.max(max_requests);
        self.max_summaries = self.max_summaries.max(max_summaries);
        for (reason, count) in other.compactions {
            *self.compactions.entry(reason).or_default() += count;
        }
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.undone += other.undone;
        self.model_failures += other.model_failures;
        self.store_failures += other.store_failures;
        self.refused += other.refused;
        self.dropped += other.dropped;
        self.aborted += other.aborted;
        self.queued += other.queued;
        self.resumed += other.resumed;
        self.events += other.events;
    }
}
