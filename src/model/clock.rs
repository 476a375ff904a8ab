//! `Clock`: the time of events, and waiting without a runtime.

use std::{
    fmt,
    sync::mpsc::{self, RecvTimeoutError},
    task::Poll,
    thread,
    time::{Duration, SystemTime},
};

use futures::{
    FutureExt,
    channel::oneshot,
    future::{self, BoxFuture},
};

use crate::message::Timestamp;

/// Returns the current time, and waits, for example between a failed request and its retry.
/// [`std_clock`] works on every runtime, but if a runtime has a timer, use that. With tokio, and
/// `futures::future::BoxFuture` and `std::time::Duration` in scope:
///
/// ```text
/// #[derive(Debug)]
/// struct TokioClock;
///
/// impl Clock for TokioClock {
///     fn now(&self) -> Timestamp {
///         std_clock().now()
///     }
///
///     fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
///         Box::pin(tokio::time::sleep(time))
///     }
/// }
/// ```
///
/// With smol the body of `sleep` is `Box::pin(async move { _ = smol::Timer::after(time).await })`.
///
/// Tests that pause the time of tokio need a clock that pauses with it: with `tokio::time::Instant`
/// as `started` and the [`Timestamp`] of that moment as `at`, `now` returns `Timestamp(self.at.0 +
/// self.started.elapsed().as_millis() as u64)`. Such a clock never goes back. The feature `testing`
/// has a deterministic clock, with which equal runs give equal logs.
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

    /// Returns a future that is ready after this time. It may be dropped earlier.
    ///
    /// The default waits on a thread of its own, which ends with the wait or when the future is
    /// dropped.
    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        on_thread(time)
    }
}

/// Returns the system clock, for hosts without a runtime.
///
/// ```
/// use std::time::{Duration, Instant};
/// use futures::executor::block_on;
/// use threadfold::model::{Clock, std_clock};
///
/// let before = Instant::now();
/// block_on(std_clock().sleep(Duration::from_millis(5)));
/// assert!(before.elapsed() >= Duration::from_millis(5));
/// ```
#[must_use]
pub fn std_clock() -> impl Clock + Copy + use<> {
    StdClock
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct StdClock;

impl Clock for StdClock {
    /// Returns the system time; zero if it is before 1970.
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

const _: Option<Box<dyn Clock>> = None;

/// Waits on a thread of its own, which ends with the wait or when the future is dropped.
pub(super) fn on_thread(time: Duration) -> BoxFuture<'static, ()> {
    if time.is_zero() {
        return future::ready(()).boxed();
    }
    let (done, wait) = oneshot::channel();
    // The future holds the sender. Dropping it disconnects the channel, which ends the thread.
    let (held, dropped) = mpsc::channel::<()>();
    let sleeping = thread::Builder::new().name("threadfold-sleep".to_owned()).spawn(move || {
        if dropped.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
            let _ = done.send(());
        }
    });
    async move {
        let _held = held;
        // If no thread could be spawned, do not wait: an early retry is better than none.
        if sleeping.is_ok() {
            let _ = wait.await;
        }
    }
    .boxed()
}

/// Yields once to the other tasks: it is pending at the first poll and wakes its own task.
pub(crate) async fn yield_now() {
    let mut is_first = true;
    let poll = future::poll_fn(|context| {
        if !std::mem::take(&mut is_first) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    });
    poll.await;
}
