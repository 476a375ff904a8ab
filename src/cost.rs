//! Whether a compaction pays now, by the prices of the model.
//!
//! Without prices the threshold alone decides. With them, the soft trigger fires
//!
//! - not if less than `min_gain` would be saved,
//! - before the threshold if the requests since the last compaction have paid as much for reading
//!   what it would remove as it costs to write the cache anew. For a thread that grows steadily,
//!   this is the interval with the least cost, as for an order of stock,
//! - before the threshold if the provider's cache is cold anyway, because the user was away longer
//!   than its life, and at least a quarter of the prompt would be saved,
//! - later if the host knows that so few requests are left that they fit and would not pay for it.
//!
//! The hard check comes first in every case, so a wrong expectation costs at most one compaction.

use serde::{Deserialize, Serialize};

use crate::{
    compact::{CompactionCost, Micros, Prices, PromptChange},
    message::{Timestamp, Usage},
};

/// With a cold cache, at least this part of the prompt must be saved before the threshold.
const COLD_PART: u64 = 4;

/// The prices of a model, and which compactions are worth them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostPolicy {
    /// The prices of the model and the rules of its prompt cache.
    pub prices: Prices,
    /// The least number of tokens that the soft trigger's compaction must save.
    #[serde(default)]
    pub min_gain: u64,
    /// How many requests the host still expects, if it knows. A compaction that they would not pay
    /// for is left out while they fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_left: Option<u64>,
}

impl From<Prices> for CostPolicy {
    /// With no least gain, and no number of requests.
    fn from(prices: Prices) -> Self {
        Self { prices, min_gain: 0, requests_left: None }
    }
}

/// What a compaction before the next request would change, in tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlook {
    pub(crate) policy: CostPolicy,
    /// The tokens that the compaction leaves as they are, and those of the request without it and
    /// with it.
    pub(crate) kept: u64,
    pub(crate) before: u64,
    pub(crate) after: u64,
    /// The tokens that fit the window beside the output reserve.
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
    paid: Micros,
}

impl Planner {
    /// Whether the soft trigger fires, given whether the thread is over its threshold.
    pub(crate) fn fires(&self, is_over: bool, outlook: Option<Outlook>, now: Timestamp) -> bool {
        let Some(outlook) = outlook else { return is_over };
        let Outlook { policy: CostPolicy { prices, min_gain, .. }, before, after, .. } = outlook;
        let gain = before.saturating_sub(after);
        let is_old = |last: Timestamp| now.0.saturating_sub(last.0) >= prices.cache_life_ms;
        let is_cold = self.last.is_some_and(is_old);
        let cost = outlook.cost(!is_cold);
        let pays = gain >= min_gain.max(1) && !outlook.is_nearly_done(&cost);
        let has_paid = match is_cold {
            true => gain >= before / COLD_PART,
            false => self.paid >= cost.rebill,
        };
        pays && (is_over || has_paid)
    }

    /// Notes that a request is sent.
    pub(crate) fn sent(&mut self, now: Timestamp, outlook: Option<Outlook>) {
        self.last = Some(now);
        self.paid = self.paid.saturating_add(outlook.map_or(0, |outlook| outlook.excess()));
    }

    /// Notes that the thread was compacted.
    pub(crate) fn compacted(&mut self) {
        self.paid = 0;
    }
}

impl Outlook {
    /// What the next request pays for reading from the cache what a compaction would remove.
    fn excess(&self) -> Micros {
        self.cost(true).saved_per_request.max(0)
    }

    /// What a compaction costs and saves that asks no model.
    fn cost(&self, is_warm: bool) -> CompactionCost {
        let Self { kept, before, after, .. } = *self;
        let change = PromptChange { kept, before, after };
        self.policy.prices.compaction(change, &Usage::default(), is_warm)
    }

    /// Whether the requests that are left fit, growing as the last one did, and would not pay for a
    /// compaction.
    fn is_nearly_done(&self, cost: &CompactionCost) -> bool {
        let Some(left) = self.policy.requests_left else { return false };
        let last = self.before.saturating_add(left.saturating_mul(self.growth));
        last <= self.room && cost.pays_after.is_none_or(|requests| requests > left)
    }
}
