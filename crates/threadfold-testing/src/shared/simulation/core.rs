//! What everything in a simulated world shares: its chance, its time, its judge, and the record of
//! what happened.

use std::{
    fmt,
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use threadfold::message::fnv1a;

use super::{fault::Fault, judge::Judge, numbers::Numbers, tally::Tally};

/// Takes the lines of what happens, step by step.
pub type Watch = Box<dyn FnMut(&str) + Send>;

/// Chance, time, judge and record of a world.
pub(super) struct Core {
    pub(super) numbers: Numbers,
    state: Mutex<State>,
    judge: Mutex<Judge>,
}

struct State {
    /// Milliseconds since the world began.
    now: u64,
    sleepers: Vec<(u64, Waker)>,
    digest: Digest,
    watch: Option<Watch>,
    tally: Tally,
    fault: Option<Fault>,
    /// Whether a view of a relay was lost.
    has_lost_view: bool,
}

impl Core {
    pub(super) fn new(seed: u64, watch: Option<Watch>) -> Self {
        let (sleepers, tally, fault) = (Vec::new(), Tally::default(), None);
        let digest = Digest::default();
        let state = State { now: 0, sleepers, digest, watch, tally, fault, has_lost_view: false };
        Self { numbers: Numbers::new(seed), state: Mutex::new(state), judge: Mutex::default() }
    }

    pub(super) fn judge(&self) -> MutexGuard<'_, Judge> {
        self.judge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts something.
    pub(super) fn count(&self, count: impl FnOnce(&mut Tally)) {
        count(&mut self.state().tally);
    }

    pub(super) fn tally(&self) -> Tally {
        self.state().tally
    }

    /// Records what happened, in one line.
    pub(super) fn note(&self, line: fmt::Arguments<'_>) {
        let line = line.to_string();
        let mut state = self.state();
        state.digest.add(line.as_bytes());
        let now = state.now;
        if let Some(watch) = &mut state.watch {
            watch(&format!("{now:>8} ms  {line}"));
        }
    }

    /// Records the bytes of a request or of an event.
    pub(super) fn bytes(&self, bytes: &[u8]) {
        self.state().digest.add(bytes);
    }

    pub(super) fn digest(&self) -> u64 {
        self.state().digest.0
    }

    /// Records that a view of a relay was lost.
    pub(super) fn lost_view(&self) {
        self.state().has_lost_view = true;
    }

    pub(super) fn has_lost_view(&self) -> bool {
        self.state().has_lost_view
    }

    /// Records a fault; the first one ends the world.
    pub(super) fn broke(&self, fault: Fault) {
        self.state().fault.get_or_insert(fault);
    }

    pub(super) fn fault(&self) -> Option<Fault> {
        self.state().fault.clone()
    }

    pub(super) fn now(&self) -> u64 {
        self.state().now
    }

    /// Reads the time, which passes meanwhile.
    pub(super) fn tick(&self) -> u64 {
        let passed = self.numbers.below(20);
        let mut state = self.state();
        state.now += passed;
        state.now
    }

    /// Sleeps for so many milliseconds. The future may be dropped.
    pub(super) async fn sleep(&self, millis: u64) {
        let until = self.now().saturating_add(millis);
        poll_fn(|context| {
            let mut state = self.state();
            if state.now >= until {
                return Poll::Ready(());
            }
            state.sleepers.push((until, context.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    /// Wakes all whose time has come.
    pub(super) fn wake(&self) {
        let mut state = self.state();
        let now = state.now;
        for (_, waker) in state.sleepers.extract_if(.., |(until, _)| *until <= now) {
            waker.wake();
        }
    }

    /// Moves the time to the next waking; `false` if nobody sleeps.
    pub(super) fn pass(&self) -> bool {
        let mut state = self.state();
        let Some(next) = state.sleepers.iter().map(|(until, _)| *until).min() else { return false };
        state.now = state.now.max(next);
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("now", &self.now()).finish_non_exhaustive()
    }
}

/// FNV-1a over everything that was recorded.
struct Digest(u64);

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        self.0 = fnv1a::hash(fnv1a::hash(self.0, bytes), &[0]);
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self(fnv1a::START)
    }
}
