//! The dialects of servers: addresses, keys, headers.

use std::str::FromStr;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use threadfold::{
    message::{InvalidValue, ModelError, ModelErrorKind},
    wire::{self, AnthropicVersion},
};

use crate::key::Key;

/// The dialect of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    OpenAi,
    /// OpenAI Responses.
    Responses,
    /// Gemini `streamGenerateContent`.
    Gemini,
    /// Bedrock `converse-stream`, with an API key of Bedrock: this adapter does not sign requests.
    Bedrock,
    /// OpenAI Chat Completions as implemented by llama.cpp, Ollama, LM Studio, vLLM and gateways.
    /// Some of them know only the old name of the output limit, which OpenAI refuses.
    Compatible,
}

impl FromStr for Dialect {
    type Err = InvalidValue;

    fn from_str(name: &str) -> Result<Self, InvalidValue> {
        match name {
            "anthropic" => Ok(Self::Anthropic),
            "openai" => Ok(Self::OpenAi),
            "responses" => Ok(Self::Responses),
            "gemini" => Ok(Self::Gemini),
            "bedrock" => Ok(Self::Bedrock),
            "compatible" => Ok(Self::Compatible),
            _ => {
                let rule = "expected anthropic, openai, responses, gemini, bedrock or compatible";
                Err(InvalidValue::new("a dialect", rule, name))
            }
        }
    }
}

impl Dialect {
    /// The base URL of the vendor; `None` if there are many vendors.
    #[must_use]
    pub fn vendor_url(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("https://api.anthropic.com"),
            Self::OpenAi | Self::Responses => Some("https://api.openai.com/v1"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com"),
            Self::Bedrock | Self::Compatible => None,
        }
    }

    /// The usual environment variable for the key.
    #[must_use]
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi | Self::Responses | Self::Compatible => "OPENAI_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
            Self::Bedrock => "AWS_BEARER_TOKEN_BEDROCK",
        }
    }

    pub(crate) fn codec(self) -> wire::Dialect {
        match self {
            Self::Anthropic => wire::Dialect::Anthropic,
            Self::OpenAi | Self::Compatible => wire::Dialect::OpenAiChat,
            Self::Responses => wire::Dialect::OpenAiResponses,
            Self::Gemini => wire::Dialect::Gemini,
            Self::Bedrock => wire::Dialect::BedrockConverse,
        }
    }

    /// The path of a request, in segments, because a model's name may contain characters that must
    /// be escaped.
    pub(crate) fn path(self, model: &str) -> Vec<String> {
        let segments = match self {
            Self::Anthropic => vec!["v1", "messages"],
            Self::OpenAi | Self::Compatible => vec!["chat", "completions"],
            Self::Responses => vec!["responses"],
            Self::Gemini => {
                let streamed = format!("{model}:streamGenerateContent");
                return vec!["v1beta".to_owned(), "models".to_owned(), streamed];
            }
            Self::Bedrock => vec!["model", model, "converse-stream"],
        };
        segments.into_iter().map(str::to_owned).collect()
    }

    /// The fields of a body that are not part of the request.
    pub(crate) fn fields(self, limit: u64) -> Vec<(&'static str, Value)> {
        let usage = ("stream_options", json!({"include_usage": true}));
        let stream = ("stream", json!(true));
        match self {
            Self::Anthropic | Self::Responses => vec![stream],
            Self::Gemini | Self::Bedrock => Vec::new(),
            Self::OpenAi => vec![stream, usage],
            Self::Compatible => vec![stream, usage, ("max_tokens", json!(limit))],
        }
    }

    pub(crate) fn headers(
        self,
        anthropic: AnthropicVersion,
        key: Option<&Key>,
    ) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let version = HeaderName::from_static("anthropic-version");
        let (name, before) = match self {
            Self::Anthropic => {
                headers.insert(version, HeaderValue::from_static(anthropic.as_str()));
                (HeaderName::from_static("x-api-key"), "")
            }
            Self::Gemini => (HeaderName::from_static("x-goog-api-key"), ""),
            Self::OpenAi | Self::Responses | Self::Compatible | Self::Bedrock => {
                (AUTHORIZATION, "Bearer ")
            }
        };
        if let Some(key) = key {
            let value = HeaderValue::from_str(&format!("{before}{}", key.as_str()));
            let mut value = value.map_err(|_| {
                let words = "the key has characters that no header may have";
                ModelError::new(ModelErrorKind::Authentication, words)
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}
