//! From the bytes of a response to the pieces of an answer.

use std::{collections::VecDeque, error::Error, sync::Arc};

use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};

use super::{
    limits::{AnswerLimits, Watch},
    sleep::Sleeper,
};
use crate::{
    message::{Delta, ModelError, ModelErrorKind},
    wire::{SseParser, StreamEvent, TurnBuilder, WireFormat},
};

/// Returns the answer in a response body of `text/event-stream`, piece by piece, as
/// [`Model::stream`](super::Model::stream) gives it: the last item is [`Delta::Turn`], or an error.
///
/// The bytes are those of an answer of status 200, as they come from the HTTP client, divided
/// anywhere. When the answer is complete they are not asked for more, and dropped. Dropping the
/// stream cancels. Tools have the names of the body that was sent; where the host may have others,
/// [`wire::as_declared`](crate::wire::as_declared) gives them back. So an adapter is its HTTP client
/// and nothing else:
///
/// ```
/// use futures::{StreamExt, executor::block_on, stream};
/// use threadfold::{message::Delta, model, wire::OpenAiChat};
///
/// // With reqwest: `model::deltas_of(response.bytes_stream(), &OpenAiChat)`.
/// let body = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n\
///     data: [DONE]\n\n";
/// let bytes = stream::iter(body.as_bytes().chunks(7)).map(Ok::<_, std::io::Error>);
/// let deltas: Vec<_> = block_on(model::deltas_of(bytes, &OpenAiChat).collect());
/// assert_eq!(deltas[0].as_ref().unwrap(), &Delta::Text { text: "hi".into() });
/// assert!(matches!(&deltas[1], Ok(Delta::Turn { turn }) if turn.text() == "hi"));
/// ```
///
/// No more is read than the default [`AnswerLimits`] allow in bytes. Nobody watches the time: whoever
/// talks to a server uses [`deltas_within`].
///
/// An error of the transport is retryable, with that error as its source and what was spent so far;
/// so is an answer that ends before it is complete.
pub fn deltas_of<'s, S, B, E>(
    bytes: S,
    codec: &dyn WireFormat,
) -> BoxStream<'s, Result<Delta, ModelError>>
where
    S: Stream<Item = Result<B, E>> + Send + 's,
    B: AsRef<[u8]> + 's,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    watched(bytes, codec, AnswerLimits::default(), None)
}

/// As [`deltas_of`], within these limits, of which the time is told by a sleeper of the host's. An
/// endless answer, one that is all comments, and one that falls silent end with an error that has
/// an [`AnswerLimitError`](super::AnswerLimitError) as its source.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use futures::{StreamExt, executor::block_on, stream};
/// use threadfold::{model::{self, AnswerLimits, StdSleeper}, wire::OpenAiChat};
///
/// let limits = AnswerLimits { idle: Some(Duration::from_millis(20)), ..AnswerLimits::default() };
/// let begun = stream::iter([Ok::<_, std::io::Error>(": one moment\n\n")]);
/// let silent = begun.chain(stream::pending());
/// let deltas = model::deltas_within(silent, &OpenAiChat, limits, Arc::new(StdSleeper));
/// let items: Vec<_> = block_on(deltas.collect());
/// let error = items[0].as_ref().unwrap_err();
/// assert_eq!(error.message, "no event of the answer came for 0.02 s");
/// assert!(error.is_retryable() && items.len() == 1);
/// ```
pub fn deltas_within<'s, S, B, E>(
    bytes: S,
    codec: &dyn WireFormat,
    limits: AnswerLimits,
    sleeper: Arc<dyn Sleeper>,
) -> BoxStream<'s, Result<Delta, ModelError>>
where
    S: Stream<Item = Result<B, E>> + Send + 's,
    B: AsRef<[u8]> + 's,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    watched(bytes, codec, limits, Some(sleeper))
}

fn watched<'s, S, B, E>(
    bytes: S,
    codec: &dyn WireFormat,
    limits: AnswerLimits,
    sleeper: Option<Arc<dyn Sleeper>>,
) -> BoxStream<'s, Result<Delta, ModelError>>
where
    S: Stream<Item = Result<B, E>> + Send + 's,
    B: AsRef<[u8]> + 's,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let bytes = bytes.map(|chunk| chunk.map_err(Into::into)).boxed();
    let answer = Answer {
        bytes: Some(bytes),
        parser: SseParser::with_max_bytes(limits.event_bytes),
        watch: Watch::new(limits, sleeper),
        builder: codec.turn_builder(),
        ready: VecDeque::new(),
    };
    stream::unfold(answer, |mut answer| async move {
        let item = answer.next().await?;
        Some((item, answer))
    })
    .boxed()
}

/// An answer that arrives.
struct Answer<'s, B> {
    /// `None` when the last item is ready: nothing more is read then.
    bytes: Option<Bytes<'s, B>>,
    parser: SseParser,
    watch: Watch,
    builder: Box<dyn TurnBuilder>,
    ready: VecDeque<Result<Delta, ModelError>>,
}

type Bytes<'s, B> = BoxStream<'s, Result<B, Box<dyn Error + Send + Sync>>>;

impl<B: AsRef<[u8]>> Answer<'_, B> {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            let bytes = self.bytes.as_mut()?;
            match self.parser.next_event() {
                Ok(Some(event)) => {
                    self.watch.event();
                    self.handle(event.as_event());
                }
                Err(error) => {
                    let failure = ModelError::new(ModelErrorKind::Other, error.to_string());
                    self.fail(failure.with_source(error));
                }
                Ok(None) => match self.watch.within(bytes.next()).await {
                    Err(limit) => self.fail(limit.into()),
                    Ok(Some(Ok(chunk))) => self.take(chunk.as_ref()),
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

    fn take(&mut self, chunk: &[u8]) {
        match self.watch.read(chunk.len()) {
            Ok(()) => self.parser.push(chunk),
            Err(limit) => self.fail(limit.into()),
        }
    }

    fn handle(&mut self, event: StreamEvent<'_>) {
        match self.builder.handle(event) {
            Ok(deltas) => self.ready.extend(deltas.into_iter().map(Ok)),
            Err(error) => return self.close(Err(error)),
        }
        if self.builder.is_complete() {
            self.finish();
        }
    }

    /// The bytes are over. Some servers leave out the blank line behind the last event.
    fn end(&mut self) {
        if let Some(event) = self.parser.rest() {
            self.handle(event.as_event());
        }
        if self.bytes.is_some() {
            self.finish();
        }
    }

    fn finish(&mut self) {
        let turn = self.builder.finish();
        self.close(turn.map(|turn| Delta::Turn { turn }));
    }

    /// Ends with an error of the transport, and what the answer had cost until then.
    fn fail(&mut self, error: ModelError) {
        let usage = match self.builder.finish() {
            Ok(turn) => turn.usage.unwrap_or_default(),
            Err(unfinished) => unfinished.usage,
        };
        self.close(Err(error.with_usage(usage)));
    }

    fn close(&mut self, last: Result<Delta, ModelError>) {
        self.bytes = None;
        self.ready.push_back(last);
    }
}
