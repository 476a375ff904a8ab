//! What a message holds, and the words in it: who speaks, why the model stopped, who answered.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{content::ContentBlock, extra::Extra, text::Text, usage::Usage};

/// What a message holds.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Whether no person typed it, though the user says it: the output of a tool for agents that are
    /// answered so, a page, a mail. Nothing in it counts as the user's words.
    pub untyped: bool,
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
/// In serde it is a string; an unknown string is [`Other`](Self::Other).
///
/// ```
/// use threadfold::message::StopReason;
///
/// assert_eq!(StopReason::from("end_turn"), StopReason::EndTurn);
/// assert_eq!(StopReason::from("tired").as_str(), "tired");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
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
            untyped: false,
            extra: Extra::default(),
        }
    }

    pub(super) fn typed_blocks(&self) -> impl Iterator<Item = usize> {
        let machine = self.role != Role::User || self.untyped || self.is_summary();
        let blocks = if machine { &[] } else { self.content.as_slice() };
        blocks.iter().enumerate().filter(|(_, block)| is_typed(block)).map(|(index, _)| index)
    }

    pub(super) fn is_summary(&self) -> bool {
        self.content.iter().any(|block| matches!(block, ContentBlock::Summary(_)))
    }
}

/// Whether a person gives blocks of this kind.
fn is_typed(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text(_) | ContentBlock::Image(_) | ContentBlock::Document(_))
}

impl Origin {
    /// Returns the origin of an answer.
    #[must_use]
    pub fn new(provider: impl Into<Text>, model: Option<Text>) -> Self {
        Self { provider: provider.into(), model }
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

    /// Whether the role may send a block of this kind.
    pub(crate) fn may_send(self, block: &ContentBlock) -> bool {
        match block {
            ContentBlock::ToolUse(_)
            | ContentBlock::Thinking(_)
            | ContentBlock::RedactedThinking(_)
            | ContentBlock::ServerToolUse(_)
            | ContentBlock::ServerToolResult(_) => self == Self::Assistant,
            ContentBlock::ToolResult(_) => self == Self::User,
            ContentBlock::Text(_)
            | ContentBlock::Image(_)
            | ContentBlock::Document(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_)
            | ContentBlock::Opaque(_) => true,
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
