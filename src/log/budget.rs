//! An account of tokens against a limit, for hosts that ration what a thread may spend.
//!
//! It counts what calls cost, one behind the other. Every call is billed for the whole conversation,
//! so this is not how full the context is: that is [`ContextUsage`](crate::log::ContextUsage), and
//! whatever compacts on its own goes by that.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::message::{ContextWindow, Timestamp, Usage};

/// A budget with fewer tokens left than this warns of nothing else.
const ALMOST_NOTHING: u64 = 50;

/// What may be spent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetLimits {
    /// All tokens.
    pub max_tokens: u64,
    /// Tokens that are kept back, for what a call costs beyond its estimate.
    pub reserve_tokens: u64,
    /// The part of all tokens, 0 to 1, from which on the budget warns.
    pub warning_threshold: f64,
}

/// Tokens that were spent, against limits.
///
/// ```
/// use threadfold::{Usage, log::{BudgetLimits, TokenBudget}, tokens};
///
/// let limits = BudgetLimits { max_tokens: 1_000, reserve_tokens: 100, warning_threshold: 0.8 };
/// let mut budget = TokenBudget::new(limits)?;
/// budget.record(Some(Usage::new(700, 120)));
/// assert!(budget.is_near_limit());
/// assert_eq!(budget.available_tokens(), 80);
/// assert!(!budget.can_request(200 + tokens::estimate_conversation_tokens(&[])));
/// # Ok::<(), threadfold::log::BudgetError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenBudget {
    limits: BudgetLimits,
    used: Usage,
    responses: u64,
    last_compaction: Option<Timestamp>,
}

/// Where a budget stands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BudgetStatus {
    /// Tokens of prompts and answers together.
    pub total_used: u64,
    /// Tokens of prompts.
    pub prompt_tokens: u64,
    /// Tokens of answers.
    pub completion_tokens: u64,
    /// All tokens that there are.
    pub max_tokens: u64,
    /// All tokens but the reserve.
    pub effective_limit: u64,
    /// Tokens that may still be spent; 0 if more were spent than may be.
    pub available_tokens: u64,
    /// The part of all tokens that was spent: 1 is all of them, and more than 1 is possible.
    pub usage_fraction: f64,
    /// Whether that part reaches the threshold.
    pub warning_triggered: bool,
    /// How many answers were recorded since the beginning or the last reset.
    pub responses: u64,
    /// When the thread was last compacted.
    pub last_compaction: Option<Timestamp>,
}

/// What a host should do about a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recommendations {
    /// Whether to sum up: the budget warns, and more than 70 % are spent.
    pub should_summarize: bool,
    /// Whether to cut down: the budget warns, and more than 80 % are spent.
    pub should_prune: bool,
    /// The most tokens that the next request should have.
    pub max_request_size: u64,
    /// What to say to the person who watches.
    pub warning: Option<BudgetWarning>,
}

/// What a budget warns of. `Display` gives the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BudgetWarning {
    /// The threshold is reached.
    NearLimit {
        /// The part of all tokens that was spent, in percent, rounded.
        percent: u64,
    },
    /// Fewer than 50 tokens are left.
    AlmostSpent {
        /// How many.
        available_tokens: u64,
    },
}

/// Why limits are none.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// The threshold is no part of a whole.
    #[error("the warning threshold is {found}, not between 0 and 1")]
    WarningThreshold {
        /// What it is.
        found: f64,
    },
}

impl TokenBudget {
    /// Returns a budget of which nothing is spent.
    ///
    /// ```
    /// use threadfold::log::{BudgetLimits, TokenBudget};
    ///
    /// let limits = BudgetLimits { warning_threshold: 80.0, ..BudgetLimits::default() };
    /// let error = TokenBudget::new(limits).unwrap_err();
    /// assert_eq!(error.to_string(), "the warning threshold is 80, not between 0 and 1");
    /// ```
    ///
    /// # Errors
    ///
    /// [`BudgetError::WarningThreshold`] if the threshold is not between 0 and 1, such as a number of
    /// percent.
    pub fn new(limits: BudgetLimits) -> Result<Self, BudgetError> {
        limits.check()?;
        Ok(Self::of(limits))
    }

    /// Returns the budget of a window: all of its tokens, of which 5 % but 2,000 at most are kept
    /// back, with a warning at 80 %.
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
        let reserve_tokens = (max_tokens / 20).min(2_000);
        Self::of(BudgetLimits { max_tokens, reserve_tokens, warning_threshold: 0.8 })
    }

    /// Records what an answer cost. Nothing, and zeros, are no report and change nothing.
    ///
    /// ```
    /// use threadfold::{Usage, log::TokenBudget};
    ///
    /// let mut budget = TokenBudget::default();
    /// budget.record(Usage::new(1_000, 200));
    /// budget.record(None);
    /// assert_eq!((budget.status().total_used, budget.status().responses), (1_200, 1));
    /// ```
    pub fn record(&mut self, usage: impl Into<Option<Usage>>) {
        if let Some(usage) = usage.into().filter(|usage| !usage.is_zero()) {
            self.used += usage;
            self.responses = self.responses.saturating_add(1);
        }
    }

    /// Whether this many tokens may be spent now.
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

    /// Whether the part that was spent reaches the threshold. A budget of nothing is spent.
    #[must_use]
    pub fn is_near_limit(&self) -> bool {
        self.usage_fraction() >= self.limits.warning_threshold
    }

    /// The tokens that may still be spent, beside the reserve; 0 if there are none.
    #[must_use]
    pub fn available_tokens(&self) -> u64 {
        self.effective_limit().saturating_sub(self.total_used())
    }

    /// What was spent, with what came from caches and went into reasoning.
    #[must_use]
    pub fn used(&self) -> Usage {
        self.used
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> BudgetLimits {
        self.limits
    }

    /// Sets other limits; what was spent stays. Name what changes and take the rest over.
    ///
    /// ```
    /// use threadfold::log::{BudgetLimits, TokenBudget};
    ///
    /// let mut budget = TokenBudget::default();
    /// budget.set_limits(BudgetLimits { max_tokens: 500_000, ..budget.limits() })?;
    /// assert_eq!(budget.status().effective_limit, 498_000);
    /// # Ok::<(), threadfold::log::BudgetError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); the limits are as before then.
    pub fn set_limits(&mut self, limits: BudgetLimits) -> Result<(), BudgetError> {
        limits.check()?;
        self.limits = limits;
        Ok(())
    }

    /// Begins anew: nothing spent, no answers, no compaction.
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
        *self = Self::of(self.limits);
    }

    /// Begins the account anew after a compaction, with what the host lays to the account of the
    /// thread that is left: nothing, or the size of that thread, or what its summary cost. What kept
    /// messages reported once is no such number, because each holds the whole conversation again.
    ///
    /// ```
    /// use threadfold::{Usage, log::TokenBudget, message::Timestamp};
    ///
    /// let mut budget = TokenBudget::default();
    /// budget.record(Usage::new(150_000, 2_000));
    /// budget.after_compaction(Timestamp(1_000), Usage::new(9_000, 0));
    /// assert_eq!(budget.status().total_used, 9_000);
    /// ```
    pub fn after_compaction(&mut self, at: Timestamp, left: Usage) {
        self.used = left;
        self.last_compaction = Some(at);
    }

    /// Returns where the budget stands.
    ///
    /// ```
    /// use threadfold::{ContextWindow, Usage, log::TokenBudget};
    ///
    /// let mut budget = TokenBudget::for_window(ContextWindow::new(10_000));
    /// budget.record(Usage::new(8_000, 500));
    /// let status = budget.status();
    /// assert_eq!((status.effective_limit, status.available_tokens), (9_500, 1_000));
    /// assert_eq!((status.usage_fraction, status.warning_triggered), (0.85, true));
    /// ```
    #[must_use]
    pub fn status(&self) -> BudgetStatus {
        BudgetStatus {
            total_used: self.total_used(),
            prompt_tokens: self.used.input,
            completion_tokens: self.used.output,
            max_tokens: self.limits.max_tokens,
            effective_limit: self.effective_limit(),
            available_tokens: self.available_tokens(),
            usage_fraction: self.usage_fraction(),
            warning_triggered: self.is_near_limit(),
            responses: self.responses,
            last_compaction: self.last_compaction,
        }
    }

    /// Returns what to do: nothing below the threshold, whatever the parts; behind it to sum up over
    /// 70 %, to cut down over 80 %, and to ask for a tenth of all tokens at most.
    ///
    /// ```
    /// use threadfold::{Usage, log::{BudgetLimits, TokenBudget}};
    ///
    /// let limits = BudgetLimits { max_tokens: 1_000, reserve_tokens: 100, warning_threshold: 0.8 };
    /// let mut budget = TokenBudget::new(limits)?;
    /// budget.record(Usage::new(850, 0));
    /// let advice = budget.recommendations();
    /// assert_eq!((advice.should_prune, advice.max_request_size), (true, 50));
    /// assert_eq!(advice.warning.map(|warning| warning.to_string()).as_deref(), Some("85 % of the tokens are spent"));
    /// # Ok::<(), threadfold::log::BudgetError>(())
    /// ```
    #[must_use]
    pub fn recommendations(&self) -> Recommendations {
        let available_tokens = self.available_tokens();
        let near = self.is_near_limit();
        let fraction = self.usage_fraction();
        let warning = if available_tokens < ALMOST_NOTHING {
            BudgetWarning::AlmostSpent { available_tokens }
        } else {
            BudgetWarning::NearLimit { percent: self.percent() }
        };
        let tenth = self.limits.max_tokens / 10;
        Recommendations {
            should_summarize: near && fraction > 0.7,
            should_prune: near && fraction > 0.8,
            max_request_size: if near { available_tokens.min(tenth) } else { available_tokens },
            warning: near.then_some(warning),
        }
    }

    fn of(limits: BudgetLimits) -> Self {
        Self { limits, used: Usage::default(), responses: 0, last_compaction: None }
    }

    fn total_used(&self) -> u64 {
        self.used.context_tokens()
    }

    fn effective_limit(&self) -> u64 {
        self.limits.max_tokens.saturating_sub(self.limits.reserve_tokens)
    }

    fn usage_fraction(&self) -> f64 {
        match self.limits.max_tokens {
            0 => 1.0,
            max => self.total_used() as f64 / max as f64,
        }
    }

    /// The part that was spent, in percent, rounded half up.
    fn percent(&self) -> u64 {
        let max = u128::from(self.limits.max_tokens);
        let hundredths = u128::from(self.total_used()) * 100 + max / 2;
        let percent = hundredths.checked_div(max).unwrap_or(100);
        u64::try_from(percent).unwrap_or(u64::MAX)
    }
}

impl Default for TokenBudget {
    /// A budget of the default limits.
    fn default() -> Self {
        Self::of(BudgetLimits::default())
    }
}

impl Default for BudgetLimits {
    /// The limits of a window of 200,000 tokens.
    fn default() -> Self {
        TokenBudget::for_window(ContextWindow::new(200_000)).limits
    }
}

impl BudgetLimits {
    fn check(&self) -> Result<(), BudgetError> {
        // Asked this way round, so that it is refused if it is no number.
        if (0.0..=1.0).contains(&self.warning_threshold) {
            return Ok(());
        }
        Err(BudgetError::WarningThreshold { found: self.warning_threshold })
    }
}

impl fmt::Display for BudgetWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NearLimit { percent } => write!(f, "{percent} % of the tokens are spent"),
            Self::AlmostSpent { available_tokens } => {
                write!(f, "almost all tokens are spent: {available_tokens} are left")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BudgetLimits =
        BudgetLimits { max_tokens: 1_000, reserve_tokens: 100, warning_threshold: 0.8 };

    /// A budget of these limits of which so much is spent.
    fn spent(limits: BudgetLimits, total: u64) -> TokenBudget {
        let mut budget = TokenBudget::new(limits).unwrap();
        budget.record(Usage::new(total, 0));
        budget
    }

    fn advice(limits: BudgetLimits, total: u64) -> (bool, bool, u64, Option<String>) {
        let Recommendations { should_summarize, should_prune, max_request_size, warning } =
            spent(limits, total).recommendations();
        (should_summarize, should_prune, max_request_size, warning.map(|line| line.to_string()))
    }

    #[test]
    fn what_is_recorded_adds_up() {
        let mut budget = TokenBudget::new(LIMITS).unwrap();
        budget.record(Usage::new(50, 30));
        assert_eq!(budget.status().total_used, 80);
        budget.record(Some(Usage { cache_read: 40, ..Usage::new(60, 40) }));
        assert_eq!(budget.used(), Usage { cache_read: 40, ..Usage::new(110, 70) });
        assert_eq!((budget.status().total_used, budget.status().responses), (180, 2));
        // No report is no report. Negative numbers cannot be said at all.
        budget.record(None);
        budget.record(Usage::default());
        assert_eq!((budget.status().total_used, budget.status().responses), (180, 2));
        budget.record(Usage::new(u64::MAX, u64::MAX));
        assert_eq!(budget.status().total_used, u64::MAX);
        assert_eq!(budget.available_tokens(), 0);
    }

    #[test]
    fn a_status_says_everything() {
        let mut budget = TokenBudget::new(LIMITS).unwrap();
        budget.record(Usage::new(300, 200));
        let expected = BudgetStatus {
            total_used: 500,
            prompt_tokens: 300,
            completion_tokens: 200,
            max_tokens: 1_000,
            effective_limit: 900,
            available_tokens: 400,
            usage_fraction: 0.5,
            warning_triggered: false,
            responses: 1,
            last_compaction: None,
        };
        assert_eq!(budget.status(), expected);
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
            let budget = spent(LIMITS, total);
            assert_eq!(budget.available_tokens(), available, "{total}");
            assert_eq!(budget.can_request(asked), allowed, "{total} {asked}");
        }
    }

    #[test]
    fn the_limit_is_near_at_the_threshold() {
        let rows =
            [(0, false), (799, false), (800, true), (820, true), (1_000, true), (5_000, true)];
        for (total, near) in rows {
            assert_eq!(spent(LIMITS, total).is_near_limit(), near, "{total}");
            assert_eq!(spent(LIMITS, total).status().warning_triggered, near, "{total}");
        }
    }

    #[test]
    fn nothing_is_advised_below_the_threshold() {
        assert_eq!(advice(LIMITS, 300), (false, false, 600, None));
        assert_eq!(advice(LIMITS, 799), (false, false, 101, None));
        // Even where the parts alone would advise something.
        let late = BudgetLimits { warning_threshold: 0.95, ..LIMITS };
        assert_eq!(advice(late, 940), (false, false, 0, None));
    }

    #[test]
    fn behind_the_threshold_the_parts_decide() {
        let early = BudgetLimits { warning_threshold: 0.5, ..LIMITS };
        let line = |percent: u64| Some(format!("{percent} % of the tokens are spent"));
        // The parts are exceeded, not reached.
        assert_eq!(advice(early, 500), (false, false, 100, line(50)));
        assert_eq!(advice(early, 700), (false, false, 100, line(70)));
        assert_eq!(advice(early, 701), (true, false, 100, line(70)));
        assert_eq!(advice(early, 800), (true, false, 100, line(80)));
        assert_eq!(advice(early, 801), (true, true, 99, line(80)));
        assert_eq!(advice(LIMITS, 800), (true, false, 100, line(80)));
        assert_eq!(advice(LIMITS, 850), (true, true, 50, line(85)));
        // Percent are rounded half up, a tenth is rounded down.
        let odd = BudgetLimits { max_tokens: 1_009, reserve_tokens: 0, warning_threshold: 0.5 };
        assert_eq!(advice(odd, 833), (true, true, 100, line(83)));
        assert_eq!(advice(odd, 843), (true, true, 100, line(84)));
        let large =
            BudgetLimits { max_tokens: 12_000, reserve_tokens: 1_000, warning_threshold: 0.7 };
        assert_eq!(advice(large, 10_000), (true, true, 1_000, line(83)));
        assert_eq!(advice(large, 1_500), (false, false, 9_500, None));
    }

    #[test]
    fn with_fewer_than_fifty_tokens_left_the_warning_is_another() {
        let left = |left: u64| Some(format!("almost all tokens are spent: {left} are left"));
        assert_eq!(advice(LIMITS, 851), (true, true, 49, left(49)));
        assert_eq!(advice(LIMITS, 900), (true, true, 0, left(0)));
        assert_eq!(advice(LIMITS, 9_000), (true, true, 0, left(0)));
    }

    #[test]
    fn a_budget_of_nothing_is_spent() {
        let nothing = BudgetLimits { max_tokens: 0, ..LIMITS };
        let budget = TokenBudget::new(nothing).unwrap();
        assert!(!budget.can_request(1) && budget.can_request(0));
        assert!(budget.is_near_limit());
        assert_eq!((budget.status().usage_fraction, budget.status().effective_limit), (1.0, 0));
        assert_eq!(budget.percent(), 100);
        // A reserve beyond all tokens leaves nothing, and not less.
        let reserved = BudgetLimits { reserve_tokens: u64::MAX, ..LIMITS };
        assert_eq!(TokenBudget::new(reserved).unwrap().status().available_tokens, 0);
    }

    #[test]
    fn a_reset_leaves_only_the_limits() {
        let mut budget = spent(LIMITS, 500);
        budget.after_compaction(Timestamp(7), Usage::new(20, 0));
        budget.reset();
        assert_eq!(budget, TokenBudget::new(LIMITS).unwrap());
    }

    #[test]
    fn other_limits_hold_at_once_and_wrong_ones_never() {
        let mut budget = spent(LIMITS, 500);
        let wider = BudgetLimits { max_tokens: 2_000, warning_threshold: 0.9, reserve_tokens: 200 };
        budget.set_limits(wider).unwrap();
        assert_eq!((budget.status().effective_limit, budget.status().total_used), (1_800, 500));
        budget.set_limits(BudgetLimits { max_tokens: 550, ..budget.limits() }).unwrap();
        assert!(budget.is_near_limit());
        for found in [90.0, -0.1, f64::INFINITY] {
            let wrong = BudgetLimits { warning_threshold: found, ..wider };
            assert_eq!(budget.set_limits(wrong), Err(BudgetError::WarningThreshold { found }));
            assert!(TokenBudget::new(wrong).is_err());
        }
        assert!(TokenBudget::new(BudgetLimits { warning_threshold: f64::NAN, ..wider }).is_err());
        assert_eq!(budget.limits().max_tokens, 550);
        let error = BudgetError::WarningThreshold { found: 90.0 };
        assert_eq!(error.to_string(), "the warning threshold is 90, not between 0 and 1");
    }

    #[test]
    fn after_a_compaction_the_account_goes_on_from_what_is_left() {
        let large = BudgetLimits { max_tokens: 10_000, ..LIMITS };
        let mut budget = spent(large, 7_000);
        budget.after_compaction(Timestamp(60_000), Usage::new(300, 200));
        assert_eq!(budget.status().total_used, 500);
        budget.record(Usage::new(100, 50));
        let status = budget.status();
        assert_eq!(
            (status.total_used, status.prompt_tokens, status.completion_tokens),
            (650, 400, 250)
        );
        assert_eq!((status.last_compaction, status.responses), (Some(Timestamp(60_000)), 2));
    }

    #[test]
    fn a_window_makes_a_budget() {
        let rows = [(8_192, 409), (39_999, 1_999), (128_000, 2_000), (200_000, 2_000), (0, 0)];
        for (max_tokens, reserve_tokens) in rows {
            let budget = TokenBudget::for_window(ContextWindow::new(max_tokens));
            let expected = BudgetLimits { max_tokens, reserve_tokens, warning_threshold: 0.8 };
            assert_eq!(budget.limits(), expected);
        }
        let unknown = ContextWindow::for_model("my-own-model").map(TokenBudget::for_window);
        assert_eq!(unknown, None);
    }

    #[test]
    fn limits_are_read_with_defaults_and_without_unknown_fields() {
        let read = serde_json::from_str::<BudgetLimits>;
        let limits = BudgetLimits { max_tokens: 9, ..BudgetLimits::default() };
        assert_eq!(read(r#"{"max_tokens":9}"#).unwrap(), limits);
        assert!(read(r#"{"max_token":9}"#).is_err());
    }
}
