//! Handles that control a session while a turn borrows it, and the state that they share with it,
//! such as the last events for user interfaces that connect late.
//!
//! A handle has its own vector of messages. If it shared the vector of the thread, each append
//! would copy all message handles. Its own vector grows by one message with the thread, and is
//! rebuilt after a compaction.
//!
//! The lock of the queue decides whether a queued text is sent by the running turn: a turn that
//! finds the queue empty closes it in the same step. `tests/schedules` tries the orders of the steps
//! of turn and hosts.

use std::{
    collections::VecDeque,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::Context,
};

use futures::task::AtomicWaker;

use super::{
    error::{Result, SessionError},
    event::SessionEvent,
    user_text::UserText,
};
use crate::{
    compaction::api::TokenUsageSummary,
    message::{Author, CompactionId, ContentBlock, Message, Text},
    sync::{Lock, MutexGuard},
};

/// Watches and controls a session while one of its turns borrows it, from any thread. Clones
/// control the same session.
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

impl SessionHandle {
    /// Queues a message or a command (`/compact FOCUS`, `@compact PROMPT`). Queued texts run in
    /// order, each as a turn of its own.
    ///
    /// Returns whether the running turn takes the text. If so, it is sent after that turn, unless
    /// the turn fails or is cancelled before the text is in the thread. Otherwise, and in that case,
    /// it waits for [`run_queued`](super::Session::run_queued) or for the next message that is sent.
    /// The result is exact even if the turn is about to end. A blank text is not queued, and a text
    /// that does not fit into the window is refused once, by the error of its turn.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// # use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    /// # let model = Arc::new(ScriptedModel::new(["Hello!", "Fine."]));
    /// # let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// assert!(!session.handle().queue("How are you?"), "no turn is running");
    /// let reply = block_on(async { session.send("Hi.").await })?;
    /// assert_eq!(reply.text, "Fine.", "the answer to what was sent");
    /// assert_eq!(session.messages().len(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn queue(&self, text: impl Into<UserText>) -> bool {
        self.shared.queue(text.into())
    }

    /// Same as [`queue`](Self::queue), for a text of this author, in a thread of several people.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// # use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    /// # let model = Arc::new(ScriptedModel::new(["Hello, Ann!"]));
    /// # let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// session.handle().queue_as("ann".parse()?, "Hi.");
    /// block_on(async { session.run_queued().await })?;
    /// assert_eq!(session.messages()[0].author, Some("ann".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn queue_as(&self, author: Author, text: impl Into<Text>) -> bool {
        self.shared.queue(UserText { text: text.into(), author: Some(author) })
    }

    /// The messages of the thread, as of the last change. No text is copied.
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
    pub fn messages(&self) -> Arc<Vec<Message>> {
        self.shared.lock().messages.clone()
    }

    /// The tokens billed so far and the context usage, as of the last change of the thread. Same as
    /// [`Session::token_usage`](super::Session::token_usage), in constant time.
    ///
    /// ```
    /// # use {std::sync::Arc, threadfold::{ModelAgent, Session, testing::ScriptedModel}};
    /// # let agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// use threadfold::ContextWindow;
    ///
    /// let session = Session::builder(agent).window(ContextWindow::new(1_000)).build()?;
    /// let usage = session.handle().token_usage();
    /// assert_eq!((usage.total_tokens, usage.context_limit), (0, Some(1_000)));
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    #[must_use]
    pub fn token_usage(&self) -> TokenUsageSummary {
        self.shared.lock().usage
    }

    /// The last events, oldest first, for a user interface that connects late. Pieces of one answer
    /// are joined. At most 128 events are kept. The older tool results keep their contents up to 16 KiB
    /// together, the newest first; the others are empty.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// # use threadfold::{ContextWindow, ModelAgent, Session, session::SessionEvent};
    /// # use threadfold::testing::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new(["Hello!"]));
    /// # let agent = ModelAgent::new(model).with_window(ContextWindow::new(200_000));
    /// # let mut session = Session::builder(agent).build()?;
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

    /// Whether a turn is running, according to the events delivered so far: a model call, a tool or
    /// a compaction is in progress.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["Hello!"]));
    /// let session = Session::builder(ModelAgent::new(model)).build()?;
    /// assert!(!session.handle().is_busy());
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.shared.lock().is_busy
    }

    /// Whether the message that was sent last is in the thread. If its stream was dropped or failed
    /// before that, the host sends the message again; after that, it calls
    /// [`continue_turn`](super::Session::continue_turn). `false` if nothing was sent yet.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ContextWindow, ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["Hello!"]));
    /// let agent = ModelAgent::new(model).with_window(ContextWindow::new(8_000));
    /// let mut session = Session::builder(agent).build()?;
    /// let handle = session.handle();
    /// drop(session.send("Never polled."));
    /// assert!(!handle.is_text_in_thread());
    /// let mut events = session.send("Hi.");
    /// assert!(block_on(events.next()).is_some());
    /// drop(events);
    /// assert!(handle.is_text_in_thread());
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    #[must_use]
    pub fn is_text_in_thread(&self) -> bool {
        self.shared.lock().has_entered == Some(true)
    }

    /// The id of the running compaction, if any, according to the events delivered so far.
    #[must_use]
    pub fn compacting(&self) -> Option<CompactionId> {
        let state = self.shared.lock();
        let (id, is_over) = state.last_compaction.filter(|_| state.is_busy)?;
        (!is_over).then_some(id)
    }

    /// The number of queued messages.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.shared.lock().queue.len()
    }

    /// Removes and returns all queued messages, for example to put them back into an input field, or
    /// into the [queue](Self::queue) of another session.
    ///
    /// ```
    /// # use {std::sync::Arc, threadfold::{ModelAgent, Session, testing::ScriptedModel}};
    /// # let session = Session::builder(ModelAgent::new(Arc::new(ScriptedModel::default()))).build()?;
    /// let handle = session.handle();
    /// handle.queue("How are you?");
    /// assert_eq!(handle.take_queued(), ["How are you?".into()]);
    /// assert_eq!(handle.queued(), 0);
    /// # Ok::<(), threadfold::session::SessionError>(())
    /// ```
    #[must_use]
    pub fn take_queued(&self) -> Vec<UserText> {
        self.shared.lock().queue.drain(..).map(|(_, typed)| typed).collect()
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
        let mut state = self.shared.lock();
        state.is_aborted = state.is_busy;
        drop(state);
        self.shared.waker.wake();
    }
}

/// State shared by a session, its handles and its streams.
#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Lock<State>,
    observers: Observers,
    waker: AtomicWaker,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Queued texts, numbered in the order of arrival.
    pub(super) queue: VecDeque<(u64, UserText)>,
    /// The number of the next queued text.
    next: u64,
    /// Whether a turn is running that will take queued texts.
    takes_queued: bool,
    /// The queued text that the turn took last, until its message is in the thread or its command
    /// begins.
    taken: Option<(u64, UserText)>,
    /// The messages that handles return. They are in a separate vector: if a handle held the
    /// thread's own vector, the next append would have to copy it.
    pub(super) messages: Arc<Vec<Message>>,
    pub(super) usage: TokenUsageSummary,
    pub(super) recent: Recent,
    /// Whether the message that was sent last is in the thread; `None` before the first one.
    pub(super) has_entered: Option<bool>,
    /// Whether a turn is running.
    pub(super) is_busy: bool,
    is_aborted: bool,
    /// The next events of the turn. The turn waits until the stream has taken them. Nothing has to
    /// be woken, because the stream that takes an event also polls the turn.
    pub(super) slot: VecDeque<Result<SessionEvent>>,
    /// Events that happened while no stream was open, for the next one.
    deferred: VecDeque<SessionEvent>,
    /// The compaction of the last delivered compaction event, and whether that event was its end.
    pub(super) last_compaction: Option<(CompactionId, bool)>,
}

/// Functions that see every event of a session.
#[derive(Clone, Default)]
pub(super) struct Observers(pub(super) Vec<Arc<Observer>>);

type Observer = dyn Fn(Result<&SessionEvent, &SessionError>) + Send + Sync;

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.0.len())
    }
}

impl Shared {
    pub(super) fn new(observers: Observers) -> Self {
        Self { observers, ..Self::default() }
    }

    /// Locks the state. Do not call an observer while holding the lock: it may use a handle, which
    /// locks too.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Starts a turn, with a message to append or without one, and discards an abort or event that
    /// belongs to the previous turn. Returns the number that the next queued text will have.
    pub(super) fn begin(&self, has_message: bool) -> u64 {
        let mut state = self.lock();
        if has_message {
            state.has_entered = Some(false);
        }
        state.slot.clear();
        // The stream of the previous turn may have been forgotten instead of dropped.
        state.give_back();
        (state.is_busy, state.takes_queued, state.is_aborted) = (true, true, false);
        state.next
    }

    /// Ends the turn. A queued text that it took in vain waits again, before the others.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        (state.is_busy, state.takes_queued) = (false, false);
        state.give_back();
    }

    /// Records that the text that the turn took last need not wait again.
    pub(super) fn done_with_taken(&self) {
        self.lock().taken = None;
    }

    /// Queues a text unless it is blank. Returns whether the running turn takes it.
    pub(super) fn queue(&self, typed: UserText) -> bool {
        if typed.text.trim().is_empty() {
            return false;
        }
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.queue.push_back((number, typed));
        state.takes_queued
    }

    /// Takes the next queued text with a smaller number.
    pub(super) fn next_queued_before(&self, number: u64) -> Option<UserText> {
        let mut state = self.lock();
        let is_due = state.queue.front().is_some_and(|(own, _)| *own < number);
        if is_due { state.take() } else { None }
    }

    /// Takes the next queued text. If there is none, the turn takes no more texts. Both happen
    /// under one lock, so no text can arrive between the turn's last check and its end.
    pub(super) fn next_queued(&self) -> Option<UserText> {
        let mut state = self.lock();
        let next = state.take();
        state.takes_queued = next.is_some();
        next
    }

    /// Whether the turn is to be aborted. Registers the task to be woken by a later abort.
    pub(super) fn is_aborted(&self, context: &Context<'_>) -> bool {
        self.waker.register(context.waker());
        self.lock().is_aborted
    }

    /// Keeps an event for the next stream. It has happened, so observers see it now.
    pub(super) fn defer(&self, event: SessionEvent) {
        self.observe(Ok(&event));
        self.lock().deferred.push_back(event);
    }

    /// Takes the next event kept for this stream.
    pub(super) fn next_deferred(&self) -> Option<SessionEvent> {
        let mut state = self.lock();
        let event = state.deferred.pop_front()?;
        state.delivered(&event);
        Some(event)
    }

    /// Takes the next event of the turn, and records that it was delivered.
    pub(super) fn next_event(&self) -> Option<Result<SessionEvent>> {
        let event = self.lock().slot.pop_front()?;
        self.observe(event.as_ref());
        if let Ok(event) = &event {
            self.lock().delivered(event);
        }
        Some(event)
    }

    /// Records an event and passes it to the observers. An observer that panics affects neither the
    /// turn nor the other observers.
    pub(super) fn observe(&self, event: Result<&SessionEvent, &SessionError>) {
        if let Ok(event) = event {
            self.lock().recent.push(event);
        }
        for observer in &self.observers.0 {
            let _ = catch_unwind(AssertUnwindSafe(|| observer(event)));
        }
    }
}

impl State {
    /// Takes the first queued text.
    fn take(&mut self) -> Option<UserText> {
        self.taken = self.queue.pop_front();
        self.taken.as_ref().map(|(_, typed)| typed.clone())
    }

    /// Queues the text again that the turn took in vain, before the others.
    fn give_back(&mut self) {
        if let Some(taken) = self.taken.take() {
            self.queue.push_front(taken);
        }
    }

    fn delivered(&mut self, event: &SessionEvent) {
        if let SessionEvent::Compaction(event) = event {
            self.last_compaction = Some((event.id(), event.is_end()));
        }
    }
}

/// The maximum number of events that are kept.
const KEPT: usize = 128;

/// The maximum bytes of tool results that the older events hold together.
const KEPT_BYTES: u64 = 16 * 1024;

/// The last events. Pieces of one text, or of the input of one call, count as one event.
#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<Kept>);

#[derive(Debug)]
enum Kept {
    Text(String),
    Thinking(String),
    /// The input of the call with this id and name.
    Input(Text, Text, String),
    Other(SessionEvent),
}

impl Recent {
    pub(super) fn push(&mut self, event: &SessionEvent) {
        let kept = match (event, self.0.back_mut()) {
            (SessionEvent::TextDelta { text }, Some(Kept::Text(before)))
            | (SessionEvent::ThinkingDelta { text }, Some(Kept::Thinking(before))) => {
                before.push_str(text);
                return;
            }
            (SessionEvent::TextDelta { text }, _) => Kept::Text(text.to_string()),
            (SessionEvent::ThinkingDelta { text }, _) => Kept::Thinking(text.to_string()),
            (SessionEvent::ToolInputDelta { id, text, .. }, Some(Kept::Input(of, _, before)))
                if id == of =>
            {
                before.push_str(text);
                return;
            }
            (SessionEvent::ToolInputDelta { id, name, text }, _) => {
                Kept::Input(id.clone(), name.clone(), text.to_string())
            }
            (event, _) => Kept::Other(event.clone()),
        };
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        // Of the results before this event, the newest keep their contents.
        let mut left = KEPT_BYTES;
        for kept in self.0.iter_mut().rev() {
            let Kept::Other(SessionEvent::ToolFinished { content, .. }) = kept else { continue };
            let bytes: u64 = content.iter().map(ContentBlock::text_bytes).sum();
            match left.checked_sub(bytes) {
                Some(rest) => left = rest,
                None => (left, *content) = (0, Vec::new()),
            }
        }
        self.0.push_back(kept);
    }

    pub(super) fn events(&self) -> Vec<SessionEvent> {
        let events = self.0.iter().map(|kept| match kept {
            Kept::Text(text) => SessionEvent::TextDelta { text: text.as_str().into() },
            Kept::Thinking(text) => SessionEvent::ThinkingDelta { text: text.as_str().into() },
            Kept::Input(id, name, text) => SessionEvent::ToolInputDelta {
                id: id.clone(),
                name: name.clone(),
                text: text.as_str().into(),
            },
            Kept::Other(event) => event.clone(),
        });
        events.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_in_order_and_what_nobody_took_is_forgotten() {
        let shared = Shared::default();
        let notice = |text: &str| SessionEvent::Notice { text: text.into() };
        let take = || shared.next_event().map(Result::unwrap);
        let is_taken = || shared.lock().slot.is_empty();
        let put = |event| shared.lock().slot.push_back(event);
        assert_eq!((is_taken(), take()), (true, None));
        put(Ok(notice("one")));
        put(Ok(notice("two")));
        assert_eq!((take(), is_taken()), (Some(notice("one")), false));
        assert_eq!((take(), is_taken()), (Some(notice("two")), true));
        put(Ok(notice("three")));
        shared.lock().slot.clear();
        assert_eq!((is_taken(), take()), (true, None));
    }
}

#[cfg(test)]
mod recent_tests {
    use super::*;

    #[test]
    fn pieces_are_joined_and_the_oldest_events_go() {
        let text = |text: &str| SessionEvent::TextDelta { text: text.into() };
        let thought = |text: &str| SessionEvent::ThinkingDelta { text: text.into() };
        let mut recent = Recent::default();
        for event in
            [thought("H"), thought("m"), text("a"), text("b"), SessionEvent::Aborted, text("c")]
        {
            recent.push(&event);
        }
        let joined = [thought("Hm"), text("ab"), SessionEvent::Aborted, text("c")];
        assert_eq!(recent.events(), joined);
        for _ in 0..KEPT - 1 {
            recent.push(&SessionEvent::Aborted);
        }
        assert_eq!((recent.events().len(), &recent.events()[0]), (KEPT, &text("c")));
    }

    #[test]
    fn a_long_result_takes_the_contents_of_older_results_and_no_other_event() {
        let result = |bytes: usize| SessionEvent::ToolFinished {
            id: "a".into(),
            name: "read".into(),
            is_error: false,
            content: vec![ContentBlock::text("x".repeat(bytes))],
        };
        let text = SessionEvent::TextDelta { text: "Reading.".into() };
        let mut recent = Recent::default();
        for event in [&text, &result(10), &result(20_000), &text] {
            recent.push(event);
        }
        let blocks = |event: &SessionEvent| {
            if let SessionEvent::ToolFinished { content, .. } = event { content.len() } else { 9 }
        };
        let sizes: Vec<usize> = recent.events().iter().map(blocks).collect();
        assert_eq!(sizes, [9, 0, 0, 9]);
        recent.push(&result(20_000));
        let last = recent.events().pop().unwrap();
        assert_eq!(last, result(20_000), "the newest event is whole");
    }
}
