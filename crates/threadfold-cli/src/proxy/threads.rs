//! The threads of a proxy: their triggers, what their provider's counts taught, and a lock for each, so
//! that two requests of one thread do not pay for the same compaction.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use threadfold::{auto::AutoCompactor, tokens::Calibrated};

use crate::relay::Link;

/// Of so many threads at most the trigger is remembered. A forgotten one begins anew.
const MAX: usize = 10_000;

/// What is remembered of each thread, by its first link.
#[derive(Debug, Default)]
pub(super) struct Threads(Mutex<HashMap<Link, Known>>);

#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) auto: AutoCompactor,
    pub(super) ratio: Calibrated,
    pub(super) lock: Arc<tokio::sync::Mutex<()>>,
}

impl Threads {
    /// What is known of a thread. A new one gets the trigger `fresh`.
    pub(super) fn known(&self, root: Link, fresh: &AutoCompactor) -> Known {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.len() >= MAX && !threads.contains_key(&root) {
            threads.retain(|_, known| Arc::strong_count(&known.lock) > 1);
        }
        let new =
            || Known { auto: fresh.clone(), ratio: Calibrated::default(), lock: Arc::default() };
        threads.entry(root).or_insert_with(new).clone()
    }

    /// Remembers the trigger and the ratio of a thread.
    pub(super) fn remember(&self, root: Link, auto: &AutoCompactor, ratio: Calibrated) {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = threads.get_mut(&root) {
            (known.auto, known.ratio) = (auto.clone(), ratio);
        }
    }

    /// Learns from the provider's count of a prompt.
    pub(super) fn learn(&self, root: Link, estimated: u64, reported: u64) {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = threads.get_mut(&root) {
            known.ratio.learn(estimated, reported);
        }
    }
}
