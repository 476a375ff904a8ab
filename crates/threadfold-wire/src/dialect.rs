//! The dialects for which this crate has a codec.

use std::str::FromStr;

use serde_json::Value;
use threadfold_core::message::*;

use crate::{
    asked::CompactionAsked, assembly::*, codec::Codec, contract::*, json::*, mark, options::*,
    stream::AnswerBuilder,
};

/// A dialect of a provider, and its codec, which reads and writes request bodies, and reads answers.
/// Each variant needs the feature of its dialect.
///
/// Codecs are pure. They hold no client, key or address; a host sends the body that
/// [`encode`](Self::encode) returns and passes the answer to
/// [`decode_response`](Self::decode_response).
///
/// ```
/// use threadfold::wire::{Dialect, DecodeOptions, EncodeOptions};
///
/// // Out of one dialect into another.
/// let body = br#"{"model": "claude-sonnet-4-5", "max_tokens": 64,
///     "messages": [{"role": "user", "content": "Hi."}]}"#;
/// let request = Dialect::Anthropic.decode_slice(body, &DecodeOptions::default())?;
/// let options = EncodeOptions { model: Some("gpt-5".into()), ..EncodeOptions::default() };
/// let encoded = Dialect::OpenAiChat.encode(&request, &options);
/// assert!(encoded.body.as_str().contains(r#"{"role":"user","content":"Hi."}"#));
///
/// let answer = br#"{"choices": [{"finish_reason": "stop",
///     "message": {"role": "assistant", "content": "Hello!"}}]}"#;
/// assert_eq!(Dialect::OpenAiChat.decode_response(answer)?.text(), "Hello!");
/// # Ok::<(), threadfold::wire::WireError>(())
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

    /// The name of the dialect, such as `anthropic-messages`. It tags data that only this codec
    /// reads.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.codec().name
    }

    /// Returns the request of a body without losing anything: data for which [`Request`] has no
    /// field are kept in the `extra` of their message or block, or as an opaque block.
    ///
    /// # Errors
    ///
    /// [`WireError`] if the body is not JSON, or not a body of this dialect, with the path of the
    /// fault, or if it exceeds [`DecodeOptions::limits`]. Bytes that are not UTF-8 are not JSON. Of
    /// a field that a JSON object has twice, the last value counts.
    pub fn decode_slice(self, body: &[u8], options: &DecodeOptions) -> Result<Request, WireError> {
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
                fields.add(mark::HALVES, Json::from_compact(halves.to_string()));
            }
            (self.codec().read)(fields, options)
        })
    }

    /// Returns the request of a body that is already parsed. The order of keys and the text of
    /// numbers are those of the tree, which `serde_json` does not preserve.
    ///
    /// # Errors
    ///
    /// As [`decode_slice`](Self::decode_slice).
    pub fn decode(self, body: &Value, options: &DecodeOptions) -> Result<Request, WireError> {
        self.decode_slice(body.to_string().as_bytes(), options)
    }

    /// Returns the body of a request, valid under the rules of the dialect, and every change that
    /// this required.
    pub fn encode(self, request: &Request, options: &EncodeOptions) -> Encoded {
        let mut encoded = (self.codec().write)(request, options);
        let halves = request.extra.fields().find(|(key, _)| *key == mark::HALVES);
        if let Some(count) = halves.and_then(|(_, json)| Raw::of(json).whole_number()) {
            encoded.adjustments.push(Adjustment::whole(Change::CharactersReplaced { count }));
        }
        encoded
    }

    /// Returns the request that asks the provider to compact its messages instead of answering;
    /// `None` if the dialect has no such request. It is encoded, sent and answered like any other
    /// request; the answer holds opaque
    /// [compactions](threadfold_core::message::Opaque::is_compaction).
    ///
    /// `instructions` replaces the provider's own prompt for the compaction (Anthropic's
    /// `compaction.instructions`, SDK anthropic 2.14). OpenAI's `compaction_trigger` has no field
    /// for it (SDK openai 3.57), and its `instructions` are the system prompt, so there it is
    /// ignored.
    ///
    /// ```
    /// use threadfold::{Message, Request};
    /// use threadfold::wire::{Dialect, EncodeOptions};
    ///
    /// let request = Request::new(vec![Message::user("Hi.")]);
    /// assert_eq!(Dialect::OpenAiChat.compaction_request(request.clone(), None), None);
    /// let asked = Dialect::OpenAiResponses.compaction_request(request, None);
    /// let asked = asked.ok_or("it has a form")?;
    /// let body = Dialect::OpenAiResponses.encode(&asked, &EncodeOptions::default()).body;
    /// assert!(body.as_str().ends_with(r#"{"type":"compaction_trigger"}]}"#));
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn compaction_request(
        self,
        request: Request,
        instructions: Option<&str>,
    ) -> Option<Request> {
        self.codec().compaction.as_ref().map(|of| (of.request)(request, instructions))
    }

    /// Returns the compaction that a decoded request asks its server for, so that a gateway can
    /// compact instead of the provider; `None` if it asks for none.
    ///
    /// ```
    /// use threadfold::wire::{CompactionTime, DecodeOptions, Dialect};
    ///
    /// let body = br#"{"input": "Hi.",
    ///     "context_management": [{"type": "compaction", "compact_threshold": 200000}]}"#;
    /// let request = Dialect::OpenAiResponses.decode_slice(body, &DecodeOptions::default())?;
    /// let asked = Dialect::OpenAiResponses.compaction_asked(&request);
    /// assert_eq!(asked.map(|asked| asked.when), Some(CompactionTime::From(200_000)));
    /// # Ok::<(), threadfold::wire::WireError>(())
    /// ```
    #[must_use]
    pub fn compaction_asked(self, request: &Request) -> Option<CompactionAsked> {
        (self.codec().compaction.as_ref()?.asked)(request)
    }

    /// Returns the response body with which a gateway answers a request to compact now, with its
    /// own summary. The client sends it back in later requests, where it is read as a
    /// [`Summary`](threadfold_core::message::Summary).
    #[must_use]
    pub fn compaction_answer(self, model: &str, summary: &str, usage: Usage) -> Option<Json> {
        self.codec().compaction.as_ref().map(|of| (of.answer)(model, summary, usage))
    }

    /// Returns the answer in a response body.
    ///
    /// # Errors
    ///
    /// [`WireError`] if the body is not JSON, or not a response of this dialect, with the path of
    /// the fault.
    pub fn decode_response(self, body: &[u8]) -> Result<Answer, WireError> {
        read_answer(body, self.codec().read_answer)
    }

    /// Returns a builder that makes an answer from the events of its stream.
    #[must_use]
    pub fn answer_builder(self) -> Box<dyn AnswerBuilder> {
        let codec = self.codec();
        (codec.builder)(codec.read_answer)
    }

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

/// Refuses a body of which there is more than the limit allows.
fn check(
    found: usize,
    limit: usize,
    error: impl FnOnce(usize, usize) -> WireError,
) -> Result<(), WireError> {
    if found > limit { Err(error(found, limit)) } else { Ok(()) }
}
