//! How many bytes of text messages hold.

use crate::message::{ContentBlock, MediaSource, Message, ahead};

/// Returns the bytes of text in messages: what they hold, not what the wire adds.
///
/// ```
/// use threadfold::{Message, tokens};
///
/// assert_eq!(tokens::text_bytes(&[Message::user("hello")]), 5);
/// ```
#[must_use]
pub fn text_bytes(messages: &[Message]) -> u64 {
    ahead(messages).map(message_bytes).fold(0, u64::saturating_add)
}

/// Returns the bytes of text in one message.
pub(crate) fn message_bytes(message: &Message) -> u64 {
    message.content.iter().map(block_bytes).fold(0, u64::saturating_add)
}

pub(super) fn block_bytes(block: &ContentBlock) -> u64 {
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
            return result.content.iter().map(block_bytes).fold(0, u64::saturating_add);
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
