//! The endpoint that a request addresses, and the relevant fields of its body.

use std::borrow::Cow;

use hyper::Method;
use serde::{Deserialize, de::IgnoredAny};

use crate::input::Dialect;

/// The endpoint that a request addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// An answer of a model.
    Answer(Dialect),
    /// The token count of a request in the Anthropic dialect.
    Count,
    /// Anything else, which is passed on.
    Other,
}

/// The known paths, by their last parts.
const PATHS: [(&str, Endpoint); 4] = [
    ("/messages", Endpoint::Answer(Dialect::Anthropic)),
    ("/messages/count_tokens", Endpoint::Count),
    ("/chat/completions", Endpoint::Answer(Dialect::OpenAiChat)),
    ("/responses", Endpoint::Answer(Dialect::OpenAiResponses)),
];

/// The fields of a body besides its messages.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Head<'a> {
    #[serde(borrow)]
    pub(super) model: Option<Cow<'a, str>>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
    previous_response_id: Option<IgnoredAny>,
    conversation: Option<IgnoredAny>,
}

impl Endpoint {
    pub(super) fn of(method: &Method, path: &str) -> Self {
        if method != Method::POST {
            return Self::Other;
        }
        let path = path.trim_end_matches('/');
        let known = PATHS.into_iter().find(|(end, _)| path.ends_with(end));
        known.map_or(Self::Other, |(_, endpoint)| endpoint)
    }

    pub(super) fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Answer(dialect) => Some(dialect),
            Self::Count => Some(Dialect::Anthropic),
            Self::Other => None,
        }
    }
}

impl Head<'_> {
    /// The tokens that the request reserves for its answer.
    pub(super) fn max_output(&self) -> u64 {
        let limits = [self.max_tokens, self.max_completion_tokens, self.max_output_tokens];
        limits.into_iter().flatten().max().unwrap_or(0)
    }

    /// Whether the body holds the whole thread. If the provider stores the beginning, the body has
    /// only the end, and changing that would break the link.
    pub(super) fn is_whole(&self) -> bool {
        self.previous_response_id.is_none() && self.conversation.is_none()
    }
}
