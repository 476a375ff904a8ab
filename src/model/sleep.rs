//! `Sleeper`: waiting, on any runtime.

use std::{
    fmt,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use futures::{FutureExt, channel::oneshot, future::BoxFuture};

use super::clock::StdClock;

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

const _: Option<Box<dyn Sleeper>> = None;
