//! What a snapshot knows besides the blocks of its thread: the subjects of tool calls, the numbers
//! under which messages can be recalled, and, if the log in memory is not whole, the rules and
//! facts of the whole conversation.

use std::sync::Arc;

use super::snapshot::{Snapshot, Subjects};
use crate::{
    ledger::Ledger,
    log::{EventLog, Thread},
    message::{CompactionId, ContentBlock, Redactor, Text, ToolUse, redact::redacted_text},
    recall::tool::RECALL,
    retention::Facts,
};

impl Snapshot {
    /// Returns a snapshot of a thread, with the times of its messages and their numbers from the
    /// log.
    pub(crate) fn logged(thread: &Thread, log: &EventLog) -> Self {
        let mut snapshot = Self::of(thread);
        if log.check_readable().is_err() {
            return snapshot;
        }
        let times: Vec<_> = log.times().collect();
        snapshot.compacted_by = log.compacted_by().cloned();
        snapshot.with_times(times).with_numbers(log.numbers().collect())
    }

    /// Returns the snapshot with the subject of each tool call, as [`Tool::subject`] returns it. A
    /// newer call with the same subject makes the result of an older one obsolete.
    ///
    /// ```
    /// use threadfold::{Message, Role, strategy::Snapshot};
    /// use threadfold::message::{Json, ToolUse};
    ///
    /// let read = ToolUse::new("t1", "read", Json::parse(r#"{"path":"a.rs","from":7}"#)?);
    /// let thread = vec![Message::new(Role::Assistant, vec![read.into()])];
    /// let snapshot = Snapshot::new(thread).with_subjects(&|call| {
    ///     let input = call.input.json().ok()?.to_value().ok()?;
    ///     Some(input.get("path")?.as_str()?.into())
    /// });
    /// assert_eq!(snapshot.subject(0, 0).map(|subject| subject.as_str()), Some("a.rs"));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// [`Tool::subject`]: crate::model::Tool::subject
    pub fn with_subjects(mut self, subject: &dyn Fn(&ToolUse) -> Option<Text>) -> Self {
        let mut subjects = Subjects::new();
        for (message, content) in self.messages().iter().map(|it| &it.content).enumerate() {
            for (block, content) in content.iter().enumerate() {
                if let ContentBlock::ToolUse(call) = content
                    && let Some(about) = subject(call)
                {
                    subjects.insert((message, block), about);
                }
            }
        }
        self.subjects = Arc::new(subjects);
        self
    }

    /// The subject of the tool call in this block of this message, if it is known.
    #[must_use]
    pub fn subject(&self, message: usize, block: usize) -> Option<&Text> {
        self.subjects.get(&(message, block))
    }

    /// Returns the snapshot with the numbers under which its messages can be recalled.
    pub(crate) fn with_numbers(mut self, numbers: Arc<[Option<u64>]>) -> Self {
        self.numbers = numbers;
        self
    }

    /// Returns the subjects that the redactor does not change. Two different subjects could become
    /// equal, and the result of one call would then wrongly count as obsolete.
    pub(super) fn subjects_kept_by(&self, redactor: &dyn Redactor) -> Arc<Subjects> {
        let kept = self.subjects.iter().filter(|(_, it)| redacted_text(it, redactor) == **it);
        Arc::new(kept.map(|(at, it)| (*at, it.clone())).collect())
    }

    /// The number under which the model can recall a message after its removal; `None` if it
    /// cannot.
    pub(super) fn recall_number(&self, message: usize) -> Option<u64> {
        let can_recall = self.tools().iter().any(|tool| tool.name == *RECALL);
        self.numbers.get(message).copied().flatten().filter(|_| can_recall)
    }
}

/// The rules and facts of the whole conversation, for a log that is not whole; redacted if there is
/// a redactor.
#[derive(Clone, Debug)]
pub(crate) struct ConversationFacts {
    pub(crate) next_compaction: CompactionId,
    pub(crate) rules: Arc<Ledger>,
    pub(crate) facts: Option<Arc<Facts>>,
    /// The strategy of the last compaction, if nothing was added to the thread since.
    pub(crate) compacted_by: Option<Text>,
}

impl ConversationFacts {
    /// Returns the snapshot with these rules and facts.
    pub(crate) fn added_to(&self, snapshot: Snapshot) -> Snapshot {
        // This log holds only the live thread, so its numbers would recall nothing.
        let mut snapshot =
            snapshot.with_rules(Arc::clone(&self.rules)).with_numbers(Arc::default());
        snapshot.compacted_by.clone_from(&self.compacted_by);
        match &self.facts {
            Some(facts) => snapshot.with_facts(Arc::clone(facts)),
            None => snapshot,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::message::{Json, Message, Role};

    #[derive(Debug)]
    struct Keys;

    impl Redactor for Keys {
        fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
            text.replace("sk-1", "[key]").into()
        }
    }

    #[test]
    fn a_subject_that_the_redactor_changes_is_unknown() {
        let call = |id: &str| ToolUse::new(id, "read", Json::parse("{}").unwrap()).into();
        let thread = vec![Message::new(Role::Assistant, vec![call("sk-1"), call("t2")])];
        let snapshot = Snapshot::new(thread).with_subjects(&|call| Some(call.id.clone()));
        let snapshot = snapshot.redacted(&Keys);
        assert_eq!(snapshot.subject(0, 0), None);
        assert_eq!(snapshot.subject(0, 1).map(Text::as_str), Some("t2"));
    }
}
