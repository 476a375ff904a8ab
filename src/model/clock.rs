//! `Clock`: the time of events.

use std::{
    fmt,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, SystemTime},
};

use futures::{FutureExt, channel::oneshot, future::BoxFuture};

use crate::message::Timestamp;

/// Gives the time of events. [`StdClock`] fits every runtime; a test uses a clock of its own, so
/// that equal runs give equal logs.
///
/// Tests that pause the time of tokio need a clock that pauses with it. With `tokio::time::Instant`
/// as `started` and the [`Timestamp`] of that moment as `at`:
///
/// ```text
/// impl Clock for TokioClock {
///     fn now(&self) -> Timestamp {
///         Timestamp(self.at.0 + self.started.elapsed().as_millis() as u64)
///     }
/// }
/// ```
///
/// With smol, `started` is a `std::time::Instant` and the body is the same. Such a clock never goes
/// back.
///
/// ```
/// use threadfold::{message::Timestamp, model::Clock};
///
/// #[derive(Debug)]
/// struct Still;
///
/// impl Clock for Still {
///     fn now(&self) -> Timestamp {
///         Timestamp(7)
///     }
/// }
/// assert_eq!(Still.now().to_string(), "1970-01-01T00:00:00.007Z");
/// ```
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the current time. It may stay the same or go back.
    fn now(&self) -> Timestamp;
}

/// The system clock, for hosts without a runtime. As a [`Sleeper`](super::Sleeper) it waits on a
/// thread of its own, which ends with the wait or when the future is dropped.
///
/// ```
/// use std::time::{Duration, Instant};
/// use futures::executor::block_on;
/// use threadfold::model::{Sleeper, StdClock};
///
/// let before = Instant::now();
/// block_on(StdClock.sleep(Duration::from_millis(5)));
/// assert!(before.elapsed() >= Duration::from_millis(5));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct StdClock;

impl Clock for StdClock {
    /// Returns the system time; zero if it is before 1970.
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// Waits, for example between a failed request and its retry.
///
/// Use the timer of your runtime. With tokio, and `futures::future::BoxFuture` and
/// `std::time::Duration` in scope:
///
/// ```text
/// #[derive(Debug)]
/// struct TokioSleeper;
///
/// impl Sleeper for TokioSleeper {
///     fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
///         Box::pin(tokio::time::sleep(time))
///     }
/// }
/// ```
///
/// With smol the body is:
///
/// ```text
///         Box::pin(async move { _ = smol::Timer::after(time).await })
/// ```
pub trait Sleeper: fmt::Debug + Send + Sync {
    /// Returns a future that is ready after this time. It may be dropped earlier.
    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()>;
}

/// Waits on a thread of its own, for hosts without a runtime. The thread ends with the wait or when
/// the future is dropped.
impl Sleeper for StdClock {
    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        if time.is_zero() {
            return futures::future::ready(()).boxed();
        }
        let (done, wait) = oneshot::channel();
        // The future holds the sender. Dropping it disconnects the channel, which ends the thread.
        let (held, dropped) = mpsc::channel::<()>();
        let sleeping =
            thread::Builder::new().name("threadfold-sleep".to_owned()).spawn(move || {
                if dropped.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                    let _ = done.send(());
                }
            });
        async move {
            let _held = held;
            // If no thread could be spawned, do not wait. The retry comes early and may fail again.
            if sleeping.is_ok() {
                let _ = wait.await;
            }
        }
        .boxed()
    }
}
