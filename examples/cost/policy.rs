//! The policies: when a thread is compacted, and to which size.

use std::sync::Arc;

use threadfold::{
    CompactionStrategy,
    auto::AutoPolicy,
    compact::Prices,
    message::{InvalidValue, Json},
    strategy::{ClearResults, Digest, KeepRecent},
};

/// A policy with its name.
pub(crate) struct Policy {
    pub(crate) name: &'static str,
    /// When the thread is compacted automatically. All policies compact requests that do not fit.
    pub(crate) auto: AutoPolicy,
    /// A strategy that also runs regularly, whether it helps or not.
    pub(crate) habit: Option<Habit>,
}

/// A strategy that runs regularly.
pub(crate) struct Habit {
    pub(crate) strategy: Arc<dyn CompactionStrategy>,
    /// Before each request, or only if the user typed something.
    pub(crate) each_request: bool,
}

/// The name of the fixed threshold in the table.
pub(crate) const FIXED: &str = "threshold 80 % to half";

/// The name of the planner in the table.
pub(crate) const OURS: &str = "ours";

/// Returns the policies of the table, for a model with this window.
///
/// # Errors
///
/// Returns no error for any window.
pub(crate) fn policies(prices: Prices, window: u64) -> Result<Vec<Policy>, InvalidValue> {
    let fixed = AutoPolicy { estimates_usage: true, ..AutoPolicy::default() };
    let never = AutoPolicy { enabled: false, ..fixed };
    let (half, tenth) = (window / 2, window / 10);
    // The defaults of the documentation, scaled from a window of 200,000 tokens.
    let clearing = format!(
        r#"{{"edits": [{{"type": "clear_tool_uses_20250919",
            "trigger": {{"type": "input_tokens", "value": {half}}},
            "clear_at_least": {{"type": "input_tokens", "value": {tenth}}}}}]}}"#
    );
    let documented = ClearResults::from_context_management(&Json::parse(&clearing)?)?;
    let habit = |strategy, each_request| Some(Habit { strategy, each_request });
    let policy = |name, auto, habit| Policy { name, auto, habit };
    let ours = AutoPolicy { prices: Some(prices), summary_tokens: 0, ..fixed };
    Ok(vec![
        policy("never before overflow", never, None),
        policy(FIXED, fixed, None),
        policy("clear results each turn", never, habit(Arc::new(ClearResults::default()), false)),
        policy("clear_at_least, as documented", never, habit(Arc::new(documented), true)),
        policy("keep recent each turn", never, habit(Arc::new(KeepRecent::default()), false)),
        policy(OURS, ours, None),
    ])
}

/// The strategy of all compactions except habits. It calls no model, so that the bill contains only
/// requests of the conversation.
pub(crate) fn strategy() -> Digest {
    Digest::default()
}
