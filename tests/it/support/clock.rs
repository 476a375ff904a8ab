//! A clock that advances with every reading.

use std::sync::atomic::{AtomicU64, Ordering};

use threadfold::{message::Timestamp, model::Clock};

/// A clock that advances by this many milliseconds with every reading.
#[derive(Debug)]
pub(crate) struct Ticking {
    now: AtomicU64,
    step: u64,
}

impl Ticking {
    pub(crate) fn from_ms(now: u64, step: u64) -> Self {
        Self { now: AtomicU64::new(now), step }
    }

    /// The next reading.
    pub(crate) fn next(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.fetch_add(self.step, Ordering::Relaxed))
    }
}
