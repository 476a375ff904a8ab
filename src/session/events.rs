//! A turn in flight: a stream of events that can also be awaited as a whole.
//!
//! An event waits in a slot that holds one. If the stream is dropped before the event is delivered,
//! the event did not reach the host and is emitted again; so observers see it on delivery. Events
//! of an adopted compaction wait for the next stream, but observers see them when they happen.

use std::{
    fmt,
    future::{self, IntoFuture},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{FutureExt, Stream, StreamExt, future::BoxFuture};

use super::{
    error::Result,
    event::{SessionEvent, notice_line},
    handle::Shared,
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
    /// The future of the turn, polled with the stream; `None` once the turn has ended.
    pub(super) work: Option<BoxFuture<'a, Result<()>>>,
    pub(super) shared: Arc<Shared>,
    pub(super) is_command: bool,
}

/// The result of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// The text of the last answer; for a command, its result line.
    pub text: String,
    /// Why the model stopped; `None` if the agent was not asked.
    pub stop_reason: Option<StopReason>,
    /// Whether the session stopped a turn before the model was done: see
    /// [`TurnEnded`](super::SessionEvent::TurnEnded).
    pub capped: bool,
    /// Token usage of all answers. The usage of compactions is in their events, and the sum of both
    /// in [`token_usage`](super::Session::token_usage).
    pub usage: Usage,
    /// The end event of each compaction during the turn, whatever requested it.
    pub compactions: Vec<CompactionEvent>,
    /// Why a requested compaction found nothing to compact, if that happened.
    pub nothing_compacted: Option<Text>,
}

/// Emits the events of a turn.
pub(super) struct Emit {
    pub(super) shared: Arc<Shared>,
    /// Whether no stream is open, so that events wait for the next stream.
    pub(super) defers: bool,
}

impl Emit {
    /// Emits an event and waits until the stream has taken it. So a host that drops the stream
    /// after an event knows that nothing happened after that event. The event is
    /// queued before the future is made, which keeps the future small.
    pub(super) fn event(&mut self, event: SessionEvent) -> impl Future<Output = ()> {
        if self.defers {
            self.shared.defer(event);
        } else {
            self.shared.lock().slot.push_back(Ok(event));
        }
        future::poll_fn(|_| match self.shared.lock().slot.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
    }

    /// Emits the notice of the trigger, if any.
    pub(super) async fn notice_of(&mut self, output: Option<Output>) {
        if let Some(text) = output.as_ref().and_then(notice_line) {
            self.event(SessionEvent::Notice { text: text.into() }).await;
        }
    }
}

impl Events<'_> {
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
    pub async fn next(&mut self) -> Option<Result<SessionEvent>> {
        StreamExt::next(self).await
    }

    /// Returns the reply, as awaiting the stream does, and passes each piece of the model's text to
    /// this function as it arrives: also text before tool calls, and of answers that are asked for
    /// again. The future may be dropped, which cancels the turn.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["Hello!"]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// let mut shown = String::new();
    /// let reply = block_on(session.send("Hi.").each_text(|piece| shown.push_str(piece)))?;
    /// assert_eq!((shown, reply.text), ("Hello!".to_owned(), "Hello!".to_owned()));
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error that ends the stream.
    pub async fn each_text(mut self, mut each: impl FnMut(&str)) -> Result<Reply> {
        let (mut reply, mut line) = (Reply::default(), None);
        while let Some(event) = self.next().await {
            let event = event?;
            if let SessionEvent::TextDelta { text } = &event {
                each(text);
            }
            if let SessionEvent::Notice { text } = event {
                line = Some(text);
            } else {
                reply.note(event);
            }
        }
        if let Some(line) = line.filter(|_| self.is_command) {
            reply.text = line.to_string();
        }
        Ok(reply)
    }

    /// Whether the message of this stream is in the thread. Before that, dropping the stream leaves
    /// the thread without it. The same as
    /// [`SessionHandle::is_text_in_thread`](super::SessionHandle::is_text_in_thread).
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ContextWindow, ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["Hello!"]));
    /// let agent = ModelAgent::new(model).with_window(ContextWindow::new(8_000));
    /// let mut session = Session::builder(agent).build()?;
    /// let mut events = session.send("Hi.");
    /// assert!(!events.is_text_in_thread());
    /// assert!(block_on(events.next()).is_some());
    /// assert!(events.is_text_in_thread());
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    #[must_use]
    pub fn is_text_in_thread(&self) -> bool {
        self.shared.lock().has_entered == Some(true)
    }
}

impl Stream for Events<'_> {
    type Item = Result<SessionEvent>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(work) = &mut this.work else { return Poll::Ready(None) };
        if this.shared.is_aborted(context) {
            // Dropping the work cancels it.
            this.work = None;
            this.shared.end();
            this.shared.observe(Ok(&SessionEvent::Aborted));
            return Poll::Ready(Some(Ok(SessionEvent::Aborted)));
        }
        if let Some(event) = this.shared.next_deferred() {
            return Poll::Ready(Some(Ok(event)));
        }
        let polled = work.poll_unpin(context);
        let ready = polled.is_ready();
        if let Poll::Ready(Err(error)) = polled {
            this.shared.lock().slot.push_back(Err(error));
        }
        let event = this.shared.next_event();
        if ready {
            this.work = None;
            this.shared.end();
        }
        if event.is_none() && !ready { Poll::Pending } else { Poll::Ready(event) }
    }
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        self.shared.lock().slot.clear();
        self.shared.end();
        if self.work.is_some() {
            // The stream was dropped, so only observers get this event.
            self.shared.observe(Ok(&SessionEvent::Aborted));
        }
    }
}

impl<'a> IntoFuture for Events<'a> {
    type Output = Result<Reply>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    /// Returns the future of the turn's reply.
    fn into_future(self) -> Self::IntoFuture {
        self.each_text(|_| {}).boxed()
    }
}

impl Reply {
    fn note(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::TextDelta { text } => {
                // The reply holds the last answer only, so the first text of a later turn replaces
                // it.
                if self.stop_reason.take().is_some() {
                    self.text.clear();
                }
                self.text.push_str(&text);
            }
            // After each of these events the model answers anew, so the text so far is not the
            // reply.
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
