//! The clock of a process in a simulated world.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use threadfold::{message::Timestamp, model::Clock};

use super::core::Core;

/// The time of the world, as a process reads it: clocks of processes differ.
#[derive(Debug)]
pub(super) struct WorldClock {
    core: Arc<Core>,
    /// How many milliseconds it is fast.
    fast: u64,
}

impl WorldClock {
    pub(super) fn new(core: &Arc<Core>, fast: u64) -> Self {
        Self { core: Arc::clone(core), fast }
    }
}

impl Clock for WorldClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.core.tick().saturating_add(self.fast))
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.core.sleep(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).boxed()
    }
}
