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

use super::{policy::AutoPolicy, pressure::Pressure, trigger::Level};
use crate::{
    compact::{CompactionCost, Micros, PromptChange},
    message::{Timestamp, Usage},
};

/// With a cold cache, at least this part of the prompt must be saved before the threshold.
const COLD_PART: u64 = 4;

impl AutoPolicy {
    /// Returns the level of the thread, corrected by what a compaction would cost and save. `last`
    /// is the time of the last request, and `paid` the sum of the [excess](Self::excess) of the
    /// requests since the last compaction.
    pub(super) fn planned(
        &self,
        level: Level,
        pressure: &Pressure,
        now: Timestamp,
        last: Option<Timestamp>,
        paid: Micros,
    ) -> Level {
        let (Some(prices), Some(change)) = (&self.prices, self.change(pressure)) else {
            return level;
        };
        let PromptChange { before, after, .. } = change;
        let gain = before.saturating_sub(after);
        let is_cold = last.is_some_and(|last| now.0.saturating_sub(last.0) >= prices.cache_life_ms);
        let cost = prices.compaction(change, &Usage::default(), !is_cold);
        let has_paid = if is_cold { gain >= before / COLD_PART } else { paid >= cost.rebill };
        let pays = gain >= self.min_gain.max(1) && !self.is_nearly_done(pressure, &cost);
        match level {
            Level::Over if !pays => Level::Under,
            Level::Under if pays && has_paid => Level::Over,
            Level::Under | Level::Over | Level::Hopeless => level,
        }
    }

    /// Returns what the next request pays for reading from the cache what a compaction would remove.
    pub(super) fn excess(&self, pressure: &Pressure) -> Micros {
        let (Some(prices), Some(change)) = (&self.prices, self.change(pressure)) else { return 0 };
        prices.compaction(change, &Usage::default(), true).saved_per_request.max(0)
    }

    /// How a compaction changes the prompt. It is taken to rewrite all messages without a model,
    /// because only the strategy knows better.
    fn change(&self, pressure: &Pressure) -> Option<PromptChange> {
        let around = pressure.overhead.saturating_add(pressure.pending);
        let target = self.goal(pressure, self.room(pressure)?).target;
        let (before, after) = (pressure.tokens(), target.saturating_add(around));
        Some(PromptChange { kept: pressure.overhead, before, after })
    }

    /// Whether the requests that are left fit, growing as the last one did, and would not pay for a
    /// compaction.
    fn is_nearly_done(&self, pressure: &Pressure, cost: &CompactionCost) -> bool {
        let (Some(left), Some(room)) = (self.requests_left, self.room(pressure)) else {
            return false;
        };
        let growth = pressure.since.saturating_add(pressure.pending);
        let last = pressure.tokens().saturating_add(left.saturating_mul(growth));
        last <= room && cost.pays_after.is_none_or(|requests| requests > left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        auto::{AutoCompactor, Input, Output, UnknownUsage},
        compact::Prices,
        message::{CompactionReason, ContextWindow},
    };

    const LIFE: u64 = 300_000;

    fn policy() -> AutoPolicy {
        let prices = Prices {
            input: 3.0,
            cached: 0.3,
            cache_write: 3.75,
            output: 15.0,
            cache_life_ms: LIFE,
            cache_min: 1_024,
            cache_block: 1,
        };
        AutoPolicy {
            prices: Some(prices),
            unknown_usage: UnknownUsage::Estimate,
            ..AutoPolicy::default()
        }
    }

    fn pressure(thread: u64, since: u64) -> Pressure {
        let window = Some(ContextWindow::new(200_000));
        Pressure { window, thread, since, newest: 100, ..Pressure::default() }
    }

    /// Whether the second of two requests is compacted for, so many milliseconds after the first.
    fn fires(policy: AutoPolicy, second: Pressure, after: u64) -> bool {
        let mut auto = AutoCompactor::new(policy).unwrap();
        assert_eq!(auto.handle(Timestamp(0), Input::BeforeSend(pressure(1_000, 0))), None);
        let output = auto.handle(Timestamp(after), Input::BeforeSend(second));
        matches!(output, Some(Output::Compact { reason: CompactionReason::Threshold, .. }))
    }

    #[test]
    fn a_cold_cache_lets_it_fire_before_the_threshold_if_much_is_saved() {
        assert!(fires(policy(), pressure(140_000, 0), LIFE));
        assert!(!fires(policy(), pressure(140_000, 0), LIFE - 1), "the cache is warm");
        assert!(!fires(policy(), pressure(120_000, 0), LIFE), "a sixth would be saved");
        let without = AutoPolicy { prices: None, ..policy() };
        assert!(!fires(without, pressure(140_000, 0), LIFE), "nobody named prices");
    }

    #[test]
    fn it_waits_for_the_least_gain() {
        let least = |min_gain| AutoPolicy { min_gain, ..policy() };
        assert!(fires(least(60_000), pressure(160_000, 0), 1));
        assert!(!fires(least(60_001), pressure(160_000, 0), 1));
        assert!(!fires(least(60_000), pressure(140_000, 0), LIFE));
    }

    #[test]
    fn it_waits_for_the_end_if_that_is_near_and_fits() {
        let left = |requests| AutoPolicy { requests_left: Some(requests), ..policy() };
        // 160,000 to 100,000 tokens: 375,000 - 48,000 millionths once, 18,000 saved a request.
        assert!(!fires(left(19), pressure(160_000, 1_000), 1));
        assert!(fires(left(20), pressure(160_000, 1_000), 1));
        assert!(fires(left(19), pressure(160_000, 3_000), 1), "it would not fit");
        assert!(fires(left(19), pressure(160_000, 1_000), LIFE), "it pays at once");
    }

    #[test]
    fn it_fires_once_the_requests_have_paid_for_it() {
        // Each request reads 20,000 tokens too many: 6,000 millionths. Writing 100,000 tokens anew
        // costs 375,000 - 36,000 millionths.
        let mut auto = AutoCompactor::new(policy()).unwrap();
        let mut fired = (0..200).map(|second| {
            let input = Input::BeforeContinue(pressure(120_000, 0));
            auto.handle(Timestamp(second), input).is_some()
        });
        assert_eq!(fired.position(|fired| fired), Some(57));
        let input = Input::Compacted { reason: CompactionReason::Threshold };
        assert_eq!(auto.handle(Timestamp(300), input), None);
    }
}
