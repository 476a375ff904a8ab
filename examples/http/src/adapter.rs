//! A [`Model`] over HTTP, to be copied: for Anthropic, OpenAI, Gemini, Bedrock, and whatever speaks
//! like OpenAI. Only Bedrock needs `event_stream.rs` beside it.
//!
//! A local server runs a model with a window of its own. [`HttpModel::window_of_server`] asks for it.
//!
//! What is its own is the request, the key, the wait before the next try, and no more: bodies and
//! errors are read by `threadfold::wire`, the stream by [`model::deltas_within`]. A stream that is
//! dropped closes the connection, and the provider stops.

use std::{
    collections::hash_map::RandomState,
    error::Error,
    fmt,
    hash::BuildHasher,
    iter,
    str::FromStr,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{
    StreamExt, TryFutureExt, TryStreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use reqwest::{
    Client, RequestBuilder, Response, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use serde_json::{Value, json};
use threadfold::{
    ContextWindow, Model, Request, Turn, WireFormat, async_trait,
    message::{CacheMarks, Delta, Extra, Json, ModelError, ModelErrorKind},
    model::{self, AnswerLimits, Clock, Sleeper, StdClock},
    wire::{
        self, AnthropicMessages, BedrockConverse, EncodeOptions, Encoded, GeminiGenerate,
        ModelTraits, OpenAiChat, OpenAiResponses, classify_error, retry_after, window_of,
    },
};

use crate::event_stream::{self, EventStream};

/// No more of an error body is read, and of an answer that comes in one body.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// How long a server may take to say what it is.
const PATIENCE: Duration = Duration::from_secs(5);

type Deltas = BoxStream<'static, Result<Delta, ModelError>>;

/// The body of a streamed answer, as `text/event-stream`.
type Bytes = BoxStream<'static, Result<Vec<u8>, Box<dyn Error + Send + Sync>>>;

/// What a server speaks.
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
    /// Bedrock `converse-stream`, with an API key of Bedrock: requests are not signed here.
    Bedrock,
    /// The same as llama.cpp, Ollama, LM Studio, vLLM and gateways have it. Some of them know the
    /// limit of the answer by its old name only, which OpenAI refuses.
    Compatible,
}

/// How a server is asked.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// How the server speaks.
    pub dialect: Dialect,
    /// As the provider's own clients take it: with `/v1` for OpenAI, without for all others.
    pub base_url: String,
    /// The model to ask.
    pub model: String,
    /// The window, where somebody knows it better than a table of published ones.
    pub window: Option<ContextWindow>,
    /// None where the server wants none.
    pub key: Option<Key>,
    /// The most tokens of an answer, where the request does not say.
    pub max_output: u64,
    /// How often a request is sent at most.
    pub tries: u32,
    /// The wait before the second try, if the provider names none. It doubles with each try.
    pub first_wait: Duration,
    /// A provider that asks for more is not waited for.
    pub max_wait: Duration,
    /// How long the server may say nothing. A local model reads a long prompt before its first word.
    pub silence: Duration,
    /// How large an answer may be, and how long it may take.
    pub limits: AnswerLimits,
}

/// The timer of the runtime.
#[derive(Clone, Copy, Debug)]
pub struct TokioSleeper;

impl Sleeper for TokioSleeper {
    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// A key. It is printed nowhere.
#[derive(Clone)]
pub struct Key(String);

/// A model behind an HTTP server.
#[derive(Clone, Debug)]
pub struct HttpModel {
    client: Client,
    url: Url,
    options: HttpOptions,
}

#[async_trait]
impl Model for HttpModel {
    async fn complete(&self, request: Request) -> Result<Turn, ModelError> {
        model::turn_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let answer = self.answer(request).try_flatten_stream();
        answer.map_err(|error| self.without_key(error)).boxed()
    }

    async fn compact_natively(&self, request: Request) -> Result<Option<Turn>, ModelError> {
        let Some(native) = self.options.dialect.codec().native_compaction() else {
            return Ok(None);
        };
        self.complete(native.request(request)).await.map(Some)
    }

    fn context_window(&self) -> Option<ContextWindow> {
        self.options.window.or_else(|| ContextWindow::for_model(&self.options.model))
    }
}

impl HttpModel {
    /// Returns the model behind this server. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`ModelError`] if the address, the key or the client cannot be used.
    pub fn new(options: HttpOptions) -> Result<Self, ModelError> {
        let wrong = |words: String| ModelError::new(ModelErrorKind::Other, words);
        let url = options.base_url.parse::<Url>();
        let mut url = url.map_err(|error| wrong(format!("no URL: {error}")))?;
        let path = options.dialect.path(&options.model);
        match url.path_segments_mut() {
            Ok(mut segments) => segments.pop_if_empty().extend(path),
            Err(()) => return Err(wrong("no URL: nothing can stand after it".to_owned())),
        };
        if options.dialect == Dialect::Gemini {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        let headers = options.dialect.headers(options.key.as_ref())?;
        let client = Client::builder()
            .default_headers(headers)
            // Wherever a redirect leads, the key does not follow.
            .redirect(redirect::Policy::none())
            .connect_timeout(Duration::from_secs(20))
            .read_timeout(options.silence)
            .build()
            .map_err(|error| wrong(words(error)))?;
        Ok(Self { client, url, options })
    }

    /// The window that a local server or a gateway runs the model with; `None` if it does not say.
    /// Nobody else is asked. Ollama says it only of a model that is loaded, so it is loaded.
    pub async fn window_of_server(&self) -> Option<ContextWindow> {
        if self.options.dialect != Dialect::Compatible {
            return None;
        }
        for path in ["/props", "/v1/models", "/api/v0/models", "/model/info"] {
            let answer = self.asked(self.client.get(self.at_root(path)?)).await;
            if let Some(window) = answer.and_then(|answer| window_of(&answer, &self.options.model))
            {
                return Some(window);
            }
        }
        let body = json!({"model": self.options.model, "stream": false}).to_string();
        let shown = self.client.post(self.at_root("/api/show")?).body(body.clone());
        let shown = self.asked(shown).await?;
        if let Some(window) = window_of(&shown, &self.options.model) {
            return Some(window);
        }
        let load = self.client.post(self.at_root("/api/generate")?).body(body);
        self.asked(load.timeout(self.options.silence)).await?;
        let loaded = self.asked(self.client.get(self.at_root("/api/ps")?)).await?;
        window_of(&loaded, &self.options.model)
    }

    /// A path of the server that is not one of its dialect.
    fn at_root(&self, path: &str) -> Option<Url> {
        let base = self.options.base_url.trim_end_matches('/');
        format!("{}{path}", base.trim_end_matches("/v1")).parse().ok()
    }

    /// What a server answers, if it is JSON.
    async fn asked(&self, request: RequestBuilder) -> Option<Value> {
        let (client, request) = request.build_split();
        let mut request = request.ok()?;
        request.timeout_mut().get_or_insert(PATIENCE);
        let response = client.execute(request).await.ok()?;
        let response = response.error_for_status().ok()?;
        serde_json::from_slice(&read(response).await.ok()?).ok()
    }

    /// The beginning of an answer, after as many tries as it takes. What has begun to be told is
    /// not asked again.
    async fn answer(&self, request: Request) -> Result<Deltas, ModelError> {
        let end = request.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let left = || end.map(|end| end.saturating_duration_since(Instant::now()));
        let Encoded { body, adjustments } = self.encoded(request);
        let body = body.as_str().to_owned();
        let mut tried = 0;
        loop {
            let error = match self.ask(body.clone(), left()).await {
                Ok(deltas) => {
                    let declared = move |piece| wire::as_declared(piece, &adjustments);
                    return Ok(deltas.map_ok(declared).boxed());
                }
                Err(error) => error,
            };
            tried += 1;
            let wait = self.wait(&error, tried);
            match wait.filter(|wait| left().is_none_or(|left| left > *wait)) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(error),
            }
        }
    }

    /// The body of a request. The codec says in `adjustments` what the provider's rules made of
    /// it: by which names the model knows the tools, and the rest for hosts that write a log.
    fn encoded(&self, mut request: Request) -> Encoded {
        let dialect = self.options.dialect;
        let limit = *request.max_output.get_or_insert(self.options.max_output);
        if dialect == Dialect::Anthropic {
            request.cache = CacheMarks::Auto;
        }
        let ours = dialect.fields(limit);
        let codec = dialect.codec();
        let is_ours = |key: &str| ours.iter().any(|(name, _)| *name == key);
        let theirs = request.extra.of(codec.name()).filter(|(key, _)| !is_ours(key));
        let theirs = theirs.map(|(key, json)| (key.to_owned(), json.clone()));
        let ours = ours.iter().map(|(key, value)| ((*key).to_owned(), Json::from(value)));
        request.extra = Extra::new(codec.name(), theirs.chain(ours).collect::<Vec<_>>());
        let model = self.options.model.as_str();
        let traits = ModelTraits::for_model(model);
        codec.encode(&request, &EncodeOptions { model: Some(model.into()), traits })
    }

    /// Sends a request once, and returns the answer from its first piece on.
    async fn ask(&self, body: String, left: Option<Duration>) -> Result<Deltas, ModelError> {
        let mut post = self.client.post(self.url.clone());
        // Anthropic reads its own compaction, and a request for one, with this header alone.
        if self.options.dialect == Dialect::Anthropic && body.contains("\"compaction\"") {
            post = post.header("anthropic-beta", "compact-2026-09-04");
        }
        let post = post.body(body);
        let post = left.into_iter().fold(post, |post, left| post.timeout(left));
        let response = post.send().await.map_err(broken)?;
        if !response.status().is_success() {
            let refused = async { Err(refused(response).await) };
            return self.in_time(refused).await;
        }
        let kind = response.headers().get(CONTENT_TYPE);
        // The names of media types know no upper and lower case.
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.trim_start().to_ascii_lowercase();
        if kind.starts_with("application/json") || kind.starts_with("text/html") {
            let turn = self.in_time(self.whole(response)).await?;
            return Ok(stream::iter([Ok(Delta::Turn { turn })]).boxed());
        }
        let bytes = response.bytes_stream().map_err(|error| words(error).into());
        let bytes: Bytes = match kind.starts_with(event_stream::MEDIA_TYPE) {
            true => {
                let mut events = EventStream::within(self.options.limits.event_bytes);
                bytes.map(move |piece| events.as_text(&piece?)).boxed()
            }
            false => bytes.map_ok(|piece| piece.to_vec()).boxed(),
        };
        let (codec, limits) = (self.options.dialect.codec(), self.options.limits);
        let mut deltas = model::deltas_within(bytes, codec, limits, Arc::new(TokioSleeper));
        let first = deltas.next().await.transpose()?;
        Ok(stream::iter(first.map(Ok)).chain(deltas).boxed())
    }

    /// What is asked for, if it comes in the time of a whole answer.
    async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, ModelError>>,
    ) -> Result<T, ModelError> {
        let Some(limit) = self.options.limits.total else { return answer.await };
        let seconds = limit.as_secs_f64();
        let message = format!("the answer was not complete after {seconds} s");
        let late = |_| Err(ModelError::new(ModelErrorKind::Other, message));
        tokio::time::timeout(limit, answer).await.unwrap_or_else(late)
    }

    /// The answer of a server that does not stream, or that says an error with status 200.
    async fn whole(&self, response: Response) -> Result<Turn, ModelError> {
        let status = response.status().as_u16();
        let body = read(response).await?;
        self.options.dialect.codec().decode_response(&body).map_err(|unread| {
            let found = classify_error(status, &body);
            let words = format!("{unread}; the server said: {:.200}", found.message.as_str());
            ModelError::new(found.kind, words)
        })
    }

    /// How long to wait before the next try, if there is to be one. A part of it is chance, so that
    /// clients that were refused together do not come back together.
    fn wait(&self, error: &ModelError, tried: u32) -> Option<Duration> {
        let ModelErrorKind::Retryable { after } = error.kind else { return None };
        let longest = self.options.max_wait;
        let doubled = 2_u32.saturating_pow(tried.saturating_sub(1));
        let own = self.options.first_wait.saturating_mul(doubled).min(longest);
        let chance = RandomState::new().hash_one(tried) as f64 / u64::MAX as f64;
        let wait = after.unwrap_or_default().saturating_add(own.mul_f64(0.5 + chance / 2.0));
        let again = tried < self.options.tries && after.is_none_or(|after| after <= longest);
        again.then_some(wait)
    }

    /// The error without the key, which some servers repeat.
    fn without_key(&self, mut error: ModelError) -> ModelError {
        if let Some(Key(key)) = &self.options.key {
            error.message = error.message.replace(key, "***").into();
        }
        error
    }
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "anthropic" => Ok(Self::Anthropic),
            "openai" => Ok(Self::OpenAi),
            "responses" => Ok(Self::Responses),
            "gemini" => Ok(Self::Gemini),
            "bedrock" => Ok(Self::Bedrock),
            "compatible" => Ok(Self::Compatible),
            _ => Err(format!("no dialect is called {name}")),
        }
    }
}

impl Dialect {
    /// The address of the vendor; `None` where there are many.
    #[must_use]
    pub fn vendor_url(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("https://api.anthropic.com"),
            Self::OpenAi | Self::Responses => Some("https://api.openai.com/v1"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com"),
            Self::Bedrock | Self::Compatible => None,
        }
    }

    /// The environment variable that holds the key by custom.
    #[must_use]
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi | Self::Responses | Self::Compatible => "OPENAI_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
            Self::Bedrock => "AWS_BEARER_TOKEN_BEDROCK",
        }
    }

    fn codec(self) -> &'static dyn WireFormat {
        match self {
            Self::Anthropic => &AnthropicMessages,
            Self::OpenAi | Self::Compatible => &OpenAiChat,
            Self::Responses => &OpenAiResponses,
            Self::Gemini => &GeminiGenerate,
            Self::Bedrock => &BedrockConverse,
        }
    }

    /// The path of an answer, in segments: the name of a model may hold what a path may not.
    fn path(self, model: &str) -> Vec<String> {
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

    /// What a body says beside the request.
    fn fields(self, limit: u64) -> Vec<(&'static str, Value)> {
        let usage = ("stream_options", json!({"include_usage": true}));
        let stream = ("stream", json!(true));
        match self {
            Self::Anthropic | Self::Responses => vec![stream],
            Self::Gemini | Self::Bedrock => Vec::new(),
            Self::OpenAi => vec![stream, usage],
            Self::Compatible => vec![stream, usage, ("max_tokens", json!(limit))],
        }
    }

    fn headers(self, key: Option<&Key>) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let version = HeaderName::from_static("anthropic-version");
        let (name, before) = match self {
            Self::Anthropic => {
                headers.insert(version, HeaderValue::from_static("2023-06-01"));
                (HeaderName::from_static("x-api-key"), "")
            }
            Self::Gemini => (HeaderName::from_static("x-goog-api-key"), ""),
            Self::OpenAi | Self::Responses | Self::Compatible | Self::Bedrock => {
                (AUTHORIZATION, "Bearer ")
            }
        };
        if let Some(Key(key)) = key {
            let value = HeaderValue::from_str(&format!("{before}{key}"));
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

impl Key {
    /// Returns the key, or none if there is nothing in it.
    pub fn new(key: &str) -> Option<Self> {
        Some(key.trim()).filter(|key| !key.is_empty()).map(|key| Self(key.to_owned()))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// What an error status means.
async fn refused(response: Response) -> ModelError {
    let status = response.status();
    let headers = response.headers().clone();
    let headers =
        headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let wait = retry_after(headers, StdClock.now());
    let body = match read(response).await {
        Ok(body) => body,
        Err(error) => return error,
    };
    let mut error = classify_error(status.as_u16(), &body).with_retry_after(wait);
    if error.message.is_blank() {
        error.message = format!("the server answered {status}").into();
    }
    error
}

/// A body, up to a length that none has.
async fn read(mut response: Response) -> Result<Vec<u8>, ModelError> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(broken)? {
        body.extend_from_slice(&bytes);
        if body.len() > MAX_BYTES {
            break;
        }
    }
    Ok(body)
}

/// What a broken connection means: it may go well another time, but for a request that cannot be.
fn broken(error: reqwest::Error) -> ModelError {
    let kind = match error.is_builder() {
        true => ModelErrorKind::Other,
        false => ModelErrorKind::Retryable { after: None },
    };
    ModelError::new(kind, words(error))
}

/// The words of an error and of what caused it; without the URL, which may hold what is secret.
fn words(error: reqwest::Error) -> String {
    let error = error.without_url();
    let causes = iter::successors(Some(&error as &dyn Error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
