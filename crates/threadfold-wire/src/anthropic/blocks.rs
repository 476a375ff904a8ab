//! Reading content blocks.
//!
//! Reading a block never fails: one of an unknown type, or with a field of another shape than the
//! dialect has, is kept whole as an opaque block and goes back as it came.

use super::{
    compaction,
    forms::{self, NAME},
    media,
};
use crate::{
    extras::read_item,
    json::{Fields, Raw},
    rules::Medium,
    texts::Speaker,
};
use threadfold_core::message::{
    ContentBlock, Document, Image, Json, RedactedThinking, ServerToolResult, ServerToolUse, Text,
    TextBlock, Thinking, ToolResult, ToolUse,
};

/// Reads the blocks of a message; `None` if it is no array.
pub(super) fn read_all(raw: Raw<'_>, speaker: Speaker) -> Option<Vec<ContentBlock>> {
    let read = |item| read_item(NAME, item, read_known);
    let mut blocks: Vec<ContentBlock> = raw.items()?.into_iter().map(read).collect();
    let last = blocks.len().checked_sub(1);
    speaker.recognise(&mut blocks, last);
    Some(blocks)
}

/// Reads a content that is one string.
pub(super) fn read_string(text: Text, speaker: Speaker) -> ContentBlock {
    let mut block = [TextBlock::new(text).into()];
    speaker.recognise(&mut block, Some(0));
    let [block] = block;
    block
}

fn read_known(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let kind = fields.take_word("type")?;
    match kind.as_ref() {
        "text" => Some(read_plain(fields)?.into()),
        "thinking" => read_thinking(fields),
        "redacted_thinking" => read_redacted(fields),
        "tool_use" => read_tool_use(fields),
        "compaction" => compaction::by_gateway(fields),
        "tool_result" => read_tool_result(fields),
        "server_tool_use" | "mcp_tool_use" => read_server_tool_use(&kind, fields),
        server if forms::is_server_result(server) => read_server_result(server.into(), fields),
        medium => read_medium(medium, fields),
    }
}

/// Reads a block of a tool result. A result within a result is opaque, so this goes one level deep
/// only, whatever the body.
fn read_nested(mut fields: Fields<'_>) -> Option<ContentBlock> {
    match fields.take_word("type")?.as_ref() {
        "text" => Some(read_plain(fields)?.into()),
        medium => read_medium(medium, fields),
    }
}

fn read_plain(mut fields: Fields<'_>) -> Option<TextBlock> {
    let text = fields.take_text("text")?;
    Some(TextBlock { text, extra: fields.keep(NAME) })
}

fn read_medium(kind: &str, mut fields: Fields<'_>) -> Option<ContentBlock> {
    match kind {
        "image" => {
            let source = media::read(fields.take("source")?, Medium::Image)?;
            Some(Image { source, extra: fields.keep(NAME) }.into())
        }
        "document" => {
            let source = media::read(fields.take("source")?, Medium::Document)?;
            let title = take_optional(&mut fields, "title", forms::TITLE)?;
            let context = take_optional(&mut fields, "context", forms::CONTEXT)?;
            let extra = fields.keep(NAME);
            Some(Document { source, title, context, extra }.into())
        }
        _ => None,
    }
}

fn read_thinking(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let text = fields.take_text("thinking")?;
    let signature = match fields.get("signature") {
        Some(_) => Some(fields.take_text("signature")?),
        None => None,
    };
    Some(Thinking { text, signature, extra: fields.keep(NAME) }.into())
}

fn read_redacted(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let data = fields.take_text("data")?;
    Some(RedactedThinking { data, extra: fields.keep(NAME) }.into())
}

fn read_tool_use(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let (id, name) = (fields.take_text("id")?, fields.take_text("name")?);
    let input = fields.take_json("input")?.into();
    Some(ToolUse { id, name, input, extra: fields.keep(NAME) }.into())
}

fn read_tool_result(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let tool_use_id = fields.take_text("tool_use_id")?;
    let content = match fields.take("content") {
        None => Vec::new(),
        Some(raw) if raw.get() == "null" => Vec::new(),
        Some(raw) if raw.is_text() => {
            forms::note_string(&mut fields);
            vec![ContentBlock::text(raw.text()?)]
        }
        Some(raw) => {
            raw.items()?.into_iter().map(|item| read_item(NAME, item, read_nested)).collect()
        }
    };
    let spelled = fields.take("is_error");
    let is_error = match spelled.map(Raw::get) {
        None | Some("false" | "null") => false,
        Some("true") => true,
        Some(_) => return None,
    };
    if let Some(spelled) = spelled.filter(|_| !is_error) {
        fields.note(forms::IS_ERROR, spelled.json());
    }
    let extra = fields.keep(NAME);
    Some(ToolResult { tool_use_id, content, is_error, usage: None, extra }.into())
}

fn read_server_tool_use(kind: &str, mut fields: Fields<'_>) -> Option<ContentBlock> {
    let (id, name) = (fields.take_text("id")?, fields.take_text("name")?);
    let input = fields.take_json("input")?;
    // Always noted, because it also says whose server the call is for.
    fields.mark(forms::TYPE, kind);
    Some(ServerToolUse { id, name, input, extra: fields.keep(NAME) }.into())
}

fn read_server_result(kind: Text, mut fields: Fields<'_>) -> Option<ContentBlock> {
    let tool_use_id = fields.take_text("tool_use_id")?;
    let content = fields.take_json("content");
    if content.is_none() {
        fields.note(forms::CONTENT, Json::default());
    }
    let content = content.unwrap_or_default();
    let extra = fields.keep(NAME);
    Some(ServerToolResult { tool_use_id, kind, content, extra }.into())
}

/// Takes an optional text out, and notes a `null`. `None` if it is something else.
pub(super) fn take_optional(
    fields: &mut Fields<'_>,
    key: &str,
    note: &'static str,
) -> Option<Option<Text>> {
    match fields.get(key).map(Raw::get) {
        None => Some(None),
        Some("null") => {
            fields.take(key);
            fields.note(note, Json::default());
            Some(None)
        }
        Some(_) => fields.take_text(key).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Recognise;
    use threadfold_core::message::{Opaque, Role, SystemReminder};

    fn read(text: &str, role: Role, recognise: Recognise) -> ContentBlock {
        let list = format!("[{text}]");
        let blocks = read_all(
            serde_json::from_str(&list).unwrap(),
            Speaker { codec: NAME, role, recognise },
        )
        .unwrap();
        blocks.into_iter().next().unwrap()
    }

    #[test]
    fn a_known_type_with_a_malformed_field_is_opaque_whole() {
        for text in [
            r#"{"type":"text","text":5}"#,
            r#"{"type":"tool_use","id":"t1","input":{}}"#,
            r#"{"type":"tool_result","tool_use_id":"t1","is_error":"no"}"#,
            r#"{"type":"document","source":{},"title":[]}"#,
            r#"{"type":"image","source":"a.png"}"#,
            r#""text""#,
        ] {
            let opaque = Opaque::new(NAME, Json::parse(text).unwrap());
            assert_eq!(read(text, Role::User, Recognise::default()), opaque.into());
        }
    }

    #[test]
    fn a_checkpoint_is_one_only_at_the_end_of_a_user_message() {
        let text = r#"{"type":"text","text":"<checkpoint:a1b2c3>"}"#;
        let block = |role| read(text, role, Recognise::default());
        assert_eq!(block(Role::User), ContentBlock::checkpoint("a1b2c3".parse().unwrap()));
        assert_eq!(block(Role::Assistant), ContentBlock::text("<checkpoint:a1b2c3>"));
    }

    #[test]
    fn reminders_and_summaries_are_read_when_asked() {
        let all = Recognise { checkpoints: true, reminders: true, summaries: true };
        let reminder = r#"{"type":"text","text":"<system-reminder>\nhi\n</system-reminder>"}"#;
        assert_eq!(read(reminder, Role::User, all), SystemReminder::new("hi").into());
        assert_eq!(read(reminder, Role::User, Recognise::default()).kind(), "text");
        let blank = r#"{"type":"text","text":"<system-reminder>\n \n</system-reminder>"}"#;
        assert_eq!(read(blank, Role::User, all).kind(), "text");
    }
}
