//! The plan of the most common strategy: one summary instead of a range.

use std::ops::Range;

use super::{edit::CompactError, edits::CompactOptions, plan::Plan, position::Position};
use crate::message::{Message, Role, Summary, Text};

impl Plan {
    /// Returns the plan that replaces these messages with a summary. The summary is a message of the
    /// user, so that the thread can still begin with the user.
    ///
    /// From the first message of the range on, reminders and finished reasoning are stripped from
    /// the messages that stay, and the reasoning of an open tool loop is marked, because it was
    /// signed for the removed messages. A blank text only removes the range.
    ///
    /// ```
    /// use threadfold::{Message, Plan};
    ///
    /// let mut thread = vec![Message::user("one"), Message::assistant("two"), Message::user("three")];
    /// Plan::summarise(&thread, 0..2, "They counted to two.")?.apply(&mut thread)?;
    /// assert!(thread[0].is_summary());
    /// assert_eq!(thread[1], Message::user("three"));
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`CompactError::Empty`] and [`CompactError::Inverted`] if the range holds no message.
    /// - [`CompactError::OutOfRange`] if the thread has no such messages.
    /// - [`CompactError::SplitsToolPair`] and [`CompactError::OpenCalls`] if the range would
    ///   separate a call from its result: end the range at a cut point
    ///   ([`legality::cut_points`](super::legality::cut_points)).
    pub fn summarise(
        messages: &[Message],
        range: Range<usize>,
        text: impl Into<Text>,
    ) -> Result<Self, CompactError> {
        let text = text.into();
        if range.start == range.end {
            return Err(CompactError::Empty { index: 0, from: None, to: None });
        }
        let is_blank = text.is_blank();
        let summary = Message::summary(Role::User, Summary::new(text));
        let range = Position::before(range.start)..Position::before(range.end);
        let insert = if is_blank { Vec::new() } else { vec![summary] };
        Self::from_edits(messages, vec![(range, insert)], &CompactOptions::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ContentBlock, Json, Thinking, ToolResult, ToolUse};

    fn call(id: &str) -> Message {
        let thought = Thinking::new("hm", Some("sig".into()));
        let call = ToolUse::new(id, "read", Json::default());
        Message::new(Role::Assistant, vec![thought.into(), call.into()])
    }

    fn result(id: &str) -> Message {
        Message::new(Role::User, vec![ToolResult::text(id, "done").into()])
    }

    /// An old question with a reminder, and an open tool loop of two signed rounds.
    fn thread() -> Vec<Message> {
        let reminder = ContentBlock::reminder("Be brief.");
        let question = Message::new(Role::User, vec![ContentBlock::text("And now?"), reminder]);
        vec![
            Message::user("An old question."),
            Message::assistant("An old answer."),
            question,
            call("a"),
            result("a"),
            call("b"),
            result("b"),
        ]
    }

    #[test]
    fn remaining_messages_are_stripped_and_marked() {
        let thread = thread();
        let after = Plan::summarise(&thread, 0..2, "Old.").unwrap().after(&thread).unwrap();
        let expected = [
            Message::summary(Role::User, Summary::new("Old.")),
            Message::user("And now?"),
            thread[3].clone().rewritten(),
            thread[4].clone(),
            thread[5].clone().rewritten(),
            thread[6].clone(),
        ];
        assert_eq!(after, expected);
        let removed = Plan::summarise(&thread, 0..2, " ").unwrap().after(&thread).unwrap();
        assert_eq!(removed[..], expected[1..]);
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "it must be refused")]
    fn a_range_that_cannot_be_removed_is_refused() {
        let thread = thread();
        let refused = |range| Plan::summarise(&thread, range, "Old.").unwrap_err();
        assert!(matches!(refused(0..4), CompactError::SplitsToolPair { .. }));
        assert!(matches!(refused(2..2), CompactError::Empty { .. }));
        assert!(matches!(refused(2..1), CompactError::Inverted { .. }));
        let text = "replacement 0 names block 0 of message 9, which is not there: the thread has 7 messages";
        assert_eq!(refused(5..9).to_string(), text);
        assert!(matches!(refused(usize::MAX - 1..usize::MAX), CompactError::OutOfRange { .. }));
    }
}
