//! What a compaction costs and saves under a provider's prompt cache.
//!
//! A provider bills cached prompt tokens at a fraction of the input price, and tokens that it
//! writes to the cache at more than that price. A compaction invalidates the cache from its first
//! edit on. So it costs once, in the next request, and saves tokens in each request after that.

use serde::{Deserialize, Serialize};

use crate::message::{InvalidValue, Usage};

/// The prices of a model and the rules of its prompt cache, as the host knows them.
///
/// Bills are in millionths of a currency unit, so the price of a million tokens is the price of one
/// token in them.
///
/// The crate has no table of prices, because one would be wrong some day without notice. As an
/// example, Anthropic's pricing page of 2025-10 listed for Claude Sonnet 4.5: 3 dollars for a
/// million tokens of input, 0.30 cached, 3.75 to write a cache of five minutes, and 15 for output;
/// it caches prompts of 1,024 tokens or more.
///
/// ```
/// use threadfold::{Usage, compact::Prices};
///
/// let prices: Prices = serde_json::from_str(
///     r#"{"input": 3, "cached": 0.3, "cache_write": 3.75, "output": 15, "cache_min": 1024}"#,
/// )?;
/// let usage = Usage { cache_read: 8_000, cache_write: 2_000, ..Usage::new(10_000, 100) };
/// // 8,000 at 0.30, 2,000 at 3.75 and 100 at 15: together 0.0114 dollars.
/// assert_eq!(prices.bill(&usage), 11_400);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// The price of a million tokens of a prompt that is not cached.
    pub input: f64,
    /// The price of a million tokens that are read from a cache.
    pub cached: f64,
    /// The price of a million tokens that are written to a cache; equal to `input` if the provider
    /// charges nothing extra for it.
    pub cache_write: f64,
    /// The price of a million tokens of an answer.
    pub output: f64,
    /// How long a cache lives after its last use, in milliseconds.
    #[serde(default = "five_minutes")]
    pub cache_life_ms: u64,
    /// The tokens of the shortest prompt that is cached.
    #[serde(default)]
    pub cache_min: u64,
    /// The tokens of a block: a cache holds whole blocks only. Zero counts as one.
    #[serde(default)]
    pub cache_block: u64,
}

fn five_minutes() -> u64 {
    CacheLife::FIVE_MINUTES.ms
}

/// How long a provider keeps a prompt cache after its last use, and what writing it costs.
///
/// A provider may offer several lives. The host chooses one for its requests (with Anthropic, by the
/// `ttl` of `cache_control`), and sets the same one for its [`Prices`].
///
/// ```
/// use threadfold::compact::{CacheLife, Prices};
///
/// let prices: Prices = serde_json::from_str(
///     r#"{"input": 3, "cached": 0.3, "cache_write": 3.75, "output": 15}"#,
/// )?;
/// assert_eq!(prices, prices.with_life(CacheLife::FIVE_MINUTES));
/// let hour = prices.with_life(CacheLife::HOUR);
/// assert_eq!((hour.cache_life_ms, hour.cache_write), (3_600_000, 6.0));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheLife {
    /// The life after the last use, in milliseconds.
    pub ms: u64,
    /// The price of writing a token to the cache, as a multiple of the price of an uncached one.
    pub write: f64,
}

impl CacheLife {
    /// Anthropic's default, five minutes: writing costs 1.25 times the input (its page "Prompt
    /// caching", section "Pricing", as of November 2026).
    pub const FIVE_MINUTES: Self = Self { ms: 300_000, write: 1.25 };
    /// Anthropic's long life, 60 minutes: writing costs twice the input (the same page). Reading
    /// costs a tenth of the input for both lives.
    pub const HOUR: Self = Self { ms: 3_600_000, write: 2.0 };
}

/// How a compaction changes the prompt, in tokens of the whole request.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromptChange {
    /// The tokens before the first edit: system prompt, tools and unchanged messages.
    pub kept: u64,
    /// The tokens before the compaction.
    pub before: u64,
    /// The tokens after it.
    pub after: u64,
}

/// What a compaction costs and saves, estimated when it is committed.
///
/// Costs are compared with requests that find the whole prompt in a cache, or none of it if the
/// cache is cold. Tokens that later requests add cost the same with and without the compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CompactionCost {
    /// The tokens that the next request bills anew: those after the first edit, and those before it
    /// that do not fill a whole cache block. All tokens if the cache is cold.
    pub tokens_rebilled: u64,
    /// The bill for the strategy's own model calls.
    pub model_calls: i64,
    /// The additional cost of the next request because its prompt was rewritten; negative if that
    /// request already costs less, as with a cold cache.
    pub rebill: i64,
    /// What every request after the next one saves.
    pub saved_per_request: i64,
    /// The number of requests after which the compaction has paid for itself, the next one
    /// included; `None` if it never does.
    pub pays_after: Option<u64>,
}

impl Prices {
    /// Returns the prices with a cache of this life. [`CacheLife`] has an example.
    #[must_use]
    pub fn with_life(self, life: CacheLife) -> Self {
        Self { cache_life_ms: life.ms, cache_write: self.input * life.write, ..self }
    }

    /// Checks that every price is a number and not negative.
    ///
    /// ```
    /// use threadfold::compact::Prices;
    ///
    /// let text = r#"{"input": 3, "cached": -1, "cache_write": 3, "output": 15}"#;
    /// let prices: Prices = serde_json::from_str(text)?;
    /// assert_eq!(prices.check().unwrap_err().found, "-1");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] with the first wrong price.
    pub fn check(&self) -> Result<(), InvalidValue> {
        let all = [self.input, self.cached, self.cache_write, self.output];
        match all.into_iter().find(|price| !price.is_finite() || *price < 0.0) {
            Some(wrong) => {
                let rule = "expected a number that is not negative";
                Err(InvalidValue::new("the price of a million tokens", rule, &wrong.to_string()))
            }
            None => Ok(()),
        }
    }

    /// Returns the bill of a call with this usage, in millionths of a currency unit.
    ///
    /// ```
    /// use threadfold::{Usage, compact::Prices};
    ///
    /// let text = r#"{"input": 2, "cached": 0.5, "cache_write": 2, "output": 8}"#;
    /// let prices: Prices = serde_json::from_str(text)?;
    /// let usage = Usage { cache_read: 600, ..Usage::new(1_000, 50) };
    /// // 400 tokens at 2, 600 at 0.5 and 50 at 8.
    /// assert_eq!(prices.bill(&usage), 1_500);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn bill(&self, usage: &Usage) -> i64 {
        let Usage { input, output, cache_read, cache_write, .. } = *usage;
        let fresh = input.saturating_sub(cache_read).saturating_sub(cache_write);
        micros(
            price(fresh, self.input)
                + price(cache_read, self.cached)
                + price(cache_write, self.cache_write)
                + price(output, self.output),
        )
    }

    /// Returns how many of the first tokens of a prompt a cache can hold.
    ///
    /// ```
    /// # use threadfold::compact::Prices;
    /// let text = r#"{"input": 1.25, "cached": 0.125, "cache_write": 1.25, "output": 10,
    ///     "cache_min": 1024, "cache_block": 128}"#;
    /// let prices: Prices = serde_json::from_str(text)?;
    /// assert_eq!([1_000, 1_100, 1_300].map(|tokens| prices.cacheable(tokens)), [0, 1_024, 1_280]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn cacheable(&self, tokens: u64) -> u64 {
        let block = self.cache_block.max(1);
        let blocks = tokens / block * block;
        if blocks < self.cache_min { 0 } else { blocks }
    }

    /// Returns the usage of a request whose prompt has `tokens` tokens. The first `shared` of them
    /// were in the last request, so they are read from the cache.
    ///
    /// ```
    /// # use threadfold::compact::Prices;
    /// let text = r#"{"input": 3, "cached": 0.3, "cache_write": 3.75, "output": 15, "cache_min": 1024}"#;
    /// let prices: Prices = serde_json::from_str(text)?;
    /// let usage = prices.usage(10_000, 9_000, 50);
    /// assert_eq!((usage.cache_read, usage.cache_write), (9_000, 1_000));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn usage(&self, tokens: u64, shared: u64, output: u64) -> Usage {
        let cache_read = self.cacheable(shared.min(tokens));
        let cache_write = self.cacheable(tokens).saturating_sub(cache_read);
        Usage { cache_read, cache_write, ..Usage::new(tokens, output) }
    }

    /// Returns what a compaction costs and saves. `spent` is the usage of the strategy's own model
    /// calls.
    #[doc(hidden)]
    pub fn compaction(&self, change: PromptChange, spent: &Usage, is_warm: bool) -> CompactionCost {
        let PromptChange { kept, before, after } = change;
        // A cold cache shares nothing with the next request.
        let (shared, shared_otherwise) = if is_warm { (kept, before) } else { (0, 0) };
        let next = self.usage(after, shared, 0);
        let otherwise = self.bill(&self.usage(before, shared_otherwise, 0));
        let rebill = self.bill(&next).saturating_sub(otherwise);
        let [later_before, later_after] =
            [before, after].map(|tokens| self.bill(&self.usage(tokens, tokens, 0)));
        let saved_per_request = later_before.saturating_sub(later_after);
        let model_calls = self.bill(spent);
        let once = rebill.saturating_add(model_calls);
        let pays_after = match (once, saved_per_request) {
            (..=0, _) => Some(1),
            (_, ..=0) => None,
            (once, saved) => Some(1 + once.unsigned_abs().div_ceil(saved.unsigned_abs())),
        };
        CompactionCost {
            tokens_rebilled: after.saturating_sub(next.cache_read),
            model_calls,
            rebill,
            saved_per_request,
            pays_after,
        }
    }
}

fn price(tokens: u64, price: f64) -> f64 {
    tokens as f64 * price
}

/// Rounds to a whole number. Values outside the range of `i64` saturate.
fn micros(price: f64) -> i64 {
    price.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices() -> Prices {
        Prices {
            input: 3.0,
            cached: 0.3,
            cache_write: 3.75,
            output: 15.0,
            cache_life_ms: 300_000,
            cache_min: 1_024,
            cache_block: 1,
        }
    }

    #[test]
    fn a_compaction_has_paid_for_itself_when_the_bills_with_it_are_lower() {
        for (kept, before, after, warm) in [
            (5_000, 100_000, 60_000, true),
            (50_000, 100_000, 60_000, true),
            (0, 100_000, 99_000, true),
            (5_000, 100_000, 60_000, false),
        ] {
            let prices = prices();
            let spent = Usage::new(20_000, 800);
            let cost = prices.compaction(PromptChange { kept, before, after }, &spent, warm);
            let shared = |tokens: u64| if warm { tokens } else { 0 };
            let bill = |tokens, cached| prices.bill(&prices.usage(tokens, cached, 0));
            let (mut with, mut without, mut requests) = (prices.bill(&spent), 0, 0);
            loop {
                let is_first = requests == 0;
                with += bill(after, if is_first { shared(kept) } else { after });
                without += bill(before, if is_first { shared(before) } else { before });
                requests += 1;
                if with <= without {
                    break;
                }
            }
            assert_eq!(cost.pays_after, Some(requests), "{kept} {before} {after} {warm}");
        }
    }

    #[test]
    fn rebilled_and_saved_tokens_are_counted_and_a_cold_cache_costs_nothing() {
        let prices = Prices { cache_min: 0, ..prices() };
        let change = PromptChange { kept: 5_000, before: 100_000, after: 60_000 };
        let cost = prices.compaction(change, &Usage::default(), true);
        assert_eq!((cost.tokens_rebilled, cost.saved_per_request), (55_000, 12_000));
        assert_eq!(cost.pays_after, Some(16));
        let cold = prices.compaction(change, &Usage::default(), false);
        assert_eq!(cold.pays_after, Some(1));
    }

    #[test]
    fn a_compaction_that_saves_nothing_never_pays_for_itself() {
        let change = PromptChange { kept: 0, before: 50_000, after: 50_000 };
        assert_eq!(prices().compaction(change, &Usage::default(), true).pays_after, None);
    }

    #[test]
    fn a_hostile_number_of_tokens_does_not_overflow() {
        let change = PromptChange { kept: 1, before: u64::MAX, after: u64::MAX - 1 };
        let cost = prices().compaction(change, &Usage::new(u64::MAX, u64::MAX), true);
        assert_eq!(cost.model_calls, i64::MAX);
    }
}
