//! What a message is made of.
//!
//! Every kind is a variant with a struct of its own, so that fields can be added. What a provider
//! sends and nobody here knows is an [`Opaque`] block, which goes back to that provider as it came.

use serde::{Deserialize, Deserializer, Serialize, de};

use super::{
    batch::Batch,
    checkpoint::CheckpointId,
    compaction::CompactionId,
    extra::Extra,
    invalid::InvalidValue,
    json::Json,
    media::{Document, Image},
    nesting::MAX_NESTING,
    text::Text,
    tool::{ServerToolResult, ServerToolUse, ToolUse},
    usage::Usage,
};

/// One piece of a message.
///
/// In serde it is an object whose `type` is the variant in snake case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text that somebody wrote.
    Text(TextBlock),
    /// A picture.
    Image(Image),
    /// A document.
    Document(Document),
    /// What the model thought, signed by its provider.
    Thinking(Thinking),
    /// What the model thought, encrypted by its provider.
    RedactedThinking(RedactedThinking),
    /// A call that the host answers.
    ToolUse(ToolUse),
    /// The answer to a call.
    ToolResult(ToolResult),
    /// A call that the provider answers itself.
    ServerToolUse(ServerToolUse),
    /// The provider's answer to its own call.
    ServerToolResult(ServerToolResult),
    /// A hint of the host to the model, stripped when the thread is compacted.
    SystemReminder(SystemReminder),
    /// News about files that the thread knows.
    ContextUpdate(ContextUpdate),
    /// A named place in the thread.
    Checkpoint(Checkpoint),
    /// What stands for a part of the thread that was compacted.
    Summary(Summary),
    /// Something of a provider that only its own codec understands.
    Opaque(Opaque),
}

/// Text that somebody wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextBlock {
    /// The text.
    pub text: Text,
    /// Unknown wire fields, such as citations and cache marks.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// What the model thought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinking {
    /// The thought; empty where a provider shows only the signature.
    pub text: Text,
    /// By what the provider recognises its own words. Opaque: never changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Text>,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// What the model thought, encrypted by its provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedactedThinking {
    /// The encrypted thought. Opaque: never changed.
    pub data: Text,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// What the host answers to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call that it answers.
    pub tool_use_id: Text,
    /// What the tool gave: texts, pictures, documents. Results that stand in each other deeper than
    /// [`MAX_NESTING`](super::MAX_NESTING) are refused by whatever makes, reads or logs one.
    #[serde(default, deserialize_with = "nested")]
    pub content: Vec<ContentBlock>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Tokens that the tool itself spent, for tools that ask models. Few do, and every block of a
    /// thread would be as large as one that says so; so it is boxed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// A hint of the host to the model. On the wire: text in `<system-reminder>` tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemReminder {
    /// The hint, without its tags.
    pub text: Text,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// News about files that the thread knows. On the wire: text in `<context-update>` tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextUpdate {
    /// The files.
    pub paths: Vec<Text>,
    /// What changed.
    pub text: Text,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// A named place in the thread. On the wire: the text `<checkpoint:a1b2c3>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Its name.
    pub id: CheckpointId,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// What stands for a part of the thread that was compacted.
///
/// On the wire the summary of an assistant message is plain text, and that of a user message is
/// text in `<conversation-summary>` tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The compaction that wrote it, where a log numbers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<CompactionId>,
    /// The summary.
    pub text: Text,
    /// The batches of which the text is a view, in order, where it is one. They never travel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<Batch>,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// Something that only the codec that read it understands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Opaque {
    /// The codec that read it, such as `anthropic-messages`.
    pub codec: Text,
    /// The whole block, as it came.
    pub value: Json,
}

impl ContentBlock {
    /// Returns a text block.
    ///
    /// ```
    /// use threadfold::{ContentBlock, Message};
    ///
    /// let mut message = Message::user("Look at this:");
    /// message.make_mut().content.push(ContentBlock::text("fn main() {}"));
    /// assert!(message.content.iter().all(|block| block.kind() == "text"));
    /// ```
    #[must_use]
    pub fn text(text: impl Into<Text>) -> Self {
        Self::Text(TextBlock::new(text))
    }

    /// Returns a checkpoint marker.
    ///
    /// ```
    /// use threadfold::ContentBlock;
    ///
    /// let block = ContentBlock::checkpoint("a1b2c3".parse()?);
    /// assert!(matches!(block, ContentBlock::Checkpoint(marker) if marker.id.as_str() == "a1b2c3"));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn checkpoint(id: CheckpointId) -> Self {
        Self::Checkpoint(Checkpoint::new(id))
    }

    /// Whether it is reasoning of the model, readable or encrypted.
    ///
    /// ```
    /// use threadfold::{ContentBlock, message::{RedactedThinking, Thinking}};
    ///
    /// assert!(ContentBlock::from(Thinking::new("Hm.", None)).is_reasoning());
    /// assert!(ContentBlock::from(RedactedThinking::new("c2VjcmV0")).is_reasoning());
    /// assert!(!ContentBlock::text("Hm.").is_reasoning());
    /// ```
    #[must_use]
    pub fn is_reasoning(&self) -> bool {
        matches!(self, Self::Thinking(_) | Self::RedactedThinking(_))
    }

    /// Whether it is text of nothing but white space.
    #[doc(hidden)]
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Text(block) => block.text.is_blank(),
            Self::Summary(block) => block.text.is_blank(),
            Self::SystemReminder(block) => block.text.is_blank(),
            Self::Image(_)
            | Self::Document(_)
            | Self::Thinking(_)
            | Self::RedactedThinking(_)
            | Self::ToolUse(_)
            | Self::ToolResult(_)
            | Self::ServerToolUse(_)
            | Self::ServerToolResult(_)
            | Self::ContextUpdate(_)
            | Self::Checkpoint(_)
            | Self::Opaque(_) => false,
        }
    }

    /// The text, if it is a plain text block.
    ///
    /// ```
    /// use threadfold::{ContentBlock, message::SystemReminder};
    ///
    /// assert_eq!(ContentBlock::text("hi").as_text().map(|text| text.as_str()), Some("hi"));
    /// assert_eq!(ContentBlock::SystemReminder(SystemReminder::new("Be brief.")).as_text(), None);
    /// ```
    #[must_use]
    pub fn as_text(&self) -> Option<&Text> {
        if let Self::Text(block) = self { Some(&block.text) } else { None }
    }

    /// The name of the kind, as serde writes it: `text`, `tool_use`, ...
    ///
    /// ```
    /// use threadfold::ContentBlock;
    ///
    /// assert_eq!(ContentBlock::text("hi").kind(), "text");
    /// ```
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Image(_) => "image",
            Self::Document(_) => "document",
            Self::Thinking(_) => "thinking",
            Self::RedactedThinking(_) => "redacted_thinking",
            Self::ToolUse(_) => "tool_use",
            Self::ToolResult(_) => "tool_result",
            Self::ServerToolUse(_) => "server_tool_use",
            Self::ServerToolResult(_) => "server_tool_result",
            Self::SystemReminder(_) => "system_reminder",
            Self::ContextUpdate(_) => "context_update",
            Self::Checkpoint(_) => "checkpoint",
            Self::Summary(_) => "summary",
            Self::Opaque(_) => "opaque",
        }
    }
}

macro_rules! text_blocks {
    ($($block:ident),+) => {$(
        impl $block {
            /// Returns the block without extra fields.
            #[must_use]
            pub fn new(text: impl Into<Text>) -> Self {
                Self { text: text.into(), extra: Extra::default() }
            }
        }
    )+};
}

text_blocks!(TextBlock, SystemReminder);

impl Thinking {
    /// Returns a thought, signed or not, without extra fields.
    #[must_use]
    pub fn new(text: impl Into<Text>, signature: Option<Text>) -> Self {
        Self { text: text.into(), signature, extra: Extra::default() }
    }
}

impl RedactedThinking {
    /// Returns an encrypted thought without extra fields.
    #[must_use]
    pub fn new(data: impl Into<Text>) -> Self {
        Self { data: data.into(), extra: Extra::default() }
    }
}

impl ToolResult {
    /// Returns the result of a call that went well. Content in which results stand in each other too
    /// deep is refused: the result is an [`error`](Self::error) then, which says so.
    ///
    /// ```
    /// use threadfold::{ContentBlock, message::{Image, MediaSource, ToolResult}};
    ///
    /// let url = MediaSource::Url { url: "https://example.org/cat.png".into() };
    /// let content = vec![ContentBlock::text("A cat."), Image::new(url).into()];
    /// assert!(!ToolResult::new("call_1", content).is_error);
    /// ```
    #[must_use]
    pub fn new(tool_use_id: impl Into<Text>, content: Vec<ContentBlock>) -> Self {
        if let Err(error) = check_nested(&content) {
            return Self::error(tool_use_id, error.to_string());
        }
        Self {
            tool_use_id: tool_use_id.into(),
            content,
            is_error: false,
            usage: None,
            extra: Extra::default(),
        }
    }

    /// Returns a result of one text.
    ///
    /// ```
    /// use threadfold::{ContentBlock, message::ToolResult};
    ///
    /// let result = ToolResult::text("call_1", "fn main() {}");
    /// assert_eq!(result.content, [ContentBlock::text("fn main() {}")]);
    /// ```
    #[must_use]
    pub fn text(tool_use_id: impl Into<Text>, text: impl Into<Text>) -> Self {
        Self::new(tool_use_id, vec![ContentBlock::text(text)])
    }

    /// Returns the result of a call that failed, with the reason as its text.
    ///
    /// ```
    /// use threadfold::message::ToolResult;
    ///
    /// assert!(ToolResult::error("call_1", "no such file").is_error);
    /// ```
    #[must_use]
    pub fn error(tool_use_id: impl Into<Text>, reason: impl Into<Text>) -> Self {
        Self { is_error: true, ..Self::text(tool_use_id, reason) }
    }
}

impl ContextUpdate {
    /// Returns news about these files, without extra fields.
    #[must_use]
    pub fn new(paths: Vec<Text>, text: impl Into<Text>) -> Self {
        Self { paths, text: text.into(), extra: Extra::default() }
    }
}

impl Checkpoint {
    /// Returns a marker without extra fields.
    #[must_use]
    pub fn new(id: CheckpointId) -> Self {
        Self { id, extra: Extra::default() }
    }
}

impl Summary {
    /// Returns a summary that no log has numbered.
    #[must_use]
    pub fn new(text: impl Into<Text>) -> Self {
        Self { compaction: None, text: text.into(), batches: Vec::new(), extra: Extra::default() }
    }
}

impl Opaque {
    /// Returns a block that only this codec understands.
    #[must_use]
    pub fn new(codec: impl Into<Text>, value: impl Into<Json>) -> Self {
        Self { codec: codec.into(), value: value.into() }
    }
}

macro_rules! from_blocks {
    ($($variant:ident($block:ident)),+) => {$(
        impl From<$block> for ContentBlock {
            fn from(block: $block) -> Self {
                Self::$variant(block)
            }
        }
    )+};
}

from_blocks!(
    Text(TextBlock),
    Image(Image),
    Document(Document),
    Thinking(Thinking),
    RedactedThinking(RedactedThinking),
    ToolUse(ToolUse),
    ToolResult(ToolResult),
    ServerToolUse(ServerToolUse),
    ServerToolResult(ServerToolResult),
    SystemReminder(SystemReminder),
    ContextUpdate(ContextUpdate),
    Checkpoint(Checkpoint),
    Summary(Summary),
    Opaque(Opaque)
);

/// Reads the content of a result.
fn nested<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ContentBlock>, D::Error> {
    let content = Vec::deserialize(deserializer)?;
    check_nested(&content).map_err(de::Error::custom)?;
    Ok(content)
}

/// Checks that no more than [`MAX_NESTING`] results stand in each other in these blocks.
///
/// ```
/// use threadfold::{ContentBlock, message::{MAX_NESTING, ToolResult, check_nesting}};
///
/// let mut block = ContentBlock::text("done");
/// for _ in 0..MAX_NESTING {
///     block = ToolResult::new("call_1", vec![block]).into();
/// }
/// assert!(check_nesting(&[block.clone()]).is_ok());
///
/// // One more is refused, as an error that the model reads.
/// let refused = ToolResult::new("call_1", vec![block]);
/// assert!(refused.is_error);
/// assert_eq!(refused.content, [ContentBlock::text("more than 32 results stand in each other")]);
/// ```
///
/// # Errors
///
/// [`InvalidValue`] if there are more.
pub fn check_nesting(content: &[ContentBlock]) -> Result<(), InvalidValue> {
    check(content, MAX_NESTING)
}

/// As [`check_nesting`], for the content of a result. It goes down no further than is allowed.
fn too_deep() -> InvalidValue {
    let rule = format!("results stand in each other {MAX_NESTING} deep at most");
    InvalidValue::new("a tool result that can be kept", rule, "content")
}

fn check_nested(content: &[ContentBlock]) -> Result<(), InvalidValue> {
    check(content, MAX_NESTING - 1)
}

fn check(content: &[ContentBlock], most: usize) -> Result<(), InvalidValue> {
    for block in content {
        if let ContentBlock::ToolResult(result) = block {
            check(&result.content, most.checked_sub(1).ok_or_else(too_deep)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_comes_back_from_serde_in_either_key_order() {
        let blocks = [
            ContentBlock::text("hi"),
            Thinking::new("hm", Some("sig".into())).into(),
            RedactedThinking::new("xx").into(),
            ToolUse::new("t1", "read", Json::parse(r#"{"z":1.0,"a":2}"#).unwrap()).into(),
            ToolResult::error("t1", "gone").into(),
            ServerToolUse::new("s1", "web_search", Json::default()).into(),
            ServerToolResult::new("s1", "web_search_tool_result", Json::default()).into(),
            SystemReminder::new("be brief").into(),
            ContextUpdate::new(vec!["a.rs".into()], "changed").into(),
            ContentBlock::checkpoint("aaaaaa".parse().unwrap()),
            Summary::new("before").into(),
            Opaque::new("x", Json::default()).into(),
        ];
        for block in blocks {
            let text = serde_json::to_string(&block).unwrap();
            assert!(text.starts_with(&format!("{{\"type\":\"{}\"", block.kind())), "{text}");
            assert_eq!(serde_json::from_str::<ContentBlock>(&text).unwrap(), block);
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            let reread = serde_json::from_value::<ContentBlock>(value).unwrap();
            assert_eq!(reread.kind(), block.kind());
        }
    }

    #[test]
    fn an_unknown_kind_is_named() {
        let error = serde_json::from_str::<ContentBlock>(r#"{"type":"hologram"}"#).unwrap_err();
        assert!(error.to_string().starts_with("there is no content block \"hologram\""), "{error}");
    }

    /// Blocks lie in vectors, so each takes the room of the largest kind.
    #[test]
    fn no_kind_is_much_larger_than_the_others() {
        assert!(size_of::<ContentBlock>() <= 80, "{}", size_of::<ContentBlock>());
    }
}
