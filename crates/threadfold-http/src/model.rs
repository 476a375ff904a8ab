//! The model: requests, attempts, answers.

use std::{
    collections::hash_map::RandomState,
    error::Error,
    hash::BuildHasher,
    iter,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{
    StreamExt, TryFutureExt, TryStreamExt,
    stream::{self, BoxStream},
};
use reqwest::{Client, RequestBuilder, Response, Url, header::CONTENT_TYPE, redirect};
use serde_json::{Value, json};
use threadfold::{
    Answer, ContextWindow, Model, Request, async_trait,
    message::{Delta, Extra, Json, ModelError, ModelErrorKind, Text},
    model::{self, Clock, std_clock},
    wire::{self, Adjustment, EncodeOptions, Encoded, classify_error, retry_after, window_of},
};

use crate::{
    clock::TokioClock,
    dialect::Dialect,
    event_stream::{self, EventStream},
    held_body,
    key::Key,
    options::HttpOptions,
};

/// The maximum bytes of an error body, and of an answer that is not streamed.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The maximum time for a server to state its window.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) type Deltas = BoxStream<'static, Result<Delta, ModelError>>;

/// The body of a streamed answer, as `text/event-stream`.
type Bytes = BoxStream<'static, Result<Vec<u8>, Box<dyn Error + Send + Sync>>>;

/// A model that an HTTP server serves.
#[derive(Clone, Debug)]
pub struct HttpModel {
    client: Client,
    url: Url,
    options: HttpOptions,
}

#[async_trait]
impl Model for HttpModel {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        model::answer_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let answer = self.answer(request).try_flatten_stream();
        answer.map_err(|error| self.without_key(error)).boxed()
    }

    async fn compact_natively(
        &self,
        request: Request,
        instructions: Option<Text>,
    ) -> Result<Option<Answer>, ModelError> {
        let instructions = instructions.as_ref().map(Text::as_str);
        match self.options.dialect.codec().compaction_request(request, instructions) {
            Some(request) => self.complete(request).await.map(Some),
            None => Ok(None),
        }
    }

    fn binds_reasoning(&self) -> bool {
        self.encode_options().binds_reasoning
    }

    fn context_window(&self) -> Option<ContextWindow> {
        self.options.window.or_else(|| ContextWindow::for_model(&self.options.model))
    }
}

impl HttpModel {
    /// Returns a model of Anthropic. Nothing is sent yet.
    ///
    /// ```
    /// use threadfold::Model;
    /// use threadfold_http::HttpModel;
    ///
    /// let model = HttpModel::anthropic("claude-haiku-4-5", "a key")?;
    /// assert!(model.context_window().is_some());
    /// # Ok::<(), threadfold::message::ModelError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn anthropic(model: impl Into<String>, key: &str) -> Result<Self, ModelError> {
        Self::of_vendor(Dialect::Anthropic, model, key)
    }

    /// Returns a model of OpenAI, over the Responses API. Nothing is sent yet.
    ///
    /// ```
    /// use threadfold_http::HttpModel;
    ///
    /// assert!(HttpModel::openai("gpt-5.2", "a key").is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn openai(model: impl Into<String>, key: &str) -> Result<Self, ModelError> {
        Self::of_vendor(Dialect::Responses, model, key)
    }

    /// Returns a model of Google. Nothing is sent yet.
    ///
    /// ```
    /// use threadfold_http::HttpModel;
    ///
    /// assert!(HttpModel::gemini("gemini-2.5-flash", "a key").is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn gemini(model: impl Into<String>, key: &str) -> Result<Self, ModelError> {
        Self::of_vendor(Dialect::Gemini, model, key)
    }

    /// Returns a model of a server with the dialect of OpenAI that needs no key, such as one on this
    /// machine. The base URL ends with `/v1`. Nothing is sent yet; [`window_of_server`] asks for
    /// the window.
    ///
    /// ```
    /// use threadfold_http::HttpModel;
    ///
    /// assert!(HttpModel::compatible("http://127.0.0.1:11434/v1", "qwen3:4b").is_ok());
    /// let error = HttpModel::compatible("localhost", "qwen3:4b").unwrap_err();
    /// assert!(error.to_string().contains("no URL"), "{error}");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    ///
    /// [`window_of_server`]: Self::window_of_server
    pub fn compatible(
        base_url: impl Into<String>,
        model: impl Into<String>,
    ) -> Result<Self, ModelError> {
        let base_url = base_url.into();
        Self::new(HttpOptions { base_url, ..HttpOptions::new(Dialect::Compatible, model) })
    }

    fn of_vendor(
        dialect: Dialect,
        model: impl Into<String>,
        key: &str,
    ) -> Result<Self, ModelError> {
        Self::new(HttpOptions { key: Key::new(key), ..HttpOptions::new(dialect, model) })
    }

    /// Returns the model of this server. Nothing is sent yet.
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
        let headers = options.dialect.headers(options.anthropic_version, options.key.as_ref())?;
        let client = Client::builder()
            .default_headers(headers)
            // A redirect could send the key to another server.
            .redirect(redirect::Policy::none())
            .connect_timeout(Duration::from_secs(20))
            .read_timeout(options.silence)
            .build()
            .map_err(|error| wrong(words(error)))?;
        Ok(Self { client, url, options })
    }

    /// Returns the window with which a local server or a gateway runs the model; `None` if it does
    /// not state one. Servers of vendors are not asked. Ollama states the window only of a loaded
    /// model, so this loads it.
    pub async fn window_of_server(&self) -> Option<ContextWindow> {
        if self.options.dialect != Dialect::Compatible {
            return None;
        }
        for path in ["/props", "/v1/models", "/api/v0/models", "/model/info"] {
            let answer = self.json_of(self.client.get(self.at_root(path)?)).await;
            if let Some(window) = answer.and_then(|answer| window_of(&answer, &self.options.model))
            {
                return Some(window);
            }
        }
        let body = json!({"model": self.options.model, "stream": false}).to_string();
        let shown = self.client.post(self.at_root("/api/show")?).body(body.clone());
        let shown = self.json_of(shown).await?;
        if let Some(window) = window_of(&shown, &self.options.model) {
            return Some(window);
        }
        let load = self.client.post(self.at_root("/api/generate")?).body(body);
        self.json_of(load.timeout(self.options.silence)).await?;
        let loaded = self.json_of(self.client.get(self.at_root("/api/ps")?)).await?;
        window_of(&loaded, &self.options.model)
    }

    /// Returns the URL of a path at the root of the server, outside of its dialect.
    fn at_root(&self, path: &str) -> Option<Url> {
        let base = self.options.base_url.trim_end_matches('/');
        format!("{}{path}", base.trim_end_matches("/v1")).parse().ok()
    }

    /// Sends a request and returns the answer, if it is JSON.
    async fn json_of(&self, request: RequestBuilder) -> Option<Value> {
        let (client, request) = request.build_split();
        let mut request = request.ok()?;
        request.timeout_mut().get_or_insert(PATIENCE);
        let response = client.execute(request).await.ok()?;
        let response = response.error_for_status().ok()?;
        serde_json::from_slice(&read(response).await.ok()?).ok()
    }

    /// Returns the stream of an answer, after as many attempts as necessary. A request is not
    /// repeated once its first delta has arrived.
    async fn answer(&self, request: Request) -> Result<Deltas, ModelError> {
        let end = request.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let Encoded { body, adjustments } = self.encoded(request, Vec::new());
        self.answer_to(body.as_str(), adjustments, end).await
    }

    /// Returns the stream of an answer from a provider that holds the thread. It continues the answer
    /// with this id if the provider still can, and otherwise sends the whole thread, which it asks the
    /// provider to hold.
    pub(crate) async fn answer_held(
        &self,
        request: Request,
        previous: Option<String>,
    ) -> Result<Deltas, ModelError> {
        let dialect = self.options.dialect;
        let end = request.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let Encoded { body, adjustments } = self.encoded(request, held_body::creating(dialect));
        let short = previous.and_then(|id| held_body::continuing(dialect, body.as_str(), &id));
        if let Some(short) = short {
            match self.answer_to(&short, adjustments.clone(), end).await {
                Err(error) if held_body::must_replay(&error) => {}
                answer => return answer.map_err(|error| self.without_key(error)),
            }
        }
        let answer = self.answer_to(body.as_str(), adjustments, end).await;
        answer.map_err(|error| self.without_key(error))
    }

    /// Returns the stream of the answer to a body, after as many attempts as necessary.
    async fn answer_to(
        &self,
        body: &str,
        adjustments: Vec<Adjustment>,
        end: Option<Instant>,
    ) -> Result<Deltas, ModelError> {
        let left = || end.map(|end| end.saturating_duration_since(Instant::now()));
        let mut tried = 0;
        loop {
            let error = match self.attempt(body.to_owned(), left()).await {
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

    /// Returns the body of a request. Its `adjustments` list the changes that the provider's rules
    /// required: the changed names of tools, and others that a host may log.
    fn encoded(&self, mut request: Request, beside: Vec<(&'static str, Value)>) -> Encoded {
        let dialect = self.options.dialect;
        let limit = *request.max_output.get_or_insert(self.options.max_output);
        if dialect == Dialect::Anthropic {
            request.cache = true;
        }
        let ours = [dialect.fields(limit), beside].concat();
        let codec = dialect.codec();
        let is_ours = |key: &str| ours.iter().any(|(name, _)| *name == key);
        let theirs = request.extra.of(codec.name()).filter(|(key, _)| !is_ours(key));
        let theirs = theirs.map(|(key, json)| (key.to_owned(), json.clone()));
        let ours = ours.iter().map(|(key, value)| ((*key).to_owned(), Json::from(value)));
        request.extra = Extra::new(codec.name(), theirs.chain(ours).collect::<Vec<_>>());
        codec.encode(&request, &self.encode_options())
    }

    fn encode_options(&self) -> EncodeOptions {
        EncodeOptions {
            anthropic_version: self.options.anthropic_version,
            prefix_mismatch: self.options.prefix_mismatch,
            ..EncodeOptions::for_model(&self.options.model)
        }
    }

    /// The betas of Anthropic that a body needs. Its own compaction blocks, and requests for them,
    /// are accepted only with the first; with the second the answer reports reasoning that was left
    /// out; with the third it holds the thread.
    fn betas(&self, body: &str) -> Option<String> {
        let compacts = body.contains("\"compaction\"").then_some("compact-2026-09-04");
        let binds = self.encode_options().binds_reasoning;
        let binds = binds.then_some("thinking-binding-controls-2026-08-01");
        let holds = body.contains("\"thread\":{\"").then_some("message-threads-2026-08-12");
        let betas: Vec<&str> = compacts.into_iter().chain(binds).chain(holds).collect();
        let is_asked = self.options.dialect == Dialect::Anthropic && !betas.is_empty();
        is_asked.then(|| betas.join(","))
    }

    /// Sends a request once, and returns the answer from its first delta on.
    async fn attempt(&self, body: String, left: Option<Duration>) -> Result<Deltas, ModelError> {
        let mut post = self.client.post(self.url.clone());
        if let Some(betas) = self.betas(&body) {
            post = post.header("anthropic-beta", betas);
        }
        let post = post.body(body);
        let post = left.into_iter().fold(post, |post, left| post.timeout(left));
        let response = post.send().await.map_err(broken)?;
        if !response.status().is_success() {
            let refused = async { Err(refused(response).await) };
            return self.in_time(refused).await;
        }
        let kind = response.headers().get(CONTENT_TYPE);
        // Media types are case-insensitive.
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.trim_start().to_ascii_lowercase();
        if kind.starts_with("application/json") || kind.starts_with("text/html") {
            let answer = self.in_time(self.whole(response)).await?;
            return Ok(stream::iter([Ok(Delta::Answer { answer })]).boxed());
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
        let mut deltas = model::deltas_within(bytes, codec, limits, Arc::new(TokioClock));
        let first = deltas.next().await.transpose()?;
        Ok(stream::iter(first.map(Ok)).chain(deltas).boxed())
    }

    /// Returns the result of a future, if it is ready within the time limit of an answer.
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

    /// Reads the answer of a server that does not stream, or that sends an error with status 200.
    async fn whole(&self, response: Response) -> Result<Answer, ModelError> {
        let status = response.status().as_u16();
        let body = read(response).await?;
        self.options.dialect.codec().decode_response(&body).map_err(|unread| {
            let found = classify_error(status, &body);
            let words = format!("{unread}; the server said: {:.200}", found.message.as_str());
            ModelError::new(found.kind, words)
        })
    }

    /// Returns the wait before the next attempt; `None` if there is to be none. A part of it is
    /// random, so that clients that were refused together do not return together.
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

    /// Returns the error without the key, which some servers quote.
    fn without_key(&self, mut error: ModelError) -> ModelError {
        if let Some(key) = &self.options.key {
            error.message = error.message.replace(key.as_str(), "***").into();
        }
        error
    }
}

/// Returns the error for a response with an error status.
async fn refused(response: Response) -> ModelError {
    let status = response.status();
    let headers = response.headers().clone();
    let headers =
        headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let wait = retry_after(headers, std_clock().now());
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

/// Reads a body up to the maximum length.
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

/// Returns the error for a broken connection. It is retryable, unless the request itself is
/// invalid.
fn broken(error: reqwest::Error) -> ModelError {
    let kind = match error.is_builder() {
        true => ModelErrorKind::Other,
        false => ModelErrorKind::Retryable { after: None },
    };
    ModelError::new(kind, words(error))
}

/// Returns the text of an error and of its sources, without the URL, which may contain secrets.
fn words(error: reqwest::Error) -> String {
    let error = error.without_url();
    let causes = iter::successors(Some(&error as &dyn Error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
