//! A simulated world, as its actors see it.

use std::{
    fmt,
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
};

use threadfold::{
    CompactionStrategy, Model, StrategyRegistry,
    model::Clock,
    store::{LeaseStore, StoreError, ThreadStore},
};

use super::{
    clock::WorldClock,
    core::{Core, Watch},
    disk::Disk,
    fault::Fault,
    numbers::Numbers,
    provider::{Asker, Provider, Seat, Vendor},
    tally::Tally,
};

/// The windows of the worlds, in tokens.
const WINDOWS: [u64; 3] = [3_000, 5_000, 8_000];

/// A world: one disk, one provider, one time, one chance, one judge. Clones are the same world.
#[derive(Clone, Debug)]
pub struct World {
    pub(super) core: Arc<Core>,
    pub(super) disk: Arc<Disk>,
    pub(super) provider: Arc<Provider>,
    work: Arc<AtomicU64>,
}

impl World {
    pub(super) fn new(seed: u64, vendor: Vendor, watch: Option<Watch>) -> Self {
        let core = Arc::new(Core::new(seed, watch));
        let window = *core.numbers.one_of(&WINDOWS);
        core.note(format_args!("seed {seed}: {vendor:?} with a window of {window} tokens"));
        let disk = Arc::new(Disk::new(Arc::clone(&core)));
        let provider = Arc::new(Provider::new(Arc::clone(&core), vendor, window, seed));
        Self { core, disk, provider, work: Arc::new(AtomicU64::new(0)) }
    }

    /// The chance of this world.
    pub fn numbers(&self) -> &Numbers {
        &self.core.numbers
    }

    /// One of the library's strategies.
    pub fn strategy(&self) -> Arc<dyn CompactionStrategy> {
        let registry = StrategyRegistry::default();
        let names: Vec<&str> = registry.names().collect();
        Arc::clone(registry.get(self.numbers().one_of::<&str>(&names)).unwrap())
    }

    /// The window of the model, in tokens.
    pub fn window(&self) -> u64 {
        self.provider.window
    }

    /// The API of the provider, and its model.
    pub fn vendor(&self) -> &Vendor {
        &self.provider.vendor
    }

    /// The clock of a process, this many milliseconds fast.
    pub fn clock(&self, fast: u64) -> Arc<dyn Clock> {
        Arc::new(WorldClock::new(&self.core, fast))
    }

    /// The logs.
    pub fn logs(&self) -> Arc<dyn ThreadStore> {
        Arc::clone(&self.disk) as Arc<dyn ThreadStore>
    }

    /// The logs with leases.
    pub fn leases(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.disk) as Arc<dyn LeaseStore>
    }

    /// A file as it was written last.
    pub fn file(&self, name: &str) -> Option<Arc<str>> {
        self.disk.read(name)
    }

    /// Records that the view of a relay was not written, so that a crash loses it: what the model
    /// answered with it may then be bound to messages that nobody has.
    pub fn lost_view(&self) {
        self.core.lost_view();
    }

    /// Writes a file whole, or fails: then it is the old one or the new one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`].
    pub async fn write(&self, name: &str, text: String) -> Result<(), StoreError> {
        self.disk.write(name, text).await
    }

    /// The model, as this asker sees it.
    pub fn model(&self, asker: Asker) -> Arc<dyn Model> {
        Arc::new(self.provider.seat(asker))
    }

    pub(super) fn seat(&self, asker: Asker) -> Arc<Seat> {
        Arc::new(self.provider.seat(asker))
    }

    /// Counts something.
    pub fn count(&self, count: impl FnOnce(&mut Tally)) {
        self.core.count(count);
    }

    /// Records what an actor does, in one line.
    pub fn note(&self, line: fmt::Arguments<'_>) {
        self.core.note(line);
    }

    /// Records a broken promise, which ends the world.
    pub fn broke(&self, fault: Fault) {
        self.core.broke(fault);
    }

    /// Whether there was less work than this so far, which a piece is added to. A crash loses no
    /// piece.
    pub fn has_work(&self, pieces: u64) -> bool {
        self.work.fetch_add(1, Ordering::Relaxed) < pieces
    }

    /// Awaits a future, or drops it midway at a random point, one time in `times`.
    pub async fn maybe_dropped<F: Future>(&self, times: u64, future: F) -> Option<F::Output> {
        let numbers = self.numbers();
        let mut left = if numbers.once_in(times) { numbers.steep(100) } else { u64::MAX };
        let mut future = pin!(future);
        let ended = poll_fn(|context| {
            if left == 0 {
                return Poll::Ready(None);
            }
            left -= 1;
            future.as_mut().poll(context).map(Some)
        })
        .await;
        if ended.is_none() {
            self.count(|tally| tally.dropped += 1);
            self.note(format_args!("a future is dropped midway"));
        }
        ended
    }
}
