//! The shadow of a host's message: a message of ours with one block for each part.

use super::{
    host_message::{HostMessage, Part},
    words::Words,
};
use crate::message::{
    ContentBlock, Document, Image, Json, MediaSource, Message, Opaque, Role, Summary, Text,
    Thinking, ToolInput, ToolResult, ToolUse, markup,
};

/// The codec of a block that stands for a part which only its host understands.
const HOST: &str = "host";

/// Returns the shadow of a message: its role and one block for each part, for any function of this
/// crate. Shared texts stay shared; others are copied.
///
/// ```
/// use threadfold::{Message, Role, foreign::shadow};
///
/// assert_eq!(shadow(&(Role::User, "hi".to_owned())), Message::user("hi"));
/// ```
#[must_use]
pub fn shadow<M: HostMessage>(message: &M) -> Message {
    let role = message.role();
    let content = message.parts().into_iter().map(block).collect();
    let mut shadow = Message::new(role, content);
    let is_untyped = role == Role::User && !message.is_typed();
    let (usage, author) = (message.usage(), message.author());
    if is_untyped || usage.is_some() || author.is_some() {
        let parts = shadow.make_mut();
        (parts.untyped, parts.usage, parts.author) = (is_untyped, usage, author);
    }
    shadow
}

/// Returns the shadows of a thread, in order.
///
/// ```
/// use threadfold::{Role, foreign::shadows, legality};
///
/// let thread = ["one", "two", "three"].map(|text| (Role::User, text.to_owned()));
/// assert_eq!(legality::cut_points(&shadows(&thread)), [0, 1, 2, 3]);
/// ```
#[must_use]
pub fn shadows<M: HostMessage>(messages: &[M]) -> Vec<Message> {
    messages.iter().map(shadow).collect()
}

fn block(part: Part<'_>) -> ContentBlock {
    match part {
        Part::Text(text) => ContentBlock::text(text.into_text()),
        Part::Added(text) => added(text.into_text()),
        Part::Reasoning(text) => Thinking::new(text.into_text(), None).into(),
        Part::Image { pixels } => image(pixels).into(),
        Part::Document { title, text } => document(title, text).into(),
        Part::Call { id, name, input } => {
            let input = ToolInput::Text(input.into_text());
            ToolUse::new(id.into_text(), name.into_text(), input).into()
        }
        Part::Result { id, content, is_error } => {
            let content = content.into_iter().map(block).collect();
            let result = ToolResult::new(id.into_text(), content);
            // A result that nests too deeply is an error already.
            ToolResult { is_error: result.is_error || is_error, ..result }.into()
        }
        Part::Native { bytes } => Opaque::new(HOST, native(bytes)).into(),
    }
}

/// The block that a plan added as this text.
fn added(text: Text) -> ContentBlock {
    match markup::read_summary(&text) {
        Some(summary) => Summary::new(summary).into(),
        None => ContentBlock::text(text),
    }
}

/// A picture without pixels counts by its size in pixels, so the shadow holds only a header.
fn image(pixels: Option<(u64, u64)>) -> Image {
    let Some((width, height)) = pixels else {
        return Image::new(MediaSource::Url { url: Text::default() });
    };
    let data = gif_header(width, height).into();
    Image::new(MediaSource::Base64 { media_type: "image/gif".into(), data })
}

/// The header of a GIF of this size, in Base64. Providers scale down sides of more than a few
/// thousand pixels, so the bound of the format changes no count.
fn gif_header(width: u64, height: u64) -> String {
    const DIGITS: [char; 64] = {
        let mut digits = ['A'; 64];
        let mut at = 0;
        while at < 64 {
            let byte = match at {
                0..26 => b'A' + at,
                26..52 => b'a' + (at - 26),
                52..62 => b'0' + (at - 52),
                62 => b'+',
                _ => b'/',
            };
            #[expect(clippy::indexing_slicing, reason = "the index is below 64")]
            {
                digits[at as usize] = byte as char;
            }
            at += 1;
        }
        digits
    };
    let [width, height] =
        [width, height].map(|side| u16::try_from(side.max(1)).unwrap_or(u16::MAX).to_le_bytes());
    // Two bytes of padding make four groups of three bytes.
    let bytes = [&b"GIF89a"[..], &width, &height, &[0, 0]].concat();
    let groups = bytes.chunks_exact(3).flat_map(|group| {
        let bits = group.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| DIGITS.get(bits >> shift & 63).copied().unwrap_or('A'))
    });
    groups.collect()
}

fn document(title: Words<'_>, text: Option<Words<'_>>) -> Document {
    let source = match text {
        Some(text) => MediaSource::Text { media_type: "text/plain".into(), text: text.into_text() },
        None => MediaSource::Url { url: Text::default() },
    };
    let title = Some(title).filter(|title| !title.is_empty()).map(Words::into_text);
    Document { title, ..Document::new(source) }
}

/// A JSON text of this many bytes.
fn native(bytes: usize) -> Json {
    Json::from(serde_json::Value::from(".".repeat(bytes.saturating_sub(2))))
}

/// Whether a message is the shadow of a host's message, or a message that a plan inserted and that
/// the host made from its texts. The texts are compared, not copied.
pub(crate) fn is_shadow_of<M: HostMessage>(shadow: &Message, message: &M) -> bool {
    let role = message.role();
    let parts = message.parts();
    shadow.role == role
        && shadow.author == message.author()
        && shadow.content.len() == parts.len()
        && shadow.content.iter().zip(&parts).all(|(block, part)| is_block_of(role, block, part))
}

fn is_block_of(role: Role, block: &ContentBlock, part: &Part<'_>) -> bool {
    match (block, part) {
        (ContentBlock::Thinking(thinking), Part::Reasoning(text)) => *thinking.text == **text,
        (ContentBlock::Image(shadow), Part::Image { pixels }) => *shadow == image(*pixels),
        (ContentBlock::Document(shadow), Part::Document { title, text }) => {
            let is_title = shadow.title.as_deref().unwrap_or_default() == &**title;
            let is_text = match (&shadow.source, text) {
                (MediaSource::Text { text: shadow, .. }, Some(text)) => **shadow == **text,
                (MediaSource::Url { .. }, None) => true,
                _ => false,
            };
            is_title && is_text
        }
        (ContentBlock::ToolUse(call), Part::Call { id, name, input }) => {
            *call.id == **id && *call.name == **name && call.input.as_str() == &**input
        }
        (ContentBlock::ToolResult(result), Part::Result { id, content, is_error }) => {
            *result.tool_use_id == **id
                && result.is_error == *is_error
                && result.content.len() == content.len()
                && result.content.iter().zip(content).all(|(block, part)| {
                    // Inside a result no block has tags.
                    is_block_of(role, block, part)
                })
        }
        (ContentBlock::Opaque(opaque), Part::Native { bytes }) => {
            opaque.value.as_str().len() == (*bytes).max(2)
        }
        // What another compaction left is a summary in its own words.
        (ContentBlock::Summary(summary), Part::Text(text)) if *summary.text == **text => true,
        (block, Part::Text(text) | Part::Added(text)) => {
            words_of(role, block).is_some_and(|words| *words == **text)
        }
        _ => false,
    }
}

/// The text for a block that a plan may insert, as codecs write it; `None` for a block that is not
/// written as text.
pub(super) fn words_of(role: Role, block: &ContentBlock) -> Option<Text> {
    Some(match block {
        ContentBlock::Text(block) => block.text.clone(),
        ContentBlock::Summary(summary) => markup::summary(role, summary),
        ContentBlock::SystemReminder(block) => markup::reminder(&block.text).into(),
        ContentBlock::ContextUpdate(update) => markup::context_update(update).into(),
        ContentBlock::Checkpoint(checkpoint) => markup::checkpoint(checkpoint.id).into(),
        ContentBlock::Image(_)
        | ContentBlock::Document(_)
        | ContentBlock::Thinking(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::ToolUse(_)
        | ContentBlock::ToolResult(_)
        | ContentBlock::ServerToolUse(_)
        | ContentBlock::ServerToolResult(_)
        | ContentBlock::Opaque(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::picture_size;

    #[test]
    fn a_shadow_of_a_picture_has_its_size_in_pixels() {
        for size in [(1, 1), (640, 480), (1_000, 1_000), (65_535, 3)] {
            assert_eq!(picture_size(&gif_header(size.0, size.1)), Some(size));
        }
    }

    #[test]
    fn a_native_part_counts_by_its_bytes() {
        assert_eq!(native(0).as_str().len(), 2);
        assert_eq!(native(700).as_str().len(), 700);
    }
}
