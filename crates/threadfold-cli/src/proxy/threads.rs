//! The threads of a proxy: their triggers, and a lock for each, so that two requests of one thread do
//! not pay for the same compaction.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use threadfold::{auto::AutoCompactor, proxy::Link};

/// Of so many threads at most the trigger is remembered. A forgotten one begins anew.
const MAX: usize = 10_000;

/// What is remembered of each thread, by its first link.
#[derive(Debug, Default)]
pub(super) struct Threads(Mutex<HashMap<Link, Known>>);

#[derive(Clone, Debug)]
struct Known {
    auto: AutoCompactor,
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl Threads {
    /// The trigger of a thread, and its lock. A new thread gets `fresh`.
    pub(super) fn known(
        &self,
        root: Link,
        fresh: &AutoCompactor,
    ) -> (AutoCompactor, Arc<tokio::sync::Mutex<()>>) {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.len() >= MAX && !threads.contains_key(&root) {
            threads.retain(|_, known| Arc::strong_count(&known.lock) > 1);
        }
        let known = threads
            .entry(root)
            .or_insert_with(|| Known { auto: fresh.clone(), lock: Arc::default() });
        (known.auto.clone(), Arc::clone(&known.lock))
    }

    /// Remembers the trigger of a thread.
    pub(super) fn remember(&self, root: Link, auto: &AutoCompactor) {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = threads.get_mut(&root) {
            known.auto = auto.clone();
        }
    }
}
