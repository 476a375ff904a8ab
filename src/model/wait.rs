//! Waiting without a runtime.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    task::Poll,
    thread,
    time::Duration,
};

use futures::{
    FutureExt,
    channel::oneshot,
    future::{self, BoxFuture},
};

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
        // If no thread could be spawned, do not wait. The retry comes early and may fail again.
        if sleeping.is_ok() {
            let _ = wait.await;
        }
    }
    .boxed()
}

/// Is pending at the first poll and wakes its task, so that other tasks run in between.
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
