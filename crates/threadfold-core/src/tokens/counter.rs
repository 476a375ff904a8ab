//! The trait of token counters.

use std::fmt;

use super::media_rule::MediaRule;
use crate::message::{
    ContentBlock, MediaSource, Message, Request, ToolSpec, markup,
    measure::{self, MESSAGE_TOKENS},
};

/// Counts tokens. Only [`text`](Self::text) is required; the other methods add up its counts.
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
        summed(self, message)
    }

    /// Returns the tokens of a block. Signatures count as zero: a provider turns one back into its
    /// reasoning, whose text is counted.
    fn block(&self, block: &ContentBlock) -> u64 {
        let rule = self.media_rule();
        measure::block_tokens(
            block,
            |text| self.text(text),
            |nested| self.block(nested),
            |image| rule.image(image),
            |source| self.media(source),
            |opaque| rule.sound(opaque),
        )
    }

    /// Returns the rule by which pictures and documents count. The default is
    /// [`MediaRule::Anthropic`].
    fn media_rule(&self) -> MediaRule {
        MediaRule::default()
    }

    /// Returns the tokens of a document: by its pages if they can be counted, otherwise an estimate
    /// that depends on where its content is.
    fn media(&self, source: &MediaSource) -> u64 {
        let pages = self.media_rule().document(source);
        pages.unwrap_or_else(|| measure::media_tokens(source, |text| self.text(text)))
    }

    /// Returns the tokens of messages. This must be the sum over the messages, because a thread
    /// counts each when it is appended.
    fn messages(&self, messages: &[Message]) -> u64 {
        messages.iter().map(|message| self.message(message)).fold(0, u64::saturating_add)
    }

    /// Returns the tokens of tool definitions.
    fn tools(&self, tools: &[ToolSpec]) -> u64 {
        let texts = tools.iter().flat_map(|tool| {
            let extra = tool.extra.fields().map(|(_, json)| json.as_str());
            [&*tool.name, &*tool.description, tool.input_schema.as_str()].into_iter().chain(extra)
        });
        texts.map(|text| self.text(text)).fold(0, u64::saturating_add)
    }

    /// Returns the tokens of a whole request: system prompt, tools and thread.
    fn request(&self, request: &Request) -> u64 {
        let tokens = self.tools(&request.tools).saturating_add(self.messages(&request.system));
        tokens.saturating_add(self.messages(&request.messages))
    }
}

/// Returns the tokens of the blocks of a message and of its framing.
pub(super) fn summed(counter: &(impl TokenCounter + ?Sized), message: &Message) -> u64 {
    let blocks = message.content.iter().map(|block| counter.block(block));
    let tokens = blocks.fold(MESSAGE_TOKENS, u64::saturating_add);
    // Most dialects write the name around each text.
    let author = message.author.as_ref().map_or(0, |author| {
        let tags = counter.text(&markup::authored(author, ""));
        tags.saturating_mul(message.texts().count().max(1) as u64)
    });
    tokens.saturating_add(author)
}

const _: Option<Box<dyn TokenCounter>> = None;
