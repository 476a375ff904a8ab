//! The threads of a proxy. Each has its trigger, its ratio of counted to estimated tokens, and a
//! lock, so that two requests of one thread do not compact it twice.

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

/// The state of each thread, by its first link.
#[derive(Debug, Default)]
pub(super) struct Threads(Mutex<HashMap<Link, Known>>);

#[derive(Clone, Debug)]
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
    /// Returns the state of a thread. A new thread gets the trigger `fresh`.
    pub(super) fn known(&self, root: Link, fresh: &AutoCompactor) -> Known {
        let mut threads = locked(&self.0);
        if threads.len() >= MAX && !threads.contains_key(&root) {
            threads.retain(|_, known| Arc::strong_count(&known.lock) > 1);
        }
        let new = || Known {
            auto: fresh.clone(),
            ratio: Calibrated::default(),
            lock: Arc::default(),
            newest: Arc::default(),
        };
        threads.entry(root).or_insert_with(new).clone()
    }

    /// Remembers the newest request of a thread.
    pub(super) fn came(&self, root: Link, chain: &Chain) {
        if let Some(known) = locked(&self.0).get_mut(&root) {
            known.newest = chain.longest_first().take(LAST).collect();
        }
    }

    /// The trigger of a thread, if it is known.
    pub(super) fn trigger(&self, root: Link) -> Option<AutoCompactor> {
        locked(&self.0).get(&root).map(|known| known.auto.clone())
    }

    /// Remembers the trigger and the ratio of a thread.
    pub(super) fn remember(&self, root: Link, auto: &AutoCompactor, ratio: Calibrated) {
        if let Some(known) = locked(&self.0).get_mut(&root) {
            (known.auto, known.ratio) = (auto.clone(), ratio);
        }
    }

    /// Updates the ratio and the limits with the provider's count of a prompt that it answered.
    pub(super) fn learn(&self, root: Link, estimated: u64, reported: u64) {
        if let Some(known) = locked(&self.0).get_mut(&root) {
            known.ratio.learn(estimated, reported);
            if is_likely(estimated, reported) {
                known.auto.counted(reported);
            }
        }
    }
}
