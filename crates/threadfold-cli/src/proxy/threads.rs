//! The threads of a proxy. Each has a lock, so that two requests of one thread do not compact it
//! twice, and for each model of an upstream a trigger and the ratio of counted to estimated tokens:
//! what one model refuses, another may take.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use threadfold::{auto::AutoCompactor, tokens::Calibrated};

use super::lock::locked;
use crate::relay::{Chain, Link};

/// The maximum number of remembered threads. A forgotten one starts with a new trigger.
const MAX: usize = 10_000;

/// The number of remembered links of a thread's newest request. A request that shares none of them is
/// taken for one without a predecessor.
const LAST: usize = 64;

/// Whether a count can be right. No text has more than three times the tokens of the estimate, and
/// some servers report the sum of several calls.
pub(super) fn is_likely(estimated: u64, reported: u64) -> bool {
    reported / 4 <= estimated
}

/// The maximum number of models of one thread. Beyond, all of them start with a new trigger.
const MAX_MODELS: usize = 16;

/// A thread, by its first link, and a model of an upstream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) root: Link,
    model: Link,
}

impl Key {
    pub(super) fn new(root: Link, upstream: &str, model: &str) -> Self {
        Self { root, model: Link::of_names(upstream, model) }
    }
}

/// The state of each thread, by its first link.
#[derive(Debug, Default)]
pub(super) struct Threads(Mutex<HashMap<Link, Thread>>);

#[derive(Debug, Default)]
struct Thread {
    lock: Arc<tokio::sync::Mutex<()>>,
    newest: Arc<[(usize, Link)]>,
    models: HashMap<Link, Learnt>,
}

/// What was learnt about a model with a thread.
#[derive(Clone, Debug)]
struct Learnt {
    auto: AutoCompactor,
    ratio: Calibrated,
}

/// The state of a thread with one model.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) auto: AutoCompactor,
    pub(super) ratio: Calibrated,
    pub(super) lock: Arc<tokio::sync::Mutex<()>>,
    /// The last links of the newest request that was read, each with its number of messages.
    newest: Arc<[(usize, Link)]>,
}

impl Known {
    /// The number of messages that a request shares with the newest one before it; `None` if that is
    /// not known.
    pub(super) fn shared_with(&self, chain: &Chain) -> Option<usize> {
        let mut links = self.newest.iter();
        links.find(|(count, link)| chain.after(*count) == Some(*link)).map(|(count, _)| *count)
    }
}

impl Threads {
    /// Returns the state of a thread. A new model gets the trigger `fresh`.
    pub(super) fn known(&self, key: Key, fresh: &AutoCompactor) -> Known {
        let mut threads = locked(&self.0);
        if threads.len() >= MAX && !threads.contains_key(&key.root) {
            threads.retain(|_, thread| Arc::strong_count(&thread.lock) > 1);
        }
        let Thread { lock, newest, models } = threads.entry(key.root).or_default();
        if models.len() >= MAX_MODELS && !models.contains_key(&key.model) {
            models.clear();
        }
        let new = || Learnt { auto: fresh.clone(), ratio: Calibrated::default() };
        let Learnt { auto, ratio } = models.entry(key.model).or_insert_with(new).clone();
        Known { auto, ratio, lock: Arc::clone(lock), newest: Arc::clone(newest) }
    }

    /// Remembers the newest request of a thread.
    pub(super) fn came(&self, root: Link, chain: &Chain) {
        if let Some(thread) = locked(&self.0).get_mut(&root) {
            thread.newest = chain.longest_first().take(LAST).collect();
        }
    }

    /// The trigger of a thread, if it is known.
    pub(super) fn trigger(&self, key: Key) -> Option<AutoCompactor> {
        self.with(key, |learnt| learnt.auto.clone())
    }

    /// Remembers the trigger and the ratio of a thread.
    pub(super) fn remember(&self, key: Key, auto: &AutoCompactor, ratio: Calibrated) {
        self.with(key, |learnt| *learnt = Learnt { auto: auto.clone(), ratio });
    }

    /// Updates the ratio and the limits with the provider's count of a prompt that it answered.
    pub(super) fn learn(&self, key: Key, estimated: u64, reported: u64) {
        self.with(key, |learnt| {
            learnt.ratio.learn(estimated, reported);
            if is_likely(estimated, reported) {
                learnt.auto.counted(reported);
            }
        });
    }

    fn with<T>(&self, key: Key, then: impl FnOnce(&mut Learnt) -> T) -> Option<T> {
        locked(&self.0).get_mut(&key.root)?.models.get_mut(&key.model).map(then)
    }
}
