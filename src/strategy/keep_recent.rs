//! `keep-recent`: a sliding window. What is old goes, without a summary.

use serde::{Deserialize, Serialize};

use super::{
    attempt,
    brief::Brief,
    contract::{Attempt, CompactionStrategy, StrategyError},
    snapshot::Snapshot,
    tail,
};
use crate::compact::{CompactOptions, Plan};

/// Keeps the end of the thread and what the user typed last, and drops the rest. Needs no model.
///
/// ```
/// use threadfold::{Message, strategy::*};
///
/// let thread = Snapshot::new(vec![
///     Message::user("old"),
///     Message::assistant("older than it looks"),
///     Message::user("new"),
///     Message::assistant("newest"),
/// ]);
/// let attempt = KeepRecent { messages: 2, ..KeepRecent::default() }.begin(&thread, &Brief::default());
/// let Step::Proposed(proposal) = attempt.step() else { panic!("it needs no model") };
/// assert_eq!(thread.accept(&proposal.plan, &Brief::default())?.len(), 2);
/// # Ok::<(), Rejection>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeepRecent {
    /// How many messages stay at least, if they fit. More stay where no cut is legal.
    pub messages: usize,
    /// The most tokens that the messages which stay may have; the target of the brief counts too.
    pub tokens: Option<u64>,
}

impl Default for KeepRecent {
    fn default() -> Self {
        Self { messages: 16, tokens: None }
    }
}

impl CompactionStrategy for KeepRecent {
    fn name(&self) -> &str {
        "keep-recent"
    }

    fn begin(&self, thread: &Snapshot, brief: &Brief) -> Box<dyn Attempt> {
        attempt::propose(self.plan(thread, brief))
    }
}

impl KeepRecent {
    fn plan(&self, thread: &Snapshot, brief: &Brief) -> Result<Plan, StrategyError> {
        let budget = [self.tokens, brief.target].into_iter().flatten().min();
        // What the user typed last stays, so it is paid for first.
        let last = thread.messages().iter().rev().find(|message| message.is_typed());
        let reserved = last.map_or(0, |message| thread.counter().message(message));
        let budget = budget.map(|budget| budget.saturating_sub(reserved));
        let cut = tail::cut(thread, self.messages, budget)?;
        // Nothing else is kept word for word.
        let kept = tail::typed(thread, cut, 1, 0);
        tail::check_worth(thread, brief, cut, &kept, 0)?;
        let edits = tail::take_all_but(kept, cut, Vec::new());
        Ok(Plan::from_edits(thread.messages(), edits, &CompactOptions::default())?)
    }
}
