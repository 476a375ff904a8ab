//! What to do with a provider's cache of the prompt while the user is away.
//!
//! A cache dies some time after its last use. A cold request then writes the whole prompt anew, at
//! twelve to twenty times the price of reading it. There are two ways to avoid that: to send the
//! last prompt again for a tiny answer, which renews the cache, or to compact while the prompt can
//! still be read cheaply, so that the next request writes a short prompt.
//!
//! Nobody knows when the user returns, so this is the ski-rental problem. Each keep-alive is rent,
//! and the buying price is the least that it costs to give the cache up: the cold prompt, or a
//! compaction and its short cold prompt, less what the compaction saves afterwards. The rule pays
//! rent as long as the sum stays within the buying price. So a pause costs at most twice as much as
//! the best decision in hindsight. If the user never returns, the rent was paid in vain, but it was
//! at most the buying price.
//!
//! A user's pauses resemble each other. Once four of them are known, the rule stops after the number
//! of keep-alives that would have been cheapest in these, but never later than without them. So a
//! pause still costs at most twice the buying price.

use crate::{
    compact::Prices,
    message::{Request, Role},
};

/// An idle compaction must remove at least one part in this many of the prompt.
const IDLE_PART: u64 = 8;

/// The host acts when one part in this many of a cache's life is left: after 54 of 60 minutes. The
/// request that follows must reach the provider before the cache dies.
const LAST_PART: u64 = 10;

/// From this many former pauses on, the rule learns from them.
const KNOWN_PAUSES: usize = 4;

/// The tokens of the answer to a keep-alive. OpenAI's Responses API refuses a lower maximum.
const KEEP_ALIVE_OUTPUT: u64 = 16;

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
/// // A user who is away for two hours each time is not waited for.
/// let pauses = [7_200_000; 4];
/// assert_eq!(Idle { pauses: &pauses, ..late }.step(&prices), IdleStep::Compact);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idle<'a> {
    /// The tokens of the last prompt, which the cache holds.
    pub prompt: u64,
    /// The tokens of the prompt that a compaction is expected to leave. If it is not less than
    /// `prompt`, nothing is compacted.
    pub after: u64,
    /// The tokens of the summary that a model would write; zero if the strategy calls no model.
    pub summary: u64,
    /// What a compaction now saves in later requests, compared with the cheapest moment after the
    /// pause, in millionths of a currency unit; zero if it is unknown.
    pub later_savings: i64,
    /// The time since the last request that used the cache, keep-alives included, in milliseconds.
    pub unused_ms: u64,
    /// The keep-alives of this pause so far.
    pub kept_alive: u32,
    /// How long the user was away in former pauses, in milliseconds, counted from the last request.
    /// Pauses in which the cache needed no keep-alive may be left out.
    pub pauses: &'a [u64],
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

/// Returns the request that keeps the provider's cache alive: the prompt of `request` that was
/// answered last, so without the answer at its end, for an answer of 16 tokens. Everything else is
/// that of `request`, because a cache holds system prompt and tools too.
///
/// ```
/// use threadfold::{Message, Request, auto};
///
/// let thread = vec![Message::user("Explain the parser."), Message::assistant("It is long.")];
/// let again = auto::keep_alive(Request::new(thread).with_system("Be brief."));
/// assert_eq!((again.messages.len(), again.max_output), (1, Some(16)));
/// ```
#[must_use]
pub fn keep_alive(request: Request) -> Request {
    let read = request.messages.iter().rposition(|message| message.role == Role::User);
    let prompt = request.messages.get(..read.map_or(0, |last| last + 1)).unwrap_or_default();
    Request { messages: prompt.to_vec().into(), max_output: Some(KEEP_ALIVE_OUTPUT), ..request }
}

/// The time without a request after which something is due, in milliseconds.
fn due(prices: &Prices) -> u64 {
    prices.cache_life_ms - prices.cache_life_ms / LAST_PART
}

impl Idle<'_> {
    /// Returns what to do next in this pause, by these prices. It only decides: the host has the
    /// timer and sends the requests. The type has an example.
    #[must_use]
    pub fn step(&self, prices: &Prices) -> IdleStep {
        let life = prices.cache_life_ms;
        if prices.cacheable(self.prompt) == 0 || self.unused_ms >= life {
            return IdleStep::LetGo;
        }
        let due = due(prices);
        if self.unused_ms < due {
            return IdleStep::Wait { ms: due - self.unused_ms };
        }
        let (price, step) = self.giving_up(prices);
        let most = self.most_keep_alives(due.max(1), self.rent(prices), price);
        if i64::from(self.kept_alive) < most { IdleStep::KeepAlive } else { step }
    }

    /// Whether a pause of this many milliseconds needs a keep-alive, so that it teaches something.
    pub(super) fn outlasts(ms: u64, prices: &Prices) -> bool {
        ms >= due(prices)
    }

    /// The number of keep-alives in this pause, if one costs `rent` and is due after every `due`
    /// milliseconds, and giving up the cache costs `price`.
    fn most_keep_alives(&self, due: u64, rent: i64, price: i64) -> i64 {
        let affordable = price.max(0) / rent;
        // How many keep-alives each former pause needed, the shortest pause first.
        let mut needed: Vec<i64> = { self.pauses.iter() }
            .map(|pause| i64::try_from(pause / due).unwrap_or(i64::MAX))
            .filter(|needed| *needed > 0)
            .collect();
        if needed.len() < KNOWN_PAUSES {
            return affordable;
        }
        needed.sort_unstable();
        let (mut best, mut least) = (0, price.saturating_mul(needed.len() as i64));
        let mut within: i64 = 0;
        for (index, most) in needed.iter().enumerate().take_while(|(_, most)| **most <= affordable)
        {
            within = within.saturating_add(most.saturating_mul(rent));
            let longer = (needed.len() - index - 1) as i64;
            let beyond = most.saturating_mul(rent).saturating_add(price).saturating_mul(longer);
            let cost = within.saturating_add(beyond);
            if cost < least {
                (best, least) = (*most, cost);
            }
        }
        best
    }

    /// The bill of a keep-alive; at least one millionth of a currency unit, so that the rent ends.
    fn rent(&self, prices: &Prices) -> i64 {
        prices.bill(&prices.usage(self.prompt, self.prompt, KEEP_ALIVE_OUTPUT)).max(1)
    }

    /// Returns how much the cheaper way to give the cache up costs more than a return to a warm
    /// cache, and that way. A compaction that saves more later than it costs has a negative price.
    fn giving_up(&self, prices: &Prices) -> (i64, IdleStep) {
        let cold = |tokens| prices.bill(&prices.usage(tokens, 0, 0));
        let warm = |output| prices.bill(&prices.usage(self.prompt, self.prompt, output));
        let dead = cold(self.prompt).saturating_sub(warm(0));
        let written = if self.summary == 0 { 0 } else { warm(self.summary) };
        let compacted = written.saturating_add(cold(self.after)).saturating_sub(warm(0));
        let compacted = compacted.saturating_sub(self.later_savings);
        let gain = self.prompt.saturating_sub(self.after);
        if gain >= (self.prompt / IDLE_PART).max(1) && compacted < dead {
            (compacted, IdleStep::Compact)
        } else {
            (dead, IdleStep::LetGo)
        }
    }
}
