//! Controlling a session while a turn borrows it.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Context,
};

use futures::task::AtomicWaker;

use super::{event::SessionEvent, slot::EventSlot};
use crate::message::{CompactionId, Text};

/// Controls a session while one of its turns borrows it, from any thread. Clones control the same
/// session.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use threadfold::{ModelAgent, session::{Session, SessionEvent}, testing::ScriptedModel};
///
/// let model = Arc::new(ScriptedModel::new(["Hello!", "Fine."]));
/// let mut session = Session::builder(ModelAgent::new(model)).build()?;
/// let handle = session.handle();
/// let mut events = session.send("Hi.");
/// handle.queue("How are you?");
/// let mut turns = 0;
/// while let Some(event) = block_on(events.next()) {
///     turns += usize::from(matches!(event?, SessionEvent::TurnEnded { .. }));
/// }
/// assert_eq!((turns, handle.queued()), (2, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SessionHandle {
    pub(super) shared: Arc<Shared>,
}

/// The present activity of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionStatus {
    /// No turn is running.
    Idle,
    /// A turn is running: the model is asked, or tools run.
    Working,
    /// A compaction is running, in a turn or on its own.
    Compacting {
        /// The id of the compaction.
        id: CompactionId,
    },
}

/// State shared by a session, its handles and its streams.
#[derive(Debug, Default)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    /// Events that happened while no stream was open, for the next one.
    deferred: Mutex<VecDeque<SessionEvent>>,
    /// Whether a turn is running.
    busy: AtomicBool,
    abort: AtomicBool,
    waker: AtomicWaker,
    /// The next event of the turn.
    pub(super) slot: EventSlot,
    /// The compaction of the last delivered compaction event, and whether that event was its end.
    last_compaction: Mutex<Option<(CompactionId, bool)>>,
}

/// Queued texts, numbered in the order of arrival.
#[derive(Debug, Default)]
struct Queue {
    texts: VecDeque<(u64, Text)>,
    next: u64,
}

impl SessionHandle {
    /// Queues a message or a [command](super::Command). Queued texts run in order, each as a turn
    /// of its own: after the current turn, or, if the session is idle, before the next message that
    /// is sent.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// # use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    /// # let model = Arc::new(ScriptedModel::new(["Hello!", "Fine."]));
    /// # let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// session.handle().queue("How are you?");
    /// let reply = block_on(async { session.send("Hi.").await })?;
    /// assert_eq!(reply.text, "Fine.", "the answer to what was sent");
    /// assert_eq!(session.messages().len(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn queue(&self, text: impl Into<Text>) {
        let mut queue = locked(&self.shared.queue);
        let number = queue.next;
        queue.next += 1;
        queue.texts.push_back((number, text.into()));
    }

    /// The present activity of the session, according to the events delivered so far.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, session::{Session, SessionStatus}, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["Hello!"]));
    /// let session = Session::builder(ModelAgent::new(model)).build()?;
    /// assert_eq!(session.handle().status(), SessionStatus::Idle);
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    #[must_use]
    pub fn status(&self) -> SessionStatus {
        match self.shared.last_compaction() {
            _ if !self.shared.busy.load(Ordering::Acquire) => SessionStatus::Idle,
            Some((id, false)) => SessionStatus::Compacting { id },
            Some((_, true)) | None => SessionStatus::Working,
        }
    }

    /// The number of queued messages.
    #[must_use]
    pub fn queued(&self) -> usize {
        locked(&self.shared.queue).texts.len()
    }

    /// Removes and returns all queued messages, for example to put them back into an input field.
    ///
    /// ```
    /// # use {std::sync::Arc, threadfold::{ModelAgent, Session, testing::ScriptedModel}};
    /// # let session = Session::builder(ModelAgent::new(Arc::new(ScriptedModel::default()))).build()?;
    /// let handle = session.handle();
    /// handle.queue("How are you?");
    /// assert_eq!(handle.take_queued(), ["How are you?"]);
    /// assert_eq!(handle.queued(), 0);
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    #[must_use]
    pub fn take_queued(&self) -> Vec<Text> {
        locked(&self.shared.queue).texts.drain(..).map(|(_, text)| text).collect()
    }

    /// Aborts the running turn, if any: its stream yields [`Aborted`](super::SessionEvent::Aborted)
    /// and then ends.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, session::{Session, SessionEvent}, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["A very long answer."]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// let handle = session.handle();
    /// let mut events = session.send("Tell me everything.");
    /// handle.abort();
    /// assert_eq!(block_on(events.next()).transpose()?, Some(SessionEvent::Aborted));
    /// assert!(block_on(events.next()).is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn abort(&self) {
        if self.shared.busy.load(Ordering::Acquire) {
            self.shared.abort.store(true, Ordering::Release);
            self.shared.waker.wake();
        }
    }
}

impl Shared {
    /// Starts a turn, dropping an abort or event meant for the previous one. Returns the number
    /// that the next queued text will have.
    pub(super) fn begin(&self) -> u64 {
        self.abort.store(false, Ordering::Release);
        self.slot.clear();
        self.busy.store(true, Ordering::Release);
        locked(&self.queue).next
    }

    pub(super) fn end(&self) {
        self.busy.store(false, Ordering::Release);
    }

    /// Takes the next queued text with a smaller number.
    pub(super) fn next_queued(&self, before: u64) -> Option<Text> {
        let mut queue = locked(&self.queue);
        let is_due = queue.texts.front().is_some_and(|(number, _)| *number < before);
        if is_due { queue.texts.pop_front().map(|(_, text)| text) } else { None }
    }

    /// Keeps an event for the next stream.
    pub(super) fn defer(&self, event: SessionEvent) {
        locked(&self.deferred).push_back(event);
    }

    /// Takes the next event kept for this stream.
    pub(super) fn next_deferred(&self) -> Option<SessionEvent> {
        locked(&self.deferred).pop_front()
    }

    /// Whether the turn is to be aborted. Registers the task to be woken by a later abort.
    pub(super) fn is_aborted(&self, context: &Context<'_>) -> bool {
        self.waker.register(context.waker());
        self.abort.load(Ordering::Acquire)
    }

    /// Records a delivered event.
    pub(super) fn record(&self, event: &SessionEvent) {
        if let SessionEvent::Compaction(event) = event {
            *locked(&self.last_compaction) = Some((event.id(), event.is_end()));
        }
    }

    /// The compaction of the last delivered compaction event, and whether that event was its end.
    pub(super) fn last_compaction(&self) -> Option<(CompactionId, bool)> {
        *locked(&self.last_compaction)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
