//! Whether a compaction pays now, by the prices of the model.
//!
//! Without prices the threshold alone decides. With them, the soft trigger fires
//!
//! - not if less than `min_gain` would be saved;
//! - before the threshold if the requests since the last compaction have paid a quarter more for
//!   reading the removable tokens than a compaction costs: writing the cache anew, and a model's
//!   summary. For a thread that grows steadily, the cheapest interval is the one without the
//!   quarter, as in stock keeping; the quarter waits a little for a pause, after which the cache is
//!   cold anyway;
//! - before the threshold if the provider's cache is cold because the user was away longer than its
//!   life, and at least an eighth of the prompt would be saved: then only the model's summary must
//!   have been paid for, if there is one;
//! - later if the host knows that the few remaining requests fit and would not pay for it.
//!
//! A compaction is expected to leave as much as the last one did, but at most the target: a
//! strategy often leaves less than it may. Before the first compaction, a third of the target is
//! assumed.
//!
//! The hard check comes first in every case, so a wrong expectation costs at most one compaction.
//! The example `cost` compares this with an oracle that knows the future.

use crate::{
    compact::{CompactionCost, Prices, PromptChange},
    message::{Timestamp, Usage},
};

/// Before the threshold, a compaction with a cold cache must save at least one part in this many.
const COLD_PART: u64 = 8;

/// Requests must have paid the cost of a compaction and one part in this many more.
const PATIENCE: i64 = 4;

/// A first compaction is assumed to leave one part in this many of its target.
const FIRST_PART: u64 = 3;

/// The next request, and what a compaction before it would change, in tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlook {
    pub(crate) prices: Prices,
    pub(crate) min_gain: u64,
    pub(crate) requests_left: Option<u64>,
    pub(crate) summary_tokens: u64,
    /// System prompt and tools, which a compaction does not change. It is assumed to rewrite all
    /// messages, because only the strategy knows which.
    pub(crate) kept: u64,
    /// The tokens that are appended before the request and not compacted.
    pub(crate) pending: u64,
    /// The maximum number of tokens that a compaction should leave of the thread.
    pub(crate) target: u64,
    /// The request without a compaction.
    pub(crate) before: u64,
    /// The tokens of the window without the output reserve.
    pub(crate) room: u64,
    /// The growth since the last request.
    pub(crate) growth: u64,
}

/// Compares what requests pay with what a compaction costs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Planner {
    /// The time of the last request, which used the cache.
    last: Option<Timestamp>,
    /// What the requests since the last compaction paid for tokens that it would remove.
    paid: i64,
    /// The tokens of the thread that the last compaction left.
    left: Left,
}

/// The size to which the strategy brings the thread, if it is known.
#[derive(Clone, Copy, Debug, Default)]
enum Left {
    #[default]
    Unknown,
    /// A compaction ended after the last request, so the next one shows the size.
    Pending,
    Tokens(u64),
}

impl Planner {
    /// Whether the soft trigger fires, given whether the thread is over its threshold.
    pub(crate) fn fires(&self, is_over: bool, outlook: Option<Outlook>, now: Timestamp) -> bool {
        let Some(outlook) = outlook else { return is_over };
        let Outlook { prices, min_gain, before, .. } = outlook;
        let gain = before.saturating_sub(self.after(&outlook));
        let since = self.last.map_or(0, |last| now.0.saturating_sub(last.0));
        let is_cold = self.last.is_some() && since >= prices.cache_life_ms;
        let cost = self.cost(&outlook, !is_cold);
        let pays = gain >= min_gain.max(1) && !outlook.is_nearly_done(&cost);
        let once = cost.rebill.saturating_add(cost.model_calls);
        let has_paid = self.paid >= once.saturating_add(once / PATIENCE)
            && (!is_cold || gain >= before / COLD_PART);
        pays && (is_over || has_paid)
    }

    /// Records that a request is sent at this time.
    pub(crate) fn sent(&mut self, now: Timestamp, outlook: Option<Outlook>) {
        self.last = Some(now);
        let Some(outlook) = outlook else { return };
        if matches!(self.left, Left::Pending) {
            let around = outlook.kept.saturating_add(outlook.pending);
            self.left = Left::Tokens(outlook.before.saturating_sub(around));
        }
        let excess = self.cost(&outlook, true).saved_per_request.max(0);
        self.paid = self.paid.saturating_add(excess);
    }

    /// Records that the thread was compacted.
    pub(crate) fn compacted(&mut self) {
        (self.paid, self.left) = (0, Left::Pending);
    }

    /// The size of the request after a compaction.
    fn after(&self, outlook: &Outlook) -> u64 {
        let thread = match self.left {
            Left::Tokens(tokens) => tokens.min(outlook.target),
            Left::Unknown | Left::Pending => outlook.target / FIRST_PART,
        };
        thread.saturating_add(outlook.kept).saturating_add(outlook.pending)
    }

    /// The cost and the saving of a compaction. Its model reads the prompt from the cache if that
    /// is warm.
    fn cost(&self, outlook: &Outlook, is_warm: bool) -> CompactionCost {
        let Outlook { prices, summary_tokens, kept, before, .. } = *outlook;
        let change = PromptChange { kept, before, after: self.after(outlook) };
        let spent = match summary_tokens {
            0 => Usage::default(),
            tokens => prices.usage(before, if is_warm { before } else { 0 }, tokens),
        };
        prices.compaction(change, &spent, is_warm)
    }
}

impl Outlook {
    /// Whether the remaining requests fit, if they grow as the last one did, and would not pay for
    /// a compaction.
    fn is_nearly_done(&self, cost: &CompactionCost) -> bool {
        let Some(left) = self.requests_left else { return false };
        let last = self.before.saturating_add(left.saturating_mul(self.growth));
        last <= self.room && cost.pays_after.is_none_or(|requests| requests > left)
    }
}
