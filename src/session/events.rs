//! A turn in flight: a stream of events that can also be awaited as a whole.

use std::{
    fmt,
    future::{self, IntoFuture},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{FutureExt, Stream, StreamExt, future::BoxFuture};

use super::{
    error::SessionError,
    event::{SessionEvent, notice_line},
    shared::Shared,
};
use crate::{
    auto::Output,
    compaction::CompactionEvent,
    message::{StopReason, Text, Usage},
};

/// The events of a turn, as they happen. Dropping it at any point cancels the turn, and the session
/// can be used again at once.
///
/// It implements [`Stream`], has its own [`next`](Self::next), and can be awaited for the
/// [`Reply`].
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use threadfold::{ContextWindow, ModelAgent, session::Session, testing::ScriptedModel};
///
/// let model = Arc::new(ScriptedModel::new(["Never read.", "Hello!"]));
/// let agent = ModelAgent::new(model).with_window(ContextWindow::new(8_000));
/// let mut session = Session::builder(agent).build()?;
/// let mut dropped = session.send("Hi.");
/// assert!(block_on(dropped.next()).is_some());
/// drop(dropped);
/// let reply = block_on(async { session.send("Hi again.").await })?;
/// assert_eq!(reply.text, "Hello!");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Events<'a> {
    work: Option<BoxFuture<'a, ()>>,
    shared: Arc<Shared>,
    is_command: bool,
}

/// The result of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// The text of the last answer; for a command, its result line.
    pub text: String,
    /// Why the model stopped; `None` if the agent was not asked.
    pub stop_reason: Option<StopReason>,
    /// Whether a turn was stopped although the model would have continued: see
    /// [`TurnEnded`](super::SessionEvent::TurnEnded).
    pub capped: bool,
    /// Tokens of all answers. The tokens of compactions are in their events, and both are in
    /// [`token_usage`](super::Session::token_usage).
    pub usage: Usage,
    /// The end event of each compaction during the turn, whatever requested it.
    pub compactions: Vec<CompactionEvent>,
    /// Why a requested compaction found nothing to compact, if one did.
    pub nothing_compacted: Option<Text>,
}

/// Emits the events of a turn. The turn waits until each event is taken, so that nothing has
/// happened after an event when a host drops the stream there.
pub(super) struct Emit(Arc<Shared>);

impl Emit {
    /// Emits an event and waits until it is taken. If the stream was dropped, the turn is about to
    /// be dropped too.
    pub(super) fn event(&mut self, event: SessionEvent) -> impl Future<Output = ()> {
        self.0.put(Ok(event));
        self.taken()
    }

    /// Emits the notice of the trigger, if its output is one.
    pub(super) async fn notice_of(&mut self, output: Option<Output>) {
        if let Some(Output::Notify(notice)) = output {
            self.event(SessionEvent::Notice { text: notice_line(&notice).into() }).await;
        }
    }

    /// Emits the error that the turn ended with, if any.
    pub(super) fn ended(&mut self, ended: Result<(), SessionError>) -> impl Future<Output = ()> {
        if let Err(error) = ended {
            self.0.put(Err(error));
        }
        self.taken()
    }

    /// Waits until the slot is empty. Takes no event: a future that owns one reserves space for it
    /// at every await.
    fn taken(&self) -> impl Future<Output = ()> {
        future::poll_fn(|_| if self.0.is_taken() { Poll::Ready(()) } else { Poll::Pending })
    }
}

impl<'a> Events<'a> {
    /// Returns the events of this work, which advances only when the stream is polled.
    pub(super) fn of<F, W>(shared: Arc<Shared>, is_command: bool, work: F) -> Self
    where
        F: FnOnce(Emit) -> W,
        W: Future<Output = ()> + Send + 'a,
    {
        Self { work: Some(work(Emit(Arc::clone(&shared))).boxed()), shared, is_command }
    }

    /// Returns the next event, or `None` after the last one.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ContextWindow, ModelAgent, message::StopReason, testing::ScriptedModel};
    /// use threadfold::session::{Session, SessionEvent};
    ///
    /// let model = Arc::new(ScriptedModel::new(["Hello!"]));
    /// let agent = ModelAgent::new(model).with_window(ContextWindow::new(8_000));
    /// let mut session = Session::builder(agent).build()?;
    /// let mut events = session.send("Hi.");
    /// let first = block_on(events.next()).transpose()?;
    /// assert!(matches!(first, Some(SessionEvent::TextDelta { .. })));
    /// let mut last = first;
    /// while let Some(event) = block_on(events.next()).transpose()? {
    ///     last = Some(event);
    /// }
    /// let Some(SessionEvent::TurnEnded { stop_reason, .. }) = last else { panic!("it is the last") };
    /// assert_eq!(stop_reason, StopReason::EndTurn);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn next(&mut self) -> Option<Result<SessionEvent, SessionError>> {
        StreamExt::next(self).await
    }
}

impl Stream for Events<'_> {
    type Item = Result<SessionEvent, SessionError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.work.is_some() && self.shared.is_aborted(context) {
            // Dropping the work cancels it.
            self.work = None;
            self.shared.end();
            self.shared.observe(Ok(&SessionEvent::Aborted));
            return Poll::Ready(Some(Ok(SessionEvent::Aborted)));
        }
        if self.work.is_some()
            && let Some(event) = self.shared.next_deferred()
        {
            return Poll::Ready(Some(Ok(event)));
        }
        let Some(work) = &mut self.work else { return Poll::Ready(None) };
        let ready = work.poll_unpin(context).is_ready();
        let event = self.shared.next_event();
        // Nothing follows an error, so the work is over although it waits until that is taken.
        let over = ready || matches!(event, Some(Err(_)));
        if over {
            self.work = None;
            self.shared.end();
        }
        if event.is_none() && !over { Poll::Pending } else { Poll::Ready(event) }
    }
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        self.shared.discard();
        self.shared.end();
        if self.work.is_some() {
            // Nobody reads the stream any more, but observers see how the turn ended.
            self.shared.observe(Ok(&SessionEvent::Aborted));
        }
    }
}

impl<'a> IntoFuture for Events<'a> {
    type Output = Result<Reply, SessionError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    /// Returns the future of the turn's reply.
    fn into_future(mut self) -> Self::IntoFuture {
        let work = async move {
            let (mut reply, mut line) = (Reply::default(), None);
            while let Some(event) = self.next().await {
                match event? {
                    SessionEvent::Notice { text } => line = Some(text),
                    event => reply.note(event),
                }
            }
            if let Some(line) = line.filter(|_| self.is_command) {
                reply.text = line.to_string();
            }
            Ok(reply)
        };
        work.boxed()
    }
}

impl Reply {
    fn note(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::TextDelta { text } => {
                // The first text of a later turn replaces the answer of the one before.
                if self.stop_reason.take().is_some() {
                    self.text.clear();
                }
                self.text.push_str(&text);
            }
            // Another answer follows tool calls, a queued message and a discarded answer.
            SessionEvent::ToolStarted { .. }
            | SessionEvent::QueuedMessage { .. }
            | SessionEvent::AnswerDiscarded => self.text.clear(),
            SessionEvent::TurnEnded { stop_reason, usage, capped, .. } => {
                self.stop_reason = Some(stop_reason);
                self.capped |= capped;
                self.usage += usage;
            }
            SessionEvent::Aborted => self.stop_reason = Some(StopReason::Aborted),
            SessionEvent::Compaction(event) if event.is_end() => self.compactions.push(event),
            SessionEvent::NothingCompacted { why } => self.nothing_compacted = Some(why),
            SessionEvent::ThinkingDelta { .. }
            | SessionEvent::ToolInputDelta { .. }
            | SessionEvent::ToolFinished { .. }
            | SessionEvent::Compaction(_)
            | SessionEvent::Notice { .. } => {}
        }
    }
}

impl fmt::Debug for Events<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("over", &self.work.is_none()).finish_non_exhaustive()
    }
}
