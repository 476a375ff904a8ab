//! A model behind a rulebook.

use std::{
    convert::Infallible,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures::{
    FutureExt, StreamExt,
    stream::{self, BoxStream},
};
use serde_json::{Map, Value, json};
use threadfold::{
    Answer, ContextWindow, Model, Request,
    message::{Delta, Extra, Json, ModelError, ModelErrorKind, Text},
    model::{self, Clock},
    wire::{self, Adjustment, Dialect, EncodeOptions, classify_error},
};

use super::{
    book::Rulebook,
    call::{HttpCall, Reply, ReplyBody},
    script::{Asked, Said},
};

/// A [`Model`] whose provider is a [`Rulebook`]: requests are encoded as an HTTP adapter encodes them,
/// judged, and answered in the vendor's form, every other time as a stream. Bedrock is not streamed,
/// because its binary frames are read by the HTTP adapter.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use futures::executor::block_on;
/// use threadfold::{Message, Model, Request, wire::Dialect};
/// use threadfold_testing::{TestClock, rulebook::*};
///
/// let book = Rulebook::new(Dialect::Anthropic, BookOptions::default());
/// let says = |request: &Request| Said::text(format!("{} messages", request.messages.len()));
/// let clock = Arc::new(TestClock::default());
/// let book = Arc::new(Mutex::new(book));
/// let model = RulebookModel::new(book, "claude-opus-5-5", clock, says);
/// let answer = block_on(model.complete(Request::new(vec![Message::user("Hi.")])))?;
/// assert_eq!(answer.text(), "1 messages");
/// assert_eq!(model.book().seen().answered, 1);
/// # Ok::<(), threadfold::message::ModelError>(())
/// ```
pub struct RulebookModel {
    dialect: Dialect,
    model: String,
    fields: Map<String, Value>,
    headers: Vec<(String, String)>,
    clock: Arc<dyn Clock>,
    says: Box<dyn Fn(&Request) -> Said + Send + Sync>,
    book: Arc<Mutex<Rulebook>>,
    adjusted: Mutex<Vec<Adjustment>>,
}

impl RulebookModel {
    /// Returns a model with this name. The closure is the script: it gets the request before it is
    /// encoded. Models of one vendor share a book, as those of one account do.
    pub fn new(
        book: Arc<Mutex<Rulebook>>,
        model: impl Into<String>,
        clock: Arc<dyn Clock>,
        says: impl Fn(&Request) -> Said + Send + Sync + 'static,
    ) -> Self {
        let dialect = book.lock().unwrap_or_else(PoisonError::into_inner).dialect();
        Self {
            dialect,
            model: model.into(),
            fields: Map::new(),
            headers: HEADERS.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            clock,
            says: Box::new(says),
            book,
            adjusted: Mutex::default(),
        }
    }

    /// Sets parameters of the dialect in every request that lacks them, such as `thinking` or
    /// `include`. The codec reads them, as those of an HTTP adapter.
    #[must_use]
    pub fn with_fields(mut self, fields: Map<String, Value>) -> Self {
        self.fields.extend(fields);
        self
    }

    /// Sends a header with every request, instead of one with the same name.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(key, _)| key != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The name of the model.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.model
    }

    /// The book. While it is borrowed, no request is answered.
    pub fn book(&self) -> MutexGuard<'_, Rulebook> {
        // A panic while it was held can only have been one of a script.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The changes that the codec made to the last request, whether for an answer or a compaction.
    #[must_use]
    pub fn adjusted(&self) -> Vec<Adjustment> {
        self.adjusted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a request.
    fn ask(
        &self,
        mut request: Request,
    ) -> Result<BoxStream<'static, Result<Delta, ModelError>>, ModelError> {
        let said = (self.says)(&request);
        request.max_output.get_or_insert(4_096);
        request.cache = true;
        request.extra = self.with_own_fields(&request.extra);
        let encoded = self.dialect.encode(&request, &EncodeOptions::for_model(&self.model));
        let adjustments = encoded.adjustments;
        self.adjusted.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&adjustments);
        let mut body = encoded.body.to_value().map_err(|error| {
            ModelError::new(ModelErrorKind::Other, format!("the codec wrote no JSON: {error}"))
        })?;
        let reply = {
            let mut book = self.book();
            let streams = self.dialect != Dialect::BedrockConverse && book.seen().requests % 2 == 1;
            let path = self.completed(&mut body, streams);
            let bytes = body.to_string();
            let headers = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let headers: Vec<(&str, &str)> = headers.collect();
            let call = HttpCall { path: &path, headers: &headers, body: bytes.as_bytes() };
            let mut script = move |_: &Asked<'_>| said.clone();
            book.answer(&call, self.clock.now(), &mut script)
        };
        if reply.status != 200 {
            return Err(classify_error(reply.status, &reply.bytes()));
        }
        let declared = move |piece: Result<Delta, ModelError>| {
            piece.map(|piece| wire::as_declared(piece, &adjustments))
        };
        Ok(self.read(&reply)?.map(declared).boxed())
    }

    /// The parameters of a request with those of this model that it lacks.
    fn with_own_fields(&self, extra: &Extra) -> Extra {
        let name = self.dialect.name();
        let theirs = extra.of(name).map(|(key, json)| (key.to_owned(), json.clone()));
        let ours = self.fields.iter().filter(|(key, _)| extra.get(name, key).is_none());
        let ours = ours.map(|(key, value)| (key.clone(), Json::from(value)));
        Extra::new(name, theirs.chain(ours).collect::<Vec<_>>())
    }

    /// Adds to a body what an HTTP client adds, and returns its path.
    fn completed(&self, body: &mut Value, streams: bool) -> String {
        let Some(fields) = body.as_object_mut() else { return String::new() };
        let model = &self.model;
        if streams && self.dialect != Dialect::Gemini {
            fields.insert("stream".to_owned(), json!(true));
        }
        match self.dialect {
            Dialect::Anthropic => "/v1/messages".to_owned(),
            Dialect::OpenAiResponses => "/v1/responses".to_owned(),
            Dialect::OpenAiChat => {
                if streams {
                    fields.insert("stream_options".to_owned(), json!({"include_usage": true}));
                }
                "/v1/chat/completions".to_owned()
            }
            Dialect::Gemini if streams => {
                format!("/v1beta/models/{model}:streamGenerateContent?alt=sse")
            }
            Dialect::Gemini => format!("/v1beta/models/{model}:generateContent"),
            Dialect::BedrockConverse => format!("/model/{model}/converse"),
            // The book could not be made.
            _ => String::new(),
        }
    }

    fn read(
        &self,
        reply: &Reply,
    ) -> Result<BoxStream<'static, Result<Delta, ModelError>>, ModelError> {
        let bytes = reply.bytes();
        if let ReplyBody::Json(_) = reply.body {
            let answer = self.dialect.decode_response(&bytes).map_err(|error| {
                ModelError::new(
                    ModelErrorKind::Other,
                    format!("{} answered: {error}", self.dialect.name()),
                )
            })?;
            return Ok(stream::iter([Ok(Delta::Answer { answer })]).boxed());
        }
        Ok(model::deltas_of(stream::iter([Ok::<_, Infallible>(bytes)]), self.dialect))
    }
}

/// What a client of Anthropic sends. Other books read none of it.
const HEADERS: [(&str, &str); 2] = [
    ("anthropic-version", "2026-10-21"),
    ("anthropic-beta", "compact-2026-09-04,thinking-binding-controls-2026-08-01"),
];

#[async_trait]
impl Model for RulebookModel {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        model::answer_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let answer = async move { self.ask(request) };
        let deltas = answer.map(|answer| match answer {
            Ok(deltas) => deltas,
            Err(error) => stream::iter([Err(error)]).boxed(),
        });
        deltas.flatten_stream().boxed()
    }

    async fn compact_natively(
        &self,
        request: Request,
        instructions: Option<Text>,
    ) -> Result<Option<Answer>, ModelError> {
        match self.dialect.compaction_request(request, instructions.as_deref()) {
            Some(request) => self.complete(request).await.map(Some),
            None => Ok(None),
        }
    }

    fn binds_reasoning(&self) -> bool {
        EncodeOptions::for_model(&self.model).binds_reasoning
    }

    fn context_window(&self) -> Option<ContextWindow> {
        Some(ContextWindow::new(self.book().options_mut().window))
    }
}

impl fmt::Debug for RulebookModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RulebookModel").field("model", &self.model).finish_non_exhaustive()
    }
}
