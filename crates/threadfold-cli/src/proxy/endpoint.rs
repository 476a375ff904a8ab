//! The vendor and the endpoint that a request addresses, and the relevant fields of its body.

use std::borrow::Cow;

use hyper::{Method, body::Bytes};
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use super::trouble::Trouble;
use threadfold::wire::Dialect;

/// A vendor of models. Each has one upstream and keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vendor {
    Anthropic,
    OpenAi,
    Google,
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// The vendor that the path belongs to; `None` if the path alone does not say it.
    pub(super) vendor: Option<Vendor>,
    pub(super) endpoint: Endpoint,
}

/// The endpoint that a request addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// An answer of a model.
    Answer(Asked),
    /// The token count of a request in the Anthropic dialect.
    Count(Asked),
    /// Anything else, which is passed on.
    Other,
}

/// How a request with a thread, and its answer, are read, and who sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) dialect: Dialect,
    /// The model, if the path names it.
    pub(super) model: Option<String>,
    /// Whether an answer that is no event stream is an array of JSON that grows.
    pub(super) streams_array: bool,
    /// The client that sent it, by its own name; empty if it has none.
    pub(super) client: String,
}

/// A request that arrived, before its thread is read.
#[derive(Clone, Debug)]
pub(super) struct Arrived {
    pub(super) asked: Asked,
    /// The name of the upstream.
    pub(super) upstream: String,
    pub(super) body: Bytes,
}

/// The fields of a body besides its messages.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Head<'a> {
    #[serde(borrow)]
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "tokens")]
    max_tokens: Option<u64>,
    #[serde(deserialize_with = "tokens")]
    max_completion_tokens: Option<u64>,
    #[serde(deserialize_with = "tokens")]
    max_output_tokens: Option<u64>,
    #[serde(rename = "generationConfig", alias = "generation_config")]
    generation: Option<Generation>,
    previous_response_id: Option<IgnoredAny>,
    conversation: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Generation {
    #[serde(rename = "maxOutputTokens", alias = "max_output_tokens", deserialize_with = "tokens")]
    max_output: Option<u64>,
}

/// Reads a number of tokens. What is no such number counts as none: the provider judges it, and the
/// thread is compacted all the same.
fn tokens<'de, D: Deserializer<'de>>(field: D) -> Result<Option<u64>, D::Error> {
    /// No number is longer, so nothing is built of what is.
    const LONGEST: usize = 64;
    let json = <&RawValue>::deserialize(field)?.get();
    let value = Some(json).filter(|json| json.len() <= LONGEST);
    let value: Value = value.and_then(|json| json.parse().ok()).unwrap_or_default();
    let text = value.as_str().and_then(|text| text.parse().ok());
    Ok(value.as_u64().or_else(|| value.as_f64().map(|number| number as u64)).or(text))
}

impl Vendor {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "Anthropic",
            Self::OpenAi => "OpenAI",
            Self::Google => "Google",
        }
    }

    /// The option that sets the upstream of this vendor.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::Anthropic => "--anthropic",
            Self::OpenAi => "--openai",
            Self::Google => "--gemini",
        }
    }

    /// The vendor that this host belongs to; `None` for gateways and local servers.
    pub(super) fn of_host(host: &str) -> Option<Self> {
        const HOSTS: [(&str, Vendor); 4] = [
            ("anthropic.com", Vendor::Anthropic),
            ("openai.com", Vendor::OpenAi),
            ("chatgpt.com", Vendor::OpenAi),
            ("googleapis.com", Vendor::Google),
        ];
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_below = |domain: &str| {
            host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        HOSTS.into_iter().find(|(domain, _)| is_below(domain)).map(|(_, vendor)| vendor)
    }
}

impl Route {
    /// Decides by the whole path, never by its last part: `/v1/threads/ID/messages` belongs to
    /// OpenAI.
    pub(super) fn of(method: &Method, path: &str) -> Self {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let endpoint = match *method {
            Method::POST => Endpoint::of(&segments),
            _ => Endpoint::Other,
        };
        let vendor = match &endpoint {
            Endpoint::Answer(asked) | Endpoint::Count(asked) => {
                Some(of_dialect(asked.dialect, &segments))
            }
            Endpoint::Other => of_prefix(&segments),
        };
        Self { vendor, endpoint }
    }
}

impl Endpoint {
    fn of(segments: &[&str]) -> Self {
        let asked =
            |dialect| Asked { dialect, model: None, streams_array: false, client: String::new() };
        match segments {
            [.., models, call] if matches!(*models, "models" | "tunedModels") => {
                let Some((model, verb)) = call.rsplit_once(':') else { return Self::Other };
                if !matches!(verb, "generateContent" | "streamGenerateContent") {
                    return Self::Other;
                }
                let streams_array = verb == "streamGenerateContent";
                let model = Some(model.to_owned());
                Self::Answer(Asked { model, streams_array, ..asked(Dialect::Gemini) })
            }
            [root @ .., "messages"] if is_anthropic_root(root) => {
                Self::Answer(asked(Dialect::Anthropic))
            }
            [root @ .., "messages", "count_tokens"] if is_anthropic_root(root) => {
                Self::Count(asked(Dialect::Anthropic))
            }
            [root @ .., "chat", "completions"] if is_openai_root(root) => {
                Self::Answer(asked(Dialect::OpenAiChat))
            }
            [root @ .., "responses"] if is_openai_root(root) => {
                Self::Answer(asked(Dialect::OpenAiResponses))
            }
            _ => Self::Other,
        }
    }
}

/// The roots of the Anthropic dialect, at Anthropic and at gateways.
fn is_anthropic_root(root: &[&str]) -> bool {
    let root = root.strip_suffix(&["v1"]).unwrap_or(root);
    matches!(root, [] | ["anthropic"] | ["api"] | ["api", "anthropic"])
}

/// The roots of OpenAI's dialects: none, a version, or a deployment of Azure.
fn is_openai_root(root: &[&str]) -> bool {
    match root {
        [] | [.., "openai"] | [.., "deployments", _] => true,
        [.., last] => last
            .strip_prefix('v')
            .is_some_and(|version| version.starts_with(|char: char| char.is_ascii_digit())),
    }
}

/// The vendor of an endpoint. Google has one for Chat Completions too:
/// `/v1beta/openai/chat/completions`.
fn of_dialect(dialect: Dialect, segments: &[&str]) -> Vendor {
    if dialect == Dialect::Anthropic {
        Vendor::Anthropic
    } else if dialect == Dialect::Gemini {
        Vendor::Google
    } else {
        of_prefix(segments).unwrap_or(Vendor::OpenAi)
    }
}

/// The vendor that a path belongs to by its beginning, or by the verb at its end.
fn of_prefix(segments: &[&str]) -> Option<Vendor> {
    #[rustfmt::skip]
    const OPENAI: [&str; 21] = [
        "assistants", "audio", "batches", "chat", "chatkit", "completions", "containers",
        "conversations", "embeddings", "evals", "fine_tuning", "graders", "images", "moderations",
        "organization", "realtime", "responses", "threads", "uploads", "vector_stores", "videos",
    ];
    #[rustfmt::skip]
    const GOOGLE_VERBS: [&str; 12] = [
        "asyncBatchEmbedContent", "batchEmbedContents", "batchGenerateContent", "computeTokens",
        "countTokens", "embedContent", "generateAnswer", "generateContent", "predict",
        "predictLongRunning", "rawPredict", "streamGenerateContent",
    ];
    match segments {
        ["v1alpha" | "v1beta" | "v1beta1" | "upload" | "download", ..] => Some(Vendor::Google),
        [.., last]
            if last.rsplit_once(':').is_some_and(|(_, verb)| GOOGLE_VERBS.contains(&verb)) =>
        {
            Some(Vendor::Google)
        }
        ["v1", "complete" | "messages" | "organizations", ..]
        | ["anthropic", ..]
        | ["api", "anthropic", ..] => Some(Vendor::Anthropic),
        ["openai", ..] => Some(Vendor::OpenAi),
        ["v1", name, ..] if OPENAI.contains(name) => Some(Vendor::OpenAi),
        _ => None,
    }
}

impl<'a> Head<'a> {
    /// Reads the fields of a body. `model` is the model that the path names.
    pub(super) fn read(body: &'a [u8], model: Option<&'a str>) -> Result<Self, Trouble> {
        let mut head: Self = serde_json::from_slice(body)?;
        head.model = model.map(Cow::Borrowed).or(head.model);
        Ok(head)
    }

    /// The tokens that the request reserves for its answer.
    pub(super) fn max_output(&self) -> u64 {
        let limits = [
            self.max_tokens,
            self.max_completion_tokens,
            self.max_output_tokens,
            self.generation.as_ref().and_then(|generation| generation.max_output),
        ];
        limits.into_iter().flatten().max().unwrap_or(0)
    }

    /// The field that refers to the beginning of the thread, if the provider stores it. The body has
    /// only the end then, and changing that would break the link.
    pub(super) fn kept_by_provider(&self) -> Option<&'static str> {
        let previous = self.previous_response_id.is_some().then_some("previous_response_id");
        previous.or(self.conversation.is_some().then_some("conversation"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_one_vendor() {
        use Vendor::{Anthropic, Google, OpenAi};
        let rows = [
            ("/v1/messages", Some(Anthropic), Some(Dialect::Anthropic)),
            ("/messages", Some(Anthropic), Some(Dialect::Anthropic)),
            ("/anthropic/v1/messages/", Some(Anthropic), Some(Dialect::Anthropic)),
            ("/v1/messages/batches", Some(Anthropic), None),
            ("/v1/threads/thread_1/messages", Some(OpenAi), None),
            ("/v1/threads/v1/messages", Some(OpenAi), None),
            ("/v1/chat/completions", Some(OpenAi), Some(Dialect::OpenAiChat)),
            ("/chat/completions", Some(OpenAi), Some(Dialect::OpenAiChat)),
            ("/api/paas/v4/chat/completions", Some(OpenAi), Some(Dialect::OpenAiChat)),
            ("/openai/deployments/d/chat/completions", Some(OpenAi), Some(Dialect::OpenAiChat)),
            ("/v1/chat/completions/c1/messages", Some(OpenAi), None),
            ("/v1/responses", Some(OpenAi), Some(Dialect::OpenAiResponses)),
            ("/v1/responses/resp_1/cancel", Some(OpenAi), None),
            ("/v1beta/models/gemini-3:generateContent", Some(Google), Some(Dialect::Gemini)),
            ("/v1/models/gemini-3:streamGenerateContent", Some(Google), Some(Dialect::Gemini)),
            ("/v1beta/models/gemini-3:countTokens", Some(Google), None),
            ("/v1beta/openai/chat/completions", Some(Google), Some(Dialect::OpenAiChat)),
            ("/v1/models/ft:gpt:me", None, None),
            ("/v1/models", None, None),
            ("/api/tags", None, None),
        ];
        for (path, vendor, dialect) in rows {
            let route = Route::of(&Method::POST, path);
            let found = match &route.endpoint {
                Endpoint::Answer(asked) => Some(asked.dialect),
                Endpoint::Count(_) | Endpoint::Other => None,
            };
            assert_eq!((route.vendor, found), (vendor, dialect), "{path}");
        }
        let count = Route::of(&Method::POST, "/v1/messages/count_tokens");
        assert!(matches!(count.endpoint, Endpoint::Count(_)));
        assert_eq!(Route::of(&Method::GET, "/v1/messages").endpoint, Endpoint::Other);
    }

    #[test]
    fn a_limit_of_the_answer_is_a_number_or_is_skipped() {
        let nested = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
        let rows = [
            ("7", 7),
            ("1e2", 100),
            ("2.5", 2),
            ("-3", 0),
            ("\"90\"", 90),
            ("\"\\u0039\"", 9),
            ("\"many\"", 0),
            ("null", 0),
            ("true", 0),
            ("{\"a\": [1]}", 0),
            // Whatever it is, nothing of it is built.
            (nested.as_str(), 0),
        ];
        for (json, tokens) in rows {
            let body = format!("{{\"model\": \"m\", \"max_tokens\": {json}}}");
            let head = Head::read(body.as_bytes(), None).unwrap();
            assert_eq!((head.max_output(), head.model.as_deref()), (tokens, Some("m")), "{json}");
        }
    }

    #[test]
    fn a_host_belongs_to_a_vendor_only_by_its_domain() {
        assert_eq!(Vendor::of_host("API.Anthropic.com."), Some(Vendor::Anthropic));
        assert_eq!(Vendor::of_host("generativelanguage.googleapis.com"), Some(Vendor::Google));
        assert_eq!(Vendor::of_host("notopenai.com"), None);
        assert_eq!(Vendor::of_host("openai.com.evil.test"), None);
    }
}
