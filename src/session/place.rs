//! Where the work of a turn puts its events for the stream that it is polled by.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{error::SessionError, event::SessionEvent};

/// What a turn tells.
pub(super) type Told = Result<SessionEvent, SessionError>;

/// Room for events between the work and the stream: for one, because the work waits until that is
/// taken. Nobody is woken, because the stream that takes an event is what the work is polled by.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// Whether something is there. Locking is most of what an event costs, and this is asked often.
    is_full: AtomicBool,
    told: Mutex<VecDeque<Told>>,
}

impl Place {
    pub(super) fn put(&self, told: Told) {
        self.lock().push_back(told);
        self.is_full.store(true, Ordering::Release);
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    pub(super) fn take(&self) -> Option<Told> {
        if !self.is_full() {
            return None;
        }
        let mut place = self.lock();
        let told = place.pop_front();
        self.is_full.store(!place.is_empty(), Ordering::Release);
        told
    }

    /// Forgets what nobody took.
    pub(super) fn clear(&self) {
        if self.is_full() {
            self.lock().clear();
            self.is_full.store(false, Ordering::Release);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_in_order_and_what_nobody_took_is_forgotten() {
        let place = Place::default();
        let notice = |text: &str| SessionEvent::Notice { text: text.into() };
        let take = || place.take().map(Result::unwrap);
        assert_eq!((place.is_full(), take()), (false, None));
        place.put(Ok(notice("one")));
        place.put(Ok(notice("two")));
        assert_eq!((take(), place.is_full()), (Some(notice("one")), true));
        assert_eq!((take(), place.is_full()), (Some(notice("two")), false));
        place.put(Ok(notice("three")));
        place.clear();
        assert_eq!((place.is_full(), take()), (false, None));
    }
}
