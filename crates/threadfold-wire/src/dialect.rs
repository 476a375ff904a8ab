//! The dialects for which this crate has a codec.

use threadfold_core::message::{Json, Request, Text, Turn, Usage};

use crate::{DecodeOptions, EncodeOptions, Encoded, TurnBuilder, WireError, WireFormat};

/// A dialect of a provider, and its codec. Each variant needs the feature of its dialect.
///
/// ```
/// use threadfold::wire::{Dialect, WireFormat};
///
/// let named = |name: &str| Dialect::ALL.iter().find(|dialect| dialect.name() == name);
/// assert_eq!(named("openai-chat"), Some(&Dialect::OpenAiChat));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// Anthropic Messages. The module [`anthropic`](crate::anthropic) describes its forms.
    #[cfg(feature = "anthropic")]
    Anthropic,
    /// AWS Bedrock Converse. The module [`converse`](crate::converse) describes its forms.
    #[cfg(feature = "bedrock-converse")]
    BedrockConverse,
    /// Gemini `generateContent`. The module [`gemini`](crate::gemini) describes its forms.
    #[cfg(feature = "gemini")]
    Gemini,
    /// OpenAI Chat Completions. The module [`openai_chat`](crate::openai_chat) describes its forms.
    #[cfg(feature = "openai-chat")]
    OpenAiChat,
    /// OpenAI Responses. The module [`openai_responses`](crate::openai_responses) describes its
    /// forms.
    #[cfg(feature = "openai-responses")]
    OpenAiResponses,
}

impl Dialect {
    /// The dialects whose features are enabled.
    pub const ALL: &[Self] = &[
        #[cfg(feature = "anthropic")]
        Self::Anthropic,
        #[cfg(feature = "bedrock-converse")]
        Self::BedrockConverse,
        #[cfg(feature = "gemini")]
        Self::Gemini,
        #[cfg(feature = "openai-chat")]
        Self::OpenAiChat,
        #[cfg(feature = "openai-responses")]
        Self::OpenAiResponses,
    ];

    fn codec(self) -> &'static dyn WireFormat {
        match self {
            #[cfg(feature = "anthropic")]
            Self::Anthropic => &crate::anthropic::Codec,
            #[cfg(feature = "bedrock-converse")]
            Self::BedrockConverse => &crate::converse::Codec,
            #[cfg(feature = "gemini")]
            Self::Gemini => &crate::gemini::Codec,
            #[cfg(feature = "openai-chat")]
            Self::OpenAiChat => &crate::openai_chat::Codec,
            #[cfg(feature = "openai-responses")]
            Self::OpenAiResponses => &crate::openai_responses::Codec,
        }
    }
}

impl WireFormat for Dialect {
    fn name(&self) -> &'static str {
        self.codec().name()
    }

    fn decode_slice(&self, body: &[u8], options: &DecodeOptions) -> Result<Request, WireError> {
        self.codec().decode_slice(body, options)
    }

    fn encode(&self, request: &Request, options: &EncodeOptions) -> Encoded {
        self.codec().encode(request, options)
    }

    fn compaction_request(&self, request: Request) -> Option<Request> {
        self.codec().compaction_request(request)
    }

    fn compaction_asked(&self, request: &Request) -> Option<(Option<u64>, Option<Text>)> {
        self.codec().compaction_asked(request)
    }

    fn compaction_answer(&self, model: &str, summary: &str, usage: Usage) -> Option<Json> {
        self.codec().compaction_answer(model, summary, usage)
    }

    fn decode_response(&self, body: &[u8]) -> Result<Turn, WireError> {
        self.codec().decode_response(body)
    }

    fn turn_builder(&self) -> Box<dyn TurnBuilder> {
        self.codec().turn_builder()
    }
}
