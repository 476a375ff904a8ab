//! What counts tokens: one trait, of which hosts write one method.

use std::fmt;

use crate::message::{ContentBlock, MediaSource, Message, Request, SharedVec, ToolSpec, ahead};

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

    /// Returns the tokens of messages: their sum, for a thread counts each when it comes.
    fn messages(&self, messages: &[Message]) -> u64 {
        ahead(messages).map(|message| self.message(message)).fold(0, u64::saturating_add)
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

const _: Option<Box<dyn TokenCounter>> = None;
