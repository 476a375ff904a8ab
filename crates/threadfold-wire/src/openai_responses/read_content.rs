//! Reading what messages and results hold.

use super::marks::{CODEC, Field, keep, mark, opaque_part};
use crate::{
    fields::{Fields, is_text, items, text},
    openai::{data_uri, result_text},
    raw::Raw,
};
use threadfold_core::message::{ContentBlock, Document, Image, MediaSource, TextBlock};

/// Who says it.
#[derive(Clone, Copy, Debug)]
enum By {
    /// The user or the host.
    Host,
    Tool,
}

/// A content, and the mark of its form.
pub(super) struct Content {
    pub(super) blocks: Vec<ContentBlock>,
    pub(super) form: Option<Field>,
}

/// Reads what a user or a host says: a string or an array of parts; `None` if it is neither, or an
/// empty array.
///
/// Blank text is no text block, because other providers refuse those and repairs take them out.
/// Here it is valid, so it is kept as an opaque part.
pub(super) fn said(raw: Raw<'_>) -> Option<Content> {
    if !is_text(raw) {
        return array(items(raw)?, By::Host).filter(|read| !read.blocks.is_empty());
    }
    let block = match text(raw) {
        Some(text) if !text.is_blank() => ContentBlock::text(text),
        Some(_) | None => opaque_part(raw),
    };
    Some(Content { blocks: vec![block], form: None })
}

/// Reads what a tool gave: a string, an array of parts, or another value, which is kept as it came.
pub(super) fn output(raw: Raw<'_>) -> Content {
    let empty = |form: Option<Field>| Content { blocks: Vec::new(), form };
    if let Some(text) = text(raw).filter(|_| is_text(raw)) {
        let blocks = Some(text).filter(|text| !text.is_empty());
        let blocks = blocks.map(|text| result_text(CODEC, text, &Fields::default()));
        return Content { blocks: blocks.into_iter().collect(), form: None };
    }
    let whole =
        || Content { blocks: vec![opaque_part(raw)], form: Some(mark("~content", "whole")) };
    match items(raw) {
        Some(parts) if parts.is_empty() => empty(Some(mark("~content", "empty_array"))),
        Some(parts) if parts.iter().any(|raw| part(*raw, By::Tool).is_some()) => {
            array(parts, By::Tool).unwrap_or_else(whole)
        }
        Some(_) | None => whole(),
    }
}

/// Reads parts; `None` if one of them is no object: a text among parts would become another one.
fn array(parts: Vec<Raw<'_>>, by: By) -> Option<Content> {
    if !parts.iter().all(|raw| raw.get().starts_with('{')) {
        return None;
    }
    let part = |raw: Raw<'_>| part(raw, by).unwrap_or_else(|| opaque_part(raw));
    let form = (parts.len() == 1).then(|| mark("~content", "array"));
    Some(Content { blocks: parts.into_iter().map(part).collect(), form })
}

/// Reads a part; `None` if it is not one that is known here, or if its text may not stay.
fn part(raw: Raw<'_>, by: By) -> Option<ContentBlock> {
    let mut fields = Fields::of(raw)?;
    match fields.take_word("type")?.as_ref() {
        "input_text" => {
            let text = fields.take_text("text")?;
            match by {
                By::Tool => Some(result_text(CODEC, text, &fields)),
                By::Host if text.is_blank() => None,
                By::Host => Some(TextBlock { text, extra: keep(&fields, Vec::new()) }.into()),
            }
        }
        "input_image" => image(fields),
        "input_file" => document(fields),
        _ => None,
    }
}

fn image(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let source = match fields.take_text("image_url") {
        Some(url) => data_uri(&url).unwrap_or(MediaSource::Url { url }),
        None => MediaSource::File { id: fields.take_text("file_id")? },
    };
    let absent = fields.get("detail").is_none();
    let own = absent.then(|| mark("~detail", "absent")).into_iter().collect();
    Some(Image { source, extra: keep(&fields, own) }.into())
}

fn document(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let source = if let Some(data) = fields.take_text("file_data") {
        data_uri(&data)?
    } else if let Some(url) = fields.take_text("file_url") {
        MediaSource::Url { url }
    } else {
        MediaSource::File { id: fields.take_text("file_id")? }
    };
    let title = fields.take_text("filename");
    Some(Document { source, title, context: None, extra: keep(&fields, Vec::new()) }.into())
}
