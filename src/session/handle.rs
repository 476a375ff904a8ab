//! Controlling a session while a turn borrows it.

use std::sync::Arc;

use super::{
    event::SessionEvent,
    shared::{Queued, Shared},
};
use crate::{
    compaction::api::TokenUsageSummary,
    message::{CompactionId, Messages, Text},
};

/// Watches and controls a session while one of its turns borrows it, from any thread. Clones stand
/// for the same session.
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

impl SessionHandle {
    /// Queues a message or a [command](super::Command). Queued texts run in order, each as a turn
    /// of its own: after the current turn, or, if the session is idle, before the next message that
    /// is sent. The answer says which; it is exact, also for a turn that is about to end.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// # use threadfold::{ModelAgent, Session, session::Queued, testing::ScriptedModel};
    /// # let model = Arc::new(ScriptedModel::new(["Hello!", "Fine."]));
    /// # let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// assert_eq!(session.handle().queue("How are you?"), Queued::Waiting);
    /// let reply = block_on(async { session.send("Hi.").await })?;
    /// assert_eq!(reply.text, "Fine.", "the answer to what was sent");
    /// assert_eq!(session.messages().len(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn queue(&self, text: impl Into<Text>) -> Queued {
        self.shared.queue(text.into())
    }

    /// The messages of the thread, as of the last change. It costs no copy of the texts.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// # use threadfold::{ContextWindow, Message, ModelAgent, Session, testing::ScriptedModel};
    /// # let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["Hello!"])));
    /// # let builder = Session::builder(agent).window(ContextWindow::new(200_000));
    /// # let mut session = builder.build()?;
    /// let handle = session.handle();
    /// let mut events = session.send("Hi.");
    /// assert!(block_on(events.next()).is_some());
    /// assert_eq!(handle.messages()[0].content[0], Message::user("Hi.").content[0]);
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    #[must_use]
    pub fn messages(&self) -> Messages {
        self.shared.lock().messages.clone()
    }

    /// The tokens billed so far and the context usage, as of the last change of the thread. Same as
    /// [`Session::token_usage`](super::Session::token_usage), and it costs nothing.
    #[must_use]
    pub fn token_usage(&self) -> TokenUsageSummary {
        self.shared.lock().usage
    }

    /// The last events, oldest first, so that a user interface that connects late catches up. Pieces
    /// of one answer are joined. At most 256 events are kept.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// # use threadfold::{ContextWindow, ModelAgent, Session, session::SessionEvent, testing::ScriptedModel};
    /// # let model = Arc::new(ScriptedModel::new(["Hello!"]));
    /// # let mut session = Session::builder(ModelAgent::new(model)).window(ContextWindow::new(200_000)).build()?;
    /// block_on(async { session.send("Hi.").await })?;
    /// let events = session.handle().recent_events();
    /// assert_eq!(events[0], SessionEvent::TextDelta { text: "Hello!".into() });
    /// assert!(matches!(events[1], SessionEvent::TurnEnded { .. }));
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    #[must_use]
    pub fn recent_events(&self) -> Vec<SessionEvent> {
        self.shared.lock().recent.events()
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
        let state = self.shared.lock();
        match state.last_compaction {
            _ if !state.is_busy => SessionStatus::Idle,
            Some((id, false)) => SessionStatus::Compacting { id },
            Some((_, true)) | None => SessionStatus::Working,
        }
    }

    /// The number of queued messages.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.shared.lock().queue.len()
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
        self.shared.lock().queue.drain(..).map(|(_, text)| text).collect()
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
        self.shared.abort();
    }
}
