//! State shared by a session, its handles and its streams.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Context,
};

use futures::task::AtomicWaker;

use super::{
    error::SessionError, event::SessionEvent, observers::Observers, recent::Recent, slot::EventSlot,
};
use crate::{
    compaction::api::TokenUsageSummary,
    message::{CompactionId, Message, Messages, Text},
};

#[derive(Debug, Default)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    view: Mutex<View>,
    recent: Mutex<Recent>,
    observers: Observers,
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

/// What a handle shows of the session. The vector is its own: if it shared that of the thread, each
/// message that is appended would copy all handles.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) messages: Messages,
    pub(super) usage: TokenUsageSummary,
}

/// Queued texts, numbered in the order of arrival.
#[derive(Debug, Default)]
struct Queue {
    texts: VecDeque<(u64, Text)>,
    next: u64,
    /// Whether a running turn will take them. It is read and written under the lock of the texts, so
    /// no text arrives unnoticed between a turn's last look and its end.
    is_taken_from: bool,
}

impl Shared {
    pub(super) fn new(observers: Observers) -> Self {
        Self { observers, ..Self::default() }
    }

    /// Starts a turn, dropping an abort or event meant for the previous one. Returns the number
    /// that the next queued text will have.
    pub(super) fn begin(&self) -> u64 {
        self.abort.store(false, Ordering::Release);
        self.slot.clear();
        self.busy.store(true, Ordering::Release);
        let mut queue = locked(&self.queue);
        queue.is_taken_from = true;
        queue.next
    }

    pub(super) fn end(&self) {
        locked(&self.queue).is_taken_from = false;
        self.busy.store(false, Ordering::Release);
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire)
    }

    pub(super) fn queue(&self, text: Text) -> Queued {
        if text.trim().is_empty() {
            return Queued::Blank;
        }
        let mut queue = locked(&self.queue);
        let number = queue.next;
        queue.next += 1;
        queue.texts.push_back((number, text));
        if queue.is_taken_from { Queued::Running } else { Queued::Waiting }
    }

    pub(super) fn queued(&self) -> usize {
        locked(&self.queue).texts.len()
    }

    pub(super) fn take_queued(&self) -> Vec<Text> {
        locked(&self.queue).texts.drain(..).map(|(_, text)| text).collect()
    }

    /// Takes the next queued text with a smaller number.
    pub(super) fn next_queued_before(&self, number: u64) -> Option<Text> {
        let mut queue = locked(&self.queue);
        let is_due = queue.texts.front().is_some_and(|(own, _)| *own < number);
        if is_due { queue.texts.pop_front().map(|(_, text)| text) } else { None }
    }

    /// Takes the next queued text. After the last one the turn takes no more.
    pub(super) fn next_queued(&self) -> Option<Text> {
        let mut queue = locked(&self.queue);
        let next = queue.texts.pop_front().map(|(_, text)| text);
        queue.is_taken_from = next.is_some();
        next
    }

    pub(super) fn abort(&self) {
        if self.is_busy() {
            self.abort.store(true, Ordering::Release);
            self.waker.wake();
        }
    }

    /// Whether the turn is to be aborted. Registers the task to be woken by a later abort.
    pub(super) fn is_aborted(&self, context: &Context<'_>) -> bool {
        self.waker.register(context.waker());
        self.abort.load(Ordering::Acquire)
    }

    /// Shows another thread.
    pub(super) fn show(&self, messages: &Messages, usage: TokenUsageSummary) {
        *locked(&self.view) = View { messages: messages.iter().cloned().collect(), usage };
    }

    /// Shows one more message.
    pub(super) fn show_next(&self, message: Message, usage: TokenUsageSummary) {
        let mut view = locked(&self.view);
        view.messages.make_mut().push(message);
        view.usage = usage;
    }

    pub(super) fn view(&self) -> View {
        locked(&self.view).clone()
    }

    pub(super) fn recent(&self) -> Vec<SessionEvent> {
        locked(&self.recent).events()
    }

    /// Keeps an event for the next stream. It has happened, so observers see it now.
    pub(super) fn defer(&self, event: SessionEvent) {
        self.observe(Ok(&event));
        locked(&self.deferred).push_back(event);
    }

    /// Takes the next event kept for this stream.
    pub(super) fn next_deferred(&self) -> Option<SessionEvent> {
        let event = locked(&self.deferred).pop_front()?;
        self.note_compaction(&event);
        Some(event)
    }

    /// Takes the next event of the turn, and records that it was delivered.
    pub(super) fn next_event(&self) -> Option<Result<SessionEvent, SessionError>> {
        let event = self.slot.take()?;
        self.observe(event.as_ref());
        if let Ok(event) = &event {
            self.note_compaction(event);
        }
        Some(event)
    }

    /// Records an event, and shows it to the observers.
    pub(super) fn observe(&self, event: Result<&SessionEvent, &SessionError>) {
        if let Ok(event) = event {
            locked(&self.recent).push(event);
        }
        self.observers.see(event);
    }

    fn note_compaction(&self, event: &SessionEvent) {
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
                        while step == 2 && shared.queue_is_open() {
                            taken.extend(shared.next_queued());
                        }
                    }
                }
                for (text, queued) in said {
                    let is_taken = taken.iter().any(|taken| *taken == text);
                    let promised = queued == Queued::Running;
                    assert!(is_taken || !promised, "{text} {first} {second}");
                    assert!(is_taken || shared.queued() > 0, "{text} is lost: {first} {second}");
                }
            }
        }
    }

    impl Shared {
        fn queue_is_open(&self) -> bool {
            locked(&self.queue).is_taken_from
        }
    }
}
