//! Whether a compaction pays now, by the prices of the model.
//!
//! Without prices, only the threshold decides. With prices, the soft trigger fires
//!
//! - not if less than `min_gain` would be saved;
//! - before the threshold, if the policy allows it, when the requests since the last compaction have
//!   paid a quarter more for reading the removable tokens than a compaction costs: writing the cache
//!   anew, and a model's summary. For a thread that grows steadily, the cheapest interval is the one
//!   without the quarter (as in the economic order quantity); the quarter leaves time for a pause of
//!   the user, after which the cache is cold anyway;
//! - likewise, if the provider's cache is cold because the user was away longer than its
//!   life, and at least an eighth of the prompt would be saved: then the requests must have paid
//!   only for the model's summary, if there is one;
//! - later if the host knows how many requests remain, and they fit and would not pay for it.
//!
//! A compaction is expected to leave as many tokens as the last one did, and at most the target; the
//! first one the target, because a strategy without a model fills it.
//!
//! While the user is away, a compaction is worth more than the cache that it saves, because the one
//! that the trigger would start later is saved too. If requests have paid `p` since the last
//! compaction, and one costs `k`, a thread that grows steadily is `sqrt(p / k)` of the cheapest
//! interval old. To have it compacted now is then worth `2 * sqrt(p * k) - p`: nothing right after a
//! compaction, and its whole cost at the end of the interval.
//!
//! The hard check comes first in every case, so a wrong expectation costs at most one compaction.
//! The example `cost` compares this with an oracle that knows the future.

use super::{
    idle::{Idle, IdleStep},
    policy::AutoPolicy,
    pressure::Pressure,
};
use crate::{
    compact::{CompactionCost, Prices, PromptChange},
    message::{Timestamp, Usage},
};

/// Before the threshold, a compaction with a cold cache must save at least one part in this many.
const COLD_PART: u64 = 8;

/// Requests must have paid the cost of a compaction and one part in this many more.
const PATIENCE: i64 = 4;

/// The number of pauses that are remembered.
const PAUSES: usize = 16;

/// The next request, and the sizes that a compaction before it could reach, in tokens.
#[derive(Clone, Copy, Debug)]
struct Outlook {
    prices: Prices,
    policy: AutoPolicy,
    pressure: Pressure,
    /// The maximum number of tokens that a compaction should leave of the thread.
    target: u64,
    /// The tokens of the window without the output reserve.
    room: u64,
}

/// Compares what requests pay with what a compaction costs.
#[derive(Clone, Debug, Default)]
pub(super) struct Planner {
    /// The time of the last request, which used the cache, keep-alives included.
    last: Option<Timestamp>,
    /// The time of the last request without keep-alives, if the turn ended after it.
    away: Option<Timestamp>,
    /// How long the user was away in the last pauses that outlasted most of a cache's life, in
    /// milliseconds.
    pauses: Vec<u64>,
    /// The price that the requests since the last compaction paid for tokens that a compaction
    /// would remove.
    paid: i64,
    /// The size of the thread after a compaction, as the last one showed.
    left: Left,
    /// Whether nothing more is to be decided about the cache of the last request: the thread was
    /// compacted since, or a compaction for it failed.
    is_given_up: bool,
    /// The keep-alives since the last request.
    kept_alive: u32,
}

/// The size of the thread after a compaction, if it is known.
#[derive(Clone, Copy, Debug, Default)]
enum Left {
    #[default]
    Unknown,
    /// A compaction ended after the last request, so the next one shows the size.
    Pending,
    Tokens(u64),
}

impl Planner {
    /// Whether the soft trigger fires at this pressure, given whether the thread is over its
    /// threshold.
    pub(super) fn fires(
        &self,
        is_over: bool,
        policy: &AutoPolicy,
        pressure: &Pressure,
        now: Timestamp,
    ) -> bool {
        let Some(outlook) = Outlook::of(policy, pressure) else { return is_over };
        let before = pressure.tokens();
        let gain = before.saturating_sub(self.after(&outlook));
        let since = self.last.map_or(0, |last| now.0.saturating_sub(last.0));
        let is_cold = self.last.is_some() && since >= outlook.prices.cache_life_ms;
        let cost = self.cost(&outlook, !is_cold);
        let pays = gain >= policy.min_gain.max(1) && !outlook.is_nearly_done(&cost);
        let once = cost.rebill.saturating_add(cost.model_calls);
        let has_paid = self.paid >= once.saturating_add(once / PATIENCE)
            && (!is_cold || gain >= before / COLD_PART);
        pays && (is_over || (policy.early && has_paid))
    }

    /// Records that a request is sent at this time and pressure.
    pub(super) fn sent(&mut self, now: Timestamp, policy: &AutoPolicy, pressure: &Pressure) {
        (self.last, self.is_given_up, self.kept_alive) = (Some(now), false, 0);
        if let (Some(left), Some(prices)) = (self.away.take(), policy.prices) {
            self.returned(now.0.saturating_sub(left.0), &prices);
        }
        let Some(outlook) = Outlook::of(policy, pressure) else { return };
        if matches!(self.left, Left::Pending) {
            self.left = Left::Tokens(pressure.of_thread(pressure.tokens()));
        }
        let excess = self.cost(&outlook, true).saved_per_request.max(0);
        self.paid = self.paid.saturating_add(excess);
    }

    /// Remembers how long the user was away.
    fn returned(&mut self, ms: u64, prices: &Prices) {
        if Idle::outlasts(ms, prices) {
            self.pauses.truncate(PAUSES - 1);
            self.pauses.insert(0, ms);
        }
    }

    /// Records that the turn of the last request ended, so that the next one comes when the user is
    /// back.
    pub(super) fn turn_ended(&mut self) {
        if self.kept_alive == 0 {
            self.away = self.last;
        }
    }

    /// Records that the thread was compacted, before a request or while none is about to be sent.
    pub(super) fn compacted(&mut self, is_before_request: bool) {
        (self.paid, self.left, self.is_given_up) = (0, Left::Pending, !is_before_request);
    }

    /// Records that a compaction for the cache of the last request failed.
    pub(super) fn give_up(&mut self) {
        self.is_given_up = true;
    }

    /// Records that the last prompt was sent again at this time, to keep the cache alive.
    pub(super) fn kept_alive(&mut self, now: Timestamp) {
        (self.last, self.kept_alive) = (Some(now), self.kept_alive.saturating_add(1));
    }

    /// Decides what to do with the cache while the user is away.
    pub(super) fn idle(
        &self,
        may_compact: bool,
        policy: &AutoPolicy,
        pressure: &Pressure,
        now: Timestamp,
    ) -> IdleStep {
        let (Some(prices), Some(last)) = (policy.prices, self.last.filter(|_| !self.is_given_up))
        else {
            return IdleStep::LetGo;
        };
        let prompt = pressure.tokens();
        let outlook = Outlook::of(policy, pressure).filter(|_| may_compact);
        let after = outlook.map_or(prompt, |outlook| self.after(&outlook));
        let is_worth_it = prompt.saturating_sub(after) >= policy.min_gain;
        let idle = Idle {
            prompt,
            after: if is_worth_it { after } else { prompt },
            summary: policy.summary_tokens,
            later_savings: outlook.map_or(0, |outlook| self.later_savings(&outlook)),
            unused_ms: now.0.saturating_sub(last.0),
            // As if no further one were affordable.
            kept_alive: if policy.keep_alive { self.kept_alive } else { u32::MAX },
            pauses: &self.pauses,
        };
        idle.step(&prices)
    }

    /// What later requests save if the thread is compacted now, in millionths of a currency unit.
    fn later_savings(&self, outlook: &Outlook) -> i64 {
        let cost = self.cost(outlook, true);
        let once = cost.rebill.saturating_add(cost.model_calls).max(0);
        let paid = self.paid.clamp(0, once);
        let mean = (u128::from(paid.unsigned_abs()) * u128::from(once.unsigned_abs())).isqrt();
        // The mean is at least what was paid, and at most the cost.
        i64::try_from(mean).unwrap_or(once).saturating_mul(2).saturating_sub(paid)
    }

    /// The size of the request after a compaction.
    fn after(&self, outlook: &Outlook) -> u64 {
        let Outlook { pressure, target, .. } = *outlook;
        let thread = match self.left {
            Left::Tokens(tokens) => tokens.min(target),
            Left::Unknown | Left::Pending => target,
        };
        thread.saturating_add(pressure.overhead).saturating_add(pressure.pending)
    }

    /// The cost and the saving of a compaction, which is assumed to rewrite all messages, because
    /// only the strategy knows which. The model that writes the summary reads the prompt from the
    /// cache if that is warm.
    fn cost(&self, outlook: &Outlook, is_warm: bool) -> CompactionCost {
        let Outlook { prices, policy, pressure, .. } = *outlook;
        let (kept, before) = (pressure.overhead, pressure.tokens());
        let change = PromptChange { kept, before, after: self.after(outlook) };
        let spent = match policy.summary_tokens {
            0 => Usage::default(),
            tokens => prices.usage(before, if is_warm { before } else { 0 }, tokens),
        };
        prices.compaction(change, &spent, is_warm)
    }
}

impl Outlook {
    /// Returns the outlook, if prices and window are known.
    fn of(policy: &AutoPolicy, pressure: &Pressure) -> Option<Self> {
        let (prices, room) = (policy.prices?, policy.room(pressure)?);
        let target = policy.goal(pressure, room).target;
        Some(Self { prices, policy: *policy, pressure: *pressure, target, room })
    }

    /// Whether the remaining requests fit, if they grow as the last one did, and would not pay for
    /// a compaction.
    fn is_nearly_done(&self, cost: &CompactionCost) -> bool {
        let Some(left) = self.policy.requests_left else { return false };
        let growth = self.pressure.since.saturating_add(self.pressure.pending);
        let last = self.pressure.tokens().saturating_add(left.saturating_mul(growth));
        last <= self.room && cost.pays_after.is_none_or(|requests| requests > left)
    }
}
