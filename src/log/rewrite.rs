//! A thread as a plan will leave it, computed before the change.

use crate::{compact::Plan, message::Message, tokens::TokenCounter};

/// A thread as a plan will leave it.
#[derive(Debug)]
pub(crate) struct Next {
    pub(super) messages: Vec<Message>,
    pub(super) removed: Vec<Message>,
    /// The index of the first message that changes; `None` if the plan changes nothing.
    pub(super) from: Option<usize>,
    /// The tokens of each message from `from` on, so that applying the plan calls no counter.
    pub(super) tokens: Vec<u64>,
}

/// Returns the tokens of each message. The counter is the host's and may panic, so call this before
/// any change.
pub(super) fn count_each(messages: &[Message], counter: &dyn TokenCounter) -> Vec<u64> {
    messages.iter().map(|message| counter.message(message)).collect()
}

impl Next {
    /// Applies a plan that was just made for these messages to a copy.
    pub(super) fn unchecked(plan: &Plan, messages: &[Message], counter: &dyn TokenCounter) -> Self {
        let from = (!plan.is_empty()).then(|| plan.first_touched());
        let next = plan.after_unchecked(messages);
        let changed = next.iter().skip(from.unwrap_or(next.len()));
        let tokens = changed.map(|message| counter.message(message)).collect();
        Self { messages: next, removed: plan.removed_from(messages), from, tokens }
    }

    /// Whether the plan changes the thread.
    pub(crate) fn changes(&self) -> bool {
        self.from.is_some()
    }
}
