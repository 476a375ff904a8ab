//! The sessions of all users, and their turns.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::{
    SinkExt, StreamExt,
    channel::mpsc,
    future,
    stream::{self, BoxStream},
};
use threadfold::{
    Session, ThreadStore,
    message::{Message, ThreadId},
    session::{
        SessionBuilder, SessionError, SessionEvent, SessionHandle, UserText, api::TokenUsageSummary,
    },
    store::LeaseStore,
};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::lease::HeldLease;

/// All threads of a server. Clones share them.
#[derive(Clone)]
pub struct Threads {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    /// Builds a session, without its thread and its store.
    builder: Box<dyn Fn() -> SessionBuilder + Send + Sync>,
    open: Mutex<Open>,
    /// The maximum number of idle sessions in memory.
    idle: usize,
}

/// Where the threads are stored.
enum Store {
    /// Only this server writes them, so a session stays valid between two turns.
    Own(Arc<dyn ThreadStore>),
    /// Other servers write them too. A turn acquires the lease of its thread and opens its session;
    /// both end with the turn.
    Leased {
        store: Arc<dyn LeaseStore>,
        /// The name of this server in its leases.
        worker: String,
    },
}

/// The sessions in memory.
#[derive(Default)]
struct Open {
    sessions: HashMap<ThreadId, Arc<Seat>>,
    /// Counts uses, to find the least recently used session.
    clock: u64,
}

/// The slot of one session. A turn holds its lock, so a thread has one turn at a time.
struct Seat {
    session: Arc<AsyncMutex<Option<OpenSession>>>,
    /// Set as long as the session is open.
    handle: Mutex<Option<SessionHandle>>,
    /// Texts that were still queued when the turn ended with its session.
    waiting: Mutex<Vec<UserText>>,
    used: Mutex<u64>,
}

/// A session, and its lease if other servers write the thread too.
struct OpenSession {
    session: Session,
    lease: Option<HeldLease>,
}

/// Exclusive access to a session, for one turn.
struct Taken {
    session: OwnedMutexGuard<Option<OpenSession>>,
    seat: Arc<Seat>,
}

/// The result of sending a text or continuing a turn.
pub enum Begun {
    /// A turn began: its events, as they happen. Dropping the stream cancels the turn.
    Answer(BoxStream<'static, TurnEvent>),
    /// A turn is running. It takes the text when it ends.
    Running,
}

/// The input of a turn.
enum Input {
    Text(String),
    /// The queued texts.
    Queued,
    /// The turn that broke off.
    Rest,
}

/// An event of a turn, or the error that ended it.
pub type TurnEvent = Result<SessionEvent, SessionError>;

/// A thread as a client sees it that connects late.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The messages.
    pub messages: Arc<Vec<Message>>,
    /// Whether a turn is running.
    pub busy: bool,
    /// The answer that the model is writing, as far as it has arrived.
    pub answer: Option<String>,
    /// How full the context is, if the session is in memory.
    pub usage: Option<TokenUsageSummary>,
}

impl Threads {
    /// Returns the threads of a store. `builder` builds a session without its thread and its store.
    /// At most `idle` unused sessions stay in memory; the others are opened again from the store.
    pub fn new(
        store: Arc<dyn ThreadStore>,
        idle: usize,
        builder: impl Fn() -> SessionBuilder + Send + Sync + 'static,
    ) -> Self {
        Self::with_store(Store::Own(store), idle, builder)
    }

    /// Returns the threads of a store that other servers use too, so a user's next request may
    /// reach any of them. A turn waits for the turn of another server and opens its session from
    /// the store. `worker` is the name of this server.
    pub fn shared(
        store: Arc<dyn LeaseStore>,
        worker: String,
        builder: impl Fn() -> SessionBuilder + Send + Sync + 'static,
    ) -> Self {
        Self::with_store(Store::Leased { store, worker }, 0, builder)
    }

    fn with_store(
        store: Store,
        idle: usize,
        builder: impl Fn() -> SessionBuilder + Send + Sync + 'static,
    ) -> Self {
        let (builder, open) = (Box::new(builder), Mutex::default());
        Self { shared: Arc::new(Shared { store, builder, open, idle }) }
    }

    /// Begins a turn, or queues the text if one is running.
    ///
    /// # Errors
    ///
    /// [`SessionError`] if the thread cannot be loaded.
    pub async fn send(&self, thread: &ThreadId, text: String) -> Result<Begun, SessionError> {
        let seat = self.seat(thread);
        let (session, input) = match Arc::clone(&seat.session).try_lock_owned() {
            Ok(session) => (session, Input::Text(text)),
            Err(_) => {
                let queued = seat.handle().map(|handle| (handle.queue(text.as_str()), handle));
                let input = match queued {
                    Some((true, _)) => return Ok(Begun::Running),
                    // The running turn has just taken its last text, so this one begins a new turn.
                    Some((false, handle)) => {
                        seat.keep_waiting(&handle);
                        Input::Queued
                    }
                    // Another request is opening the session.
                    None => Input::Text(text),
                };
                (Arc::clone(&seat.session).lock_owned().await, input)
            }
        };
        Ok(Begun::Answer(turn(self.opened(seat, session, thread).await?, input)))
    }

    /// Continues a turn that broke off, because its client left or the model failed.
    ///
    /// # Errors
    ///
    /// [`SessionError`] if the thread cannot be loaded. If there is nothing to continue, the stream
    /// ends with an error.
    pub async fn go_on(&self, thread: &ThreadId) -> Result<Begun, SessionError> {
        let seat = self.seat(thread);
        let Ok(session) = Arc::clone(&seat.session).try_lock_owned() else {
            return Ok(Begun::Running);
        };
        Ok(Begun::Answer(turn(self.opened(seat, session, thread).await?, Input::Rest)))
    }

    /// Loads the thread from the store, if it is not in memory.
    async fn opened(
        &self,
        seat: Arc<Seat>,
        mut session: OwnedMutexGuard<Option<OpenSession>>,
        thread: &ThreadId,
    ) -> Result<Taken, SessionError> {
        if session.is_none() {
            *session = Some(self.shared.open(thread).await?);
        }
        if let Some(open) = &*session {
            let handle = open.session.handle();
            for text in locked(&seat.waiting).drain(..) {
                handle.queue(text);
            }
            *locked(&seat.handle) = Some(handle);
        }
        Ok(Taken { session, seat })
    }

    /// Aborts the running turn of a thread, if there is one. Its stream ends with `Aborted`.
    pub fn abort(&self, thread: &ThreadId) {
        if let Some(handle) = self.handle(thread) {
            handle.abort();
        }
    }

    /// Aborts all turns, so that the server can end.
    pub fn abort_all(&self) {
        let seats: Vec<_> = locked(&self.shared.open).sessions.values().cloned().collect();
        for handle in seats.iter().filter_map(|seat| seat.handle()) {
            handle.abort();
        }
    }

    /// Returns what a client that connects late has missed. A running turn is not disturbed.
    ///
    /// # Errors
    ///
    /// [`SessionError`] if the thread is not in memory and cannot be loaded.
    pub async fn seen(&self, thread: &ThreadId) -> Result<Seen, SessionError> {
        let Some(handle) = self.handle(thread) else {
            let messages = self.shared.store.threads().load(thread).await?.log.replay();
            return Ok(Seen { messages: messages.into(), busy: false, answer: None, usage: None });
        };
        let busy = handle.is_busy();
        let answer = match handle.recent_events().pop() {
            Some(SessionEvent::TextDelta { text }) if busy => Some(text.to_string()),
            _ => None,
        };
        let usage = Some(handle.token_usage());
        Ok(Seen { messages: handle.messages(), busy, answer, usage })
    }

    /// The handle of a session that is in memory.
    fn handle(&self, thread: &ThreadId) -> Option<SessionHandle> {
        locked(&self.shared.open).sessions.get(thread)?.handle()
    }

    /// Returns the slot of a thread, which is created if it is missing.
    fn seat(&self, thread: &ThreadId) -> Arc<Seat> {
        let mut open = locked(&self.shared.open);
        open.clock += 1;
        let clock = open.clock;
        let new = || Arc::new(Seat::new());
        let seat = Arc::clone(open.sessions.entry(thread.clone()).or_insert_with(new));
        *locked(&seat.used) = clock;
        open.forget(self.shared.idle);
        seat
    }
}

impl Shared {
    /// Opens a session. If other servers write the thread too, it first waits for their turn.
    async fn open(&self, thread: &ThreadId) -> Result<OpenSession, SessionError> {
        let builder = (self.builder)().thread(thread.clone());
        match &self.store {
            Store::Own(store) => {
                let session = builder.store(Arc::clone(store)).open().await?;
                Ok(OpenSession { session, lease: None })
            }
            Store::Leased { store, worker } => {
                // Acquire the lease before loading the log, because another server may write until
                // then.
                let mut lease = HeldLease::acquire(store, worker, thread).await?;
                let session = builder.store(Arc::new(lease.store())).open().await?;
                lease.renew_for(session.handle());
                Ok(OpenSession { session, lease: Some(lease) })
            }
        }
    }
}

impl Store {
    fn threads(&self) -> &dyn ThreadStore {
        match self {
            Self::Own(store) => store.as_ref(),
            Self::Leased { store, .. } => store.as_ref(),
        }
    }
}

impl Open {
    /// Drops the least recently used sessions that are idle.
    fn forget(&mut self, idle: usize) {
        while self.sessions.len() > idle {
            let unused = self.sessions.iter().filter(|(_, seat)| seat.may_go());
            let oldest = unused.min_by_key(|(_, seat)| *locked(&seat.used));
            let Some(thread) = oldest.map(|(thread, _)| thread.clone()) else { return };
            self.sessions.remove(&thread);
        }
    }
}

impl Seat {
    fn new() -> Self {
        let session = Arc::new(AsyncMutex::new(None));
        let (handle, waiting, used) = Default::default();
        Self { session, handle, waiting, used }
    }

    /// Keeps the queued texts, because the session may end before it takes them.
    fn keep_waiting(&self, handle: &SessionHandle) {
        locked(&self.waiting).extend(handle.take_queued());
    }

    fn handle(&self) -> Option<SessionHandle> {
        locked(&self.handle).clone()
    }

    /// Whether the slot can be dropped: it is unused, and no text waits for the next turn.
    fn may_go(self: &Arc<Self>) -> bool {
        // Slots are handed out under the lock of the map, so a single owner is the map itself.
        Arc::strong_count(self) == 1
            && locked(&self.waiting).is_empty()
            && self.handle().is_none_or(|handle| handle.queued() == 0)
    }
}

impl Drop for Taken {
    /// Ends the session and its lease, if other servers write the thread too.
    fn drop(&mut self) {
        if let Some(open) = self.session.take_if(|open| open.lease.is_some()) {
            *locked(&self.seat.handle) = None;
            self.seat.keep_waiting(&open.session.handle());
        }
    }
}

/// Returns the events of a turn, and of the turns of texts that are queued meanwhile. The turn runs
/// while the stream is polled, without a task of its own: dropping the stream drops everything that
/// belongs to the turn.
fn turn(mut taken: Taken, input: Input) -> BoxStream<'static, TurnEvent> {
    let (mut sender, events) = mpsc::channel(0);
    let work = async move {
        let Some(OpenSession { session, .. }) = taken.session.as_mut() else { return };
        let mut turn = match input {
            Input::Text(text) => session.send(text),
            Input::Queued => session.run_queued(),
            Input::Rest => session.continue_turn(),
        };
        while let Some(event) = turn.next().await {
            if sender.send(event).await.is_err() {
                return;
            }
        }
    };
    let work = stream::once(work).filter_map(|()| future::ready(None));
    stream::select(events, work).boxed()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = locked(&self.shared.open).sessions.len();
        f.debug_struct("Threads").field("open", &open).finish_non_exhaustive()
    }
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(_) => f.write_str("Turn"),
            Self::Running => f.write_str("Running"),
        }
    }
}
