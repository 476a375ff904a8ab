//! A plan that was checked against the thread it is for.

use crate::{
    compact::{CompactError, Plan, Removed},
    message::Message,
    tokens::TokenCounter,
};

/// A thread that is about to be rewritten by a plan that fits it. Made by [`Thread::rewrite`] and
/// by [`model::rewrite`].
///
/// It borrows the thread, so nothing can come between the check and `apply`, which therefore cannot
/// fail. Dropped, it changes nothing.
///
/// [`Thread::rewrite`]: crate::Thread::rewrite
/// [`model::rewrite`]: crate::model::rewrite
///
/// ```
/// use threadfold::{Message, Plan, Thread, compact::Splice};
///
/// let mut thread: Thread = [Message::user("hi"), Message::assistant("hello")].into_iter().collect();
/// let plan = Plan::from_splices(2, vec![Splice { at: 1..2, insert: Vec::new() }]);
/// drop(thread.rewrite(&plan)?);
/// assert_eq!(thread.size().messages, 2);
/// let _ = thread.rewrite(&plan)?.apply();
/// assert_eq!(thread.size().messages, 1);
/// # Ok::<(), threadfold::compact::CompactError>(())
/// ```
#[derive(Debug)]
#[must_use = "the thread is unchanged until the rewrite is applied"]
pub struct Rewrite<'t, T: ?Sized> {
    thread: &'t mut T,
    next: Next,
}

/// What a plan makes of a thread that it fits.
#[derive(Debug)]
pub(crate) struct Next {
    pub(super) messages: Vec<Message>,
    pub(super) removed: Removed,
    /// The first message that is another one; `None` if nothing is changed.
    pub(super) from: Option<usize>,
    /// The tokens of each message from there on, so that carrying it out calls no counter.
    pub(super) tokens: Vec<u64>,
}

/// The tokens of each message. A counter is the host's and may panic, so it is asked before anything
/// changes.
pub(super) fn counted(messages: &[Message], counter: &dyn TokenCounter) -> Vec<u64> {
    messages.iter().map(|message| counter.message(message)).collect()
}

impl<'t, T: ?Sized> Rewrite<'t, T> {
    pub(crate) fn new(thread: &'t mut T, next: Next) -> Self {
        Self { thread, next }
    }

    /// The messages as they will be.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.next.messages
    }

    /// The thread as it is, and what it becomes.
    pub(crate) fn into_parts(self) -> (&'t mut T, Next) {
        (self.thread, self.next)
    }
}

impl Next {
    /// # Errors
    ///
    /// [`CompactError`] if the plan was not made for these messages.
    pub(crate) fn checked(
        plan: &Plan,
        messages: &[Message],
        counter: &dyn TokenCounter,
    ) -> Result<Self, CompactError> {
        plan.check(messages)?;
        Ok(Self::made(plan, messages, counter))
    }

    /// For messages that the plan was just made of.
    pub(super) fn made(plan: &Plan, messages: &[Message], counter: &dyn TokenCounter) -> Self {
        let from = (!plan.is_empty()).then(|| plan.first_touched());
        let made = plan.after_unchecked(messages);
        let changed = made.iter().skip(from.unwrap_or(made.len()));
        let tokens = changed.map(|message| counter.message(message)).collect();
        Self { messages: made, removed: plan.removed_from(messages), from, tokens }
    }

    /// Whether the thread is another one afterwards.
    pub(crate) fn changes(&self) -> bool {
        self.from.is_some()
    }
}
