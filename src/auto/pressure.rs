//! How full a context is.

use crate::message::ContextWindow;

/// How full the context is, in tokens: what a provider counted, and what is estimated.
///
/// Estimates are the caller's, calibrated if it can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// What fits, where it is known: zero is as good as unknown. Without it nothing is too long.
    pub window: Option<ContextWindow>,
    /// Prompt and answer of the last call, as the provider counted them; `None` if it said nothing
    /// since the thread was last rewritten.
    pub reported: Option<u64>,
    /// Estimate of what came into the thread after that call.
    pub since: u64,
    /// Estimate of the whole thread.
    pub thread: u64,
    /// Estimate of system prompt and tools.
    pub overhead: u64,
    /// Estimate of what comes into the thread before the next request.
    pub pending: u64,
    /// Estimate of what no compaction can take out of the thread: what the user typed last and the
    /// calls that are open. Results count with what trimming leaves of them.
    pub newest: u64,
}

impl Pressure {
    /// The tokens of the next request: the greater of what was counted and what is estimated.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let counted = self.reported.map_or(0, |tokens| tokens.saturating_add(self.since));
        counted.saturating_add(self.pending).max(self.estimated())
    }

    /// The tokens of the next request by the estimate alone.
    #[must_use]
    pub fn estimated(&self) -> u64 {
        self.thread.saturating_add(self.overhead).saturating_add(self.pending)
    }

    /// The estimate of the messages of the next request.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.thread.saturating_add(self.pending)
    }

    /// What the smallest request would have, whatever is compacted.
    #[must_use]
    pub fn floor(&self) -> u64 {
        self.overhead.saturating_add(self.newest).saturating_add(self.pending)
    }
}
