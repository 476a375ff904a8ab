//! The blocks that a message consists of.
//!
//! Every kind of block is a variant with its own struct, so that fields can be added. A block of a
//! provider that no variant covers is an [`Opaque`] block, which goes back to that provider
//! unchanged.

use std::collections::HashSet;

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

/// One block of a message.
///
/// In serde it is an object whose `type` is the variant in snake case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text.
    Text(TextBlock),
    /// An image.
    Image(Image),
    /// A document.
    Document(Document),
    /// Reasoning of the model, usually signed by its provider.
    Thinking(Thinking),
    /// Reasoning of the model, encrypted by its provider.
    RedactedThinking(RedactedThinking),
    /// A tool call that the host answers.
    ToolUse(ToolUse),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// A tool call that the provider answers itself.
    ServerToolUse(ServerToolUse),
    /// The provider's result of its own tool call.
    ServerToolResult(ServerToolResult),
    /// A hint from the host to the model, without its tags. Compaction strips it. On the wire: text
    /// in `<system-reminder>` tags.
    SystemReminder(TextBlock),
    /// A report that files in the context have changed.
    ContextUpdate(ContextUpdate),
    /// A named position in the thread.
    Checkpoint(Checkpoint),
    /// A summary that replaces a compacted part of the thread.
    Summary(Summary),
    /// A block that only its provider's codec understands.
    Opaque(Opaque),
}

/// Text: of a text block, or of a reminder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextBlock {
    /// The text.
    pub text: Text,
    /// Unknown wire fields, such as citations and cache marks.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// Reasoning of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinking {
    /// The reasoning; empty if the provider returns only the signature.
    pub text: Text,
    /// The provider's proof that its model wrote the text. Opaque; sent back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Text>,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// Reasoning of the model, encrypted by its provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedactedThinking {
    /// The encrypted reasoning. Opaque; sent back unchanged.
    pub data: Text,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the tool call.
    pub tool_use_id: Text,
    /// The output of the tool: texts, images, documents. Constructors, codecs and the log refuse
    /// results that nest deeper than [`MAX_NESTING`](super::MAX_NESTING).
    #[serde(default, deserialize_with = "deserialize_result_content")]
    pub content: Vec<ContentBlock>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Tokens that the tool itself spent, if it calls models. Boxed: few tools do, and inline it
    /// would enlarge every block of a thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// A report that files in the context have changed. On the wire: text in `<context-update>` tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextUpdate {
    /// The paths of the files.
    pub paths: Vec<Text>,
    /// What changed.
    pub text: Text,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// A named position in the thread. On the wire: the text `<checkpoint:a1b2c3>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The name of the position.
    pub id: CheckpointId,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// A summary that replaces a compacted part of the thread.
///
/// On the wire the summary of an assistant message is plain text, and that of a user message is
/// text in `<conversation-summary>` tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The compaction that wrote the summary, if a log numbers compactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<CompactionId>,
    /// The summary.
    pub text: Text,
    /// The batches from which the text is composed, in order; empty if it is not. Never sent to a
    /// provider.
    #[serde(default, skip_serializing_if = "<[Batch]>::is_empty")]
    pub batches: Box<[Batch]>,
    /// The segments with which the text begins, in order, each after a blank line; empty if a model
    /// wrote all of it at once. Never sent to a provider.
    #[serde(default, skip_serializing_if = "<[Segment]>::is_empty")]
    pub segments: Box<[Segment]>,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// A part of a summary that later compactions leave as it is, until it is merged with the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// 0 for a segment that one compaction wrote; for one that was merged from two, one more than
    /// theirs.
    pub depth: u32,
    /// The text.
    pub text: Text,
}

/// A block that only the codec that read it understands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Opaque {
    /// The codec that read it, such as `anthropic-messages`.
    pub codec: Text,
    /// The whole block as JSON, as it was received.
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

    /// Returns a reminder without extra fields: a hint from the host to the model.
    #[must_use]
    pub fn reminder(text: impl Into<Text>) -> Self {
        Self::SystemReminder(TextBlock::new(text))
    }

    /// Returns a checkpoint block.
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

    /// `true` if the block is reasoning of the model, readable or encrypted.
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

    /// `true` if the block is a text that is empty or consists of white space.
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
    /// use threadfold::ContentBlock;
    ///
    /// assert_eq!(ContentBlock::text("hi").as_text().map(|text| text.as_str()), Some("hi"));
    /// assert_eq!(ContentBlock::reminder("Be brief.").as_text(), None);
    /// ```
    #[must_use]
    pub fn as_text(&self) -> Option<&Text> {
        if let Self::Text(block) = self { Some(&block.text) } else { None }
    }
}

impl TextBlock {
    /// Returns the block without extra fields.
    #[must_use]
    pub fn new(text: impl Into<Text>) -> Self {
        Self { text: text.into(), extra: Extra::default() }
    }
}

impl Thinking {
    /// Returns reasoning, signed or not, without extra fields.
    #[must_use]
    pub fn new(text: impl Into<Text>, signature: Option<Text>) -> Self {
        Self { text: text.into(), signature, extra: Extra::default() }
    }
}

impl RedactedThinking {
    /// Returns encrypted reasoning without extra fields.
    #[must_use]
    pub fn new(data: impl Into<Text>) -> Self {
        Self { data: data.into(), extra: Extra::default() }
    }
}

impl ToolResult {
    /// Returns the result of a call that succeeded. If it would nest deeper than
    /// [`MAX_NESTING`](super::MAX_NESTING), the content is dropped and the result is an
    /// [`error`](Self::error) that states so.
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
        if let Err(error) = check_result_nesting(&content) {
            return Self::error(tool_use_id, error.rule);
        }
        Self {
            tool_use_id: tool_use_id.into(),
            content,
            is_error: false,
            usage: None,
            extra: Extra::default(),
        }
    }

    /// Returns a result with one text block.
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
    /// Returns a report about these files, without extra fields.
    #[must_use]
    pub fn new(paths: Vec<Text>, text: impl Into<Text>) -> Self {
        Self { paths, text: text.into(), extra: Extra::default() }
    }
}

impl Checkpoint {
    /// Returns a checkpoint without extra fields.
    #[must_use]
    pub fn new(id: CheckpointId) -> Self {
        Self { id, extra: Extra::default() }
    }
}

impl Summary {
    /// Returns a summary without a compaction id, batches, segments or extra fields.
    #[must_use]
    pub fn new(text: impl Into<Text>) -> Self {
        Self {
            compaction: None,
            text: text.into(),
            batches: Box::default(),
            segments: Box::default(),
            extra: Extra::default(),
        }
    }
}

/// The only dialect with [settings](Opaque::settings_in_effect).
const OPENAI_RESPONSES: &str = "openai-responses";

/// The kinds of [settings](Opaque::settings_in_effect).
#[derive(Clone, Copy)]
enum Setting {
    Tools,
    Update,
}

impl Opaque {
    /// Returns a block of this codec.
    #[must_use]
    pub fn new(codec: impl Into<Text>, value: impl Into<Json>) -> Self {
        Self { codec: codec.into(), value: value.into() }
    }

    /// `true` if the block is a provider's own compaction of the messages before it: a `compaction`
    /// block of Anthropic or a `compaction` item of OpenAI. A compaction that failed has no content
    /// and does not count.
    ///
    /// ```
    /// use threadfold::message::{Json, Opaque};
    ///
    /// let item = Json::parse(r#"{"type":"compaction","encrypted_content":"gAAA"}"#)?;
    /// assert!(Opaque::new("openai-responses", item).is_compaction());
    /// let failed = Json::parse(r#"{"type":"compaction","content":null}"#)?;
    /// assert!(!Opaque::new("anthropic-messages", failed).is_compaction());
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn is_compaction(&self) -> bool {
        // Most opaque blocks are long and something else, so the text is searched before it is
        // parsed.
        if !self.value.as_str().contains("\"compaction\"") {
            return false;
        }
        let Ok(value) = self.value.to_value() else { return false };
        let [kind, content, encrypted] = ["type", "content", "encrypted_content"]
            .map(|key| value.get(key).and_then(serde_json::Value::as_str).unwrap_or_default());
        kind == "compaction" && !(content.is_empty() && encrypted.is_empty())
    }

    /// The settings among these blocks that are still in effect after the last of them, in their
    /// order. A setting is an item by which a host offers further tools (`additional_tools`), or asks
    /// for another effort or form of answers (`configuration_update`), from there on: OpenAI Responses,
    /// SDK openai 3.57. Equal offers count once, and only the newest update of each field counts.
    #[doc(hidden)]
    pub fn settings_in_effect<'a>(
        blocks: impl IntoIterator<Item = &'a ContentBlock, IntoIter: DoubleEndedIterator>,
    ) -> Vec<&'a Self> {
        let mut found: Vec<&Self> = Vec::new();
        let (mut offered, mut updated) = (HashSet::new(), HashSet::new());
        for block in blocks.into_iter().rev() {
            let ContentBlock::Opaque(opaque) = block else { continue };
            let Some((kind, fields)) = opaque.setting() else { continue };
            let is_new = match kind {
                Setting::Tools => offered.insert(opaque.value.as_str()),
                Setting::Update => {
                    let before = updated.len();
                    updated.extend(fields);
                    updated.len() > before
                }
            };
            found.extend(Some(opaque).filter(|_| is_new));
        }
        found.reverse();
        found
    }

    /// The kind of a setting, and the names of its own fields; `None` for any other block.
    fn setting(&self) -> Option<(Setting, Vec<String>)> {
        const TOOLS: &str = "additional_tools";
        const UPDATE: &str = "configuration_update";
        // Most opaque blocks are something else, so the text is searched before it is parsed.
        let text = self.value.as_str();
        if self.codec != OPENAI_RESPONSES || ![TOOLS, UPDATE].iter().any(|it| text.contains(it)) {
            return None;
        }
        let value = self.value.to_value().ok()?;
        let kind = match value.get("type")?.as_str()? {
            TOOLS => Setting::Tools,
            UPDATE => Setting::Update,
            _ => return None,
        };
        let fields =
            value.as_object()?.keys().filter(|key| !["type", "id"].contains(&key.as_str()));
        Some((kind, fields.cloned().collect()))
    }
}

/// Defines the name of each kind of block, its reader, and the conversion from its struct. The kind
/// after the semicolon shares its struct with another kind, so it gets no conversion.
macro_rules! kinds {
    ($($kind:literal: $variant:ident($block:ident)),+; $shared_kind:literal: $shared:ident($of:ident)) => {
        impl ContentBlock {
            /// The names of all kinds.
            pub(crate) const KINDS: &[&str] = &[$($kind,)+ $shared_kind];

            /// The name of the kind, as serde writes it: `text`, `tool_use` and so on.
            ///
            /// ```
            /// use threadfold::ContentBlock;
            ///
            /// assert_eq!(ContentBlock::text("hi").kind(), "text");
            /// ```
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $kind,)+
                    Self::$shared(_) => $shared_kind,
                }
            }

            /// Reads the fields of a block of this kind.
            pub(super) fn read<'de, D: Deserializer<'de>>(kind: &str, fields: D) -> Result<Self, D::Error> {
                match kind {
                    $($kind => $block::deserialize(fields).map(Self::$variant),)+
                    $shared_kind => $of::deserialize(fields).map(Self::$shared),
                    other => Err(de::Error::custom(format_args!("there is no content block {other:?}"))),
                }
            }
        }

        $(impl From<$block> for ContentBlock {
            fn from(block: $block) -> Self {
                Self::$variant(block)
            }
        })+
    };
}

kinds!(
    "text": Text(TextBlock),
    "image": Image(Image),
    "document": Document(Document),
    "thinking": Thinking(Thinking),
    "redacted_thinking": RedactedThinking(RedactedThinking),
    "tool_use": ToolUse(ToolUse),
    "tool_result": ToolResult(ToolResult),
    "server_tool_use": ServerToolUse(ServerToolUse),
    "server_tool_result": ServerToolResult(ServerToolResult),
    "context_update": ContextUpdate(ContextUpdate),
    "checkpoint": Checkpoint(Checkpoint),
    "summary": Summary(Summary),
    "opaque": Opaque(Opaque);
    "system_reminder": SystemReminder(TextBlock)
);

/// Deserializes the content of a tool result and checks its nesting.
fn deserialize_result_content<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<ContentBlock>, D::Error> {
    let content = Vec::deserialize(deserializer)?;
    check_result_nesting(&content).map_err(de::Error::custom)?;
    Ok(content)
}

/// Checks that tool results in these blocks nest at most [`MAX_NESTING`] deep.
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
/// // A deeper result becomes an error result, which the model can read.
/// let refused = ToolResult::new("call_1", vec![block]);
/// assert!(refused.is_error);
/// let text = "expected results nested at most 32 deep";
/// assert_eq!(refused.content, [ContentBlock::text(text)]);
/// ```
///
/// # Errors
///
/// [`InvalidValue`] if they nest deeper.
pub fn check_nesting(content: &[ContentBlock]) -> Result<(), InvalidValue> {
    check_depth(content, MAX_NESTING)
}

/// Like [`check_nesting`], for the content of a tool result, which is one level deeper.
fn check_result_nesting(content: &[ContentBlock]) -> Result<(), InvalidValue> {
    check_depth(content, MAX_NESTING - 1)
}

fn too_deep() -> InvalidValue {
    let rule = format!("expected results nested at most {MAX_NESTING} deep");
    InvalidValue::new("a tool result that can be kept", rule, "content")
}

fn check_depth(content: &[ContentBlock], most: usize) -> Result<(), InvalidValue> {
    for block in content {
        if let ContentBlock::ToolResult(result) = block {
            check_depth(&result.content, most.checked_sub(1).ok_or_else(too_deep)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_round_trips_through_serde_in_either_key_order() {
        let blocks = [
            ContentBlock::text("hi"),
            Thinking::new("hm", Some("sig".into())).into(),
            RedactedThinking::new("xx").into(),
            ToolUse::new("t1", "read", Json::parse(r#"{"z":1.0,"a":2}"#).unwrap()).into(),
            ToolResult::error("t1", "gone").into(),
            ServerToolUse::new("s1", "web_search", Json::default()).into(),
            ServerToolResult::new("s1", "web_search_tool_result", Json::default()).into(),
            ContentBlock::reminder("be brief"),
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

    /// A vector of blocks reserves the size of the largest kind for each block.
    #[test]
    fn no_kind_is_much_larger_than_the_others() {
        assert!(size_of::<ContentBlock>() <= 80, "{}", size_of::<ContentBlock>());
    }
}
