//! Deserializing a content block.

use serde::{Deserialize, Deserializer, de, de::value::MapAccessDeserializer};

use super::{
    content::{
        Checkpoint, ContentBlock, ContextUpdate, Opaque, RedactedThinking, Summary, TextBlock,
        Thinking, ToolResult,
    },
    cow_str::CowStr,
    media::{Document, Image},
    tool::{ServerToolResult, ServerToolUse, ToolUse},
};

impl<'de> Deserialize<'de> for ContentBlock {
    /// Deserializes the block straight into its struct if `type` comes first, as in everything that
    /// this crate writes. The derived form would buffer every block and lose the raw text of tool
    /// inputs.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BlockVisitor)
    }
}

struct BlockVisitor;

impl<'de> de::Visitor<'de> for BlockVisitor {
    type Value = ContentBlock;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a content block with a `type`")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<ContentBlock, A::Error> {
        let mut buffered = serde_json::Map::new();
        while let Some(CowStr(key)) = map.next_key()? {
            if key != "type" {
                buffered.insert(key.into_owned(), map.next_value()?);
                continue;
            }
            let CowStr(kind) = map.next_value()?;
            if buffered.is_empty() {
                return read_kind(&kind, MapAccessDeserializer::new(map));
            }
            while let Some((key, value)) = map.next_entry()? {
                buffered.insert(key, value);
            }
            return read_kind(&kind, serde_json::Value::Object(buffered))
                .map_err(de::Error::custom);
        }
        Err(de::Error::missing_field("type"))
    }
}

fn read_kind<'de, D: Deserializer<'de>>(kind: &str, fields: D) -> Result<ContentBlock, D::Error> {
    fn read<'de, B, D>(fields: D) -> Result<ContentBlock, D::Error>
    where
        B: Deserialize<'de> + Into<ContentBlock>,
        D: Deserializer<'de>,
    {
        B::deserialize(fields).map(Into::into)
    }
    match kind {
        "text" => read::<TextBlock, D>(fields),
        "image" => read::<Image, D>(fields),
        "document" => read::<Document, D>(fields),
        "thinking" => read::<Thinking, D>(fields),
        "redacted_thinking" => read::<RedactedThinking, D>(fields),
        "tool_use" => read::<ToolUse, D>(fields),
        "tool_result" => read::<ToolResult, D>(fields),
        "server_tool_use" => read::<ServerToolUse, D>(fields),
        "server_tool_result" => read::<ServerToolResult, D>(fields),
        "system_reminder" => TextBlock::deserialize(fields).map(ContentBlock::SystemReminder),
        "context_update" => read::<ContextUpdate, D>(fields),
        "checkpoint" => read::<Checkpoint, D>(fields),
        "summary" => read::<Summary, D>(fields),
        "opaque" => read::<Opaque, D>(fields),
        other => Err(de::Error::custom(format_args!("there is no content block {other:?}"))),
    }
}
