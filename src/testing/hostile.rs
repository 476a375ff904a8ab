//! A model that misbehaves in the ways that models and networks do.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll},
};

use async_trait::async_trait;
use futures::{Stream, StreamExt, stream::BoxStream};

use super::scripted::{Answer, deltas};
use crate::{
    message::{
        Delta, Json, Message, ModelError, ModelErrorKind, Request, Role, StopReason, ToolUse, Turn,
    },
    model::{self, Model},
};

/// One way of misbehaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// Fails because the prompt exceeds the window.
    Overflow,
    /// Answers with white space only.
    Blank,
    /// Answers without any block.
    Empty,
    /// Calls a tool instead of writing text.
    CallsTool,
    /// Ends the stream in the middle of the answer.
    CutStream,
    /// Fails permanently.
    Fails,
    /// Fails with a retryable error.
    Overloaded,
    /// Stops at the output limit.
    Truncated,
    /// Stops with a refusal.
    Refuses,
    /// Answers, but its stream is pending a hundred times before each delta.
    Slow,
    /// Answers with about a megabyte of text.
    Inflates,
}

/// The text of an answer that stops at the output limit.
pub(super) const HALF: &str = "This is only the first half of an";

impl Misbehaviour {
    /// All ways of misbehaving.
    pub const ALL: [Self; 11] = [
        Self::Overflow,
        Self::Blank,
        Self::Empty,
        Self::CallsTool,
        Self::CutStream,
        Self::Fails,
        Self::Overloaded,
        Self::Truncated,
        Self::Refuses,
        Self::Slow,
        Self::Inflates,
    ];

    pub(super) fn answer(self) -> Answer {
        let turn = |message, stop_reason| Turn::new(message, stop_reason, None);
        let fails = |kind| Answer::Error(ModelError::new(kind, "hostile"));
        match self {
            Self::Overflow => {
                fails(ModelErrorKind::Overflow { limit: Some(1_000), found: None, output: None })
            }
            Self::Fails => fails(ModelErrorKind::Other),
            Self::Overloaded => fails(ModelErrorKind::Retryable { after: None }),
            Self::Blank => Answer::from(" \n\t "),
            Self::Empty => {
                turn(Message::new(Role::Assistant, Vec::new()), StopReason::EndTurn).into()
            }
            Self::CallsTool => {
                let call = ToolUse::new("hostile", "rm", Json::default());
                Message::new(Role::Assistant, vec![call.into()]).into()
            }
            Self::CutStream => Answer::Cut(turn(
                Message::assistant("this will not be said to its end"),
                StopReason::EndTurn,
            )),
            Self::Truncated => turn(Message::assistant(HALF), StopReason::MaxTokens).into(),
            Self::Refuses => turn(Message::assistant("no"), StopReason::Refusal).into(),
            Self::Slow => Answer::from("slowly said"),
            Self::Inflates => Answer::from("word ".repeat(200_000)),
        }
    }
}

/// A model that misbehaves in the given ways, one per call, over and over.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Request, model::Model, testing::{HostileModel, Misbehaviour}};
///
/// let model = HostileModel::new([Misbehaviour::Overflow]);
/// assert!(block_on(model.complete(Request::default())).unwrap_err().is_overflow());
/// ```
#[derive(Debug)]
pub struct HostileModel {
    ways: Vec<Misbehaviour>,
    next: AtomicUsize,
}

impl HostileModel {
    /// Returns a model that misbehaves in these ways. If there are none, every call fails.
    #[must_use]
    pub fn new(ways: impl IntoIterator<Item = Misbehaviour>) -> Self {
        Self { ways: ways.into_iter().collect(), next: AtomicUsize::new(0) }
    }

    fn next(&self) -> Misbehaviour {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let index = number.checked_rem(self.ways.len()).unwrap_or_default();
        self.ways.get(index).copied().unwrap_or(Misbehaviour::Fails)
    }
}

#[async_trait]
impl Model for HostileModel {
    async fn complete(&self, request: Request) -> Result<Turn, ModelError> {
        model::turn_of(self.stream(request)).await
    }

    fn stream(&self, _: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let way = self.next();
        let delay = if way == Misbehaviour::Slow { SLOW_POLLS } else { 0 };
        DelayedStream { deltas: deltas(way.answer()).into(), delay, left: delay }.boxed()
    }
}

/// Number of pending polls of a slow model before each delta.
const SLOW_POLLS: usize = 100;

/// A stream that is pending `delay` times before each item.
struct DelayedStream {
    deltas: VecDeque<Result<Delta, ModelError>>,
    delay: usize,
    /// Pending polls left before the next item.
    left: usize,
}

impl Stream for DelayedStream {
    type Item = Result<Delta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.left > 0 {
            self.left -= 1;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.left = self.delay;
        Poll::Ready(self.deltas.pop_front())
    }
}
