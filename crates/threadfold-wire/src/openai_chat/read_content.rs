//! Reading the content of messages and results.

use super::marks::{CODEC, opaque_part, opaque_string};
use crate::{
    contract::WireError,
    json::{Fields, Path, Raw},
    openai::{data_uri, result_text},
};
use threadfold_core::message::{ContentBlock, Document, Image, MediaSource, TextBlock};

/// Whose content is read: that decides which parts are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    System,
    User,
    Assistant,
    Tool,
}

/// Takes the content out of a message: a string, an array of parts, or nothing where that is allowed.
/// Its form is marked on the message.
pub(super) fn take_content(
    message: &mut Fields<'_>,
    speaker: Speaker,
    path: Path<'_>,
) -> Result<Vec<ContentBlock>, WireError> {
    const EXPECTED: &str = "a string or an array";
    let path = Path::Field(&path, "content");
    let may_lack = matches!(speaker, Speaker::Assistant | Speaker::Tool);
    let (blocks, form) = match message.take("content") {
        None if may_lack => (Vec::new(), Some("absent")),
        None => return Err(path.missing(EXPECTED)),
        // `null` is the usual form of an assistant message that only calls.
        Some(raw) if raw.get() == "null" && may_lack => {
            (Vec::new(), (speaker == Speaker::Tool).then_some("null"))
        }
        Some(raw) if raw.is_text() => string(raw, speaker),
        Some(raw) => array(raw.items().ok_or_else(|| path.mismatch(EXPECTED, raw))?, speaker),
    };
    if let Some(form) = form {
        message.mark("~content", form);
    }
    Ok(blocks)
}

/// The blocks of a content, and the mark of its form.
type Content = (Vec<ContentBlock>, Option<&'static str>);

/// Blank text is no text block, because other providers refuse those and repairs take them out.
/// Here it is valid, so it is kept as an opaque part.
fn string(raw: Raw<'_>, speaker: Speaker) -> Content {
    let block = match (speaker, raw.text()) {
        (Speaker::Assistant, Some(text)) if text.is_empty() => return (Vec::new(), Some("empty")),
        (Speaker::Tool, Some(text)) if text.is_empty() => return (Vec::new(), None),
        (Speaker::Tool, Some(text)) => result_text(CODEC, text, Fields::default()),
        (_, Some(text)) if !text.is_blank() => ContentBlock::text(text),
        (_, _) => opaque_string(raw),
    };
    (vec![block], None)
}

fn array(parts: Vec<Raw<'_>>, speaker: Speaker) -> Content {
    let form = match parts.len() {
        0 => Some("empty_array"),
        1 => Some("array"),
        _ => None,
    };
    let part = |raw: Raw<'_>| part(raw, speaker).unwrap_or_else(|| opaque_part(raw));
    (parts.into_iter().map(part).collect(), form)
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
                return Some(result_text(CODEC, text, fields));
            }
            (!text.is_blank()).then(|| TextBlock { text, extra: fields.keep(CODEC) }.into())
        }
        "refusal" if speaker == Speaker::Assistant => {
            let text = fields.take_text("refusal").filter(|text| !text.is_blank())?;
            fields.mark("~as", "refusal_part");
            Some(TextBlock { text, extra: fields.keep(CODEC) }.into())
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
    fields.note_inner("image_url", &image);
    Some(Image { source, extra: fields.keep(CODEC) }.into())
}

fn document(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let mut file = Fields::of(fields.take("file")?)?;
    let source = match file.take_text("file_data") {
        Some(data) => data_uri(&data)?,
        None => MediaSource::File { id: file.take_text("file_id")? },
    };
    let title = file.take_text("filename");
    fields.note_inner("file", &file);
    Some(Document { source, title, context: None, extra: fields.keep(CODEC) }.into())
}
