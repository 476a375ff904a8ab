//! State shared by a session, its handles and its streams.

use std::{
    collections::VecDeque,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Context,
};

use futures::task::AtomicWaker;

use super::{error::SessionError, event::SessionEvent, recent::Recent};
use crate::{
    compaction::api::TokenUsageSummary,
    message::{CompactionId, Messages, Text},
};

#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    observers: Observers,
    waker: AtomicWaker,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Queued texts, numbered in the order of arrival.
    pub(super) queue: VecDeque<(u64, Text)>,
    /// The number of the next queued text.
    next: u64,
    /// Whether a running turn will take queued texts.
    takes_queued: bool,
    /// The thread, as handles show it. The vector is their own: if it were that of the thread, each
    /// appended message would copy all others.
    pub(super) messages: Messages,
    pub(super) usage: TokenUsageSummary,
    pub(super) recent: Recent,
    /// Whether a turn is running.
    pub(super) is_busy: bool,
    is_aborted: bool,
    /// The next events of the turn. The turn waits until the stream has taken them. Nothing has to be
    /// woken, because the stream that takes an event also polls the turn.
    slot: VecDeque<Result<SessionEvent, SessionError>>,
    /// Events that happened while no stream was open, for the next one.
    deferred: VecDeque<SessionEvent>,
    /// The compaction of the last delivered compaction event, and whether that event was its end.
    pub(super) last_compaction: Option<(CompactionId, bool)>,
}

/// What becomes of a text that was [queued](super::SessionHandle::queue).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Queued {
    /// The running turn sends it when it is done, unless it fails or is cancelled before.
    Running,
    /// No turn is running: it waits for [`run_queued`](super::Session::run_queued) or the next
    /// message that is sent.
    Waiting,
    /// It is blank, so it was not queued.
    Blank,
}

type Observer = Arc<dyn Fn(Result<&SessionEvent, &SessionError>) + Send + Sync>;

/// Functions that see every event of a session.
#[derive(Clone, Default)]
pub(super) struct Observers(Vec<Observer>);

impl Observers {
    pub(super) fn add(
        &mut self,
        observer: impl Fn(Result<&SessionEvent, &SessionError>) + Send + Sync + 'static,
    ) {
        self.0.push(Arc::new(observer));
    }

    /// Shows them an event. An observer that panics does not harm the turn or the others.
    pub(super) fn see(&self, event: Result<&SessionEvent, &SessionError>) {
        for observer in &self.0 {
            let _ = catch_unwind(AssertUnwindSafe(|| observer(event)));
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.0.len())
    }
}

impl Shared {
    pub(super) fn new(observers: Observers) -> Self {
        Self { observers, ..Self::default() }
    }

    /// Locks the state. No observer may be called meanwhile: it may ask a handle.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a turn, dropping an abort or event meant for the previous one. Returns the number
    /// that the next queued text will have.
    pub(super) fn begin(&self) -> u64 {
        let mut state = self.lock();
        state.slot.clear();
        (state.is_busy, state.takes_queued, state.is_aborted) = (true, true, false);
        state.next
    }

    pub(super) fn end(&self) {
        let mut state = self.lock();
        (state.is_busy, state.takes_queued) = (false, false);
    }

    pub(super) fn queue(&self, text: Text) -> Queued {
        if text.trim().is_empty() {
            return Queued::Blank;
        }
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.queue.push_back((number, text));
        if state.takes_queued { Queued::Running } else { Queued::Waiting }
    }

    /// Takes the next queued text with a smaller number.
    pub(super) fn next_queued_before(&self, number: u64) -> Option<Text> {
        let mut state = self.lock();
        let is_due = state.queue.front().is_some_and(|(own, _)| *own < number);
        is_due.then(|| state.queue.pop_front())?.map(|(_, text)| text)
    }

    /// Takes the next queued text. After the last one the turn takes no more. Both are decided under
    /// one lock, so no text arrives unnoticed between a turn's last look and its end.
    pub(super) fn next_queued(&self) -> Option<Text> {
        let mut state = self.lock();
        let next = state.queue.pop_front().map(|(_, text)| text);
        state.takes_queued = next.is_some();
        next
    }

    pub(super) fn abort(&self) {
        let mut state = self.lock();
        state.is_aborted = state.is_busy;
        drop(state);
        self.waker.wake();
    }

    /// Whether the turn is to be aborted. Registers the task to be woken by a later abort.
    pub(super) fn is_aborted(&self, context: &Context<'_>) -> bool {
        self.waker.register(context.waker());
        self.lock().is_aborted
    }

    /// Puts the next event of the turn.
    pub(super) fn put(&self, event: Result<SessionEvent, SessionError>) {
        self.lock().slot.push_back(event);
    }

    /// Whether the stream took all events of the turn.
    pub(super) fn is_taken(&self) -> bool {
        self.lock().slot.is_empty()
    }

    /// Discards the events that the stream did not take.
    pub(super) fn discard(&self) {
        self.lock().slot.clear();
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
    pub(super) fn next_event(&self) -> Option<Result<SessionEvent, SessionError>> {
        let event = self.lock().slot.pop_front()?;
        self.observe(event.as_ref());
        if let Ok(event) = &event {
            self.lock().delivered(event);
        }
        Some(event)
    }

    /// Records an event, and shows it to the observers.
    pub(super) fn observe(&self, event: Result<&SessionEvent, &SessionError>) {
        if let Ok(event) = event {
            self.lock().recent.push(event);
        }
        self.observers.see(event);
    }
}

impl State {
    fn delivered(&mut self, event: &SessionEvent) {
        if let SessionEvent::Compaction(event) = event {
            self.last_compaction = Some((event.id(), event.is_end()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a turn does with the queue at its end, one lock at a time.
    const TURN: [fn(&Shared, &mut Vec<Text>); 4] = [
        |shared, _| {
            shared.begin();
        },
        |shared, taken| taken.extend(shared.next_queued()),
        |shared, taken| taken.extend(shared.next_queued()),
        |shared, _| shared.end(),
    ];

    #[test]
    fn a_text_is_taken_by_the_turn_or_known_to_wait_in_every_order_of_steps() {
        // A text is queued between any two steps, and a second one between any two later steps.
        for first in 0..=TURN.len() {
            for second in first..=TURN.len() {
                let (shared, mut taken, mut said) = (Shared::default(), Vec::new(), Vec::new());
                for step in 0..=TURN.len() {
                    for (at, text) in [(first, "one"), (second, "two")] {
                        if at == step {
                            said.push((text, shared.queue(text.into())));
                        }
                    }
                    if let Some(turn) = TURN.get(step) {
                        turn(&shared, &mut taken);
                        // A turn goes on while there is a text.
                        while step == 2 && shared.lock().takes_queued {
                            taken.extend(shared.next_queued());
                        }
                    }
                }
                for (text, queued) in said {
                    let is_taken = taken.iter().any(|taken| *taken == text);
                    let promised = queued == Queued::Running;
                    assert!(is_taken || !promised, "{text} {first} {second}");
                    assert!(
                        is_taken || !shared.lock().queue.is_empty(),
                        "{text} is lost: {first} {second}"
                    );
                }
            }
        }
    }

    #[test]
    fn events_are_taken_in_order_and_what_nobody_took_is_forgotten() {
        let shared = Shared::default();
        let notice = |text: &str| SessionEvent::Notice { text: text.into() };
        let take = || shared.next_event().map(Result::unwrap);
        assert_eq!((shared.is_taken(), take()), (true, None));
        shared.put(Ok(notice("one")));
        shared.put(Ok(notice("two")));
        assert_eq!((take(), shared.is_taken()), (Some(notice("one")), false));
        assert_eq!((take(), shared.is_taken()), (Some(notice("two")), true));
        shared.put(Ok(notice("three")));
        shared.discard();
        assert_eq!((shared.is_taken(), take()), (true, None));
    }
}
