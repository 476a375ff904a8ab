//! A sleeper that returns at once.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};

use crate::model::Sleeper;

/// Returns at once and records the requested waits. Clones share the record.
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
    /// The requested waits, in order.
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
