//! The threads of a proxy. Each has a lock, so that two requests of one thread do not compact it
//! twice, and a trigger for each model of an upstream: what one model refuses, another may take.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use threadfold::auto::AutoCompactor;

use super::lock::locked;
use crate::relay::{Chain, Link};

/// The maximum number of remembered threads. A forgotten one starts with a new trigger.
const MAX: usize = 10_000;

/// The number of remembered links of a thread's newest request. A request that shares none of them is
/// taken for one without a predecessor.
const LAST: usize = 64;

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
pub(super) struct Threads {
    by_root: Mutex<HashMap<Link, Thread>>,
    /// The links up to which a model refused the reasoning of a thread. Another model may read it.
    void: Mutex<HashSet<(Link, Link)>>,
}

#[derive(Debug, Default)]
struct Thread {
    lock: Arc<tokio::sync::Mutex<()>>,
    newest: Arc<[(usize, Link)]>,
    models: HashMap<Link, AutoCompactor>,
}

/// The state of a thread with one model.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) auto: AutoCompactor,
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
        let mut threads = locked(&self.by_root);
        if threads.len() >= MAX && !threads.contains_key(&key.root) {
            threads.retain(|_, thread| Arc::strong_count(&thread.lock) > 1);
        }
        let Thread { lock, newest, models } = threads.entry(key.root).or_default();
        if models.len() >= MAX_MODELS && !models.contains_key(&key.model) {
            models.clear();
        }
        let auto = models.entry(key.model).or_insert_with(|| fresh.clone()).clone();
        Known { auto, lock: Arc::clone(lock), newest: Arc::clone(newest) }
    }

    /// Remembers the newest request of a thread.
    pub(super) fn came(&self, root: Link, chain: &Chain) {
        if let Some(thread) = locked(&self.by_root).get_mut(&root) {
            thread.newest = chain.longest_first().take(LAST).collect();
        }
    }

    /// Remembers that a model accepted a thread without the reasoning up to this link, after it had
    /// refused that.
    pub(super) fn refuses_reasoning(&self, key: Key, link: Link) {
        let mut void = locked(&self.void);
        if void.len() >= MAX {
            void.clear();
        }
        void.insert((key.model, link));
    }

    /// The number of the first messages of a thread whose reasoning this model refused.
    pub(super) fn void_reasoning(&self, key: Key, chain: &Chain) -> usize {
        let void = locked(&self.void);
        let mut links =
            chain.longest_first().filter(|(_, link)| void.contains(&(key.model, *link)));
        links.next().map_or(0, |(count, _)| count)
    }

    /// Whether reasoning of any thread was refused.
    pub(super) fn refused_any_reasoning(&self) -> bool {
        !locked(&self.void).is_empty()
    }

    /// The trigger of a thread, if it is known.
    pub(super) fn trigger(&self, key: Key) -> Option<AutoCompactor> {
        self.with(key, |auto| auto.clone())
    }

    /// Remembers the trigger of a thread.
    pub(super) fn remember(&self, key: Key, auto: &AutoCompactor) {
        self.with(key, |known| *known = auto.clone());
    }

    /// Passes the provider's count of a prompt that it answered to the trigger.
    pub(super) fn learn(&self, key: Key, estimated: u64, reported: u64) {
        self.with(key, |auto| auto.counted(estimated, reported));
    }

    fn with<T>(&self, key: Key, then: impl FnOnce(&mut AutoCompactor) -> T) -> Option<T> {
        locked(&self.by_root).get_mut(&key.root)?.models.get_mut(&key.model).map(then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadfold::message::Message;

    #[test]
    fn refused_reasoning_is_known_for_its_model_at_its_upstream() {
        let thread = ["Is it?", "And now?", "And then?"].map(Message::user);
        let chain = Chain::of("anthropic-messages", &thread);
        let key = |upstream, model| Key::new(chain.after(1).unwrap(), upstream, model);
        let threads = Threads::default();
        threads.refuses_reasoning(key("http://a", "m"), chain.after(2).unwrap());
        let found = [("http://a", "m"), ("http://a", "other"), ("http://b", "m")]
            .map(|(upstream, model)| threads.void_reasoning(key(upstream, model), &chain));
        assert_eq!(found, [2, 0, 0]);
    }
}
