//! Reading content blocks.
//!
//! Reading a block never fails: one of an unknown key, of several, or with a field of another shape
//! than the dialect has, is kept whole as an opaque block and goes back as it came.

use super::{
    forms::{self, NAME, within},
    media, names,
};
use crate::{
    extras::read_item,
    json::{Fields, Raw},
    rules::Medium,
    texts::{Speaker, kept_form},
};
use threadfold_core::message::{
    ContentBlock, Document, Image, Json, RedactedThinking, Role, ServerToolResult, ServerToolUse,
    TextBlock, Thinking, ToolResult, ToolUse, markup,
};

/// The keys that say what a block is. All are listed, so that a block with two of them is
/// recognized as malformed.
const KEYS: [&str; 14] = [
    "text",
    "image",
    "document",
    "video",
    "audio",
    "toolUse",
    "toolResult",
    "guardContent",
    "cachePoint",
    "reasoningContent",
    "citationsContent",
    "searchResult",
    "toolAddition",
    "toolRemoval",
];

/// The key of a cache point, which follows the part to cache.
pub(super) const CACHE_POINT: &str = "cachePoint";

/// The kind of a server result that came without a `type`.
pub(super) const RESULT: &str = "toolResult";

/// Reads the blocks of a message; `None` if it is no array.
pub(super) fn read_all(raw: Raw<'_>, speaker: Speaker) -> Option<Vec<ContentBlock>> {
    let items = raw.items()?;
    let is_point = |item: &Raw<'_>| {
        let fields = Fields::of(*item).filter(|fields| fields.get(CACHE_POINT).is_some());
        fields.is_some_and(|fields| key(&fields) == Some(CACHE_POINT))
    };
    // A checkpoint is the last block, apart from cache points.
    let last = items.iter().rposition(|item| !is_point(item));
    let read = |item| read_item(NAME, item, |fields| read_known(fields, speaker.role));
    let mut blocks: Vec<ContentBlock> = items.into_iter().map(read).collect();
    speaker.recognise(&mut blocks, last);
    Some(blocks)
}

/// The one key of a block that says what it is; `None` if there is none, or more than one.
pub(super) fn key(fields: &Fields<'_>) -> Option<&'static str> {
    let set = fields.rest().filter(|(_, raw)| raw.get() != "null");
    let mut keys = set.filter_map(|(key, _)| KEYS.into_iter().find(|known| *known == key));
    let first = keys.next()?;
    keys.all(|other| other == first).then_some(first)
}

fn read_known(mut fields: Fields<'_>, role: Role) -> Option<ContentBlock> {
    let key = key(&fields)?;
    let raw = fields.take(key)?;
    match key {
        "text" => {
            let extra = fields.keep(NAME);
            Some(TextBlock { text: raw.text()?, extra }.into())
        }
        "citationsContent" | "guardContent" => {
            fields.note(key, raw.json());
            let extra = fields.keep(NAME);
            let text = TextBlock { text: media::wrapped_text(key, raw)?, extra };
            // It is never read as another kind, and is written in the same wrapping again.
            let reads = markup::form(&text.text).is_some();
            Some(if reads { kept_form(NAME, text) } else { text }.into())
        }
        _ => {
            let inner = within(raw, &fields)?;
            match key {
                "reasoningContent" => read_reasoning(inner),
                "toolUse" => read_tool_use(inner, role),
                "toolResult" if role == Role::Assistant => read_server_result(inner),
                "toolResult" => read_tool_result(inner),
                medium => read_medium(medium, inner),
            }
        }
    }
}

/// Reads a block of a tool result. A result within a result is opaque, so this goes one level deep
/// only, whatever the body.
fn read_nested(mut fields: Fields<'_>) -> Option<ContentBlock> {
    // Only results may hold blocks of JSON.
    let is_json = fields.get("json").is_some() && key(&fields).is_none();
    let key = if is_json { "json" } else { key(&fields)? };
    let raw = fields.take(key)?;
    match key {
        "text" => {
            let extra = fields.keep(NAME);
            Some(TextBlock { text: raw.text()?, extra }.into())
        }
        "json" => {
            fields.mark(forms::JSON, "");
            let text = raw.json().as_str().into();
            Some(TextBlock { text, extra: fields.keep(NAME) }.into())
        }
        medium => read_medium(medium, within(raw, &fields)?),
    }
}

fn read_medium(key: &str, mut inner: Fields<'_>) -> Option<ContentBlock> {
    match key {
        "image" => {
            let source = media::read(&mut inner, Medium::Image)?;
            Some(Image { source, extra: inner.keep(NAME) }.into())
        }
        "document" => {
            let source = media::read(&mut inner, Medium::Document)?;
            let title = inner.take_text("name")?;
            if !names::DOCUMENTS.accept(&title) {
                inner.mark(forms::DOCUMENT, &title);
            }
            let title = Some(title);
            let context = inner.take_text("context");
            Some(Document { source, title, context, extra: inner.keep(NAME) }.into())
        }
        _ => None,
    }
}

fn read_reasoning(mut inner: Fields<'_>) -> Option<ContentBlock> {
    if let Some(data) = inner.take_text("redactedContent") {
        let alone = inner.get("reasoningText").is_none();
        let extra = inner.keep(NAME);
        return alone.then(|| RedactedThinking { data, extra }.into());
    }
    let mut parts = Fields::of(inner.take("reasoningText")?)?;
    let text = parts.take_text("text")?;
    let signature = parts.take_text("signature");
    // Its unknown fields are kept under the name of the object.
    inner.note_inner("reasoningText", &parts);
    Some(Thinking { text, signature, extra: inner.keep(NAME) }.into())
}

fn read_tool_use(mut inner: Fields<'_>, role: Role) -> Option<ContentBlock> {
    let (id, name) = (inner.take_text("toolUseId")?, inner.take_text("name")?);
    let input = inner.take_json("input")?;
    let server = inner.get("type").filter(|raw| raw.is_text() && role == Role::Assistant);
    if let Some(kind) = server {
        inner.take("type");
        inner.note(forms::TYPE, kind.json());
        return Some(ServerToolUse { id, name, input, extra: inner.keep(NAME) }.into());
    }
    let input = input.into();
    Some(ToolUse { id, name, input, extra: inner.keep(NAME) }.into())
}

fn read_tool_result(mut inner: Fields<'_>) -> Option<ContentBlock> {
    let tool_use_id = inner.take_text("toolUseId")?;
    let items = inner.take("content")?.items()?;
    if items.is_empty() {
        inner.note(forms::CONTENT, Json::from_compact("[]"));
    }
    let content = items.into_iter().map(|item| read_item(NAME, item, read_nested)).collect();
    let status = inner.take("status");
    let is_error = status.is_some_and(|status| status.get() == "\"error\"");
    if let Some(status) = status.filter(|_| !is_error) {
        inner.note(forms::STATUS, status.json());
    }
    let extra = inner.keep(NAME);
    Some(ToolResult { tool_use_id, content, is_error, usage: None, extra }.into())
}

/// Reads a result in an answer: the provider ran the tool itself.
fn read_server_result(mut inner: Fields<'_>) -> Option<ContentBlock> {
    let tool_use_id = inner.take_text("toolUseId")?;
    let content = inner.take_json("content")?;
    let kind = inner.take_text("type");
    if let Some(kind) = &kind {
        inner.mark(forms::TYPE, kind);
    }
    let kind = kind.unwrap_or_else(|| RESULT.into());
    let extra = inner.keep(NAME);
    Some(ServerToolResult { tool_use_id, kind, content, extra }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Recognise;
    use threadfold_core::message::{Opaque, Text};

    fn read(text: &str, role: Role, recognise: Recognise) -> Vec<ContentBlock> {
        read_all(serde_json::from_str(text).unwrap(), Speaker { codec: NAME, role, recognise })
            .unwrap()
    }

    #[test]
    fn what_is_malformed_or_unknown_is_opaque_whole() {
        for text in [
            r#"{"text":5}"#,
            r#"{"new":{"a":1}}"#,
            r#"{"text":"a","image":{}}"#,
            r#"{"toolUse":{"toolUseId":"t1","input":{}}}"#,
            r#"{"toolResult":{"toolUseId":"t1","content":"a"}}"#,
            r#"{"document":{"source":{"text":"a"}}}"#,
            r#"{"image":{"source":"a.png"}}"#,
            r#"{"reasoningContent":{"redactedContent":"AA==","reasoningText":{}}}"#,
            r#"{"cachePoint":{"type":"default"}}"#,
            r#"{"citationsContent":{"content":[{"text":" "}]}}"#,
            r#""text""#,
        ] {
            let opaque = Opaque::new(NAME, Json::parse(text).unwrap());
            let read = read(&format!("[{text}]"), Role::User, Recognise::default());
            assert_eq!(read, [opaque.into()]);
        }
    }

    #[test]
    fn a_checkpoint_is_one_at_the_end_of_a_user_message_and_before_a_cache_point() {
        let text = r#"[{"text":"<checkpoint:a1b2c3>"},{"cachePoint":{"type":"default"}}]"#;
        let first = |role| read(text, role, Recognise::default()).swap_remove(0);
        assert_eq!(first(Role::User), ContentBlock::checkpoint("a1b2c3".parse().unwrap()));
        assert_eq!(first(Role::Assistant), ContentBlock::text("<checkpoint:a1b2c3>"));
    }

    #[test]
    fn json_and_wrapped_texts_are_texts() {
        let all = r#"[{"guardContent":{"text":{"text":"hi","qualifiers":["query"]}}},
            {"toolResult":{"toolUseId":"t1","content":[{"json":{"b":1.0,"a":2}}]}}]"#;
        let blocks = read(all, Role::User, Recognise::default());
        assert_eq!(blocks[0].as_text(), Some(&Text::from("hi")));
        let ContentBlock::ToolResult(result) = &blocks[1] else { panic!("{:?}", blocks[1]) };
        assert_eq!(result.content[0].as_text(), Some(&Text::from(r#"{"b":1.0,"a":2}"#)));
        let cited =
            r#"[{"citationsContent":{"content":[{"text":"a"},{"text":"b"}],"citations":[]}}]"#;
        let blocks = read(cited, Role::Assistant, Recognise::default());
        assert_eq!(blocks[0].as_text(), Some(&Text::from("ab")));
    }
}
