//! Hand-off slot between the work of a turn and the stream that polls it.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{error::SessionError, event::SessionEvent};

/// Holds the next event until the stream takes it; the turn waits meanwhile. Nothing needs waking,
/// because the stream that takes an event also polls the turn.
#[derive(Debug, Default)]
pub(super) struct EventSlot(Mutex<VecDeque<Result<SessionEvent, SessionError>>>);

impl EventSlot {
    pub(super) fn put(&self, event: Result<SessionEvent, SessionError>) {
        self.lock().push_back(event);
    }

    pub(super) fn is_full(&self) -> bool {
        !self.lock().is_empty()
    }

    pub(super) fn take(&self) -> Option<Result<SessionEvent, SessionError>> {
        self.lock().pop_front()
    }

    /// Discards events that were not taken.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Result<SessionEvent, SessionError>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_in_order_and_what_nobody_took_is_forgotten() {
        let slot = EventSlot::default();
        let notice = |text: &str| SessionEvent::Notice { text: text.into() };
        let take = || slot.take().map(Result::unwrap);
        assert_eq!((slot.is_full(), take()), (false, None));
        slot.put(Ok(notice("one")));
        slot.put(Ok(notice("two")));
        assert_eq!((take(), slot.is_full()), (Some(notice("one")), true));
        assert_eq!((take(), slot.is_full()), (Some(notice("two")), false));
        slot.put(Ok(notice("three")));
        slot.clear();
        assert_eq!((slot.is_full(), take()), (false, None));
    }
}
