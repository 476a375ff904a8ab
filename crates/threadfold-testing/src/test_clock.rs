//! A deterministic clock that does not wait.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use threadfold::{message::Timestamp, model::Clock};

/// A clock that advances with every reading, by one second unless [`ticking`](Self::ticking) sets
/// another step. So equal runs give equal logs. Waits end at once and are recorded. Clones share
/// the time and the record.
///
/// ```
/// use std::time::Duration;
/// use futures::executor::block_on;
/// use threadfold::{message::Timestamp, model::Clock};
/// use threadfold_testing::TestClock;
///
/// let clock = TestClock::default();
/// block_on(clock.sleep(Duration::from_secs(3_600)));
/// assert_eq!(clock.waits(), [Duration::from_secs(3_600)]);
/// assert_eq!([clock.now(), clock.now()], [Timestamp(0), Timestamp(1_000)]);
/// ```
#[derive(Clone, Debug)]
pub struct TestClock {
    step_ms: u64,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    now: u64,
    waits: Vec<Duration>,
}

impl TestClock {
    /// Returns a clock that begins at this time and advances by this step, both in milliseconds.
    #[must_use]
    pub fn ticking(now_ms: u64, step_ms: u64) -> Self {
        let state = State { now: now_ms, waits: Vec::new() };
        Self { step_ms, state: Arc::new(Mutex::new(state)) }
    }

    /// The requested waits, in order.
    #[must_use]
    pub fn waits(&self) -> Vec<Duration> {
        self.change(|state| state.waits.clone())
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::ticking(0, 1_000)
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.change(|state| {
            let now = state.now;
            state.now = now.saturating_add(self.step_ms);
            Timestamp(now)
        })
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.change(|state| state.waits.push(time));
        futures::future::ready(()).boxed()
    }
}
