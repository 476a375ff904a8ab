//! Applying a plan.
//!
//! A plan is checked once against its thread; then the new thread is built from message handles,
//! without copying text. Nothing is changed in place, so a strategy, a report and a live thread
//! compute the same result.
//!
//! A stored plan may be hostile, so the whole plan is checked before anything is built. A log can
//! be written between the check and the change, because the thread stays borrowed from one to the
//! other.

use std::ops::Range;

use super::{
    edit::CompactError,
    plan::{Insert, Plan, Splice},
};
use crate::message::Message;

impl Plan {
    /// Returns the thread after the plan. Messages that stay are the same handles.
    ///
    /// ```
    /// use threadfold::{Message, Plan, Replacement, compact::CompactOptions};
    ///
    /// let thread = [Message::user("hi"), Message::assistant("hello")];
    /// let plan = Plan::new(&thread, &[Replacement::new("We said hello.")], &CompactOptions::default())?;
    /// assert!(plan.after(&thread)?[0].is_summary());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactError`] if the plan does not fit these messages.
    pub fn after(&self, messages: &[Message]) -> Result<Vec<Message>, CompactError> {
        self.check(messages)?;
        Ok(self.after_unchecked(messages))
    }

    /// Applies the plan and returns the messages that it removed, in order. A message of which the
    /// plan keeps some blocks is included whole. No text is copied.
    ///
    /// ```
    /// use threadfold::{Message, Plan, Replacement, compact::CompactOptions};
    ///
    /// let mut thread = vec![Message::user("hi"), Message::assistant("hello")];
    /// let plan = Plan::new(&thread, &[Replacement::new("We said hello.")], &CompactOptions::default())?;
    /// let removed = plan.apply(&mut thread)?;
    /// assert_eq!((thread.len(), removed.len()), (1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactError`] if the plan does not fit these messages, which are then unchanged.
    pub fn apply(&self, messages: &mut Vec<Message>) -> Result<Vec<Message>, CompactError> {
        let after = self.after(messages)?;
        let removed = self.removed_from(messages);
        *messages = after;
        Ok(removed)
    }

    /// Returns the thread after the plan, without checking the plan. The messages must be those
    /// that it was made for or [checked](Self::check) against.
    #[doc(hidden)]
    pub fn after_unchecked(&self, messages: &[Message]) -> Vec<Message> {
        let mut after = Vec::with_capacity(self.messages_after());
        let mut next = 0;
        for splice in self.splices() {
            after.extend(range(messages, next..splice.at.start));
            after.extend(splice.build(|index| messages.get(index)));
            next = splice.at.end;
        }
        after.extend(range(messages, next..messages.len()));
        after
    }

    /// Returns the messages that the plan removes, under the same condition as
    /// [`after_unchecked`](Self::after_unchecked).
    #[doc(hidden)]
    pub fn removed_from(&self, messages: &[Message]) -> Vec<Message> {
        let count = self.splices().iter().map(|splice| splice.at.len()).sum();
        let mut removed = Vec::with_capacity(count);
        for splice in self.splices() {
            removed.extend(range(messages, splice.at.clone()));
        }
        removed
    }
}

/// Returns the handles of a range of messages.
fn range(messages: &[Message], range: Range<usize>) -> impl Iterator<Item = Message> {
    messages.iter().take(range.end).skip(range.start).cloned()
}

impl Splice {
    /// Returns the messages that replace the removed ones.
    #[doc(hidden)]
    pub fn build<'a>(
        &self,
        message_at: impl Fn(usize) -> Option<&'a Message>,
    ) -> impl Iterator<Item = Message> {
        self.insert.iter().enumerate().filter_map(move |(index, insert)| match insert {
            Insert::Message { message } => Some(message.clone()),
            Insert::Part { message, blocks } => {
                let later = self.insert.iter().skip(index + 1).find_map(Insert::part_of);
                Some(part(message_at(*message)?, blocks, later != Some(*message)))
            }
        })
    }
}

impl Insert {
    /// The index of the message whose blocks this part keeps; `None` for a new message.
    #[doc(hidden)]
    pub fn part_of(&self) -> Option<usize> {
        match self {
            Self::Message { .. } => None,
            Self::Part { message, .. } => Some(*message),
        }
    }
}

/// Returns some blocks of a message, with its other fields. The part is marked, because its
/// reasoning was signed for messages that the plan changes. Usage and stop reason stay on the last
/// part only, so that they count once.
pub(super) fn part(source: &Message, blocks: &[u32], is_last: bool) -> Message {
    // The indices are ascending and in range, so an equal count means all blocks. The handle is
    // then shared, because copying a large message for every plan is expensive.
    let mut part = if blocks.len() == source.content.len() {
        source.clone()
    } else {
        let kept = blocks.iter().filter_map(|block| source.content.get(*block as usize));
        source.with_content(kept.cloned().collect())
    };
    part.prefix_rewritten |= part.has_reasoning();
    if !is_last && (part.stop_reason.is_some() || part.usage.is_some()) {
        let parts = part.make_mut();
        (parts.stop_reason, parts.usage) = (None, None);
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ContentBlock, Thinking, Usage};

    #[test]
    fn any_two_splices_build_the_thread_that_the_plan_describes() {
        let thread: Vec<Message> = (0..8).map(|number| Message::user(number.to_string())).collect();
        let come = |count: usize| (0..count).map(|_| Message::user("new")).collect::<Vec<_>>();
        // Two splices of any length at any index, each with up to two messages.
        let ranges = || (0..=8).flat_map(|start| (start..=8).map(move |end| start..end));
        for first in ranges() {
            for second in ranges().filter(|range| range.start >= first.end) {
                for (one, two) in [(0, 1), (1, 0), (1, 1), (2, 1)] {
                    let splice = |at: &Range<usize>, count| {
                        let insert = |message| Insert::Message { message };
                        Splice {
                            at: at.clone(),
                            insert: come(count).into_iter().map(insert).collect(),
                        }
                    };
                    let plan =
                        Plan::from_splices(8, vec![splice(&first, one), splice(&second, two)]);
                    let mut after = thread.clone();
                    let removed = plan.apply(&mut after).unwrap();
                    let expected = [
                        &thread[..first.start],
                        &come(one),
                        &thread[first.end..second.start],
                        &come(two),
                        &thread[second.end..],
                    ];
                    assert_eq!(after, expected.concat(), "{plan:?}");
                    assert_eq!(removed, [&thread[first.clone()], &thread[second.clone()]].concat());
                }
            }
        }
    }

    #[test]
    fn usage_counts_once_when_an_answer_is_divided() {
        let mut answer = Message::assistant("one");
        answer.make_mut().usage = Some(Usage::new(100, 10));
        answer.make_mut().content.extend(["two", "three"].map(ContentBlock::text));
        let between = || Insert::Message { message: Message::user("go on") };
        for before in [0, 1] {
            let part = |block| Insert::Part { message: before, blocks: [block].into() };
            let mut thread = vec![Message::user("begin"); before];
            thread.push(answer.clone());
            let insert = vec![part(0), between(), part(1), part(2), between()];
            let splice = Splice { at: 0..before + 1, insert };
            Plan::from_splices(before + 1, vec![splice]).apply(&mut thread).unwrap();
            let costs: Vec<_> = thread.iter().map(|message| message.usage).collect();
            assert_eq!(costs, [None, None, None, Some(Usage::new(100, 10)), None]);
        }
    }

    #[test]
    fn a_part_with_all_blocks_shares_the_message_unless_it_must_be_marked() {
        let thought = || Thinking::new("hm", None).into();
        for (reasons, marked, same) in
            [(false, false, true), (false, true, true), (true, true, true), (true, false, false)]
        {
            let mut message = Message::assistant("Well.");
            message.prefix_rewritten = marked;
            let parts = message.make_mut();
            parts.usage = Some(Usage::new(100, 10));
            parts.content.extend(reasons.then(thought));
            let blocks: Vec<u32> = (0..).take(message.content.len()).collect();
            let whole = part(&message, &blocks, true);
            assert_eq!((whole.ptr_eq(&message), whole == message), (same, same), "{message:?}");
            assert_eq!(whole.prefix_rewritten, marked || reasons);
            assert!(!part(&message, &blocks, false).ptr_eq(&message));
        }
    }
}
