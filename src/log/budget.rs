//! A budget of tokens, for hosts that limit what a thread may spend.
//!
//! The budget sums the usage of answers. Every request is billed for the whole conversation, so
//! this sum does not measure how full the context is. Automatic compaction therefore uses
//! [`Pressure`](crate::auto::Pressure).

use serde::{Deserialize, Serialize};

use crate::message::{ContextWindow, Timestamp, Usage};

/// Below this number of remaining tokens, the warning states the number.
const ALMOST_NOTHING: u64 = 50;

/// The tokens that were spent, and their limits. A host may set every field.
///
/// ```
/// use threadfold::{Usage, log::TokenBudget, tokens};
///
/// let mut budget = TokenBudget {
///     max_tokens: 1_000,
///     reserve_tokens: 100,
///     warning_threshold: 0.8,
///     ..TokenBudget::default()
/// };
/// budget.record(Some(Usage::new(700, 120)));
/// assert!(budget.is_near_limit());
/// assert_eq!(budget.available_tokens(), 80);
/// assert!(!budget.can_request(200 + tokens::estimate_conversation_tokens(&[])));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenBudget {
    /// The maximum number of tokens that may be spent.
    pub max_tokens: u64,
    /// The tokens held in reserve, because a request may cost more than its estimate.
    pub reserve_tokens: u64,
    /// The fraction of `max_tokens`, 0 to 1, from which on the budget warns. A value above 1 warns
    /// only after the budget is exceeded.
    pub warning_threshold: f64,
    /// The tokens spent, including those read from caches and those of reasoning.
    pub used: Usage,
    /// The number of answers recorded since the start or the last reset.
    pub responses: u64,
    /// When the thread was last compacted.
    pub last_compaction: Option<Timestamp>,
}

impl TokenBudget {
    /// Returns a budget of as many tokens as the window has. The reserve is 5 % of them, at most
    /// 2,000, and the budget warns at 80 %.
    ///
    /// ```
    /// use threadfold::{ContextWindow, log::TokenBudget};
    ///
    /// let budget = ContextWindow::for_model("claude-sonnet-4-5").map(TokenBudget::for_window);
    /// assert_eq!(budget.map(|budget| budget.available_tokens()), Some(198_000));
    /// ```
    #[must_use]
    pub fn for_window(window: ContextWindow) -> Self {
        let max_tokens = window.tokens();
        Self {
            max_tokens,
            reserve_tokens: (max_tokens / 20).min(2_000),
            warning_threshold: 0.8,
            used: Usage::default(),
            responses: 0,
            last_compaction: None,
        }
    }

    /// Records the usage of an answer. `None` or zero tokens change nothing, because they mean that
    /// the provider reported no usage.
    ///
    /// ```
    /// use threadfold::{Usage, log::TokenBudget};
    ///
    /// let mut budget = TokenBudget::default();
    /// budget.record(Usage::new(1_000, 200));
    /// budget.record(None);
    /// assert_eq!((budget.used.context_tokens(), budget.responses), (1_200, 1));
    /// ```
    pub fn record(&mut self, usage: impl Into<Option<Usage>>) {
        if let Some(usage) = usage.into().filter(|usage| !usage.is_zero()) {
            self.used += usage;
            self.responses = self.responses.saturating_add(1);
        }
    }

    /// Whether a request of this many tokens is within the budget.
    ///
    /// ```
    /// use threadfold::{ContextWindow, Usage, log::TokenBudget};
    ///
    /// let mut budget = TokenBudget::for_window(ContextWindow::new(10_000));
    /// budget.record(Usage::new(9_000, 0));
    /// assert!(budget.can_request(500));
    /// assert!(!budget.can_request(501), "500 are the reserve");
    /// ```
    #[must_use]
    pub fn can_request(&self, tokens: u64) -> bool {
        tokens <= self.available_tokens()
    }

    /// Whether the spent fraction has reached the threshold. A budget of 0 tokens counts as spent.
    #[must_use]
    pub fn is_near_limit(&self) -> bool {
        self.usage_fraction() >= self.warning_threshold
    }

    /// Returns the tokens that may still be spent, without the reserve.
    #[must_use]
    pub fn available_tokens(&self) -> u64 {
        let limit = self.max_tokens.saturating_sub(self.reserve_tokens);
        limit.saturating_sub(self.used.context_tokens())
    }

    /// Resets tokens, answers and the time of the last compaction. The limits stay.
    ///
    /// ```
    /// use threadfold::{Usage, log::TokenBudget};
    ///
    /// let mut budget = TokenBudget::default();
    /// budget.record(Usage::new(1_000, 200));
    /// budget.reset();
    /// assert_eq!(budget, TokenBudget::default());
    /// ```
    pub fn reset(&mut self) {
        (self.used, self.responses, self.last_compaction) = (Usage::default(), 0, None);
    }

    /// Restarts the budget after a compaction. `left` is what the host charges for the compacted
    /// thread: zero, its size, or the cost of its summary. Do not pass the usage in kept answers,
    /// because each counts the whole conversation.
    ///
    /// ```
    /// use threadfold::{Usage, log::TokenBudget, message::Timestamp};
    ///
    /// let mut budget = TokenBudget::default();
    /// budget.record(Usage::new(150_000, 2_000));
    /// budget.after_compaction(Timestamp(1_000), Usage::new(9_000, 0));
    /// assert_eq!(budget.used.context_tokens(), 9_000);
    /// ```
    pub fn after_compaction(&mut self, at: Timestamp, left: Usage) {
        self.used = left;
        self.last_compaction = Some(at);
    }

    /// Returns the fraction of `max_tokens` that was spent. It may exceed 1. A budget of 0 tokens
    /// counts as spent.
    #[must_use]
    pub fn usage_fraction(&self) -> f64 {
        match self.max_tokens {
            0 => 1.0,
            max => self.used.context_tokens() as f64 / max as f64,
        }
    }

    /// Whether to summarise: the budget warns, and more than 70 % of the tokens are spent.
    #[must_use]
    pub fn should_summarize(&self) -> bool {
        self.is_near_limit() && self.usage_fraction() > 0.7
    }

    /// Whether to prune: the budget warns, and more than 80 % of the tokens are spent.
    #[must_use]
    pub fn should_prune(&self) -> bool {
        self.is_near_limit() && self.usage_fraction() > 0.8
    }

    /// Returns the maximum tokens that the next request should have: the available tokens, but at
    /// most a tenth of `max_tokens` once the threshold is reached.
    #[must_use]
    pub fn max_request_size(&self) -> u64 {
        let available = self.available_tokens();
        if self.is_near_limit() { available.min(self.max_tokens / 10) } else { available }
    }

    /// Returns a warning for the user once the threshold is reached.
    ///
    /// ```
    /// use threadfold::{Usage, log::TokenBudget};
    ///
    /// let (max_tokens, reserve_tokens) = (1_000, 100);
    /// let mut budget = TokenBudget { max_tokens, reserve_tokens, ..TokenBudget::default() };
    /// budget.record(Usage::new(850, 0));
    /// assert_eq!((budget.should_prune(), budget.max_request_size()), (true, 50));
    /// assert_eq!(budget.warning().as_deref(), Some("85 % of the tokens are spent"));
    /// ```
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let available = self.available_tokens();
        self.is_near_limit().then(|| {
            if available < ALMOST_NOTHING {
                format!("almost all tokens are spent; {available} remain")
            } else {
                format!("{:.0} % of the tokens are spent", (self.usage_fraction() * 100.0).round())
            }
        })
    }
}

impl Default for TokenBudget {
    /// Returns the budget of a window of 200,000 tokens.
    fn default() -> Self {
        Self::for_window(ContextWindow::new(200_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> TokenBudget {
        let (max_tokens, reserve_tokens, warning_threshold) = (1_000, 100, 0.8);
        TokenBudget { max_tokens, reserve_tokens, warning_threshold, ..TokenBudget::default() }
    }

    /// Returns a budget with these limits and `total` tokens spent.
    fn spent(mut budget: TokenBudget, total: u64) -> TokenBudget {
        budget.record(Usage::new(total, 0));
        budget
    }

    fn advice(limits: TokenBudget, total: u64) -> (bool, bool, u64, Option<String>) {
        let budget = spent(limits, total);
        (
            budget.should_summarize(),
            budget.should_prune(),
            budget.max_request_size(),
            budget.warning(),
        )
    }

    #[test]
    fn what_is_recorded_adds_up() {
        let mut budget = limits();
        budget.record(Usage::new(50, 30));
        assert_eq!(budget.used.context_tokens(), 80);
        budget.record(Some(Usage { cache_read: 40, ..Usage::new(60, 40) }));
        assert_eq!(budget.used, Usage { cache_read: 40, ..Usage::new(110, 70) });
        assert_eq!((budget.used.context_tokens(), budget.responses), (180, 2));
        // A provider that reports nothing changes nothing.
        budget.record(None);
        budget.record(Usage::default());
        assert_eq!((budget.used.context_tokens(), budget.responses), (180, 2));
        budget.record(Usage::new(u64::MAX, u64::MAX));
        assert_eq!(budget.used.context_tokens(), u64::MAX);
        assert_eq!(budget.available_tokens(), 0);
    }

    #[test]
    fn a_request_may_take_what_is_available_and_no_more() {
        let rows = [
            // spent, available, asked, allowed
            (150, 750, 200, true),
            (800, 100, 300, false),
            (800, 100, 150, false),
            (800, 100, 101, false),
            (800, 100, 100, true),
            (900, 0, 1, false),
            (900, 0, 0, true),
            (2_000, 0, 0, true),
        ];
        for (total, available, asked, allowed) in rows {
            let budget = spent(limits(), total);
            assert_eq!(budget.available_tokens(), available, "{total}");
            assert_eq!(budget.can_request(asked), allowed, "{total} {asked}");
        }
    }

    #[test]
    fn the_limit_is_near_at_the_threshold() {
        let rows =
            [(0, false), (799, false), (800, true), (820, true), (1_000, true), (5_000, true)];
        for (total, near) in rows {
            assert_eq!(spent(limits(), total).is_near_limit(), near, "{total}");
            assert_eq!(spent(limits(), total).warning().is_some(), near, "{total}");
        }
    }

    #[test]
    fn nothing_is_advised_below_the_threshold() {
        assert_eq!(advice(limits(), 300), (false, false, 600, None));
        assert_eq!(advice(limits(), 799), (false, false, 101, None));
        // Even if the 70 % and 80 % limits are exceeded.
        let late = TokenBudget { warning_threshold: 0.95, ..limits() };
        assert_eq!(advice(late, 940), (false, false, 0, None));
    }

    #[test]
    fn above_the_threshold_the_percentages_decide() {
        let early = TokenBudget { warning_threshold: 0.5, ..limits() };
        let line = |percent: u64| Some(format!("{percent} % of the tokens are spent"));
        // The percentages must be exceeded, not only reached.
        assert_eq!(advice(early, 500), (false, false, 100, line(50)));
        assert_eq!(advice(early, 700), (false, false, 100, line(70)));
        assert_eq!(advice(early, 701), (true, false, 100, line(70)));
        assert_eq!(advice(early, 800), (true, false, 100, line(80)));
        assert_eq!(advice(early, 801), (true, true, 99, line(80)));
        assert_eq!(advice(limits(), 800), (true, false, 100, line(80)));
        assert_eq!(advice(limits(), 850), (true, true, 50, line(85)));
        // The percentage is rounded half up, the tenth is rounded down.
        let odd = TokenBudget { max_tokens: 1_009, reserve_tokens: 0, ..early };
        assert_eq!(advice(odd, 833), (true, true, 100, line(83)));
        assert_eq!(advice(odd, 843), (true, true, 100, line(84)));
        let large = TokenBudget { max_tokens: 12_000, reserve_tokens: 1_000, ..early };
        assert_eq!(advice(large, 10_000), (true, true, 1_000, line(83)));
        assert_eq!(advice(large, 1_500), (false, false, 9_500, None));
    }

    #[test]
    fn with_fewer_than_fifty_tokens_left_the_warning_is_another() {
        let left = |left: u64| Some(format!("almost all tokens are spent; {left} remain"));
        assert_eq!(advice(limits(), 851), (true, true, 49, left(49)));
        assert_eq!(advice(limits(), 900), (true, true, 0, left(0)));
        assert_eq!(advice(limits(), 9_000), (true, true, 0, left(0)));
    }

    #[test]
    fn a_budget_of_nothing_is_spent() {
        let budget = TokenBudget { max_tokens: 0, ..limits() };
        assert!(!budget.can_request(1) && budget.can_request(0));
        assert!(budget.is_near_limit());
        assert_eq!((budget.usage_fraction(), budget.available_tokens()), (1.0, 0));
        // A reserve above the limit leaves 0 tokens.
        let reserved = TokenBudget { reserve_tokens: u64::MAX, ..limits() };
        assert_eq!(reserved.available_tokens(), 0);
    }

    #[test]
    fn a_reset_leaves_only_the_limits() {
        let mut budget = spent(limits(), 500);
        budget.after_compaction(Timestamp(7), Usage::new(20, 0));
        budget.reset();
        assert_eq!(budget, limits());
    }

    #[test]
    fn other_limits_hold_at_once() {
        let mut budget = spent(limits(), 500);
        (budget.max_tokens, budget.reserve_tokens) = (2_000, 200);
        assert_eq!((budget.available_tokens(), budget.used.context_tokens()), (1_300, 500));
        budget.max_tokens = 550;
        assert!(budget.is_near_limit());
    }

    #[test]
    fn after_a_compaction_the_account_goes_on_from_what_is_left() {
        let large = TokenBudget { max_tokens: 10_000, ..limits() };
        let mut budget = spent(large, 7_000);
        budget.after_compaction(Timestamp(60_000), Usage::new(300, 200));
        assert_eq!(budget.used.context_tokens(), 500);
        budget.record(Usage::new(100, 50));
        assert_eq!(budget.used, Usage::new(400, 250));
        assert_eq!((budget.last_compaction, budget.responses), (Some(Timestamp(60_000)), 2));
    }

    #[test]
    fn a_window_makes_a_budget() {
        let rows = [(8_192, 409), (39_999, 1_999), (128_000, 2_000), (200_000, 2_000), (0, 0)];
        for (max_tokens, reserve_tokens) in rows {
            let budget = TokenBudget::for_window(ContextWindow::new(max_tokens));
            let expected = TokenBudget { max_tokens, reserve_tokens, ..TokenBudget::default() };
            assert_eq!((budget, budget.warning_threshold), (expected, 0.8));
        }
        let unknown = ContextWindow::for_model("my-own-model").map(TokenBudget::for_window);
        assert_eq!(unknown, None);
    }

    #[test]
    fn limits_are_read_with_defaults_and_without_unknown_fields() {
        let read = serde_json::from_str::<TokenBudget>;
        let limits = TokenBudget { max_tokens: 9, ..TokenBudget::default() };
        assert_eq!(read(r#"{"max_tokens":9}"#).unwrap(), limits);
        assert!(read(r#"{"max_token":9}"#).is_err());
    }
}
