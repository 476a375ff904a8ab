//! The clock of the runtime.

use std::time::Duration;

use futures::future::BoxFuture;
use threadfold::{
    message::Timestamp,
    model::{Clock, std_clock},
};

/// The system time and the timer of the runtime.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock;

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        std_clock().now()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}
