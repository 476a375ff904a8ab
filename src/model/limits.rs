//! How much of an answer is read, and for how long.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};

use super::sleep::Sleeper;
use crate::message::{ModelError, ModelErrorKind};

/// Into how many parts the idle time is divided: silence is noticed at the latest one part late.
const TICKS: u32 = 4;

/// How much of an answer is read at most, and for how long. A server that sends more, or keeps the
/// answer open longer, is cut off with an [`AnswerLimitError`].
///
/// ```
/// use std::time::Duration;
/// use threadfold::model::AnswerLimits;
///
/// let limits = AnswerLimits { total: Some(Duration::from_secs(60)), ..AnswerLimits::default() };
/// assert_eq!(limits.bytes, 128 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// The most bytes of the whole answer as they come, with comments and everything else.
    pub bytes: u64,
    /// The most bytes of one event.
    pub event_bytes: usize,
    /// The longest time without an event, in which comments do not count; `None` for no limit.
    /// What breaks it is noticed at most a quarter later.
    pub idle: Option<Duration>,
    /// The longest time from the first poll to the end of the answer; `None` for no limit.
    pub total: Option<Duration>,
}

impl Default for AnswerLimits {
    /// 128 MiB for the answer, which is 1 KiB for each of 128,000 tokens; 16 MiB for an event; 5
    /// minutes without an event; one hour for all of it.
    fn default() -> Self {
        Self {
            bytes: 128 << 20,
            event_bytes: 16 << 20,
            idle: Some(Duration::from_secs(300)),
            total: Some(Duration::from_secs(3_600)),
        }
    }
}

/// Which limit an answer broke. It is the source of the [`ModelError`].
///
/// Silence may be over the next time, so its error is retryable; an answer that is too long or takes
/// too long is one that nobody asks for again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerLimitError {
    /// The whole answer is too large.
    #[error("the answer has more than {limit} bytes")]
    Bytes {
        /// What is allowed, in bytes.
        limit: u64,
    },
    /// No event came for too long.
    #[error("no event of the answer came for {} s", .limit.as_secs_f64())]
    Idle {
        /// What is allowed.
        limit: Duration,
    },
    /// The answer takes too long.
    #[error("the answer was not complete after {} s", .limit.as_secs_f64())]
    Total {
        /// What is allowed.
        limit: Duration,
    },
}

impl From<AnswerLimitError> for ModelError {
    fn from(error: AnswerLimitError) -> Self {
        let kind = match error {
            AnswerLimitError::Idle { .. } => ModelErrorKind::Retryable { after: None },
            AnswerLimitError::Bytes { .. } | AnswerLimitError::Total { .. } => {
                ModelErrorKind::Other
            }
        };
        Self::new(kind, error.to_string()).with_source(error)
    }
}

/// What of the limits is used up.
pub(super) struct Watch {
    limits: AnswerLimits,
    sleeper: Option<Arc<dyn Sleeper>>,
    bytes: u64,
    total: Option<BoxFuture<'static, ()>>,
    /// The part of the idle time that runs, and how many ran out since the last event.
    tick: Option<BoxFuture<'static, ()>>,
    ticks: u32,
}

impl Watch {
    /// Watches the bytes, and with a sleeper the time too.
    pub(super) fn new(limits: AnswerLimits, sleeper: Option<Arc<dyn Sleeper>>) -> Self {
        Self { limits, sleeper, bytes: 0, total: None, tick: None, ticks: 0 }
    }

    pub(super) fn read(&mut self, bytes: usize) -> Result<(), AnswerLimitError> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let limit = self.limits.bytes;
        if self.bytes > limit { Err(AnswerLimitError::Bytes { limit }) } else { Ok(()) }
    }

    /// An event came.
    pub(super) fn event(&mut self) {
        self.ticks = 0;
    }

    /// Waits for something of the answer, no longer than is allowed.
    pub(super) async fn within<T>(
        &mut self,
        mut answer: impl Future<Output = T> + Unpin,
    ) -> Result<T, AnswerLimitError> {
        // The time first: an answer that never lets anybody wait runs out of it, too.
        poll_fn(|context| match self.poll_time(context) {
            Poll::Ready(error) => Poll::Ready(Err(error)),
            Poll::Pending => answer.poll_unpin(context).map(Ok),
        })
        .await
    }

    fn poll_time(&mut self, context: &mut Context<'_>) -> Poll<AnswerLimitError> {
        let Some(sleeper) = &self.sleeper else { return Poll::Pending };
        if let Some(limit) = self.limits.total {
            let total = self.total.get_or_insert_with(|| slept(sleeper, limit));
            if total.poll_unpin(context).is_ready() {
                return Poll::Ready(AnswerLimitError::Total { limit });
            }
        }
        let Some(limit) = self.limits.idle else { return Poll::Pending };
        loop {
            let tick = self.tick.get_or_insert_with(|| slept(sleeper, limit / TICKS));
            if tick.poll_unpin(context).is_pending() {
                return Poll::Pending;
            }
            (self.tick, self.ticks) = (None, self.ticks + 1);
            // The first one had begun when the last event came.
            if self.ticks > TICKS {
                return Poll::Ready(AnswerLimitError::Idle { limit });
            }
        }
    }
}

fn slept(sleeper: &Arc<dyn Sleeper>, time: Duration) -> BoxFuture<'static, ()> {
    let sleeper = Arc::clone(sleeper);
    async move { sleeper.sleep(time).await }.boxed()
}
