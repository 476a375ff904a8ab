//! A provider's answer on its way to the agent. Its bytes pass unchanged, while the proxy reads
//! whether it is a refusal and how many tokens the provider counted in the prompt.

use std::{mem, time::Duration};

use futures::{StreamExt, TryStreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    Response, StatusCode,
    body::{Bytes, Frame},
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use threadfold::{
    WireFormat,
    message::ModelError,
    wire::{SseParser, TurnBuilder, classify_error},
};

use super::forward::{Body, Failed, response, without_connection, words};
use crate::{error::Failure, input::Dialect};

/// The limits for reading a refusal, or a stream before its first content: bytes and time.
const MAX_READ: usize = 1024 * 1024;
const READ_TIME: Duration = Duration::from_secs(5);

/// The maximum length of a body that is kept to read its usage, in bytes.
const MAX_KEPT: usize = 8 * 1024 * 1024;

/// An answer whose first pieces may have been read.
pub(super) struct Answer {
    response: reqwest::Response,
    begun: Vec<Bytes>,
    content: Content,
}

/// How an answer is read while it is passed on.
enum Content {
    /// A stream of events, until its end or the first event that cannot be read.
    Events(SseParser, Box<dyn TurnBuilder>),
    /// The body so far.
    Whole(Dialect, Vec<u8>),
    /// Not read: the answer is compressed, an error, or unreadable.
    Unread,
}

/// The first decisive event of an answer: content, or an error before any content.
type First = Result<(), ModelError>;

/// A function that takes the number of prompt tokens that the provider counted.
pub(super) type OnCount = Box<dyn FnOnce(u64) + Send>;

impl Answer {
    /// Returns the answer to a request in this dialect; `None` is for all other requests.
    pub(super) fn new(response: reqwest::Response, dialect: Option<Dialect>) -> Self {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"));
        let is_plain = !response.headers().contains_key(CONTENT_ENCODING);
        let content = match dialect {
            Some(dialect) if is_plain && response.status().is_success() && is_stream => {
                Content::Events(SseParser::default(), dialect.turn_builder())
            }
            Some(dialect) if is_plain && response.status().is_success() => {
                Content::Whole(dialect, Vec::new())
            }
            Some(_) | None => Content::Unread,
        };
        Self { response, begun: Vec::new(), content }
    }

    /// Returns the provider's refusal, if there is one. Some refuse with status 200, in a stream
    /// before any content.
    pub(super) async fn refusal(&mut self) -> Result<Option<ModelError>, Failure> {
        let status = self.response.status();
        if status.is_client_error() {
            self.read_on(|_, _| None).await?;
            return Ok(Some(classify_error(status.as_u16(), &self.begun.concat())));
        }
        if let Content::Events(..) = self.content {
            // Limit the time, so that the agent gets the answer even if the model thinks for a long
            // time first.
            let read = tokio::time::timeout(READ_TIME, self.read_on(Content::first)).await;
            return read.unwrap_or(Ok(None));
        }
        Ok(None)
    }

    /// Whether the status means that the request itself is wrong.
    pub(super) fn blames_the_request(&self) -> bool {
        let status = self.response.status();
        status == StatusCode::BAD_REQUEST || status == StatusCode::UNPROCESSABLE_ENTITY
    }

    /// Reads pieces until one is decisive, or until the limit is reached.
    async fn read_on(
        &mut self,
        decide: fn(&mut Content, &[u8]) -> Option<First>,
    ) -> Result<Option<ModelError>, Failure> {
        let mut len = 0_usize;
        while len <= MAX_READ
            && let Some(piece) = self.response.chunk().await.map_err(words)?
        {
            len = len.saturating_add(piece.len());
            let decided = decide(&mut self.content, &piece);
            self.begun.push(piece);
            if let Some(decided) = decided {
                return Ok(decided.err());
            }
        }
        Ok(None)
    }

    /// Returns the answer as a body that is passed on piece by piece. If the agent disconnects, the
    /// proxy disconnects from the provider. `on_count` is called when the answer is complete.
    pub(super) fn passed_back(self, on_count: Option<OnCount>) -> Response<Body> {
        let (status, headers) = (self.response.status(), self.response.headers());
        let headers = without_connection(headers);
        let mut watch = on_count.map(|on_count| {
            let mut content = self.content;
            // Events before the first content were handled when they were read.
            if let Content::Whole(..) = content {
                self.begun.iter().for_each(|piece| content.take(piece));
            }
            Watch { content, on_count: Some(on_count) }
        });
        let rest = self.response.bytes_stream();
        let pieces =
            stream::iter(self.begun.into_iter().map(Ok)).chain(rest.inspect_ok(move |piece| {
                if let Some(watch) = &mut watch {
                    watch.content.take(piece);
                }
            }));
        let pieces = pieces.map_ok(Frame::data);
        let pieces = pieces.map_err(|error| -> Failed { words(error).into() });
        response(status, headers, StreamBody::new(pieces).boxed_unsync())
    }
}

/// Reads an answer while it passes. Dropped with the answer, it reports the prompt tokens.
struct Watch {
    content: Content,
    on_count: Option<OnCount>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let (Some(on_count), Some(tokens)) = (self.on_count.take(), self.content.prompt()) {
            on_count(tokens);
        }
    }
}

impl Content {
    /// Takes a piece, and returns the first decisive event in it, if there is one: content, or an
    /// error before any content. An event that cannot be read counts as content.
    fn first(&mut self, piece: &[u8]) -> Option<First> {
        let Self::Events(parser, builder) = self else { return Some(Ok(())) };
        parser.push(piece);
        let mut first = None;
        loop {
            let Ok(event) = parser.next_event() else {
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

    /// The tokens of the prompt, if the answer is complete and has them.
    fn prompt(&mut self) -> Option<u64> {
        let turn = match mem::replace(self, Self::Unread) {
            Self::Events(_, mut builder) if builder.is_complete() => builder.finish().ok()?,
            Self::Whole(dialect, body) => dialect.decode_response(&body).ok()?,
            Self::Events(..) | Self::Unread => return None,
        };
        turn.usage.map(|usage| usage.input).filter(|tokens| *tokens > 0)
    }
}
