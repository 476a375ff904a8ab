//! Waiting without a runtime.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use futures::{FutureExt, channel::oneshot, future::BoxFuture};

/// Waits on a thread of its own, which ends with the wait or when the future is dropped.
pub(super) fn on_thread(time: Duration) -> BoxFuture<'static, ()> {
    if time.is_zero() {
        return futures::future::ready(()).boxed();
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
        // If no thread could be spawned, do not wait. The retry comes early and may fail again.
        if sleeping.is_ok() {
            let _ = wait.await;
        }
    }
    .boxed()
}
