//! Estimates from the number of bytes of a text.

use super::{counter::TokenCounter, media_rule::MediaRule};
use crate::message::{
    ContentBlock, Message,
    measure::{self, BYTES_PER_TOKEN},
};

/// Estimates tokens as bytes divided by a constant, rounded up.
///
/// ```
/// use threadfold::tokens::{ByteEstimate, TokenCounter};
///
/// assert_eq!(ByteEstimate::new(4).text("hello"), 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteEstimate {
    bytes_per_token: u64,
    media_rule: MediaRule,
}

impl ByteEstimate {
    /// Three bytes per token: for triggers, until a better ratio is known. On real coding threads
    /// current models have about 2.7 characters per token, so this estimate is slightly low there;
    /// [`Calibrated`](crate::tokens::Calibrated) learns the ratio.
    pub const TRIGGER: Self = Self::new(BYTES_PER_TOKEN);

    /// Four bytes per token: the common rule of thumb, for sizes that may be underestimated.
    pub const CHUNK: Self = Self::new(4);

    /// Returns an estimate with this many bytes per token; zero counts as one.
    ///
    /// ```
    /// use threadfold::{Message, TokenCounter, tokens::ByteEstimate};
    ///
    /// let message = Message::user("hello!");
    /// assert_eq!(ByteEstimate::new(2).message(&message), 7);
    /// assert_eq!(ByteEstimate::new(6).message(&message), 5);
    /// ```
    #[must_use]
    pub const fn new(bytes_per_token: u64) -> Self {
        let bytes_per_token = if bytes_per_token == 0 { 1 } else { bytes_per_token };
        Self { bytes_per_token, media_rule: MediaRule::Anthropic }
    }

    /// Returns the estimate with another rule for pictures and documents.
    ///
    /// ```
    /// use threadfold::tokens::{ByteEstimate, MediaRule, TokenCounter};
    ///
    /// let counter = ByteEstimate::TRIGGER.with_media_rule(MediaRule::Gemini);
    /// assert_eq!(counter.media_rule(), MediaRule::Gemini);
    /// ```
    #[must_use]
    pub const fn with_media_rule(self, media_rule: MediaRule) -> Self {
        Self { media_rule, ..self }
    }

    /// The bytes per token; at least one.
    #[must_use]
    pub const fn bytes_per_token(self) -> u64 {
        self.bytes_per_token
    }
}

impl Default for ByteEstimate {
    /// Returns [`ByteEstimate::TRIGGER`].
    fn default() -> Self {
        Self::TRIGGER
    }
}

impl TokenCounter for ByteEstimate {
    fn text(&self, text: &str) -> u64 {
        (text.len() as u64).div_ceil(self.bytes_per_token)
    }

    fn media_rule(&self) -> MediaRule {
        self.media_rule
    }
}

/// Returns the tokens of a conversation by a common rule of thumb: the text of each message at four
/// bytes per token, rounded up. Images, documents and what providers add to each message count as
/// zero, so the result is a lower bound.
///
/// Use it for numbers that are displayed; for triggers use [`ByteEstimate::TRIGGER`].
///
/// ```
/// use threadfold::{Message, tokens};
///
/// let messages = [Message::user("hello"), Message::assistant("hi")];
/// assert_eq!(tokens::estimate_conversation_tokens(&messages), 2 + 1);
/// ```
#[must_use]
pub fn estimate_conversation_tokens(messages: &[Message]) -> u64 {
    let tokens = messages.iter().map(|message| {
        let bytes = message.content.iter().map(block_bytes).fold(0, u64::saturating_add);
        bytes.div_ceil(4)
    });
    tokens.fold(0, u64::saturating_add)
}

/// Returns the bytes of text in messages, without what the wire format adds.
///
/// ```
/// use threadfold::{Message, tokens};
///
/// assert_eq!(tokens::text_bytes(&[Message::user("hello")]), 5);
/// ```
#[must_use]
pub fn text_bytes(messages: &[Message]) -> u64 {
    messages.iter().map(Message::text_bytes).fold(0, u64::saturating_add)
}

/// Returns the bytes of text in a block, without those of images and documents.
fn block_bytes(block: &ContentBlock) -> u64 {
    if let ContentBlock::ToolResult(result) = block {
        result.content.iter().map(block_bytes).fold(0, u64::saturating_add)
    } else if matches!(block, ContentBlock::Image(_) | ContentBlock::Document(_)) {
        0
    } else {
        measure::block_bytes(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::{Image, MediaSource, Request, Role, ToolResult, ToolSpec},
        tokens::MESSAGE_TOKENS,
    };

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

    #[test]
    fn four_bytes_a_token_are_the_classic_rule() {
        for (bytes, tokens) in [(100, 25), (5, 2), (0, 0)] {
            assert_eq!(ByteEstimate::CHUNK.text(&"x".repeat(bytes)), tokens);
        }
    }

    #[test]
    fn each_message_is_rounded_up_and_pictures_count_as_zero() {
        let data =
            MediaSource::Base64 { media_type: "image/png".into(), data: "a".repeat(99).into() };
        let shown = [ContentBlock::text("12345"), Image::new(data).into()];
        let messages = [
            Message::user("12345"),
            Message::new(Role::User, vec![ToolResult::new("t1", shown.into()).into()]),
        ];
        assert_eq!(estimate_conversation_tokens(&messages), 2 + 2);
        let text = "This is approximately twenty characters long test";
        assert_eq!(estimate_conversation_tokens(&[Message::user(text)]), 13);
        assert_eq!(estimate_conversation_tokens(&[]), 0);
    }
}
