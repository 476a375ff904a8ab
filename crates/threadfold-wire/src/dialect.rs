//! The dialects for which this crate has a codec.

use std::str::FromStr;

use threadfold_core::message::*;

use crate::{
    asked::CompactionAsked, assembly::*, codec::Codec, contract::*, json::*, options::*,
    stream::AnswerBuilder,
};

/// A dialect of a provider, and its codec. Each variant needs the feature of its dialect.
///
/// ```
/// use threadfold::wire::{Dialect, WireFormat};
///
/// assert_eq!(Dialect::OpenAiChat.name(), "openai-chat");
/// assert_eq!("openai-chat".parse(), Ok(Dialect::OpenAiChat));
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

/// The mark of a request whose body had halves of characters: their number.
const HALVES: &str = "~halves";

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

    fn codec(self) -> &'static Codec {
        match self {
            #[cfg(feature = "anthropic")]
            Self::Anthropic => &crate::anthropic::CODEC,
            #[cfg(feature = "bedrock-converse")]
            Self::BedrockConverse => &crate::converse::CODEC,
            #[cfg(feature = "gemini")]
            Self::Gemini => &crate::gemini::CODEC,
            #[cfg(feature = "openai-chat")]
            Self::OpenAiChat => &crate::openai_chat::CODEC,
            #[cfg(feature = "openai-responses")]
            Self::OpenAiResponses => &crate::openai_responses::CODEC,
        }
    }
}

impl FromStr for Dialect {
    type Err = WireError;

    /// Reads the name of a codec, or `anthropic` for `anthropic-messages`.
    ///
    /// ```
    /// use threadfold::wire::Dialect;
    ///
    /// assert_eq!("openai-chat".parse(), Ok(Dialect::OpenAiChat));
    /// let error = "openai".parse::<Dialect>().unwrap_err();
    /// assert!(error.to_string().starts_with("there is no dialect \"openai\"; there are "));
    /// ```
    fn from_str(name: &str) -> Result<Self, WireError> {
        let full = if name == "anthropic" { "anthropic-messages" } else { name };
        let found = Self::ALL.iter().copied().find(|dialect| dialect.name() == full);
        found.ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|dialect| dialect.name()).collect();
            WireError::UnknownDialect { found: name.to_owned(), known: known.join(", ") }
        })
    }
}

impl WireFormat for Dialect {
    fn name(&self) -> &'static str {
        self.codec().name
    }

    fn decode_slice(&self, body: &[u8], options: &DecodeOptions) -> Result<Request, WireError> {
        let DecodeLimits { bytes, messages, depth } = options.limits;
        check(body.len(), bytes, |found, limit| WireError::TooLarge { found, limit })?;
        let (body, halves) = without_halves(body);
        read_whole(&body, |raw| {
            let mut fields = Fields::read(raw, Path::Body)?;
            if depth < usize::MAX {
                check(raw.depth(), depth, |found, limit| WireError::TooDeep { found, limit })?;
            }
            for field in ["messages", "input", "contents"] {
                let found = fields.get(field).map_or(0, Raw::count);
                check(found, messages, |found, limit| WireError::TooManyMessages { found, limit })?;
            }
            if halves > 0 {
                fields.note(HALVES, Json::from_compact(halves.to_string()));
            }
            (self.codec().read)(fields, options)
        })
    }

    fn encode(&self, request: &Request, options: &EncodeOptions) -> Encoded {
        let mut encoded = (self.codec().write)(request, options);
        let halves = request.extra.fields().find(|(key, _)| *key == HALVES);
        if let Some(count) = halves.and_then(|(_, json)| Raw::of(json).whole_number()) {
            encoded.adjustments.push(Adjustment::whole(Change::CharactersReplaced { count }));
        }
        encoded
    }

    fn compaction_request(&self, request: Request, instructions: Option<&str>) -> Option<Request> {
        self.codec().compaction.as_ref().map(|of| (of.request)(request, instructions))
    }

    fn compaction_asked(&self, request: &Request) -> Option<CompactionAsked> {
        (self.codec().compaction.as_ref()?.asked)(request)
    }

    fn compaction_answer(&self, model: &str, summary: &str, usage: Usage) -> Option<Json> {
        self.codec().compaction.as_ref().map(|of| (of.answer)(model, summary, usage))
    }

    fn decode_response(&self, body: &[u8]) -> Result<Answer, WireError> {
        read_answer(body, self.codec().read_answer)
    }

    fn answer_builder(&self) -> Box<dyn AnswerBuilder> {
        let codec = self.codec();
        (codec.builder)(codec.read_answer)
    }
}

/// Refuses a body of which there is more than the limit allows.
fn check(
    found: usize,
    limit: usize,
    error: impl FnOnce(usize, usize) -> WireError,
) -> Result<(), WireError> {
    if found > limit { Err(error(found, limit)) } else { Ok(()) }
}
