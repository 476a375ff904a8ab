//! Reading the contents of messages, results and reasoning.

use super::marks::*;
use crate::kit::*;

const CONTENTS: Contents = Contents {
    codec: CODEC,
    text: "input_text",
    part: |kind, fields, _| match kind {
        "input_image" => image(fields),
        "input_file" => document(fields),
        _ => None,
    },
    opaque_string: opaque_part,
    opaque_part,
};

/// Reads the content of a user or system message: a string, or an array of parts; `None` if it is
/// neither, or an empty array. Marks its form on the message.
pub(super) fn said(raw: Raw<'_>, message: &mut Fields<'_>) -> Option<Vec<ContentBlock>> {
    let (blocks, form) = content(raw, By::User).filter(|(blocks, _)| !blocks.is_empty())?;
    form.into_iter().for_each(|form| message.add_word(mark::CONTENT, form));
    Some(blocks)
}

/// Reads a content that is one string.
pub(super) fn said_text(raw: Raw<'_>) -> Vec<ContentBlock> {
    CONTENTS.string(raw, By::User).0
}

/// Reads the output of a tool: a string, an array of parts, or another value, which is kept whole,
/// as is an array without a known part. Marks its form on the result.
pub(super) fn output(raw: Raw<'_>, result: &mut Fields<'_>) -> Vec<ContentBlock> {
    let read = content(raw, By::Tool).filter(|(blocks, _)| {
        blocks.is_empty() || !blocks.iter().all(|it| matches!(it, ContentBlock::Opaque(_)))
    });
    let (blocks, form) = read.unwrap_or_else(|| (vec![opaque_part(raw)], Some("whole")));
    form.into_iter().for_each(|form| result.add_word(mark::CONTENT, form));
    blocks
}

/// Reads a string or an array of objects; `None` for anything else, because a string among parts
/// would become an object.
fn content(raw: Raw<'_>, by: By) -> Option<Content> {
    let Some(parts) = raw.items() else {
        return raw.is_text().then(|| CONTENTS.string(raw, by));
    };
    let are_objects = parts.iter().all(|raw| raw.is_object());
    are_objects.then(|| CONTENTS.array(parts, by))
}

fn image(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let source = match fields.take_text("image_url") {
        Some(url) => openai::data_uri(&url).unwrap_or(MediaSource::Url { url }),
        None => MediaSource::File { id: fields.take_text("file_id")? },
    };
    pictures::mark(&mut fields, &source);
    if fields.get("detail").is_none() {
        fields.add_word(mark::DETAIL, "absent");
    }
    Some(Image { source, extra: fields.keep(CODEC) }.into())
}

fn document(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let (source, title) = openai::take_file(&mut fields, Some("file_url"))?;
    Some(Document { source, title, context: None, extra: fields.keep(CODEC) }.into())
}

/// Reads a message of the model into one block for each part, with the fields of the item on the
/// first. Empty if there is no part, or one that cannot be read; the item becomes opaque then.
pub(super) fn answer(mut fields: Fields<'_>) -> Vec<ContentBlock> {
    fields.take("role");
    let Some(raw) = fields.take("content") else { return Vec::new() };
    // The empty object marks the beginning of an item, so that two messages do not become one.
    if !note_identity(&mut fields) {
        fields.add(mark::ITEM, Json::from_compact("{}"));
    }
    let mut own = Fields::default();
    own.move_marks(&mut fields);
    own.add_inner("item", &fields);
    if raw.is_text() {
        own.add_word(mark::CONTENT, "string");
        let said = raw.text().filter(|text| !text.is_blank());
        let block = said.map(|text| TextBlock { text, extra: own.keep(CODEC) }.into());
        return block.into_iter().collect();
    }
    let blocks = raw.all(|raw| {
        let block = answer_part(raw, &mut own)?;
        own.add_word(mark::JOINS, "item");
        Some(block)
    });
    blocks.unwrap_or_default()
}

/// Reads a part of a message of the model, which gets these marks.
fn answer_part(raw: Raw<'_>, own: &mut Fields<'_>) -> Option<ContentBlock> {
    let mut fields = Fields::of(raw).filter(|fields| fields.get("item").is_none())?;
    let kind = fields.take_word("type")?;
    let key = match kind.as_ref() {
        "output_text" | "input_text" => "text",
        "refusal" => "refusal",
        _ => return None,
    };
    fields.move_marks(own);
    if kind != "output_text" {
        fields.add_word(mark::AS, &kind);
    }
    if fields.take_as("annotations", |raw| (raw.get() == "[]").then_some(())).is_some() {
        fields.add_word(mark::ANNOTATIONS, "none");
    }
    let text = fields.take_text(key).filter(|text| !text.is_blank())?;
    Some(TextBlock { text, extra: fields.keep(CODEC) }.into())
}

/// Reads a reasoning item; `next` is the identity of the item after it. `None` if it has no
/// summary.
pub(super) fn reasoning(mut fields: Fields<'_>, next: Option<Text>) -> Option<ContentBlock> {
    let text = thought(fields.get("summary"), fields.get("content"))?;
    let signature = fields.take_text("encrypted_content");
    note_identity(&mut fields);
    if signature.is_some() {
        fields.add_word(mark::SIGNED, "yes");
    }
    next.into_iter().for_each(|next| fields.add_word(mark::NEXT, &next));
    Some(Thinking { extra: fields.keep(CODEC), ..Thinking::new(text, signature) }.into())
}

/// The readable text of a reasoning item: its summary, else its content.
pub(super) fn thought(summary: Option<Raw<'_>>, content: Option<Raw<'_>>) -> Option<Text> {
    let mut said = texts(summary?)?;
    if said.is_empty() {
        said = content.and_then(texts).unwrap_or_default();
    }
    Some(said.join("\n\n").into())
}

fn texts(parts: Raw<'_>) -> Option<Vec<Text>> {
    Some(parts.items()?.into_iter().filter_map(|raw| Fields::of(raw)?.text("text")).collect())
}
