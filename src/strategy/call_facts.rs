//! What a snapshot knows besides the blocks of its thread: the subjects of tool calls, the numbers
//! under which messages can be recalled, and, if the log in memory is not whole, the rules and
//! facts of the whole conversation.

use std::sync::Arc;

use super::snapshot::{Snapshot, Subjects};
use crate::{
    ledger::Ledger,
    log::{EventLog, Thread},
    message::{
        CompactionId, ContentBlock, Redactor, Text, ToolSpec, ToolUse, redact::redacted_text,
    },
    recall::tool::RECALL,
    retention::Facts,
};

impl Snapshot {
    /// Returns a snapshot of a thread, with the times of its messages and their numbers from the
    /// log.
    pub(crate) fn logged(thread: &Thread, log: &EventLog) -> Self {
        let mut snapshot = Self::of(thread);
        let times: Vec<_> = log.times().collect();
        snapshot.compacted_by = log.compacted_by().cloned();
        snapshot.thread = Some(log.thread_id().clone());
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

    /// How the model reads a message again after its removal, such as `call recall with {"message":4}`;
    /// `None` if it cannot.
    pub(super) fn recall_of(&self, message: usize) -> Option<String> {
        let number = self.numbers.get(message).copied().flatten()?;
        let RecallTool { name, thread } = self.recall_tool()?;
        let input = match thread {
            Some(thread) => format!("{{\"thread\":\"{thread}\",\"message\":{number}}}"),
            None => format!("{{\"message\":{number}}}"),
        };
        Some(format!("call {name} with {input}"))
    }

    /// How the model reads what was removed; `None` if it cannot.
    pub(super) fn recall_tool(&self) -> Option<RecallTool<'_>> {
        if !self.numbers.iter().any(Option::is_some) {
            return None;
        }
        let own = self.tools().iter().find(|tool| tool.name == *RECALL);
        if own.is_some() {
            return Some(RecallTool { name: RECALL, thread: None });
        }
        let name = self.tools().iter().find(|tool| is_served(tool))?.name.as_str();
        Some(RecallTool { name, thread: Some(self.thread.as_ref()?.short()) })
    }
}

/// The tool of the model that reads removed messages.
pub(super) struct RecallTool<'a> {
    pub(super) name: &'a str,
    /// The thread that a call has to name.
    pub(super) thread: Option<&'a str>,
}

/// Whether this is the tool of `threadfold mcp`. Agents put the name of the server before that of the
/// tool, as in `mcp__threadfold__recall`.
fn is_served(tool: &ToolSpec) -> bool {
    const MOST: usize = 64;
    let before = tool.name.strip_suffix(RECALL).filter(|_| tool.name.len() <= MOST);
    if !before.is_some_and(|before| before.ends_with(['_', '-', '.', '/'])) {
        return false;
    }
    let schema = tool.input_schema.to_value().unwrap_or_default();
    let fields = schema.get("properties");
    ["thread", "message", "call"]
        .iter()
        .all(|field| fields.is_some_and(|it| it.get(field).is_some()))
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
    fn the_tool_of_a_server_is_named_as_the_agent_names_it_and_with_the_thread() {
        let tool = |name: &str, fields: &[&str]| {
            let fields = fields.iter().map(|field| ((*field).to_owned(), serde_json::json!({})));
            let properties: serde_json::Map<_, _> = fields.collect();
            ToolSpec::new(name, "", serde_json::json!({"properties": properties}))
        };
        let read_by = |tools: Vec<ToolSpec>| {
            let numbers: Vec<Option<u64>> = vec![None, Some(4)];
            let mut snapshot = Snapshot::new(vec![Message::user("One."), Message::user("Two.")])
                .with_context(Arc::default(), Arc::new(tools))
                .with_numbers(numbers.into());
            snapshot.thread = "thread-0123456789abcdef0123456789abcdef".parse().ok();
            snapshot.recall_of(1)
        };
        let all = ["thread", "message", "call"];
        let served =
            "call mcp__threadfold__recall with {\"thread\":\"thread-01234567\",\"message\":4}";
        assert_eq!(read_by(vec![tool("mcp__threadfold__recall", &all)]).as_deref(), Some(served));
        let own = Some("call recall with {\"message\":4}");
        assert_eq!(read_by(vec![tool("x_recall", &all), tool("recall", &[])]).as_deref(), own);
        for other in [tool("total_recall", &["query"]), tool("xrecall", &all)] {
            assert_eq!(read_by(vec![other]), None);
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
