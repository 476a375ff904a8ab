//! Reading the contents of messages, results and reasoning.

use super::marks::*;
use crate::kit::*;

/// The author of a content.
#[derive(Clone, Copy, Debug)]
enum By {
    /// The user or the host.
    Host,
    Tool,
}

/// Reads the content of a user or system message: a string, or an array of parts; `None` if it is
/// neither, or an empty array. Marks its form on the message.
///
/// Blank text becomes an opaque part, because it is valid in this dialect, but other providers
/// refuse it and repairs would remove it.
pub(super) fn said(raw: Raw<'_>, message: &mut Fields<'_>) -> Option<Vec<ContentBlock>> {
    if !raw.is_text() {
        let parts = raw.items().filter(|parts| !parts.is_empty())?;
        return array(parts, By::Host, message);
    }
    Some(vec![said_text(raw)])
}

/// Reads a content that is one string.
pub(super) fn said_text(raw: Raw<'_>) -> ContentBlock {
    let said = raw.text().filter(|text| !text.is_blank());
    said.map_or_else(|| opaque_part(raw), ContentBlock::text)
}

/// Reads the output of a tool: a string, an array of parts, or another value, which is kept whole.
/// Marks its form on the result.
pub(super) fn output(raw: Raw<'_>, result: &mut Fields<'_>) -> Vec<ContentBlock> {
    if raw.is_text()
        && let Some(text) = raw.text()
    {
        let text = Some(text).filter(|text| !text.is_empty());
        let block = text.map(|text| result_text(CODEC, text, Fields::default()));
        return block.into_iter().collect();
    }
    let parts = raw.items();
    if parts.as_ref().is_some_and(Vec::is_empty) {
        result.mark("~content", "empty_array");
        return Vec::new();
    }
    let parts = parts.filter(|all| all.iter().any(|raw| part(*raw, By::Tool).is_some()));
    parts.and_then(|parts| array(parts, By::Tool, result)).unwrap_or_else(|| {
        result.mark("~content", "whole");
        vec![opaque_part(raw)]
    })
}

/// Reads parts; `None` if one of them is no object, because a string among parts would become an
/// object.
fn array(parts: Vec<Raw<'_>>, by: By, owner: &mut Fields<'_>) -> Option<Vec<ContentBlock>> {
    if !parts.iter().all(|raw| raw.get().starts_with('{')) {
        return None;
    }
    if parts.len() == 1 {
        owner.mark("~content", "array");
    }
    let parts = parts.into_iter();
    Some(parts.map(|raw| part(raw, by).unwrap_or_else(|| opaque_part(raw))).collect())
}

/// Reads a part; `None` if it is unknown, or if its text is blank where that is not allowed.
fn part(raw: Raw<'_>, by: By) -> Option<ContentBlock> {
    let mut fields = Fields::of(raw)?;
    match fields.take_word("type")?.as_ref() {
        "input_text" => {
            let text = fields.take_text("text")?;
            match by {
                By::Tool => Some(result_text(CODEC, text, fields)),
                By::Host if text.is_blank() => None,
                By::Host => Some(TextBlock { text, extra: fields.keep(CODEC) }.into()),
            }
        }
        "input_image" => image(fields),
        "input_file" => document(fields),
        _ => None,
    }
}

fn image(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let source = match fields.take_text("image_url") {
        Some(url) => openai::data_uri(&url).unwrap_or(MediaSource::Url { url }),
        None => MediaSource::File { id: fields.take_text("file_id")? },
    };
    if fields.get("detail").is_none() {
        fields.mark("~detail", "absent");
    }
    Some(Image { source, extra: fields.keep(CODEC) }.into())
}

fn document(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let source = if let Some(data) = fields.take_text("file_data") {
        openai::data_uri(&data)?
    } else if let Some(url) = fields.take_text("file_url") {
        MediaSource::Url { url }
    } else {
        MediaSource::File { id: fields.take_text("file_id")? }
    };
    let title = fields.take_text("filename");
    Some(Document { source, title, context: None, extra: fields.keep(CODEC) }.into())
}

/// Reads a message of the model into one block for each part, with the fields of the item on the
/// first. Empty if there is no part, or one that cannot be read; the item becomes opaque then.
pub(super) fn answer(mut fields: Fields<'_>) -> Vec<ContentBlock> {
    fields.take("role");
    let Some(raw) = fields.take("content") else { return Vec::new() };
    // The empty object marks the beginning of an item, so that two messages do not become one.
    if !note_identity(&mut fields) {
        fields.note("~item", Json::from_compact("{}"));
    }
    let mut own = Fields::default();
    own.move_marks(&mut fields);
    own.note_inner("item", &fields);
    if raw.is_text() {
        own.mark("~content", "string");
        let said = raw.text().filter(|text| !text.is_blank());
        let block = said.map(|text| TextBlock { text, extra: own.keep(CODEC) }.into());
        return block.into_iter().collect();
    }
    let blocks = raw.all(|raw| {
        let block = answer_part(raw, &mut own)?;
        own.mark("~joins", "item");
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
        fields.mark("~as", &kind);
    }
    if fields.take_as("annotations", |raw| (raw.get() == "[]").then_some(())).is_some() {
        fields.mark("~annotations", "none");
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
        fields.mark("~signed", "yes");
    }
    next.into_iter().for_each(|next| fields.mark("~next", &next));
    Some(Thinking { extra: fields.keep(CODEC), ..Thinking::new(text, signature) }.into())
}

/// The readable text of a reasoning item: its summary, else its content.
pub(super) fn thought(summary: Option<Raw<'_>>, content: Option<Raw<'_>>) -> Option<Text> {
    let texts = |raw: Raw<'_>| -> Option<Vec<Text>> {
        Some(raw.items()?.into_iter().filter_map(|raw| Fields::of(raw)?.text("text")).collect())
    };
    let summary = texts(summary?)?;
    let texts = if summary.is_empty() { content.and_then(texts) } else { Some(summary) };
    Some(texts.unwrap_or_default().iter().map(Text::as_str).collect::<Vec<_>>().join("\n\n").into())
}
