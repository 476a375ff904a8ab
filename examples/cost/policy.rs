//! The policies: when a thread is compacted, and to which size.

use std::sync::Arc;

use threadfold::{
    CompactionStrategy,
    auto::{AutoPolicy, Threshold},
    compact::Prices,
    strategy::{ClearResults, Digest, KeepRecent},
};

/// A policy with its name.
pub(crate) struct Policy {
    pub(crate) name: &'static str,
    /// When the thread is compacted automatically. All policies compact requests that do not fit.
    pub(crate) auto: AutoPolicy,
    /// A strategy that also runs regularly, whether it helps or not.
    pub(crate) habit: Option<Habit>,
    pub(crate) away: Away,
}

/// The tokens of a summary in the tables with pauses of days, where a model writes it.
pub(crate) const SUMMARY: u64 = 2_000;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// What a policy does while the user is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Away {
    Nothing,
    /// What [`AutoCompactor::idle`](threadfold::auto::AutoCompactor::idle) decides.
    Priced,
    /// Compacts once after this time if the thread has this many tokens.
    Compacts {
        after_ms: u64,
        tokens: u64,
    },
    /// Sends a keep-alive shortly before the cache dies, for at most this time.
    KeepsAlive {
        for_ms: u64,
    },
}

/// A strategy that runs regularly.
pub(crate) struct Habit {
    pub(crate) strategy: Arc<dyn CompactionStrategy>,
    /// Before each request, or only if the user typed something.
    pub(crate) each_request: bool,
}

/// The name of the policy that compacts only requests that do not fit.
pub(crate) const NEVER: &str = "never before overflow";

/// The name of the fixed threshold.
pub(crate) const THRESHOLD: &str = "threshold 80 %";

/// The name of the rule that keeps the cache alive for a working morning.
pub(crate) const KEPT_ALIVE: &str = "kept alive for four hours";

/// The name of the planner.
pub(crate) const OURS: &str = "ours";

/// Returns the policies of the table with short pauses, for a model with this window.
pub(crate) fn policies(prices: Prices, window: u64) -> Vec<Policy> {
    let fixed = AutoPolicy { estimates_usage: true, ..AutoPolicy::default() };
    let never = AutoPolicy { enabled: false, ..fixed };
    // The defaults of Anthropic's `clear_tool_uses_20250919`, scaled from a window of 200,000 tokens.
    let documented = ClearResults {
        keep_errors: false,
        obsolete: false,
        at_least: window / 10,
        from_tokens: window / 2,
        ..ClearResults::default()
    };
    let habit = |strategy, each_request| Some(Habit { strategy, each_request });
    let policy = |name, auto, habit| Policy { name, auto, habit, away: Away::Nothing };
    let ours = AutoPolicy { prices: Some(prices), summary_tokens: 0, ..fixed };
    vec![
        policy(NEVER, never, None),
        policy(THRESHOLD, fixed, None),
        policy("clear results each turn", never, habit(Arc::new(ClearResults::default()), false)),
        policy("clear_at_least, as documented", never, habit(Arc::new(documented), true)),
        policy("keep recent each turn", never, habit(Arc::new(KeepRecent::default()), false)),
        policy(OURS, ours, None),
    ]
}

/// Returns the policies of the tables with pauses of days, whose compactions leave this share of the
/// window.
pub(crate) fn away(prices: Prices, window: u64, share: f64) -> Vec<Policy> {
    let target = Threshold::Fraction(share);
    let fixed = AutoPolicy { target, estimates_usage: true, ..AutoPolicy::default() };
    let never = AutoPolicy { enabled: false, ..fixed };
    let ours = AutoPolicy { prices: Some(prices), summary_tokens: SUMMARY, ..fixed };
    let policy = |name, auto, away| Policy { name, auto, habit: None, away };
    let kept_alive = |for_ms| Away::KeepsAlive { for_ms };
    // As Claude Code does since 2.1.286: 54 minutes after the last answer, when a tenth of the life of
    // its cache is left, from 200,000 tokens of a window of a million.
    let last = match prices.cache_life_ms {
        HOUR => "compacted after 54 minutes",
        _ => "compacted after 4.5 minutes",
    };
    let after_ms = prices.cache_life_ms / 10 * 9;
    vec![
        policy(NEVER, never, Away::Nothing),
        policy(THRESHOLD, fixed, Away::Nothing),
        policy(last, fixed, Away::Compacts { after_ms, tokens: window / 5 }),
        policy("kept alive for an hour", fixed, kept_alive(HOUR)),
        policy(KEPT_ALIVE, fixed, kept_alive(4 * HOUR)),
        policy("prices, but nothing while away", ours, Away::Nothing),
        policy(OURS, ours, Away::Priced),
    ]
}

/// The strategy of all compactions except habits. It calls no model, so that the bill contains only
/// requests of the conversation.
pub(crate) fn strategy() -> Digest {
    Digest::default()
}
