//! A sleeper that does not sleep.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};

use crate::model::Sleeper;

/// Waits for nothing, and remembers how long it should have. Clones share what they remember.
///
/// ```
/// use std::time::Duration;
/// use futures::executor::block_on;
/// use threadfold::{model::Sleeper, testing::WakefulSleeper};
///
/// let sleeper = WakefulSleeper::default();
/// block_on(sleeper.sleep(Duration::from_secs(3_600)));
/// assert_eq!(sleeper.waits(), [Duration::from_secs(3_600)]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct WakefulSleeper {
    waits: Arc<Mutex<Vec<Duration>>>,
}

impl WakefulSleeper {
    /// How long it was asked to wait, each time.
    #[must_use]
    pub fn waits(&self) -> Vec<Duration> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sleeper for WakefulSleeper {
    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner).push(time);
        futures::future::ready(()).boxed()
    }
}
