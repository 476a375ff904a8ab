//! The parts of a message: its blocks, role, stop reason and origin.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{author::Author, content::ContentBlock, extra::Extra, text::Text, usage::Usage};

/// The parts of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageParts {
    /// Who the message is from.
    pub role: Role,
    /// The person who typed it, if the host names one; only on messages of the user.
    pub author: Option<Author>,
    /// The blocks, in order.
    pub content: Vec<ContentBlock>,
    /// Why the model stopped; only on messages of the model.
    pub stop_reason: Option<StopReason>,
    /// The tokens of the call; only on messages of the model.
    pub usage: Option<Usage>,
    /// The model that answered. Its signed reasoning and opaque blocks are valid only there.
    pub origin: Option<Origin>,
    /// `true` if no person typed the message although its role is [`User`](Role::User): a page, a
    /// mail, or the output of a tool that answers in user messages. Nothing in it counts as the
    /// user's words.
    pub untyped: bool,
    /// Unknown wire fields.
    pub extra: Extra,
}

/// Who a message is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The host, with its standing instructions.
    System,
    /// The person, or the host on their behalf. Tool results have this role too.
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
    /// The model completed its answer.
    EndTurn,
    /// The model waits for the results of its tool calls.
    ToolUse,
    /// The answer reached the output limit.
    MaxTokens,
    /// The model wrote a stop sequence.
    StopSequence,
    /// The provider paused the answer; the model continues when the message is sent back unchanged.
    PauseTurn,
    /// The model declined.
    Refusal,
    /// The context window is full.
    ContextWindowExceeded,
    /// The host or the user stopped the answer.
    Aborted,
    /// Any other reason, as the provider spells it.
    Other(Text),
}

/// The provider and model of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Origin {
    /// The provider, by the name of its codec, such as `anthropic-messages`.
    pub provider: Text,
    /// The model, if the provider reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
}

impl MessageParts {
    /// Returns the parts of a message with these blocks.
    #[must_use]
    pub fn new(role: Role, content: Vec<ContentBlock>) -> Self {
        Self {
            role,
            author: None,
            content,
            stop_reason: None,
            usage: None,
            origin: None,
            untyped: false,
            extra: Extra::default(),
        }
    }

    pub(super) fn typed_blocks(&self) -> impl Iterator<Item = usize> {
        let may_be_typed = self.role == Role::User && !self.untyped;
        let blocks = if may_be_typed { self.content.as_slice() } else { &[] };
        blocks.iter().enumerate().filter(|(_, block)| is_typed(block)).map(|(index, _)| index)
    }

    pub(super) fn is_summary(&self) -> bool {
        self.content.iter().any(|block| matches!(block, ContentBlock::Summary(_)))
    }

    pub(super) fn holds_compaction(&self) -> bool {
        let compacts =
            |block: &ContentBlock| matches!(block, ContentBlock::Opaque(it) if it.is_compaction());
        self.content.iter().any(compacts)
    }
}

/// `true` if a person can provide blocks of this kind. Nobody typed a blank text.
fn is_typed(block: &ContentBlock) -> bool {
    let says = |text: &str| text.contains(|c: char| !c.is_whitespace());
    matches!(block, ContentBlock::Text(block) if says(&block.text))
        || matches!(block, ContentBlock::Image(_) | ContentBlock::Document(_))
}

impl Origin {
    /// Returns an origin.
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

    /// `true` if a message of this role may contain this block.
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
    /// The reason in snake case, or as the provider spells it.
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
