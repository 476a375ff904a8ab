//! Reading the content of messages and results.

use super::marks::{CODEC, Field, inner, keep, mark, opaque_part, opaque_string};
use crate::{
    contract::WireError,
    fields::{Fields, Path, is_text, items, text},
    openai::{data_uri, result_text},
    raw::Raw,
};
use threadfold_core::message::{ContentBlock, Document, Image, MediaSource, TextBlock};

/// Who says it: that decides which parts are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    System,
    User,
    Assistant,
    Tool,
}

/// A content, and the mark of its form.
pub(super) struct Content {
    pub(super) blocks: Vec<ContentBlock>,
    pub(super) form: Option<Field>,
}

/// Reads a content: a string, an array of parts, or nothing where that is allowed.
pub(super) fn content(
    raw: Option<Raw<'_>>,
    speaker: Speaker,
    path: Path<'_>,
) -> Result<Content, WireError> {
    let may_lack = matches!(speaker, Speaker::Assistant | Speaker::Tool);
    match raw {
        None if may_lack => Ok(Content::empty(Some("absent"))),
        None => Err(path.missing("a string or an array")),
        Some(raw) if raw.get() == "null" && may_lack => {
            // It is the usual form where an assistant only calls.
            Ok(Content::empty((speaker == Speaker::Tool).then_some("null")))
        }
        Some(raw) if is_text(raw) => Ok(string(raw, speaker)),
        Some(raw) => {
            let parts = items(raw).ok_or_else(|| path.mismatch("a string or an array", raw))?;
            Ok(array(parts, speaker))
        }
    }
}

impl Content {
    fn empty(form: Option<&str>) -> Self {
        Self { blocks: Vec::new(), form: form.map(|form| mark("~content", form)) }
    }
}

/// Blank text is no text block, because other providers refuse those and repairs take them out.
/// Here it is valid, so it is kept as an opaque part.
fn string(raw: Raw<'_>, speaker: Speaker) -> Content {
    match (speaker, text(raw)) {
        (Speaker::Assistant, Some(text)) if text.is_empty() => Content::empty(Some("empty")),
        (Speaker::Tool, Some(text)) if text.is_empty() => Content::empty(None),
        (Speaker::Tool, Some(text)) => {
            let block = result_text(CODEC, text, &Fields::default());
            Content { blocks: vec![block], form: None }
        }
        (_, Some(text)) if !text.is_blank() => {
            Content { blocks: vec![ContentBlock::text(text)], form: None }
        }
        (_, _) => Content { blocks: vec![opaque_string(raw)], form: None },
    }
}

fn array(parts: Vec<Raw<'_>>, speaker: Speaker) -> Content {
    let part = |raw: Raw<'_>| part(raw, speaker).unwrap_or_else(|| opaque_part(raw));
    match parts.as_slice() {
        [] => Content::empty(Some("empty_array")),
        [one] => Content { blocks: vec![part(*one)], form: Some(mark("~content", "array")) },
        _ => Content { blocks: parts.into_iter().map(part).collect(), form: None },
    }
}

/// Reads a part; `None` if it is not one that is known here.
fn part(raw: Raw<'_>, speaker: Speaker) -> Option<ContentBlock> {
    let mut fields = Fields::of(raw)?;
    let kind = fields.take_word("type")?;
    let media = matches!(speaker, Speaker::User | Speaker::Tool);
    match kind.as_ref() {
        "text" => {
            let text = fields.take_text("text")?;
            if speaker == Speaker::Tool {
                return Some(result_text(CODEC, text, &fields));
            }
            (!text.is_blank()).then(|| TextBlock { text, extra: keep(&fields, Vec::new()) }.into())
        }
        "refusal" if speaker == Speaker::Assistant => {
            let text = fields.take_text("refusal").filter(|text| !text.is_blank())?;
            let extra = keep(&fields, vec![mark("~as", "refusal_part")]);
            Some(TextBlock { text, extra }.into())
        }
        "image_url" if media => image(fields),
        "file" if media => document(fields),
        _ => None,
    }
}

fn image(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let mut image = Fields::of(fields.take("image_url")?)?;
    let url = image.take_text("url")?;
    let source = data_uri(&url).unwrap_or(MediaSource::Url { url });
    let own = inner("image_url", &image).into_iter().collect();
    Some(Image { source, extra: keep(&fields, own) }.into())
}

fn document(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let mut file = Fields::of(fields.take("file")?)?;
    let source = match file.take_text("file_data") {
        Some(data) => data_uri(&data)?,
        None => MediaSource::File { id: file.take_text("file_id")? },
    };
    let title = file.take_text("filename");
    let extra = keep(&fields, inner("file", &file).into_iter().collect());
    Some(Document { source, title, context: None, extra }.into())
}
