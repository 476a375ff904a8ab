//! Plans: the common form of every edit of a thread.
//!
//! A plan is data. Strategies propose it, a log stores it, a thread applies it, and replay needs
//! only the plan, not the algorithm that made it. It contains positions in the thread that it was
//! made for, and new messages. Kept parts of old messages are given by block index, so that a
//! stored plan does not copy their text.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::edit::CompactError;
use crate::message::{ContentBlock, Message, Text};

/// The version of the stored form. Plans of other versions are refused.
const VERSION: u32 = 1;

/// An edit of a thread.
///
/// [`Plan::summarise`] makes a plan from a range and a text, [`Plan::new`] from replacements,
/// [`Plan::from_edits`] from edits. Applying a plan fails only on a thread that it was not made
/// for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct Plan {
    version: u32,
    /// The number of messages in the thread that the plan was made for.
    before: usize,
    splices: Vec<Splice>,
    /// The number of blocks that were stripped in addition to those replaced.
    #[serde(default)]
    stripped: usize,
}

/// Replaces adjacent messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Splice {
    /// The messages to remove, by index. May be empty.
    pub at: Range<usize>,
    /// What replaces them.
    pub insert: Vec<Insert>,
}

/// A range of a thread that was replaced, and what stands in its place now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced<'a> {
    /// The messages that were replaced, by their indexes before the change. May be empty.
    pub at: Range<usize>,
    /// The messages that stand there now. May be empty.
    pub messages: &'a [Message],
}

/// A message that a splice inserts, or a part of one that it keeps.
///
/// In serde it is an object with one key, `message` or `part`. With a `type` field, serde would
/// buffer the message, and the inputs of tool calls in it would lose their raw text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Insert {
    /// A new message.
    Message {
        /// The message.
        message: Message,
    },
    /// Some blocks of one of the removed messages.
    Part {
        /// The index of the message.
        message: usize,
        /// The indices of the blocks that stay, ascending.
        blocks: Vec<u32>,
    },
}

impl Plan {
    /// Returns a plan of exactly these splices for a thread of `before` messages, for engines that
    /// store plans of their own. They are checked when the plan is applied. Strategies should use
    /// [`summarise`](Self::summarise) or [`from_edits`](Self::from_edits) instead: only these keep
    /// calls with their results, and strip and mark reasoning.
    ///
    /// ```
    /// use threadfold::{Message, Plan, compact::Splice};
    ///
    /// let mut thread = vec![Message::user("one"), Message::assistant("two"), Message::user("three")];
    /// let insert = vec![Message::assistant("2").into()];
    /// let _ = Plan::from_splices(3, vec![Splice { at: 1..2, insert }]).apply(&mut thread)?;
    /// assert_eq!(thread[1], Message::assistant("2"));
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    pub fn from_splices(before: usize, splices: Vec<Splice>) -> Self {
        Self { version: VERSION, before, splices, stripped: 0 }
    }

    pub(super) fn with_stripped(self, stripped: usize) -> Self {
        Self { stripped, ..self }
    }

    /// The number of messages in the thread that the plan was made for.
    #[must_use]
    pub fn messages_before(&self) -> usize {
        self.before
    }

    /// The number of messages in the thread after the plan.
    #[must_use]
    pub fn messages_after(&self) -> usize {
        let (mut removed, mut inserted) = (0_usize, 0_usize);
        for Splice { at, insert } in &self.splices {
            removed = removed.saturating_add(at.len());
            inserted = inserted.saturating_add(insert.len());
        }
        self.before.saturating_sub(removed).saturating_add(inserted)
    }

    /// The index of the first message that the plan changes; the length of the thread if it changes
    /// none.
    ///
    /// ```
    /// use threadfold::{Message, Plan, Replacement, compact::CompactOptions, log, message::*};
    ///
    /// let thread = vec![Message::user("hi"), Message::assistant("hello"), Message::assistant("so?")];
    /// let thread = log::stamp(thread, 1);
    /// let ContentBlock::Checkpoint(after_hi) = &thread[0].content[1] else { panic!("it was stamped") };
    /// let replacements = [Replacement::new("Said hello.").from(after_hi.id)];
    /// let plan = Plan::new(&thread, &replacements, &CompactOptions::default())?;
    /// assert_eq!((plan.first_touched(), plan.messages_after()), (1, 2));
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    #[must_use]
    pub fn first_touched(&self) -> usize {
        self.splices.first().map_or(self.before, |splice| splice.at.start)
    }

    /// `true` if the plan changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.splices.is_empty()
    }

    /// The changes, in the order of the thread.
    #[must_use]
    pub fn splices(&self) -> &[Splice] {
        &self.splices
    }

    /// Returns the ranges that the plan replaces, in the order of the thread, with what stands there
    /// in the thread `after` the change. To repeat the change in a list of one item for each message,
    /// go from the last range to the first.
    ///
    /// ```
    /// use threadfold::{Message, Plan, Replacement, compact::{CompactOptions, Replaced}};
    ///
    /// let thread = [Message::user("hi"), Message::assistant("hello")];
    /// let plan = Plan::new(&thread, &[Replacement::new("We said hello.")], &CompactOptions::default())?;
    /// let after = plan.after(&thread)?;
    /// assert_eq!(plan.replaced(&after), [Replaced { at: 0..2, messages: &after }]);
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    #[must_use]
    pub fn replaced<'a>(&self, after: &'a [Message]) -> Vec<Replaced<'a>> {
        let (mut read, mut written) = (0, 0);
        let replaced = self.splices.iter().map(|splice| {
            let from = written + splice.at.start.saturating_sub(read);
            (read, written) = (splice.at.end, from + splice.insert.len());
            let messages = after.get(from..written).unwrap_or_default();
            Replaced { at: splice.at.clone(), messages }
        });
        replaced.collect()
    }

    /// The number of reminders and reasoning blocks stripped in addition to those replaced.
    #[must_use]
    pub fn blocks_stripped(&self) -> usize {
        self.stripped
    }

    /// The new messages that the plan inserts, in order.
    ///
    /// ```
    /// use threadfold::{Message, Plan, Replacement, compact::CompactOptions};
    ///
    /// let thread = [Message::user("hi"), Message::assistant("hello")];
    /// let plan = Plan::new(&thread, &[Replacement::new("We said hello.")], &CompactOptions::default())?;
    /// let made: Vec<&Message> = plan.new_messages().collect();
    /// assert!(made.len() == 1 && made[0].is_summary());
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    pub fn new_messages(&self) -> impl Iterator<Item = &Message> {
        self.splices.iter().flat_map(|splice| &splice.insert).filter_map(|insert| match insert {
            Insert::Message { message } => Some(message),
            Insert::Part { .. } => None,
        })
    }

    /// Returns the plan with `change` applied to each of its new messages.
    #[doc(hidden)]
    pub fn with_new_messages(mut self, mut change: impl FnMut(&mut Message)) -> Self {
        for insert in self.splices.iter_mut().flat_map(|splice| splice.insert.iter_mut()) {
            match insert {
                Insert::Message { message } => change(message),
                Insert::Part { .. } => {}
            }
        }
        self
    }

    /// Returns the plan with `change` applied to what it inserts for each range.
    #[doc(hidden)]
    pub fn with_inserts(mut self, change: impl Fn(Range<usize>, &mut Vec<Insert>)) -> Self {
        for Splice { at, insert } in &mut self.splices {
            change(at.clone(), insert);
        }
        self
    }

    /// Returns the plan with this text in its last summary.
    #[doc(hidden)]
    pub fn with_last_summary(mut self, text: Text) -> Self {
        let inserts = self.splices.iter_mut().flat_map(|splice| &mut splice.insert);
        let messages = inserts.filter_map(|insert| match insert {
            Insert::Message { message } => Some(message),
            Insert::Part { .. } => None,
        });
        let last = messages.filter(|message| message.is_summary()).last();
        let Some(message) = last else { return self };
        let blocks = message.make_mut().content.iter_mut();
        let summaries = blocks.filter_map(|block| {
            if let ContentBlock::Summary(summary) = block { Some(summary) } else { None }
        });
        if let Some(summary) = summaries.last() {
            summary.text = text;
        }
        self
    }

    /// Returns the plan for this thread with a message inserted at the last cut point that is not
    /// after its first change, or at the start of the thread if there is none. `None` if the plan
    /// changes nothing. The message is now the first change, so the reasoning between it and the former
    /// first change is [marked](Self::with_reasoning_marked) too.
    #[doc(hidden)]
    pub fn with_message_before(
        mut self,
        thread: &[Message],
        cuts: &[usize],
        message: Message,
    ) -> Option<Self> {
        let first = self.splices.first()?.at.start;
        let at = cuts.iter().rev().find(|cut| **cut <= first).copied().unwrap_or_default();
        let insert = vec![Insert::Message { message }];
        match self.splices.first_mut().filter(|splice| splice.at.start == at) {
            Some(splice) => splice.insert.splice(0..0, insert).for_each(drop),
            None => self.splices.insert(0, Splice { at: at..at, insert }),
        }
        Some(self.with_reasoning_marked(thread))
    }

    /// Checks that the plan fits these messages.
    ///
    /// ```
    /// use threadfold::{Message, Plan};
    ///
    /// let plan = Plan::from_splices(2, Vec::new());
    /// let error = plan.check(&[Message::user("hi")]).unwrap_err();
    /// assert_eq!(error.to_string(), "the plan was made for 2 messages; the thread has 1");
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactError`] if the plan does not fit.
    pub fn check(&self, messages: &[Message]) -> Result<(), CompactError> {
        self.check_with(messages.len(), |index| messages.get(index))
    }

    /// Like [`check`](Self::check), for a thread of `len` messages that is not a slice. `message`
    /// is called only for messages of which parts stay.
    #[doc(hidden)]
    pub fn check_with<'a>(
        &self,
        len: usize,
        message: impl Fn(usize) -> Option<&'a Message>,
    ) -> Result<(), CompactError> {
        if self.version != VERSION {
            return Err(CompactError::Version { found: self.version, expected: VERSION });
        }
        if len != self.before {
            return Err(CompactError::Length { planned: self.before, found: len });
        }
        let mut next = 0;
        for (index, splice) in self.splices.iter().enumerate() {
            let Range { start, end } = splice.at;
            if start < next || end < start || end > len {
                return Err(CompactError::Splice { splice: index });
            }
            next = end;
            let mut kept = None;
            for insert in &splice.insert {
                kept = insert.check(index, &splice.at, &message, kept)?;
            }
        }
        Ok(())
    }
}

impl From<Message> for Insert {
    fn from(message: Message) -> Self {
        Self::Message { message }
    }
}

impl Insert {
    /// Checks a part against the removed messages, and against the last block that an earlier part
    /// kept: keeping a block twice could duplicate a call or a result.
    fn check<'a>(
        &self,
        splice: usize,
        at: &Range<usize>,
        message_at: &impl Fn(usize) -> Option<&'a Message>,
        kept: Option<(usize, u32)>,
    ) -> Result<Option<(usize, u32)>, CompactError> {
        let Self::Part { message, blocks } = self else { return Ok(kept) };
        let source = if at.contains(message) { message_at(*message) } else { None };
        let count = source.map_or(0, |source| source.content.len());
        let first = blocks.first().map(|block| (*message, *block));
        let is_ascending = blocks.is_sorted_by(|one, next| one < next);
        match blocks.last() {
            Some(last) if is_ascending && (*last as usize) < count && first > kept => {
                Ok(Some((*message, *last)))
            }
            Some(_) | None => Err(CompactError::Part { splice, message: *message }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Role, Thinking};

    fn thread() -> Vec<Message> {
        vec![Message::user("one"), Message::assistant("two"), Message::user("three")]
    }

    fn refuse(splices: Vec<Splice>) -> CompactError {
        let mut messages = thread();
        let error = Plan::from_splices(3, splices).apply(&mut messages).unwrap_err();
        assert_eq!(messages, thread());
        error
    }

    #[test]
    fn a_plan_for_another_length_is_refused() {
        let error = Plan::from_splices(2, Vec::new()).apply(&mut thread()).unwrap_err();
        assert_eq!(error, CompactError::Length { planned: 2, found: 3 });
    }

    #[test]
    fn a_plan_of_a_newer_version_is_refused() {
        let stored = r#"{"version":9,"before":3,"splices":[]}"#;
        let plan: Plan = serde_json::from_str(stored).unwrap();
        assert_eq!(
            plan.apply(&mut thread()).unwrap_err(),
            CompactError::Version { found: 9, expected: 1 }
        );
    }

    #[test]
    fn a_plan_of_huge_splices_is_refused_without_overflow() {
        let splice = || Splice { at: 0..usize::MAX, insert: Vec::new() };
        assert_eq!(Plan::from_splices(3, vec![splice(), splice()]).messages_after(), 0);
        assert_eq!(refuse(vec![splice(), splice()]), CompactError::Splice { splice: 0 });
    }

    #[test]
    fn an_input_in_a_stored_plan_keeps_its_text() {
        let stored = r#"{"message":{"message":{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{"z":1.0,"a":1e2}}]}}}"#;
        let insert: Insert = serde_json::from_str(stored).unwrap();
        assert_eq!(serde_json::to_string(&insert).unwrap(), stored);
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "the plan must refuse them")]
    fn splices_out_of_order_or_out_of_range_are_refused() {
        let splice = |at| Splice { at, insert: Vec::new() };
        let cases = [vec![splice(1..2), splice(0..1)], vec![splice(2..4)], vec![splice(2..1)]];
        for splices in cases {
            assert!(matches!(refuse(splices), CompactError::Splice { .. }));
        }
    }

    #[test]
    fn a_block_is_kept_once_at_most() {
        let part = || Insert::Part { message: 1, blocks: [0].into() };
        let error = refuse(vec![Splice { at: 1..2, insert: vec![part(), part()] }]);
        assert_eq!(error, CompactError::Part { splice: 0, message: 1 });
    }

    #[test]
    fn parts_of_missing_messages_and_blocks_are_refused() {
        for (message, blocks) in
            [(0, vec![0]), (2, vec![0]), (1, vec![]), (1, vec![0, 0]), (1, vec![1])]
        {
            let insert = vec![Insert::Part { message, blocks }];
            let error = refuse(vec![Splice { at: 1..2, insert }]);
            assert_eq!(error, CompactError::Part { splice: 0, message });
        }
    }

    #[test]
    fn a_message_is_inserted_at_the_last_cut_before_all_changes() {
        let insert = |text: &str| Insert::Message { message: Message::assistant(text) };
        let splices = vec![
            Splice { at: 2..3, insert: vec![insert("a")] },
            Splice { at: 4..5, insert: Vec::new() },
        ];
        let plan = Plan::from_splices(5, splices.clone());
        assert_eq!((plan.messages_before(), plan.messages_after()), (5, 4));
        let thread = ["0", "1", "2", "3", "4"].map(Message::assistant);
        let before = |cuts: &[usize]| {
            let plan = plan.clone().with_message_before(&thread, cuts, Message::assistant("b"));
            plan.map(|plan| plan.splices().to_vec())
        };
        let mut expected = splices.clone();
        expected[0].insert.insert(0, insert("b"));
        assert_eq!(before(&[0, 2, 3]), Some(expected));
        let own = Splice { at: 1..1, insert: vec![insert("b")] };
        assert_eq!(before(&[0, 1, 3]), Some([vec![own], splices.clone()].concat()));
        let start = Splice { at: 0..0, insert: vec![insert("b")] };
        assert_eq!(before(&[3]), Some([vec![start], splices].concat()));
        let nothing = Plan::from_splices(5, Vec::new());
        assert_eq!(nothing.with_message_before(&thread, &[3], Message::assistant("b")), None);
    }

    #[test]
    fn a_message_before_all_changes_makes_the_reasoning_after_it_void() {
        let thought = |text: &str| {
            let thought = Thinking::new(text, Some("signature".into()));
            Message::new(Role::Assistant, vec![thought.into(), ContentBlock::text(text)])
        };
        let thread = [thought("a"), Message::user("b"), thought("c"), Message::user("d")];
        let change = Splice { at: 3..4, insert: vec![Message::user("D").into()] };
        let plan = Plan::from_splices(4, vec![change]).with_reasoning_marked(&thread);
        let marked = |plan: &Plan| {
            let after = plan.after(&thread).unwrap();
            after.iter().map(|message| message.prefix_rewritten).collect::<Vec<_>>()
        };
        assert_eq!(marked(&plan), [false; 4]);
        let plan = plan.with_message_before(&thread, &[0, 1], Message::user("facts")).unwrap();
        assert_eq!(marked(&plan), [false, false, false, true, false]);
    }
}
