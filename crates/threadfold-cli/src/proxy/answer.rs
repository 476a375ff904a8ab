//! A provider's answer on its way to the agent. Its bytes pass unchanged, while the proxy reads
//! whether it is a refusal and how many tokens the provider counted in the prompt.
//!
//! An answer is passed on as soon as it is known not to be a refusal: from its status, from a whole
//! short body, or from the events before the first content of a stream, and in any case after five
//! seconds.

use std::{mem, time::Duration};

use futures::{StreamExt, TryStreamExt, stream};
use http_body_util::{BodyDataStream, BodyExt, StreamBody};
use hyper::{
    HeaderMap, Method, Response, StatusCode,
    body::{Bytes, Frame, Incoming},
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING},
};
use threadfold::{
    message::ModelError,
    wire::{AnswerBuilder, SseParser, classify_error, error_within},
};

use super::{
    elements::Elements,
    endpoint::Asked,
    forward::{Body, Failed, response, without_connection, words},
};
use threadfold::wire::Dialect;

/// The limits for reading a refusal, or a stream before its first content: bytes and time.
const MAX_READ: usize = 1024 * 1024;
const READ_TIME: Duration = Duration::from_secs(5);

/// The maximum length of an error that arrives with a successful status, in bytes.
const MAX_ERROR: usize = 64 * 1024;

/// The maximum length of a body that is kept to read its usage, in bytes.
const MAX_KEPT: usize = 8 * 1024 * 1024;

/// An answer whose first pieces may have been read.
pub(super) struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    /// The pieces of the body that were not read yet.
    rest: BodyDataStream<Incoming>,
    begun: Vec<Bytes>,
    /// Whether `begun` is the whole body.
    is_whole: bool,
    content: Content,
}

/// How an answer is read while it is passed on.
enum Content {
    /// A stream of events, until its end or the first event that cannot be read.
    Events(Framing, Box<dyn AnswerBuilder>),
    /// The body so far.
    Whole(Dialect, Vec<u8>),
    /// Not read: the answer is compressed, an error, or unreadable.
    Unread,
}

/// How a stream is divided into events.
enum Framing {
    Sse(SseParser),
    /// The elements of an array of JSON.
    Array(Elements),
}

/// The first decisive event of an answer: content, or an error before any content.
type First = Result<(), ModelError>;

/// A function that is called when an answer has passed, with the number of prompt tokens if the
/// provider counted them.
pub(super) type OnEnd = Box<dyn FnOnce(Option<u64>) + Send>;

impl Answer {
    /// Returns the answer to a request with a thread; `None` is for all other requests.
    pub(super) fn new(response: Response<Incoming>, asked: Option<&Asked>) -> Self {
        let (head, body) = response.into_parts();
        let (status, headers) = (head.status, head.headers);
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"));
        let is_plain = !headers.contains_key(CONTENT_ENCODING);
        let framing = |asked: &Asked| match is_stream {
            true => Some(Framing::Sse(SseParser::default())),
            false => asked.streams_array.then(|| Framing::Array(Elements::default())),
        };
        let content = match asked.filter(|_| is_plain && status.is_success()) {
            Some(asked) => match framing(asked) {
                Some(framing) => Content::Events(framing, asked.dialect.answer_builder()),
                None => Content::Whole(asked.dialect, Vec::new()),
            },
            None => Content::Unread,
        };
        let rest = body.into_data_stream();
        Self { status, headers, rest, begun: Vec::new(), is_whole: false, content }
    }

    /// The status of the answer.
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the provider's refusal, if there is one. Some refuse with status 200, in a body or in
    /// a stream before any content. What is read is bounded in bytes and in time, so the agent gets
    /// the answer even if it arrives slowly.
    pub(super) async fn refusal(&mut self) -> Result<Option<ModelError>, String> {
        let status = self.status;
        if !status.is_success() {
            if !may_be_overflow(status) {
                return Ok(Some(classify_error(status.as_u16(), &[])));
            }
            // A body that is late or too long is judged by its beginning.
            let _ = self.read_on(MAX_READ, |_, _| None).await?;
            return Ok(Some(classify_error(status.as_u16(), &self.begun.concat())));
        }
        let most = match self.content {
            Content::Events(..) => MAX_READ,
            Content::Whole(..) => MAX_ERROR,
            Content::Unread => return Ok(None),
        };
        match self.read_on(most, Content::first).await? {
            Some(Some(decided)) => Ok(decided.err()),
            Some(None) if self.is_whole => Ok(error_within(&self.begun.concat())),
            Some(None) | None => Ok(None),
        }
    }

    /// Reads the answer to its end. Returns the provider's refusal, if there is one.
    pub(super) async fn read_whole(mut self) -> Result<Option<ModelError>, String> {
        let refusal = self.refusal().await?;
        while self.rest.try_next().await.map_err(|error| words(&error))?.is_some() {}
        Ok(refusal)
    }

    /// Whether the status means that the request itself is wrong.
    pub(super) fn blames_the_request(&self) -> bool {
        matches!(self.status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY)
    }

    /// Reads pieces until one is decisive, the body ends, or it has more than `most` bytes. `None`
    /// if that takes too long.
    async fn read_on(
        &mut self,
        most: usize,
        decide: fn(&mut Content, &[u8]) -> Option<First>,
    ) -> Result<Option<Option<First>>, String> {
        let until = tokio::time::Instant::now() + READ_TIME;
        let mut len = 0_usize;
        while len <= most {
            let Ok(piece) = tokio::time::timeout_at(until, self.rest.try_next()).await else {
                return Ok(None);
            };
            let broke_off = |error| format!("the provider broke its answer off: {}", words(&error));
            let Some(piece) = piece.map_err(broke_off)? else {
                self.is_whole = true;
                break;
            };
            len = len.saturating_add(piece.len());
            let decided = decide(&mut self.content, &piece);
            self.begun.push(piece);
            if decided.is_some() {
                return Ok(Some(decided));
            }
        }
        Ok(Some(None))
    }

    /// Returns the answer as a body that is passed on piece by piece. If the agent disconnects, the
    /// proxy disconnects from the provider. `on_end` is called when the answer is complete.
    pub(super) fn passed_back(self, method: &Method, on_end: Option<OnEnd>) -> Response<Body> {
        let status = self.status;
        let mut headers = without_connection(&self.headers);
        // The bytes pass unchanged, so their length does too. The answer to HEAD has no bytes.
        let has_body = !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let is_chunked = self.headers.contains_key(TRANSFER_ENCODING);
        if !is_chunked
            && (has_body || method == Method::HEAD)
            && let Some(length) = self.headers.get(CONTENT_LENGTH)
        {
            headers.insert(CONTENT_LENGTH, length.clone());
        }
        let mut watch = on_end.map(|on_end| {
            let mut content = self.content;
            // Events before the first content were handled when they were read.
            if let Content::Whole(..) = content {
                self.begun.iter().for_each(|piece| content.take(piece));
            }
            Watch { content, on_end: Some(on_end) }
        });
        let rest = self.rest.inspect_ok(move |piece| {
            if let Some(watch) = &mut watch {
                watch.content.take(piece);
            }
        });
        let pieces = stream::iter(self.begun.into_iter().map(Ok)).chain(rest);
        let pieces = pieces.map_ok(Frame::data).map_err(Failed::from);
        response(status, headers, StreamBody::new(pieces).boxed_unsync())
    }
}

/// Reads an answer while it passes. Dropped with the answer, it reports the prompt tokens.
struct Watch {
    content: Content,
    on_end: Option<OnEnd>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(on_end) = self.on_end.take() {
            on_end(self.content.prompt());
        }
    }
}

impl Content {
    /// Takes a piece, and returns the first decisive event in it, if there is one: content, or an
    /// error before any content. An event that cannot be read counts as content.
    fn first(&mut self, piece: &[u8]) -> Option<First> {
        // Some servers do not declare their streams.
        if let Self::Whole(dialect, body) = self
            && body.is_empty()
            && ["data:", "event:"].iter().any(|field| piece.starts_with(field.as_bytes()))
        {
            let framing = Framing::Sse(SseParser::default());
            *self = Self::Events(framing, dialect.answer_builder());
        }
        let Self::Events(framing, builder) = self else { return None };
        framing.push(piece);
        let mut first = None;
        loop {
            let Ok(event) = framing.next_event() else {
                *self = Self::Unread;
                return Some(Ok(()));
            };
            let Some(event) = event else { return first };
            match builder.handle(&event.0, &event.1) {
                Ok(deltas) if deltas.is_empty() && !builder.is_complete() => {}
                Ok(_) => first = Some(Ok(())),
                Err(error) => {
                    *self = Self::Unread;
                    return first.or(Some(Err(error)));
                }
            }
        }
    }

    fn take(&mut self, piece: &[u8]) {
        match self {
            Self::Events(..) => drop(self.first(piece)),
            Self::Whole(_, body) if body.len().saturating_add(piece.len()) <= MAX_KEPT => {
                body.extend_from_slice(piece);
            }
            Self::Whole(..) => *self = Self::Unread,
            Self::Unread => {}
        }
    }

    /// The tokens of the prompt, if the answer states them. A stream states them even if its last
    /// event never came.
    fn prompt(&mut self) -> Option<u64> {
        let usage = match mem::replace(self, Self::Unread) {
            Self::Events(_, mut builder) => match builder.finish() {
                Ok(turn) => turn.usage,
                Err(broken_off) => Some(broken_off.usage),
            },
            Self::Whole(dialect, body) => dialect.decode_response(&body).ok()?.usage,
            Self::Unread => return None,
        };
        usage.map(|usage| usage.input).filter(|tokens| *tokens > 0)
    }
}

impl Framing {
    fn push(&mut self, piece: &[u8]) {
        match self {
            Self::Sse(parser) => parser.push(piece),
            Self::Array(elements) => elements.push(piece),
        }
    }

    /// The name and the data of the next event, if it is there.
    fn next_event(&mut self) -> Result<Option<(String, String)>, ()> {
        match self {
            Self::Sse(parser) => parser.next_event().map_err(drop),
            Self::Array(elements) => {
                Ok(elements.next_element()?.map(|element| (String::new(), element)))
            }
        }
    }
}

/// Whether an answer with this status can be a refusal for the length. Others pass at once, however
/// slowly their body arrives.
fn may_be_overflow(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 413 | 422 | 429 | 500..=599)
}
