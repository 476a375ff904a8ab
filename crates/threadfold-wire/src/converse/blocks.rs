//! Reading content blocks.
//!
//! Reading a block never fails: one of an unknown key, of several, or with a field of another shape
//! than the dialect has, is kept whole as an opaque block and goes back as it came.

use super::{
    forms::{self, Forms, NAME},
    media, names,
};
use crate::{
    extras::read_item,
    fields::{self, Fields},
    raw::Raw,
    rules::Medium,
    texts::{Speaker, kept_form},
};
use threadfold_core::message::{
    ContentBlock, Document, Image, Json, RedactedThinking, Role, ServerToolResult, ServerToolUse,
    TextBlock, Thinking, ToolResult, ToolUse, markup,
};

/// What a block with this key is. All of them are listed, so that two in one block are seen.
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

/// The mark that stands after what is to be cached.
pub(super) const CACHE_POINT: &str = "cachePoint";

/// The kind of a server result that came without a `type`.
pub(super) const RESULT: &str = "toolResult";

/// Reads the blocks of a message; `None` if it is no array.
pub(super) fn read_all(raw: Raw<'_>, speaker: Speaker) -> Option<Vec<ContentBlock>> {
    let items = fields::items(raw)?;
    let is_point = |item: &Raw<'_>| {
        let fields = Fields::of(*item).filter(|fields| fields.get(CACHE_POINT).is_some());
        fields.is_some_and(|fields| key(&fields) == Some(CACHE_POINT))
    };
    // A checkpoint is the last thing that is said; marks for the cache say nothing.
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
            let extra = Forms::of(NAME).into_extra(&fields);
            Some(TextBlock { text: fields::text(raw)?, extra }.into())
        }
        "citationsContent" | "guardContent" => {
            let mut forms = Forms::of(NAME);
            forms.note(key, raw.json());
            let extra = forms.into_extra(&fields);
            let text = TextBlock { text: media::wrapped_text(key, raw)?, extra };
            // It is never read as another kind, and goes back in its wrapping.
            let reads = markup::form(&text.text).is_some();
            Some(if reads { kept_form(NAME, text) } else { text }.into())
        }
        _ => {
            let (inner, forms) = (Fields::of(raw)?, forms::beside(&fields));
            match key {
                "reasoningContent" => read_reasoning(inner, forms),
                "toolUse" => read_tool_use(inner, forms, role),
                "toolResult" if role == Role::Assistant => read_server_result(inner, forms),
                "toolResult" => read_tool_result(inner, forms),
                medium => read_medium(medium, inner, forms),
            }
        }
    }
}

/// Reads a block of a tool result. A result within a result is opaque, so this goes one level deep
/// only, whatever the body.
fn read_nested(mut fields: Fields<'_>) -> Option<ContentBlock> {
    // Only here JSON may stand for itself.
    let is_json = fields.get("json").is_some() && key(&fields).is_none();
    let key = if is_json { "json" } else { key(&fields)? };
    let raw = fields.take(key)?;
    match key {
        "text" => {
            let extra = Forms::of(NAME).into_extra(&fields);
            Some(TextBlock { text: fields::text(raw)?, extra }.into())
        }
        "json" => {
            let mut forms = Forms::of(NAME);
            forms.note(forms::JSON, serde_json::Value::from(""));
            let text = raw.json().as_str().into();
            Some(TextBlock { text, extra: forms.into_extra(&fields) }.into())
        }
        medium => read_medium(medium, Fields::of(raw)?, forms::beside(&fields)),
    }
}

fn read_medium(key: &str, mut inner: Fields<'_>, mut forms: Forms) -> Option<ContentBlock> {
    match key {
        "image" => {
            let source = media::read(&mut inner, Medium::Image, &mut forms)?;
            Some(Image { source, extra: forms.into_extra(&inner) }.into())
        }
        "document" => {
            let source = media::read(&mut inner, Medium::Document, &mut forms)?;
            let title = inner.take_text("name")?;
            if !names::DOCUMENTS.accept(&title) {
                forms.note(forms::DOCUMENT, Json::text(&title));
            }
            let title = Some(title);
            let context = inner.take_text("context");
            Some(Document { source, title, context, extra: forms.into_extra(&inner) }.into())
        }
        _ => None,
    }
}

fn read_reasoning(mut inner: Fields<'_>, mut forms: Forms) -> Option<ContentBlock> {
    if let Some(data) = inner.take_text("redactedContent") {
        let alone = inner.get("reasoningText").is_none();
        let extra = forms.into_extra(&inner);
        return alone.then(|| RedactedThinking { data, extra }.into());
    }
    let mut parts = Fields::of(inner.take("reasoningText")?)?;
    let text = parts.take_text("text")?;
    let signature = parts.take_text("signature");
    // What else is said there stands under the name of the object itself.
    if parts.left() > 0 {
        forms.note("reasoningText", forms::raw_object(&parts));
    }
    Some(Thinking { text, signature, extra: forms.into_extra(&inner) }.into())
}

fn read_tool_use(mut inner: Fields<'_>, mut forms: Forms, role: Role) -> Option<ContentBlock> {
    let (id, name) = (inner.take_text("toolUseId")?, inner.take_text("name")?);
    let input = inner.take_json("input")?;
    let server = inner.get("type").filter(|raw| fields::is_text(*raw) && role == Role::Assistant);
    if let Some(kind) = server {
        forms.note(forms::TYPE, Raw::json(kind));
        inner.take("type");
        return Some(ServerToolUse { id, name, input, extra: forms.into_extra(&inner) }.into());
    }
    let input = input.into();
    Some(ToolUse { id, name, input, extra: forms.into_extra(&inner) }.into())
}

fn read_tool_result(mut inner: Fields<'_>, mut forms: Forms) -> Option<ContentBlock> {
    let tool_use_id = inner.take_text("toolUseId")?;
    let items = fields::items(inner.take("content")?)?;
    if items.is_empty() {
        forms.note(forms::CONTENT, Json::parse("[]").ok()?);
    }
    let content = items.into_iter().map(|item| read_item(NAME, item, read_nested)).collect();
    let status = inner.take("status");
    let is_error = status.is_some_and(|status| status.get() == "\"error\"");
    forms.note_raw(forms::STATUS, status.filter(|_| !is_error));
    let extra = forms.into_extra(&inner);
    Some(ToolResult { tool_use_id, content, is_error, usage: None, extra }.into())
}

/// Reads a result in an answer: the provider ran the tool itself.
fn read_server_result(mut inner: Fields<'_>, mut forms: Forms) -> Option<ContentBlock> {
    let tool_use_id = inner.take_text("toolUseId")?;
    let content = inner.take_json("content")?;
    let kind = inner.take_text("type");
    if let Some(kind) = &kind {
        forms.note(forms::TYPE, serde_json::Value::from(kind.as_str()));
    }
    let kind = kind.unwrap_or_else(|| RESULT.into());
    let extra = forms.into_extra(&inner);
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
