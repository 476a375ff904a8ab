//! A plan that was checked against its thread.

use crate::{
    compact::{CompactError, Plan},
    message::Message,
    tokens::TokenCounter,
};

/// A checked plan and the thread that it will rewrite, from `Thread::rewrite` or
/// `model::rewrite`.
///
/// It borrows the thread, so the thread cannot change between the check and `apply`, which
/// therefore cannot fail. Dropping it changes nothing.
#[derive(Debug)]
#[must_use = "the thread is unchanged until the rewrite is applied"]
pub(crate) struct Rewrite<'t, T: ?Sized> {
    thread: &'t mut T,
    next: Next,
}

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

impl<'t, T: ?Sized> Rewrite<'t, T> {
    pub(crate) fn new(thread: &'t mut T, next: Next) -> Self {
        Self { thread, next }
    }

    /// Returns the thread, still unchanged, and what the plan makes of it.
    pub(crate) fn into_parts(self) -> (&'t mut T, Next) {
        (self.thread, self.next)
    }
}

impl Next {
    /// Checks a plan against these messages and applies it to a copy.
    ///
    /// # Errors
    ///
    /// [`CompactError`] if the plan was not made for these messages.
    pub(crate) fn checked(
        plan: &Plan,
        messages: &[Message],
        counter: &dyn TokenCounter,
    ) -> Result<Self, CompactError> {
        plan.check(messages)?;
        Ok(Self::unchecked(plan, messages, counter))
    }

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
