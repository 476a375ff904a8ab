//! The size of blocks in bytes of text and in tokens.

use super::{
    content::{ContentBlock, Opaque},
    media::{Image, MediaSource},
};

/// Tokens counted for an image of unknown size. It is also the most that an image counts by
/// Anthropic's rule, because providers scale larger ones down.
pub const IMAGE_TOKENS: u64 = 1_600;

/// Tokens counted for a document whose content is not in the message.
pub const DOCUMENT_TOKENS: u64 = 3_000;

/// Tokens counted for the framing of a message, in addition to its content.
pub const MESSAGE_TOKENS: u64 = 4;

/// Bytes of text per token, until a better ratio is known.
pub(crate) const BYTES_PER_TOKEN: u64 = 3;

/// Returns the bytes of text in these blocks.
pub(super) fn bytes(blocks: &[ContentBlock]) -> u64 {
    blocks.iter().map(block_bytes).fold(0, u64::saturating_add)
}

/// Returns the tokens of a block. The closures count a text, a block inside a tool result, an
/// image, and the content of a document. Signatures count as zero: a provider turns one back into
/// its reasoning, whose text is counted.
pub(crate) fn block_tokens(
    block: &ContentBlock,
    text: impl Fn(&str) -> u64,
    nested: impl Fn(&ContentBlock) -> u64,
    image: impl Fn(&Image) -> u64,
    media: impl Fn(&MediaSource) -> u64,
    sound: impl Fn(&Opaque) -> Option<u64>,
) -> u64 {
    match block {
        ContentBlock::Text(block) => text(&block.text),
        ContentBlock::Image(block) => image(block),
        ContentBlock::Document(document) => {
            let around = document.title.iter().chain(&document.context);
            let around = around.map(|around| text(around));
            around.fold(media(&document.source), u64::saturating_add)
        }
        ContentBlock::Thinking(thinking) => text(&thinking.text),
        ContentBlock::RedactedThinking(thinking) => text(&thinking.data),
        ContentBlock::ToolUse(call) => {
            let around = text(&call.name).saturating_add(text(&call.id));
            around.saturating_add(text(call.input.as_str()))
        }
        ContentBlock::ToolResult(result) => {
            let content = result.content.iter().map(nested);
            content.fold(text(&result.tool_use_id), u64::saturating_add)
        }
        ContentBlock::ServerToolUse(call) => {
            text(&call.name).saturating_add(text(call.input.as_str()))
        }
        ContentBlock::ServerToolResult(result) => text(result.content.as_str()),
        ContentBlock::SystemReminder(block) => text(&block.text),
        ContentBlock::ContextUpdate(update) => {
            let paths = update.paths.iter().map(|path| text(path));
            paths.fold(text(&update.text), u64::saturating_add)
        }
        ContentBlock::Checkpoint(_) => text("<checkpoint:aaaaaa>"),
        ContentBlock::Summary(summary) => text(&summary.text),
        ContentBlock::Opaque(opaque) => {
            sound(opaque).unwrap_or_else(|| text(opaque.value.as_str()))
        }
    }
}

/// Returns the tokens of a document whose pages are not known, by where its content is.
pub(crate) fn media_tokens(source: &MediaSource, text: impl Fn(&str) -> u64) -> u64 {
    match source {
        MediaSource::Text { text: content, .. } => text(content),
        // A page of a PDF is some 50 KB of Base64 and about 2,000 tokens.
        MediaSource::Base64 { data, .. } => (data.len() as u64 / 25).max(DOCUMENT_TOKENS),
        MediaSource::Url { .. } | MediaSource::File { .. } => DOCUMENT_TOKENS,
        MediaSource::Opaque { value, .. } => text(value.as_str()),
    }
}

impl ContentBlock {
    /// The bytes of text in the block.
    #[doc(hidden)]
    #[must_use]
    pub fn text_bytes(&self) -> u64 {
        block_bytes(self)
    }
}

/// Returns the bytes of text in a block.
pub(crate) fn block_bytes(block: &ContentBlock) -> u64 {
    let length = match block {
        ContentBlock::Text(block) => block.text.len(),
        ContentBlock::Image(image) => media_bytes(&image.source),
        ContentBlock::Document(document) => {
            let around = document.title.iter().chain(&document.context);
            around.map(|text| text.len()).sum::<usize>() + media_bytes(&document.source)
        }
        ContentBlock::Thinking(thinking) => {
            thinking.text.len() + thinking.signature.as_ref().map_or(0, |signature| signature.len())
        }
        ContentBlock::RedactedThinking(thinking) => thinking.data.len(),
        ContentBlock::ToolUse(call) => call.name.len() + call.input.as_str().len(),
        ContentBlock::ToolResult(result) => {
            return bytes(&result.content);
        }
        ContentBlock::ServerToolUse(call) => call.name.len() + call.input.as_str().len(),
        ContentBlock::ServerToolResult(result) => result.content.as_str().len(),
        ContentBlock::SystemReminder(block) => block.text.len(),
        ContentBlock::ContextUpdate(update) => {
            update.text.len() + update.paths.iter().map(|path| path.len()).sum::<usize>()
        }
        ContentBlock::Checkpoint(_) => 0,
        ContentBlock::Summary(summary) => summary.text.len(),
        ContentBlock::Opaque(opaque) => opaque.value.as_str().len(),
    };
    length as u64
}

fn media_bytes(source: &MediaSource) -> usize {
    match source {
        MediaSource::Base64 { data, .. } => data.len(),
        MediaSource::Text { text, .. } => text.len(),
        MediaSource::Url { url } => url.len(),
        MediaSource::File { id } => id.len(),
        MediaSource::Opaque { value, .. } => value.as_str().len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Document;

    #[test]
    fn token_counts_saturate_instead_of_overflowing() {
        let mut document = Document::new(MediaSource::File { id: "f1".into() });
        (document.title, document.context) = (Some("a".into()), Some("b".into()));
        let most = |_: &str| u64::MAX;
        let block = ContentBlock::from(document);
        assert_eq!(block_tokens(&block, most, |_| 1, |_| 1, |_| 1, |_| None), u64::MAX);
    }
}
