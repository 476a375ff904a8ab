//! Futures and streams, poll by poll.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures::{Stream, task::noop_waker};

/// A future that is pending once.
pub(crate) async fn pending_once() {
    let mut waited = false;
    futures::future::poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Polls a stream up to `times` times or to its end. Returns its items, and whether it ended.
pub(crate) fn poll<S: Stream + Unpin>(stream: &mut S, times: usize) -> (Vec<S::Item>, bool) {
    let waker = noop_waker();
    let mut context = Context::from_waker(&waker);
    let mut items = Vec::new();
    for _ in 0..times {
        match Pin::new(&mut *stream).poll_next(&mut context) {
            Poll::Ready(None) => return (items, true),
            Poll::Ready(Some(item)) => items.push(item),
            Poll::Pending => {}
        }
    }
    (items, false)
}
