//! Marking reasoning after a rewrite, and fitting plans to a thread that has grown.
//!
//! A provider signs reasoning for the messages before it. So a plan marks the messages with
//! reasoning after its first change ([`prefix_rewritten`]), and the codecs of providers that would
//! refuse the reasoning drop it. The marks are part of the plan, so a stored plan sets them again.
//!
//! A provider's own compaction at the beginning is the exception: the provider keeps the reasoning of
//! the messages that directly follow it unchanged, so a plan that only puts such a block in the
//! place of the first messages marks none of that model's reasoning. That of other models is marked,
//! because their providers read a summary in its place. Sources: Anthropic, "Compaction and thinking
//! blocks" (November 2026); OpenAI, "Keep the prefix unchanged" (18 November 2026).
//!
//! Answers after the compaction were signed for the new messages and need no mark. A mark belongs
//! to the handle of a message, so marking a whole thread copies no text.
//!
//! Reasoning and reminders are removed only after the first change of a plan. The messages before
//! it stay as they are, so the provider's prompt cache stays valid for them.
//!
//! [`prefix_rewritten`]: field@crate::message::Message::prefix_rewritten

use std::ops::Range;

use super::plan::{Insert, Plan, Splice};
use crate::message::Message;

impl Plan {
    /// Returns the plan with all reasoning after its first change marked ([`prefix_rewritten`]), in
    /// messages that stay and in messages that it inserts. A plan without changes marks nothing,
    /// and a marked plan is returned unchanged. If the first change is one message with a provider's
    /// own [compaction](crate::message::Message::holds_compaction) in the place of the beginning of
    /// the thread, the reasoning of the model that made it is marked only after the next change.
    ///
    /// Plans of replacements, edits and trimming are already marked; a snapshot marks the proposal
    /// of a strategy when it settles it.
    ///
    /// ```
    /// use threadfold::{Message, Plan, Role, compact::Splice, message::Thinking};
    ///
    /// let thought = Thinking::new("They greeted me.", Some("signature".into()));
    /// let answer = Message::new(Role::Assistant, vec![thought.into()]);
    /// let thread = [Message::user("Hi."), answer];
    /// let plan = Plan::from_splices(2, vec![Splice { at: 0..1, insert: Vec::new() }]);
    /// assert!(!plan.after(&thread)?[0].prefix_rewritten);
    /// assert!(plan.with_reasoning_marked(&thread).after(&thread)?[0].prefix_rewritten);
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    ///
    /// [`prefix_rewritten`]: field@crate::message::Message::prefix_rewritten
    pub fn with_reasoning_marked(self, messages: &[Message]) -> Self {
        // Kept parts of messages are marked when they are built.
        let plan = self.with_new_messages(mark);
        let first = plan.first_touched();
        if plan.is_empty() || !messages.iter().skip(first).any(Message::is_signed) {
            return plan;
        }
        let native = plan.splices().first().and_then(Splice::native);
        // A provider keeps reasoning up to the next change after its compaction.
        let second = plan.splices().iter().skip(1).find(|splice| !splice.only_marks(messages));
        let bound = second.map_or(messages.len(), |splice| splice.at.start);
        let is_void = |index: usize, message: &Message| {
            let keeps = native.is_some_and(|native| native.keeps_reasoning_of(message));
            message.is_signed() && !(keeps && index < bound)
        };
        let marks = |range: Range<usize>| {
            let kept = messages.iter().enumerate().take(range.end).skip(range.start);
            let void = kept.filter(|(index, message)| is_void(*index, message));
            void.map(|(index, message)| Splice::whole(index, message))
        };
        let mut splices = Vec::with_capacity(plan.splices().len());
        let mut next = first;
        for splice in plan.splices() {
            splices.extend(marks(next..splice.at.start));
            splices.push(splice.clone());
            next = splice.at.end;
        }
        splices.extend(marks(next..messages.len()));
        Self::from_splices(plan.messages_before(), splices).with_stripped(plan.blocks_stripped())
    }

    /// Returns the plan for its thread with more messages at the end. They stay, with their
    /// [reasoning marked](Self::with_reasoning_marked).
    ///
    /// ```
    /// use threadfold::{Message, Plan, Replacement, compact::CompactOptions};
    ///
    /// let mut thread = vec![Message::user("hi"), Message::assistant("hello")];
    /// let plan = Plan::new(&thread, &[Replacement::new("A greeting.")], &CompactOptions::default())?;
    /// thread.push(Message::user("and now?"));
    /// plan.extended(&thread).apply(&mut thread)?;
    /// assert_eq!(thread.len(), 2);
    /// assert_eq!(thread[1], Message::user("and now?"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn extended(&self, messages: &[Message]) -> Self {
        let before = messages.len().max(self.messages_before());
        Self::from_splices(before, self.splices().to_vec())
            .with_stripped(self.blocks_stripped())
            .with_reasoning_marked(messages)
    }

    /// Returns the plan that also replaces these messages, all after its last change, in ascending
    /// order.
    #[doc(hidden)]
    pub fn with_replaced(&self, replaced: Vec<(usize, Message)>) -> Self {
        let replaced = replaced.into_iter().map(|(index, message)| Splice {
            at: index..index + 1,
            insert: vec![Insert::Message { message }],
        });
        let splices = self.splices().iter().cloned().chain(replaced).collect();
        Self::from_splices(self.messages_before(), splices).with_stripped(self.blocks_stripped())
    }
}

impl Splice {
    /// The message with a provider's own compaction, if the splice puts it, and nothing else, in the
    /// place of the beginning of the thread.
    fn native(&self) -> Option<&Message> {
        let [Insert::Message { message }] = self.insert.as_slice() else { return None };
        (self.at.start == 0 && message.holds_compaction()).then_some(message)
    }

    /// Returns a splice that keeps a message with all of its blocks, and marks its reasoning.
    fn whole(index: usize, message: &Message) -> Self {
        let blocks = (0..).take(message.content.len()).collect();
        Self { at: index..index + 1, insert: vec![Insert::Part { message: index, blocks }] }
    }

    /// Whether the splice only marks the reasoning of a message.
    fn only_marks(&self, messages: &[Message]) -> bool {
        let message = messages.get(self.at.start);
        message.is_some_and(|message| *self == Self::whole(self.at.start, message))
    }
}

fn mark(message: &mut Message) {
    if message.is_signed() {
        *message = message.clone().rewritten();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ContentBlock, Opaque, Origin, Role, Thinking};

    fn thoughtful(text: &str) -> Message {
        let thought = Thinking::new("hm", Some("sig".into()));
        Message::new(Role::Assistant, vec![thought.into(), ContentBlock::text(text)])
    }

    #[test]
    fn later_messages_stay_and_their_reasoning_is_marked() {
        let plan = Plan::from_splices(2, vec![Splice { at: 0..2, insert: Vec::new() }]);
        let mut thread = vec![Message::user("a"), Message::assistant("b")];
        thread.extend([Message::user("c"), thoughtful("d"), Message::assistant("e")]);
        let marked = thoughtful("d").rewritten();
        thread.push(marked.clone());
        let extended = plan.extended(&thread);
        extended.apply(&mut thread).unwrap();
        let after = [Message::user("c"), marked.clone(), Message::assistant("e"), marked];
        assert_eq!(thread, after);
        // Messages that need no mark are not changed.
        assert_eq!(
            extended.splices().iter().map(|it| it.at.clone()).collect::<Vec<_>>(),
            [0..2, 3..4]
        );
    }

    #[test]
    fn reasoning_after_the_providers_own_compaction_stays_valid_up_to_the_next_change() {
        let value = serde_json::json!({"type": "compaction", "content": "They talked."});
        let block = Opaque::new("anthropic-messages", value).into();
        let native = Insert::Message { message: Message::new(Role::User, vec![block]) };
        let thread = [Message::user("a"), thoughtful("b"), Message::user("c"), thoughtful("d")];
        let thread = [&thread[..], &[Message::user("e"), thoughtful("f")]].concat();
        let first = Splice { at: 0..2, insert: vec![native.clone()] };
        let marked = |splices: Vec<Splice>| {
            let plan = Plan::from_splices(6, splices).with_reasoning_marked(&thread);
            let again = plan.clone().with_reasoning_marked(&thread);
            assert_eq!(again, plan, "marking twice changes nothing");
            let after = plan.after(&thread).unwrap();
            after.iter().map(|message| message.prefix_rewritten).collect::<Vec<_>>()
        };
        assert_eq!(marked(vec![first.clone()]), [false; 5]);
        let later = Splice { at: 4..5, insert: vec![Message::user("E").into()] };
        assert_eq!(marked(vec![first, later]), [false, false, false, false, true]);
        // Another message beside the block, or a block elsewhere, breaks the promise.
        let beside = vec![native.clone(), Message::user("x").into()];
        let beside = marked(vec![Splice { at: 0..2, insert: beside }]);
        assert_eq!(beside, [false, false, false, true, false, true]);
        let within = marked(vec![Splice { at: 2..3, insert: vec![native] }]);
        assert_eq!(within, [false, false, false, true, false, true]);
    }

    #[test]
    fn a_providers_own_compaction_keeps_only_the_reasoning_of_its_model() {
        let made_by = |mut message: Message, provider: &str, model: &str| {
            let origin = Origin::new(provider, Some(model.into()));
            message.make_mut().origin = Some(origin);
            message
        };
        let value = serde_json::json!({"type": "compaction", "content": "They talked."});
        let block = Opaque::new("anthropic-messages", value).into();
        let message = Message::new(Role::User, vec![block]);
        let message = made_by(message, "anthropic-messages", "claude-opus-5-5");
        let thread = [
            Message::user("a"),
            made_by(thoughtful("b"), "anthropic-messages", "claude-opus-5-5"),
            made_by(thoughtful("c"), "openai-responses", "gpt-6.2-sol"),
            made_by(thoughtful("d"), "anthropic-messages", "claude-sonnet-5-5"),
            made_by(thoughtful("e"), "anthropic-messages", "claude-opus-5-5-20261001"),
        ];
        let splice = Splice { at: 0..1, insert: vec![Insert::Message { message }] };
        let plan = Plan::from_splices(5, vec![splice]).with_reasoning_marked(&thread);
        let after = plan.after(&thread).unwrap();
        let marked: Vec<bool> = after.iter().map(|message| message.prefix_rewritten).collect();
        assert_eq!(marked, [false, false, true, true, false]);
        assert_eq!(plan.clone().with_reasoning_marked(&thread), plan);
    }

    #[test]
    fn a_plan_that_changes_nothing_marks_nothing() {
        let thread = vec![Message::user("c"), thoughtful("d")];
        let plan = Plan::from_splices(0, Vec::new()).extended(&thread);
        assert!(plan.is_empty());
        assert_eq!(plan.apply(&mut thread.clone()), Ok(Default::default()));
    }
}
