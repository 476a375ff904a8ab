//! How many tokens something is.
//!
//! Exact counts need the tokenizer of the model, which providers keep to themselves, so a count
//! here is an estimate unless a host brings a better [`TokenCounter`]. The bytes of a text, divided
//! by a number, are the estimate that costs nothing: bytes rather than characters, because scripts
//! with longer characters have more tokens for each.

use std::fmt;

use crate::message::{ContentBlock, MediaSource, Message, Request, SharedVec, ToolSpec};

/// What a picture counts. Providers scale pictures down to about this many tokens.
pub const IMAGE_TOKENS: u64 = 1_600;

/// What a document counts whose bytes are elsewhere.
pub const DOCUMENT_TOKENS: u64 = 3_000;

/// What the framing of a message counts beside its content.
pub const MESSAGE_TOKENS: u64 = 4;

/// What counts tokens. Only [`text`](Self::text) is required; the rest adds up.
///
/// ```
/// use threadfold::{Message, tokens::TokenCounter};
///
/// #[derive(Debug)]
/// struct Words;
///
/// impl TokenCounter for Words {
///     fn text(&self, text: &str) -> u64 {
///         text.split_whitespace().count() as u64
///     }
/// }
/// assert_eq!(Words.message(&Message::user("one two")), 2 + 4);
/// ```
pub trait TokenCounter: fmt::Debug + Send + Sync {
    /// Returns the tokens of a text.
    fn text(&self, text: &str) -> u64;

    /// Returns the tokens of a message: its blocks and its framing.
    fn message(&self, message: &Message) -> u64 {
        let blocks = message.content.iter().map(|block| self.block(block));
        blocks.fold(MESSAGE_TOKENS, u64::saturating_add)
    }

    /// Returns the tokens of a block. Signatures count nothing: providers turn them back into the
    /// reasoning that they sign.
    fn block(&self, block: &ContentBlock) -> u64 {
        match block {
            ContentBlock::Text(block) => self.text(&block.text),
            ContentBlock::Image(_) => IMAGE_TOKENS,
            ContentBlock::Document(document) => {
                let around = document.title.iter().chain(&document.context);
                let around: u64 = around.map(|text| self.text(text)).sum();
                around.saturating_add(self.media(&document.source))
            }
            ContentBlock::Thinking(thinking) => self.text(&thinking.text),
            ContentBlock::RedactedThinking(thinking) => self.text(&thinking.data),
            ContentBlock::ToolUse(call) => {
                let around = self.text(&call.name).saturating_add(self.text(&call.id));
                around.saturating_add(self.text(call.input.as_str()))
            }
            ContentBlock::ToolResult(result) => {
                let content = result.content.iter().map(|block| self.block(block));
                content.fold(self.text(&result.tool_use_id), u64::saturating_add)
            }
            ContentBlock::ServerToolUse(call) => {
                self.text(&call.name).saturating_add(self.text(call.input.as_str()))
            }
            ContentBlock::ServerToolResult(result) => self.text(result.content.as_str()),
            ContentBlock::SystemReminder(block) => self.text(&block.text),
            ContentBlock::ContextUpdate(update) => {
                let paths = update.paths.iter().map(|path| self.text(path));
                paths.fold(self.text(&update.text), u64::saturating_add)
            }
            ContentBlock::Checkpoint(_) => self.text("<checkpoint:aaaaaa>"),
            ContentBlock::Summary(summary) => self.text(&summary.text),
            ContentBlock::Opaque(opaque) => self.text(opaque.value.as_str()),
        }
    }

    /// Returns the tokens of a document, by where its content is.
    fn media(&self, source: &MediaSource) -> u64 {
        match source {
            MediaSource::Text { text, .. } => self.text(text),
            // A page of a PDF is some 50 KB of Base64 and about 2,000 tokens.
            MediaSource::Base64 { data, .. } => (data.len() as u64 / 25).max(DOCUMENT_TOKENS),
            MediaSource::Url { .. } | MediaSource::File { .. } => DOCUMENT_TOKENS,
            MediaSource::Opaque { value, .. } => self.text(value.as_str()),
        }
    }

    /// Returns the tokens of messages.
    fn messages(&self, messages: &[Message]) -> u64 {
        messages.iter().map(|message| self.message(message)).fold(0, u64::saturating_add)
    }

    /// Returns the tokens of tool declarations.
    fn tools(&self, tools: &[ToolSpec]) -> u64 {
        let tool = |tool: &ToolSpec| {
            let named = self.text(&tool.name).saturating_add(self.text(&tool.description));
            let extra = tool.extra.fields().map(|(_, json)| self.text(json.as_str()));
            extra
                .fold(named, u64::saturating_add)
                .saturating_add(self.text(tool.input_schema.as_str()))
        };
        tools.iter().map(tool).fold(0, u64::saturating_add)
    }

    /// Returns the tokens of a whole request: system prompt, tools and thread.
    fn request(&self, request: &Request) -> u64 {
        let parts =
            [&request.system, &request.messages].map(|part: &SharedVec<_>| self.messages(part));
        parts.into_iter().fold(self.tools(&request.tools), u64::saturating_add)
    }
}

/// An estimate: the bytes of a text divided by a number, rounded up.
///
/// ```
/// use threadfold::tokens::{ByteEstimate, TokenCounter};
///
/// assert_eq!(ByteEstimate::new(4).text("hello"), 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteEstimate {
    bytes_per_token: u64,
}

impl ByteEstimate {
    /// Three bytes a token: for whatever a trigger decides. On real coding threads the tokenizers
    /// of current models give about 2.7 characters a token, so this errs on the safe side.
    pub const TRIGGER: Self = Self { bytes_per_token: 3 };

    /// Four bytes a token: the classic rule of thumb, for sizes that need not be safe.
    pub const CHUNK: Self = Self { bytes_per_token: 4 };

    /// Returns an estimate of this many bytes a token; zero counts as one.
    #[must_use]
    pub const fn new(bytes_per_token: u64) -> Self {
        Self { bytes_per_token: if bytes_per_token == 0 { 1 } else { bytes_per_token } }
    }
}

impl Default for ByteEstimate {
    /// [`ByteEstimate::TRIGGER`].
    fn default() -> Self {
        Self::TRIGGER
    }
}

impl TokenCounter for ByteEstimate {
    fn text(&self, text: &str) -> u64 {
        (text.len() as u64).div_ceil(self.bytes_per_token)
    }
}

/// Returns the bytes of text in messages: what they hold, not what the wire adds.
///
/// ```
/// use threadfold::{Message, tokens};
///
/// assert_eq!(tokens::text_bytes(&[Message::user("hello")]), 5);
/// ```
#[must_use]
pub fn text_bytes(messages: &[Message]) -> u64 {
    messages.iter().map(message_bytes).fold(0, u64::saturating_add)
}

/// Returns the bytes of text in one message.
pub(crate) fn message_bytes(message: &Message) -> u64 {
    message.content.iter().map(block_bytes).fold(0, u64::saturating_add)
}

fn block_bytes(block: &ContentBlock) -> u64 {
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

const _: Option<Box<dyn TokenCounter>> = None;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_rounds_up_and_never_divides_by_zero() {
        assert_eq!(ByteEstimate::TRIGGER.text(""), 0);
        assert_eq!(ByteEstimate::TRIGGER.text("1234"), 2);
        assert_eq!(ByteEstimate::new(0).text("1234"), 4);
    }

    #[test]
    fn a_request_counts_its_system_prompt_and_tools() {
        let spec = ToolSpec::new("read", "Reads.", serde_json::json!({}));
        let thread = Request::new(vec![Message::user("abc")]);
        let bare = ByteEstimate::TRIGGER.request(&thread);
        let dressed = Request { tools: vec![spec].into(), ..thread.with_system("abc") };
        assert_eq!(bare, 1 + MESSAGE_TOKENS);
        assert_eq!(ByteEstimate::TRIGGER.request(&dressed), 2 * bare + 2 + 2 + 1);
    }
}
