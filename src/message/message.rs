//! A message: a cheap handle on its parts.

use std::{fmt, ops::Deref, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    content::{ContentBlock, Summary, ToolResult},
    extra::Extra,
    text::Text,
    tool::ToolUse,
    usage::Usage,
};

/// One message of a thread: cheap to clone, read like a struct.
///
/// The handle is one reference count and one mark. [`make_mut`](Self::make_mut) copies the parts on
/// write; the texts in the blocks are shared either way.
///
/// ```
/// use threadfold::{Message, Role};
///
/// let message = Message::user("read a.txt");
/// let copy = message.clone();
/// assert_eq!(copy.role, Role::User);
/// assert!(copy.ptr_eq(&message));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    parts: Arc<MessageParts>,
    /// Whether something before this message was rewritten after the model wrote it, while its
    /// reasoning was kept. A provider that binds reasoning to its prefix refuses it then, so the
    /// codec of that provider leaves the reasoning out.
    ///
    /// It belongs to the place where the message stands and not to what it says, so it is a mark of
    /// the handle: an edit marks everything behind it, and all of that stays shared.
    pub prefix_rewritten: bool,
}

/// What a message holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageParts {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub content: Vec<ContentBlock>,
    /// Why the model stopped; only on its own messages.
    pub stop_reason: Option<StopReason>,
    /// What the call cost; only on the model's own messages.
    pub usage: Option<Usage>,
    /// Who answered. Signed reasoning and opaque items are valid only there.
    pub origin: Option<Origin>,
    /// Unknown wire fields.
    pub extra: Extra,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The host's standing instructions.
    System,
    /// The person, or the host on their behalf: tool results are theirs.
    User,
    /// The model.
    Assistant,
}

/// Why a model stopped.
///
/// In serde it is a string, and a string that nobody knows is [`Other`](Self::Other).
///
/// ```
/// use threadfold::message::StopReason;
///
/// assert_eq!(StopReason::from("end_turn"), StopReason::EndTurn);
/// assert_eq!(StopReason::from("tired").as_str(), "tired");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum StopReason {
    /// It said what it had to say.
    EndTurn,
    /// It waits for the results of its calls.
    ToolUse,
    /// It reached the output limit.
    MaxTokens,
    /// It wrote a stop sequence.
    StopSequence,
    /// The provider paused it; sent back unchanged, it goes on.
    PauseTurn,
    /// It declined.
    Refusal,
    /// The context window is full.
    ContextWindowExceeded,
    /// Somebody stopped it.
    Aborted,
    /// Something else, in the provider's words.
    Other(Text),
}

/// Who gave an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Origin {
    /// The provider, by the name of its codec, such as `anthropic-messages`.
    pub provider: Text,
    /// The model, where the provider said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
}

impl Message {
    /// Returns a message of these blocks.
    ///
    /// ```
    /// use threadfold::{ContentBlock, Message, Role};
    ///
    /// let message = Message::new(Role::User, vec![ContentBlock::text("hi")]);
    /// assert_eq!(message, Message::user("hi"));
    /// ```
    #[must_use]
    pub fn new(role: Role, content: Vec<ContentBlock>) -> Self {
        Self::from(MessageParts::new(role, content))
    }

    /// Returns a user message of one text.
    ///
    /// ```
    /// use threadfold::{Message, Role};
    ///
    /// let message = Message::user("Where is the parser?");
    /// assert_eq!(message.role, Role::User);
    /// assert!(message.is_typed());
    /// ```
    #[must_use]
    pub fn user(text: impl Into<Text>) -> Self {
        Self::new(Role::User, vec![ContentBlock::text(text)])
    }

    /// Returns an assistant message of one text.
    ///
    /// ```
    /// use threadfold::{ContentBlock, Message, Role};
    ///
    /// let message = Message::assistant("In src/parse.rs.");
    /// assert_eq!(message, Message::new(Role::Assistant, vec![ContentBlock::text("In src/parse.rs.")]));
    /// ```
    #[must_use]
    pub fn assistant(text: impl Into<Text>) -> Self {
        Self::new(Role::Assistant, vec![ContentBlock::text(text)])
    }

    /// Returns a system message of one text.
    ///
    /// ```
    /// use threadfold::{Message, Role};
    ///
    /// let message = Message::system("Be brief.");
    /// assert!(message.role == Role::System && !message.is_typed());
    /// ```
    #[must_use]
    pub fn system(text: impl Into<Text>) -> Self {
        Self::new(Role::System, vec![ContentBlock::text(text)])
    }

    /// Returns a message that holds one summary.
    ///
    /// ```
    /// use threadfold::{Message, Role, message::Summary};
    ///
    /// let message = Message::summary(Role::User, Summary::new("They talked."));
    /// assert!(message.is_summary() && !message.is_typed());
    /// ```
    #[must_use]
    pub fn summary(role: Role, summary: Summary) -> Self {
        Self::new(role, vec![ContentBlock::Summary(summary)])
    }

    /// The parts, to be changed. Copied first if another handle holds them.
    ///
    /// ```
    /// use threadfold::Message;
    ///
    /// let said = Message::user("hi");
    /// let mut marked = said.clone();
    /// assert!(marked.ptr_eq(&said));
    /// marked.make_mut().content.clear();
    /// assert!(!marked.ptr_eq(&said) && said.content.len() == 1);
    /// ```
    pub fn make_mut(&mut self) -> &mut MessageParts {
        Arc::make_mut(&mut self.parts)
    }

    /// Returns the message with other blocks, and everything else as it is.
    ///
    /// ```
    /// use threadfold::{ContentBlock, Message};
    ///
    /// let said = Message::user("hi").with_content(vec![ContentBlock::text("hello")]);
    /// assert_eq!(said, Message::user("hello"));
    /// ```
    #[must_use]
    pub fn with_content(&self, content: Vec<ContentBlock>) -> Self {
        // Not by a copy that is changed then: it would hold the blocks that go.
        let parts = MessageParts {
            role: self.role,
            content,
            stop_reason: self.stop_reason.clone(),
            usage: self.usage,
            origin: self.origin.clone(),
            extra: self.extra.clone(),
        };
        Self { parts: Arc::new(parts), prefix_rewritten: self.prefix_rewritten }
    }

    /// Returns the message marked [`prefix_rewritten`](field@Self::prefix_rewritten). Its parts stay
    /// shared.
    ///
    /// ```
    /// use threadfold::Message;
    ///
    /// let said = Message::assistant("hi");
    /// let marked = said.clone().rewritten();
    /// assert!(marked.prefix_rewritten && !said.prefix_rewritten);
    /// assert!(std::ptr::eq(&*marked, &*said));
    /// ```
    #[must_use]
    pub fn rewritten(self) -> Self {
        Self { prefix_rewritten: true, ..self }
    }

    /// Whether both handles share their parts and bear the same mark.
    ///
    /// ```
    /// use threadfold::Message;
    ///
    /// let message = Message::user("hi");
    /// assert!(message.ptr_eq(&message.clone()));
    /// let same = Message::user("hi");
    /// assert!(message == same && !message.ptr_eq(&same));
    /// ```
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.parts, &other.parts) && self.prefix_rewritten == other.prefix_rewritten
    }

    /// How many handles share the parts.
    pub(super) fn references(&self) -> usize {
        Arc::strong_count(&self.parts)
    }

    /// The calls that the host answers, in order.
    ///
    /// ```
    /// use threadfold::{Message, Role, message::ToolUse};
    ///
    /// let call = ToolUse::new("call_1", "read", serde_json::json!({"path": "a.rs"}));
    /// let message = Message::new(Role::Assistant, vec![call.clone().into()]);
    /// assert_eq!(message.tool_uses().collect::<Vec<_>>(), [&call]);
    /// ```
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.content.iter().filter_map(|block| {
            if let ContentBlock::ToolUse(call) = block { Some(call) } else { None }
        })
    }

    /// The results, in order.
    ///
    /// ```
    /// use threadfold::{Message, Role, message::ToolResult};
    ///
    /// let results = ["one", "two"].map(|text| ToolResult::text("call_1", text).into());
    /// let message = Message::new(Role::User, results.into());
    /// assert!(message.tool_results().all(|result| result.tool_use_id == *"call_1"));
    /// assert_eq!(message.tool_results().count(), 2);
    /// ```
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.content.iter().filter_map(|block| {
            if let ContentBlock::ToolResult(result) = block { Some(result) } else { None }
        })
    }

    /// The indices of the blocks that a person gave: text, pictures and documents of a user
    /// message. Empty for messages of tool results, reminders and checkpoints only, and for those
    /// that carry a summary: whatever stands beside it was put there by a compaction.
    ///
    /// ```
    /// use threadfold::{ContentBlock, Message, message::ToolResult};
    ///
    /// let mut message = Message::user("And now?");
    /// message.make_mut().content.insert(0, ToolResult::text("call_1", "done").into());
    /// assert_eq!(message.typed_blocks().collect::<Vec<_>>(), [1]);
    /// ```
    pub fn typed_blocks(&self) -> impl Iterator<Item = usize> {
        let typed = |block: &ContentBlock| {
            matches!(
                block,
                ContentBlock::Text(_) | ContentBlock::Image(_) | ContentBlock::Document(_)
            )
        };
        let machine = self.role != Role::User || self.is_summary();
        let blocks = if machine { &[] } else { self.content.as_slice() };
        blocks.iter().enumerate().filter(move |(_, block)| typed(block)).map(|(index, _)| index)
    }

    /// Whether it stands for a part of the thread that was compacted.
    #[must_use]
    pub fn is_summary(&self) -> bool {
        self.content.iter().any(|block| matches!(block, ContentBlock::Summary(_)))
    }

    /// Whether a person typed something in it.
    ///
    /// ```
    /// use threadfold::{Message, Role, message::ToolResult};
    ///
    /// assert!(Message::user("And now?").is_typed());
    /// let results = vec![ToolResult::text("call_1", "done").into()];
    /// assert!(!Message::new(Role::User, results).is_typed(), "a tool wrote that");
    /// ```
    #[must_use]
    pub fn is_typed(&self) -> bool {
        self.typed_blocks().next().is_some()
    }
}

impl MessageParts {
    /// Returns the parts of a message of these blocks.
    #[must_use]
    pub fn new(role: Role, content: Vec<ContentBlock>) -> Self {
        Self {
            role,
            content,
            stop_reason: None,
            usage: None,
            origin: None,
            extra: Extra::default(),
        }
    }
}

impl Origin {
    /// Returns the origin of an answer.
    #[must_use]
    pub fn new(provider: impl Into<Text>, model: Option<Text>) -> Self {
        Self { provider: provider.into(), model }
    }
}

impl Deref for Message {
    type Target = MessageParts;

    fn deref(&self) -> &MessageParts {
        &self.parts
    }
}

impl From<MessageParts> for Message {
    fn from(parts: MessageParts) -> Self {
        Self { parts: Arc::new(parts), prefix_rewritten: false }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("parts", &self.parts)
            .field("prefix_rewritten", &self.prefix_rewritten)
            .finish()
    }
}

impl Role {
    /// The name of the role: `system`, `user` or `assistant`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl StopReason {
    /// The reason as a word of snake case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::StopSequence => "stop_sequence",
            Self::PauseTurn => "pause_turn",
            Self::Refusal => "refusal",
            Self::ContextWindowExceeded => "model_context_window_exceeded",
            Self::Aborted => "aborted",
            Self::Other(reason) => reason,
        }
    }
}

impl From<&str> for StopReason {
    fn from(reason: &str) -> Self {
        match reason {
            "end_turn" => Self::EndTurn,
            "tool_use" => Self::ToolUse,
            "max_tokens" => Self::MaxTokens,
            "stop_sequence" => Self::StopSequence,
            "pause_turn" => Self::PauseTurn,
            "refusal" => Self::Refusal,
            "model_context_window_exceeded" => Self::ContextWindowExceeded,
            "aborted" => Self::Aborted,
            other => Self::Other(other.into()),
        }
    }
}

impl From<String> for StopReason {
    fn from(reason: String) -> Self {
        Self::from(reason.as_str())
    }
}

impl From<StopReason> for String {
    fn from(reason: StopReason) -> Self {
        reason.as_str().to_owned()
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_leaves_other_handles_alone_and_shares_their_text() {
        let original = Message::user("hello");
        let mut changed = original.clone();
        changed.make_mut().role = Role::Assistant;
        assert_eq!(original.role, Role::User);
        let text = |message: &Message| message.content[0].as_text().unwrap().clone();
        assert!(text(&changed).ptr_eq(&text(&original)));
    }
}
