//! Limits on the size and the time of an answer.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};

use super::clock::Clock;
use crate::message::{ModelError, ModelErrorKind};

/// The number of ticks in the idle time. Silence is noticed at most one tick late.
const TICKS: u32 = 4;

options! {
    /// The maximum bytes and the maximum time of an answer. An answer that exceeds them ends with a
    /// [`ModelError`] whose message names the limit. The error is retryable only if the server was
    /// silent for too long, because a second answer that is too long would be so again.
    ///
    /// ```
    /// use std::time::Duration;
    /// use threadfold::model::AnswerLimits;
    ///
    /// let total = Some(Duration::from_secs(60));
    /// let limits = AnswerLimits { total, ..AnswerLimits::default() };
    /// assert_eq!(limits.bytes, 128 << 20);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AnswerLimits {
        /// The most bytes of the whole response body, including comments.
        pub bytes: u64 = 128 << 20,
        /// The most bytes of one event.
        pub event_bytes: usize = 16 << 20,
        /// The longest time without an event; `None` for no limit. Comments are no events. Silence
        /// is noticed at most a quarter of this time late.
        pub idle: Option<Duration> = Some(Duration::from_secs(300)),
        /// The longest time from the first poll to the end of the answer; `None` for no limit.
        pub total: Option<Duration> = Some(Duration::from_secs(3_600)),
    }
}

/// The limit that an answer exceeded.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerLimitError {
    /// The whole answer is too large.
    #[error("the answer has more than {limit} bytes")]
    Bytes { limit: u64 },
    /// No event came for too long.
    #[error("no event of the answer came for {} s", .limit.as_secs_f64())]
    Idle { limit: Duration },
    /// The answer takes too long.
    #[error("the answer was not complete after {} s", .limit.as_secs_f64())]
    Total { limit: Duration },
}

impl From<AnswerLimitError> for ModelError {
    fn from(error: AnswerLimitError) -> Self {
        let kind = match error {
            AnswerLimitError::Idle { .. } => ModelErrorKind::Retryable { after: None },
            AnswerLimitError::Bytes { .. } | AnswerLimitError::Total { .. } => {
                ModelErrorKind::Other
            }
        };
        Self::new(kind, error.to_string())
    }
}

/// Counts the bytes and the time of an answer against its limits.
pub(super) struct Watch {
    limits: AnswerLimits,
    clock: Option<Arc<dyn Clock>>,
    bytes: u64,
    total: Option<BoxFuture<'static, ()>>,
    /// The running tick of the idle time.
    tick: Option<BoxFuture<'static, ()>>,
    /// The number of ticks that ended since the last event.
    ticks: u32,
}

impl Watch {
    /// Returns a watch of the bytes, and of the time if there is a clock.
    pub(super) fn new(limits: AnswerLimits, clock: Option<Arc<dyn Clock>>) -> Self {
        Self { limits, clock, bytes: 0, total: None, tick: None, ticks: 0 }
    }

    pub(super) fn read(&mut self, bytes: usize) -> Result<(), AnswerLimitError> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let limit = self.limits.bytes;
        if self.bytes > limit { Err(AnswerLimitError::Bytes { limit }) } else { Ok(()) }
    }

    /// Restarts the idle time, because an event arrived.
    pub(super) fn event(&mut self) {
        self.ticks = 0;
    }

    /// Waits for the next chunk of the answer, within the limits.
    pub(super) async fn within<T>(
        &mut self,
        mut answer: impl Future<Output = T> + Unpin,
    ) -> Result<T, AnswerLimitError> {
        // Poll the time first, because an answer that is always ready must run out of time too.
        poll_fn(|context| match self.poll_time(context) {
            Poll::Ready(error) => Poll::Ready(Err(error)),
            Poll::Pending => answer.poll_unpin(context).map(Ok),
        })
        .await
    }

    fn poll_time(&mut self, context: &mut Context<'_>) -> Poll<AnswerLimitError> {
        let Some(clock) = &self.clock else { return Poll::Pending };
        if let Some(limit) = self.limits.total {
            let total = self.total.get_or_insert_with(|| sleep(clock, limit));
            if total.poll_unpin(context).is_ready() {
                return Poll::Ready(AnswerLimitError::Total { limit });
            }
        }
        let Some(limit) = self.limits.idle else { return Poll::Pending };
        loop {
            let tick = self.tick.get_or_insert_with(|| sleep(clock, limit / TICKS));
            if tick.poll_unpin(context).is_pending() {
                return Poll::Pending;
            }
            (self.tick, self.ticks) = (None, self.ticks + 1);
            // The first tick began before the last event.
            if self.ticks > TICKS {
                return Poll::Ready(AnswerLimitError::Idle { limit });
            }
        }
    }
}

fn sleep(clock: &Arc<dyn Clock>, time: Duration) -> BoxFuture<'static, ()> {
    let clock = Arc::clone(clock);
    async move { clock.sleep(time).await }.boxed()
}
