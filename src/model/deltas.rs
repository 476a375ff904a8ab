//! Decoding the bytes of a streamed response into the deltas of an answer, within limits on its
//! size and its time.

use std::{
    collections::VecDeque,
    error::Error,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{
    FutureExt, Stream, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};

use super::clock::Clock;
use crate::{
    message::{Delta, ModelError, ModelErrorKind},
    wire::{AnswerBuilder, Dialect, LineParser, SseParser, WireError, error_within},
};

/// Decodes a response body of `text/event-stream` into a stream like that of
/// [`Model::stream`](super::Model::stream): the last item is [`Delta::Answer`] or an error.
///
/// Pass the bytes of a response with status 200, in chunks of any size. The input is dropped as
/// soon as the answer is complete; dropping the output cancels. Tool names are those of the request
/// body; [`wire::as_declared`](crate::wire::as_declared) restores the host's names where they
/// differ. The rest of an adapter is its HTTP client:
///
/// ```
/// use futures::{StreamExt, executor::block_on, stream};
/// use threadfold::{message::Delta, model, wire::Dialect};
///
/// // With reqwest: `model::deltas_of(response.bytes_stream(), Dialect::OpenAiChat)`.
/// let body = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n\
///     data: [DONE]\n\n";
/// let bytes = stream::iter(body.as_bytes().chunks(7)).map(Ok::<_, std::io::Error>);
/// let deltas: Vec<_> = block_on(model::deltas_of(bytes, Dialect::OpenAiChat).collect());
/// assert_eq!(deltas[0].as_ref().unwrap(), &Delta::Text { text: "hi".into() });
/// assert!(matches!(&deltas[1], Ok(Delta::Answer { answer }) if answer.text() == "hi"));
/// ```
///
/// The size is limited by the default [`AnswerLimits`]; the time is not limited. For a real server
/// use [`deltas_within`].
///
/// A transport error becomes a retryable [`ModelError`] with that error as its source and the
/// tokens used so far. An answer that ends before it is complete is a retryable error too. A body
/// that is one JSON error instead of a stream is that error, as
/// [`classify_error`](crate::wire::classify_error) reads it.
pub fn deltas_of<'s, S, B, E>(bytes: S, codec: Dialect) -> BoxStream<'s, Result<Delta, ModelError>>
where
    S: Stream<Item = Result<B, E>> + Send + 's,
    B: AsRef<[u8]> + 's,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let parser = Parser::new(Framing::EventStream, AnswerLimits::default());
    let watch = Watch::new(AnswerLimits::default(), None);
    decoded(
        bytes.map(|chunk| chunk.map_err(Into::into)).boxed(),
        parser,
        codec.answer_builder(),
        watch,
    )
}

/// Same as [`deltas_of`], within these limits on size and time, which the clock measures. An answer
/// that is endless, consists of comments only, or goes silent ends with an error whose message
/// names the limit.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use futures::{StreamExt, executor::block_on, stream};
/// use threadfold::{model::{self, AnswerLimits, std_clock}, wire::Dialect};
///
/// let limits = AnswerLimits { idle: Some(Duration::from_millis(20)), ..AnswerLimits::default() };
/// let begun = stream::iter([Ok::<_, std::io::Error>(": one moment\n\n")]);
/// let silent = begun.chain(stream::pending());
/// let deltas = model::deltas_within(silent, Dialect::OpenAiChat, limits, Arc::new(std_clock()));
/// let items: Vec<_> = block_on(deltas.collect());
/// let error = items[0].as_ref().unwrap_err();
/// assert_eq!(error.message, "no event of the answer came for 0.02 s");
/// assert!(error.is_retryable() && items.len() == 1);
/// ```
pub fn deltas_within<'s, S, B, E>(
    bytes: S,
    codec: Dialect,
    limits: AnswerLimits,
    clock: Arc<dyn Clock>,
) -> BoxStream<'s, Result<Delta, ModelError>>
where
    S: Stream<Item = Result<B, E>> + Send + 's,
    B: AsRef<[u8]> + 's,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    deltas_by(bytes, Framing::EventStream, codec.answer_builder(), limits, clock)
}

/// Same as [`deltas_within`], for a provider without a codec: the bytes are divided as the framing
/// says, and the builder reads the answer from the events or lines. The limits and the idle time are
/// the same; a line of JSON counts as an event.
///
/// ```
/// use std::sync::Arc;
/// use futures::{StreamExt, executor::block_on, stream};
/// use threadfold::model::{self, AnswerLimits, Framing, ModelError, std_clock};
/// use threadfold::{Answer, Message, message::{Delta, StopReason}, wire::AnswerBuilder};
///
/// /// Reads lines that are words, up to a full stop.
/// #[derive(Debug, Default)]
/// struct Words(Vec<String>);
///
/// impl AnswerBuilder for Words {
///     fn handle(&mut self, _: &str, line: &str) -> Result<Vec<Delta>, ModelError> {
///         self.0.push(line.trim_matches('"').to_owned());
///         Ok(Vec::new())
///     }
///
///     fn is_complete(&self) -> bool {
///         self.0.last().is_some_and(|word| word == ".")
///     }
///
///     fn finish(&mut self) -> Result<Answer, ModelError> {
///         if !self.is_complete() {
///             return Err(ModelError::cut_short());
///         }
///         Ok(Answer::new(Message::assistant(self.0.concat()), StopReason::EndTurn, None))
///     }
/// }
///
/// let read = |body: &'static str| {
///     let bytes = stream::iter(body.as_bytes().chunks(3)).map(Ok::<_, std::io::Error>);
///     let (limits, clock) = (AnswerLimits::default(), Arc::new(std_clock()));
///     let deltas = model::deltas_by(bytes, Framing::JsonLines, Box::<Words>::default(), limits, clock);
///     block_on(model::answer_of(deltas))
/// };
/// assert_eq!(read("\"Hello\"\n\".\"\n")?.text(), "Hello.");
/// assert!(read("\"Hello\"\n").unwrap_err().is_retryable());
/// # Ok::<(), ModelError>(())
/// ```
pub fn deltas_by<'s, S, B, E>(
    bytes: S,
    framing: Framing,
    builder: Box<dyn AnswerBuilder>,
    limits: AnswerLimits,
    clock: Arc<dyn Clock>,
) -> BoxStream<'s, Result<Delta, ModelError>>
where
    S: Stream<Item = Result<B, E>> + Send + 's,
    B: AsRef<[u8]> + 's,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let watch = Watch::new(limits, Some(clock));
    let bytes = bytes.map(|chunk| chunk.map_err(Into::into)).boxed();
    decoded(bytes, Parser::new(framing, limits), builder, watch)
}

/// How the bytes of a streamed answer are divided into the pieces that an
/// [`AnswerBuilder`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Events of `text/event-stream`, each with a name and data.
    EventStream,
    /// Lines of JSON (NDJSON), as Ollama's native API sends them. They have no names.
    JsonLines,
}

/// Divides the bytes of an answer.
enum Parser {
    Events(SseParser),
    Lines(LineParser),
}

impl Parser {
    fn new(framing: Framing, limits: AnswerLimits) -> Self {
        match framing {
            Framing::EventStream => Self::Events(SseParser::with_max_bytes(limits.event_bytes)),
            Framing::JsonLines => Self::Lines(LineParser::with_max_bytes(limits.event_bytes)),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Events(parser) => parser.push(bytes),
            Self::Lines(parser) => parser.push(bytes),
        }
    }

    /// Returns the name and the data of the next event or line.
    fn next_event(&mut self) -> Result<Option<(String, String)>, WireError> {
        match self {
            Self::Events(parser) => parser.next_event(),
            Self::Lines(parser) => Ok(parser.next_line()?.map(unnamed)),
        }
    }

    fn rest(&mut self) -> Option<(String, String)> {
        match self {
            Self::Events(parser) => parser.rest(),
            Self::Lines(parser) => parser.rest().map(unnamed),
        }
    }
}

fn unnamed(line: String) -> (String, String) {
    (String::new(), line)
}

fn decoded<'s, B: AsRef<[u8]> + 's>(
    bytes: Bytes<'s, B>,
    parser: Parser,
    builder: Box<dyn AnswerBuilder>,
    watch: Watch,
) -> BoxStream<'s, Result<Delta, ModelError>> {
    let decoder = AnswerDecoder {
        bytes: Some(bytes),
        parser,
        watch,
        head: Some(Vec::new()),
        builder,
        ready: VecDeque::new(),
    };
    stream::unfold(decoder, |mut decoder| async move {
        let item = decoder.next().await?;
        Some((item, decoder))
    })
    .boxed()
}

/// The number of bytes of an error that are read.
const MAX_ERROR: usize = 64 * 1024;

/// The error in a body that came instead of a stream, maybe after comments that keep the connection
/// open, or within a field that events do not have.
fn error_of(body: &[u8]) -> Option<ModelError> {
    let mut text = str::from_utf8(body).ok()?.trim_start_matches('\u{feff}').trim_start();
    while text.starts_with(':') {
        text = text.split_once(['\n', '\r'])?.1.trim_start();
    }
    error_within(text.strip_prefix("error:").unwrap_or(text).as_bytes())
}

/// Decodes one answer.
struct AnswerDecoder<'s, B> {
    /// The input. `None` once the last item is in `ready`.
    bytes: Option<Bytes<'s, B>>,
    parser: Parser,
    watch: Watch,
    /// The first bytes, while no event came: they may be an error instead of a stream.
    head: Option<Vec<u8>>,
    builder: Box<dyn AnswerBuilder>,
    ready: VecDeque<Result<Delta, ModelError>>,
}

type Bytes<'s, B> = BoxStream<'s, Result<B, Box<dyn Error + Send + Sync>>>;

impl<B: AsRef<[u8]>> AnswerDecoder<'_, B> {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            let bytes = self.bytes.as_mut()?;
            match self.parser.next_event() {
                Ok(Some(event)) => {
                    self.watch.event();
                    self.head = None;
                    self.handle(&event.0, &event.1);
                }
                Err(error) => {
                    let failure = ModelError::new(ModelErrorKind::Other, error.to_string());
                    self.fail(failure.with_source(error));
                }
                Ok(None) => match self.watch.within(bytes.next()).await {
                    Err(limit) => self.fail(limit.into()),
                    Ok(Some(Ok(chunk))) => self.parse(chunk.as_ref()),
                    Ok(Some(Err(error))) => {
                        let kind = ModelErrorKind::Retryable { after: None };
                        let failure = ModelError::new(kind, error.to_string());
                        self.fail(failure.with_boxed_source(error));
                    }
                    Ok(None) => self.end(),
                },
            }
        }
    }

    fn parse(&mut self, chunk: &[u8]) {
        match self.watch.read(chunk.len()) {
            Ok(()) => {
                if let Some(head) = &mut self.head {
                    head.extend(chunk.iter().take(MAX_ERROR - head.len()));
                }
                self.parser.push(chunk);
            }
            Err(limit) => self.fail(limit.into()),
        }
    }

    fn handle(&mut self, name: &str, data: &str) {
        match self.builder.handle(name, data) {
            Ok(deltas) => self.ready.extend(deltas.into_iter().map(Ok)),
            Err(error) => return self.close(Err(error)),
        }
        if self.builder.is_complete() {
            self.finish();
        }
    }

    /// Handles the end of the input. Some servers omit the blank line after the last event.
    fn end(&mut self) {
        if let Some(event) = self.parser.rest() {
            self.head = None;
            self.handle(&event.0, &event.1);
        }
        if let Some(error) = self.head.take().and_then(|body| error_of(&body)) {
            return self.close(Err(error));
        }
        if self.bytes.is_some() {
            self.finish();
        }
    }

    fn finish(&mut self) {
        let answer = self.builder.finish();
        self.close(answer.map(|answer| Delta::Answer { answer }));
    }

    /// Ends the stream with a transport error, and the usage reported before it.
    fn fail(&mut self, error: ModelError) {
        let usage = match self.builder.finish() {
            Ok(answer) => answer.usage.unwrap_or_default(),
            Err(unfinished) => unfinished.usage,
        };
        self.close(Err(error.with_usage(usage)));
    }

    fn close(&mut self, last: Result<Delta, ModelError>) {
        self.bytes = None;
        self.ready.push_back(last);
    }
}

/// The number of ticks into which the idle time is divided. Silence is noticed at most one tick
/// late.
const TICKS: u32 = 4;

options! {
    /// The maximum bytes and the maximum time of an answer. An answer that exceeds them ends with a
    /// [`ModelError`] whose message names the limit. The error is retryable only if the server was
    /// silent for too long: a second answer would exceed the other limits again.
    ///
    /// ```
    /// use std::time::Duration;
    /// use threadfold::model::AnswerLimits;
    ///
    /// let total = Some(Duration::from_secs(60));
    /// let limits = AnswerLimits { total, ..AnswerLimits::default() };
    /// assert_eq!(limits.bytes, 128 << 20);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AnswerLimits {
        /// The maximum bytes of the whole response body, including comments.
        pub bytes: u64 = 128 << 20,
        /// The maximum bytes of one event, or of one line of JSON.
        pub event_bytes: usize = 16 << 20,
        /// The longest time without an event; `None` for no limit. Comments are no events. Silence
        /// is noticed at most a quarter of this time late.
        pub idle: Option<Duration> = Some(Duration::from_secs(300)),
        /// The longest time from the first poll to the end of the answer; `None` for no limit.
        pub total: Option<Duration> = Some(Duration::from_secs(3_600)),
    }
}

/// The limit that an answer exceeded.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerLimitError {
    /// The whole answer is too large.
    #[error("the answer has more than {limit} bytes")]
    Bytes { limit: u64 },
    /// No event came for too long.
    #[error("no event of the answer came for {} s", .limit.as_secs_f64())]
    Idle { limit: Duration },
    /// The answer takes too long.
    #[error("the answer was not complete after {} s", .limit.as_secs_f64())]
    Total { limit: Duration },
}

impl From<AnswerLimitError> for ModelError {
    fn from(error: AnswerLimitError) -> Self {
        let kind = match error {
            AnswerLimitError::Idle { .. } => ModelErrorKind::Retryable { after: None },
            AnswerLimitError::Bytes { .. } | AnswerLimitError::Total { .. } => {
                ModelErrorKind::Other
            }
        };
        Self::new(kind, error.to_string())
    }
}

/// Counts the bytes and the time of an answer against its limits.
pub(super) struct Watch {
    limits: AnswerLimits,
    clock: Option<Arc<dyn Clock>>,
    bytes: u64,
    total: Option<BoxFuture<'static, ()>>,
    /// The running tick of the idle time.
    tick: Option<BoxFuture<'static, ()>>,
    /// The number of ticks that ended since the last event.
    ticks: u32,
}

impl Watch {
    /// Returns a watch of the bytes, and of the time if there is a clock.
    pub(super) fn new(limits: AnswerLimits, clock: Option<Arc<dyn Clock>>) -> Self {
        Self { limits, clock, bytes: 0, total: None, tick: None, ticks: 0 }
    }

    pub(super) fn read(&mut self, bytes: usize) -> Result<(), AnswerLimitError> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let limit = self.limits.bytes;
        if self.bytes > limit { Err(AnswerLimitError::Bytes { limit }) } else { Ok(()) }
    }

    /// Restarts the idle time, because an event arrived.
    pub(super) fn event(&mut self) {
        self.ticks = 0;
    }

    /// Waits for the next chunk of the answer, within the limits.
    pub(super) async fn within<T>(
        &mut self,
        mut answer: impl Future<Output = T> + Unpin,
    ) -> Result<T, AnswerLimitError> {
        // Poll the time first, so that the limit also applies to an answer that is always ready.
        poll_fn(|context| match self.poll_time(context) {
            Poll::Ready(error) => Poll::Ready(Err(error)),
            Poll::Pending => answer.poll_unpin(context).map(Ok),
        })
        .await
    }

    fn poll_time(&mut self, context: &mut Context<'_>) -> Poll<AnswerLimitError> {
        let Some(clock) = &self.clock else { return Poll::Pending };
        if let Some(limit) = self.limits.total {
            let total = self.total.get_or_insert_with(|| sleep(clock, limit));
            if total.poll_unpin(context).is_ready() {
                return Poll::Ready(AnswerLimitError::Total { limit });
            }
        }
        let Some(limit) = self.limits.idle else { return Poll::Pending };
        loop {
            let tick = self.tick.get_or_insert_with(|| sleep(clock, limit / TICKS));
            if tick.poll_unpin(context).is_pending() {
                return Poll::Pending;
            }
            (self.tick, self.ticks) = (None, self.ticks + 1);
            // The first tick began before the last event, so it does not count as a whole one.
            if self.ticks > TICKS {
                return Poll::Ready(AnswerLimitError::Idle { limit });
            }
        }
    }
}

fn sleep(clock: &Arc<dyn Clock>, time: Duration) -> BoxFuture<'static, ()> {
    let clock = Arc::clone(clock);
    async move { clock.sleep(time).await }.boxed()
}
