//! What to do with a provider's cache of the prompt while the user is away.
//!
//! A cache dies some time after its last use. A cold request then writes the whole prompt anew, at
//! twelve to twenty times the price of reading it. There are two ways to avoid that: to send the
//! last prompt again for a tiny answer, which renews the cache, or to compact while the prompt can
//! still be read cheaply, so that the next request writes a short prompt.
//!
//! Nobody knows when the user returns, so this is the ski-rental problem. Each keep-alive is rent,
//! and the buying price is the least that it costs to give the cache up: the cold prompt, or a
//! compaction and its short cold prompt. The rule pays rent as long as the sum stays within the
//! buying price. So a pause costs at most twice as much as the best decision in hindsight. If the
//! user never returns, the rent was paid in vain, but it was at most the buying price.

use crate::compact::Prices;

/// An idle compaction must remove at least one part in this many of the prompt.
const IDLE_PART: u64 = 8;

/// The host acts when one part in this many of a cache's life is left: after 54 of 60 minutes. The
/// request that follows must reach the provider before the cache dies.
const LAST_PART: u64 = 10;

/// The tokens of the answer to a keep-alive. OpenAI's Responses API refuses a lower maximum.
pub(crate) const KEEP_ALIVE_OUTPUT: u64 = 16;

/// A pause of the user, as it is now. Sizes are in tokens.
///
/// [`AutoCompactor::idle`](super::AutoCompactor::idle) makes one from what it knows of the thread.
///
/// ```
/// use threadfold::{auto::{Idle, IdleStep}, compact::{CacheLife, Prices}};
///
/// let prices: Prices = serde_json::from_str(
///     r#"{"input": 3, "cached": 0.3, "cache_write": 3.75, "output": 15}"#,
/// )?;
/// let idle = Idle { prompt: 100_000, after: 20_000, summary: 2_000, ..Idle::default() };
/// // A compaction costs as much as reading the prompt three times, so three keep-alives come first.
/// assert_eq!(idle.step(&prices), IdleStep::Wait { ms: 270_000 });
/// let late = Idle { unused_ms: 270_000, ..idle };
/// assert_eq!(late.step(&prices), IdleStep::KeepAlive);
/// assert_eq!(Idle { kept_alive: 3, ..late }.step(&prices), IdleStep::Compact);
/// assert_eq!(Idle { unused_ms: 300_000, ..idle }.step(&prices), IdleStep::LetGo);
/// // A cache that lives for an hour is used up after 54 minutes.
/// let hour = prices.with_life(CacheLife::HOUR);
/// assert_eq!(idle.step(&hour), IdleStep::Wait { ms: 54 * 60_000 });
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idle {
    /// The tokens of the last prompt, which the cache holds.
    pub prompt: u64,
    /// The tokens of the prompt that a compaction is expected to leave. If it is not less than
    /// `prompt`, nothing is compacted.
    pub after: u64,
    /// The tokens of the summary that a model would write; zero if the strategy calls no model.
    pub summary: u64,
    /// The time since the last request that used the cache, keep-alives included, in milliseconds.
    pub unused_ms: u64,
    /// The keep-alives of this pause so far.
    pub kept_alive: u32,
}

/// What a host does next while the user is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdleStep {
    /// Nothing yet: decide again after this many milliseconds, unless the user returns before.
    Wait {
        /// The time until the next decision, in milliseconds; never zero.
        ms: u64,
    },
    /// Send the last prompt again for a tiny answer, which renews the cache.
    KeepAlive,
    /// Compact now, while the prompt is read from the cache.
    Compact,
    /// Let the cache die, or it is dead. Nothing more is to be decided in this pause.
    LetGo,
}

impl Idle {
    /// Returns what to do next in this pause, by these prices. It only decides: the host has the
    /// timer and sends the requests. The type has an example.
    #[must_use]
    pub fn step(&self, prices: &Prices) -> IdleStep {
        let life = prices.cache_life_ms;
        if prices.cacheable(self.prompt) == 0 || self.unused_ms >= life {
            return IdleStep::LetGo;
        }
        let due = life - life / LAST_PART;
        if self.unused_ms < due {
            return IdleStep::Wait { ms: due - self.unused_ms };
        }
        let (price, step) = self.giving_up(prices);
        let paid = self.rent(prices).saturating_mul(i64::from(self.kept_alive).saturating_add(1));
        if paid <= price { IdleStep::KeepAlive } else { step }
    }

    /// The bill of a keep-alive; at least one millionth of a currency unit, so that the rent ends.
    fn rent(&self, prices: &Prices) -> i64 {
        prices.bill(&prices.usage(self.prompt, self.prompt, KEEP_ALIVE_OUTPUT)).max(1)
    }

    /// Returns how much the cheaper way to give the cache up costs more than a return to a warm
    /// cache, and that way.
    fn giving_up(&self, prices: &Prices) -> (i64, IdleStep) {
        let cold = |tokens| prices.bill(&prices.usage(tokens, 0, 0));
        let warm = |output| prices.bill(&prices.usage(self.prompt, self.prompt, output));
        let dead = cold(self.prompt).saturating_sub(warm(0));
        let written = if self.summary == 0 { 0 } else { warm(self.summary) };
        let compacted = written.saturating_add(cold(self.after)).saturating_sub(warm(0));
        let gain = self.prompt.saturating_sub(self.after);
        if gain >= (self.prompt / IDLE_PART).max(1) && compacted < dead {
            (compacted, IdleStep::Compact)
        } else {
            (dead, IdleStep::LetGo)
        }
    }
}
