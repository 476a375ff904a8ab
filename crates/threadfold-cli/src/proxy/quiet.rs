//! Threads whose agent is quiet: what is done shortly before the provider's prompt cache of them
//! dies.
//!
//! After each answer the trigger of the thread decides, by the prices of the model, whether anything
//! would pay before the cache dies. Only then the thread is watched: its last body stays in memory
//! until then, and one task waits for the earliest of all watched threads. So the number of watched
//! threads and of their bytes is bounded, and none is watched for longer than one life of its cache,
//! except while it is kept alive.
//!
//! | state | input | next state |
//! |---|---|---|
//! | | an answer was passed on, and something may pay | waiting |
//! | waiting | its time has come | working |
//! | working | not yet due, or kept alive | waiting |
//! | working | compacted, let go, or failed | |
//! | waiting, working | the next request of the thread | |
//!
//! Leaving `working` by a request cancels the work: a compaction that is not committed leaves no
//! trace, and a view that was prepared is dropped. A view that was stored is used by the next request
//! of the thread if that begins with the messages which the view replaces, like any other view.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use futures::channel::oneshot;
use threadfold::{
    auto,
    message::{Request, Timestamp},
};
use tokio::sync::Notify;

use super::{
    endpoint::Arrived,
    forward::{Outgoing, Upstream},
    lock::locked,
};
use crate::relay::Link;

/// The maximum number of watched threads, and of the bytes of their bodies. Further ones are not
/// watched.
const MAX_WATCHED: usize = 256;
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// The watched threads, by their first link.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    threads: Mutex<Watches>,
    /// Wakes the task that waits for the next work.
    pub(super) changed: Notify,
}

#[derive(Debug, Default)]
struct Watches {
    by_root: HashMap<Link, Watch>,
    /// The number of the last watch.
    last: u64,
}

#[derive(Debug)]
struct Watch {
    number: u64,
    thread: Arc<QuietThread>,
    state: State,
}

#[derive(Debug)]
enum State {
    Waiting {
        until: Timestamp,
    },
    /// Dropping the sender cancels the work.
    Working {
        _cancels: oneshot::Sender<()>,
    },
}

/// The last request of a thread.
#[derive(Debug)]
pub(super) struct QuietThread {
    pub(super) arrived: Arrived,
    /// How to send it again; `None` if it must not be.
    pub(super) again: Option<Again>,
}

/// Where the last request was sent, with its headers and so with its key.
#[derive(Debug)]
pub(super) struct Again {
    pub(super) outgoing: Outgoing,
    pub(super) upstream: Upstream,
}

/// The work for a thread whose time has come.
pub(super) struct Due {
    pub(super) root: Link,
    pub(super) number: u64,
    pub(super) thread: Arc<QuietThread>,
    pub(super) cancelled: oneshot::Receiver<()>,
}

impl Quiet {
    /// Watches a thread until this time.
    pub(super) fn watch(&self, root: Link, thread: QuietThread, until: Timestamp) {
        let mut threads = locked(&self.threads);
        let others = threads.by_root.iter().filter(|(other, _)| **other != root);
        let (count, bytes) = others.fold((0, 0_usize), |(count, bytes), (_, watch)| {
            (count + 1, bytes.saturating_add(watch.thread.arrived.body.len()))
        });
        let is_full = bytes.saturating_add(thread.arrived.body.len()) > MAX_BYTES;
        if count >= MAX_WATCHED || is_full {
            return;
        }
        threads.last += 1;
        let number = threads.last;
        let watch = Watch { number, thread: Arc::new(thread), state: State::Waiting { until } };
        threads.by_root.insert(root, watch);
        drop(threads);
        self.changed.notify_one();
    }

    /// The next request of a thread has come, so it is watched no more.
    pub(super) fn went_on(&self, root: Link) {
        locked(&self.threads).by_root.remove(&root);
    }

    /// Ends this watch. Returns `false` if the thread went on before.
    pub(super) fn end(&self, root: Link, number: u64) -> bool {
        let mut threads = locked(&self.threads);
        let is_quiet = threads.by_root.get(&root).is_some_and(|watch| watch.number == number);
        is_quiet && threads.by_root.remove(&root).is_some()
    }

    /// Whether this watch goes on.
    pub(super) fn is_watching(&self, root: Link, number: u64) -> bool {
        locked(&self.threads).by_root.get(&root).is_some_and(|watch| watch.number == number)
    }

    /// Waits on with this watch, if the thread did not go on.
    pub(super) fn wait(&self, root: Link, number: u64, until: Timestamp) {
        let mut threads = locked(&self.threads);
        if let Some(watch) = threads.by_root.get_mut(&root).filter(|watch| watch.number == number) {
            watch.state = State::Waiting { until };
        }
        drop(threads);
        self.changed.notify_one();
    }

    /// The time of the next work.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let threads = locked(&self.threads);
        let waiting = threads.by_root.values().filter_map(|watch| match watch.state {
            State::Waiting { until } => Some(until),
            State::Working { .. } => None,
        });
        waiting.min()
    }

    /// Marks all threads whose time has come as being worked for, and returns the work.
    pub(super) fn take_due(&self, now: Timestamp) -> Vec<Due> {
        let mut threads = locked(&self.threads);
        let due = threads
            .by_root
            .iter_mut()
            .filter(|(_, watch)| matches!(watch.state, State::Waiting { until } if until <= now));
        let begun = due.map(|(root, watch)| {
            let (cancels, cancelled) = oneshot::channel();
            watch.state = State::Working { _cancels: cancels };
            Due { root: *root, number: watch.number, thread: Arc::clone(&watch.thread), cancelled }
        });
        begun.collect()
    }
}

/// Returns the request that keeps the cache of this one alive. `None` if its reasoning has a budget,
/// which must be below the tokens of the answer: another budget would be another prompt.
pub(super) fn keep_alive(request: Request) -> Option<Request> {
    let has_budget = request.extra.fields().any(|(name, json)| {
        name == "thinking"
            && json.to_value().is_ok_and(|value| value.get("budget_tokens").is_some())
    });
    (!has_budget).then(|| auto::keep_alive(request))
}
