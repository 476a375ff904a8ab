//! `Clock`: what time it is, as the host has it.

use std::{fmt, time::SystemTime};

use crate::message::Timestamp;

/// What says the time of events. With tokio, smol or any other runtime [`StdClock`] does; a test
/// brings its own, so that the same run gives the same log.
///
/// Tests that pause the time of tokio want a clock that stands still with it. With
/// `tokio::time::Instant` as `started` and the [`Timestamp`] of that moment as `at`:
///
/// ```text
/// impl Clock for TokioClock {
///     fn now(&self) -> Timestamp {
///         Timestamp(self.at.0 + self.started.elapsed().as_millis() as u64)
///     }
/// }
/// ```
///
/// With smol, which pauses nothing, `started` is a `std::time::Instant` and the body the same: a
/// clock that never goes back.
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
    /// Returns the time. It may stand still or go back; nothing depends on its order.
    fn now(&self) -> Timestamp;
}

/// The clock of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct StdClock;

impl Clock for StdClock {
    /// The time of the system; zero if it is set before 1970.
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

const _: Option<Box<dyn Clock>> = None;
