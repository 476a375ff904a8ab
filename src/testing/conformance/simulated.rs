//! Time that passes while all workers sleep.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// A clock in milliseconds. When all workers sleep, it moves to the time at which the first one
/// wakes. All other work takes no simulated time.
#[derive(Debug)]
pub(super) struct SimulatedTime(Mutex<State>);

#[derive(Debug)]
struct State {
    now: u64,
    /// The number of workers that have not ended.
    working: u64,
    /// The next number of a sleeper.
    next: u64,
    sleepers: BTreeMap<u64, (u64, Waker)>,
}

impl SimulatedTime {
    pub(super) fn new(workers: u64) -> Self {
        let sleepers = BTreeMap::new();
        Self(Mutex::new(State { now: 0, working: workers, next: 0, sleepers }))
    }

    pub(super) fn now(&self) -> u64 {
        self.state().now
    }

    /// Sleeps for some milliseconds.
    pub(super) fn sleep(&self, millis: u64) -> Sleep<'_> {
        let mut state = self.state();
        state.next += 1;
        let (number, until) = (state.next, state.now.saturating_add(millis));
        Sleep { time: self, number, until }
    }

    /// Ends a worker, so that the others no longer wait for it.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.working = state.working.saturating_sub(1);
        state.pass();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Moves the clock if all workers sleep.
    fn pass(&mut self) {
        if (self.sleepers.len() as u64) < self.working {
            return;
        }
        let Some(first) = self.sleepers.values().map(|(until, _)| *until).min() else { return };
        self.now = self.now.max(first);
        for (until, waker) in self.sleepers.values() {
            if *until <= self.now {
                waker.wake_by_ref();
            }
        }
    }
}

pub(super) struct Sleep<'a> {
    time: &'a SimulatedTime,
    number: u64,
    until: u64,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.time.state();
        if state.now < self.until {
            state.sleepers.insert(self.number, (self.until, context.waker().clone()));
            state.pass();
        }
        if state.now < self.until {
            return Poll::Pending;
        }
        state.sleepers.remove(&self.number);
        Poll::Ready(())
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        self.time.state().sleepers.remove(&self.number);
    }
}
