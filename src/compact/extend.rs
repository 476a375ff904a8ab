//! A plan that was prepared while the thread went on.

use super::{
    blocks::Blocks,
    insert::Insert,
    plan::{Plan, Splice},
};
use crate::message::Message;

impl Plan {
    /// Returns the plan for the thread that it was made for with more messages behind it: what came
    /// since stays. Reasoning in it was signed for a thread that the plan rewrites, so the messages
    /// that hold some are marked ([`prefix_rewritten`]). A plan that changes nothing marks nothing.
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
    ///
    /// [`prefix_rewritten`]: field@crate::message::Message::prefix_rewritten
    pub fn extended(&self, messages: &[Message]) -> Self {
        let since = messages.iter().enumerate().skip(self.messages_before());
        let signed = since.filter(|(_, message)| !self.is_empty() && message.is_signed());
        let marked = signed.map(|(index, message)| {
            let blocks = Blocks::first_of(message.content.len());
            let part = Insert::Part { message: index, blocks };
            Splice { at: index..index + 1, insert: part.into() }
        });
        let splices = self.splices().iter().cloned().chain(marked).collect();
        let before = messages.len().max(self.messages_before());
        Self::from_splices(before, splices).with_stripped(self.blocks_stripped())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compact::Inserts,
        message::{ContentBlock, Role, Thinking},
    };

    fn thoughtful(text: &str) -> Message {
        let thought = Thinking::new("hm", Some("sig".into()));
        Message::new(Role::Assistant, vec![thought.into(), ContentBlock::text(text)])
    }

    #[test]
    fn what_came_since_stays_and_its_reasoning_is_marked() {
        let plan = Plan::from_splices(2, vec![Splice { at: 0..2, insert: Inserts::default() }]);
        let mut thread = vec![Message::user("a"), Message::assistant("b")];
        thread.extend([Message::user("c"), thoughtful("d"), Message::assistant("e")]);
        let marked = thoughtful("d").rewritten();
        thread.push(marked.clone());
        let extended = plan.extended(&thread);
        extended.apply(&mut thread).unwrap();
        let after = [Message::user("c"), marked.clone(), Message::assistant("e"), marked];
        assert_eq!(thread, after);
        // What needs no mark is not touched.
        assert_eq!(
            extended.splices().iter().map(|it| it.at.clone()).collect::<Vec<_>>(),
            [0..2, 3..4]
        );
    }

    #[test]
    fn a_plan_that_changes_nothing_marks_nothing() {
        let thread = vec![Message::user("c"), thoughtful("d")];
        let plan = Plan::from_splices(0, Vec::new()).extended(&thread);
        assert!(plan.is_empty());
        assert_eq!(plan.apply(&mut thread.clone()), Ok(Default::default()));
    }
}
