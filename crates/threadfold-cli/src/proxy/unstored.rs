//! What compactions made and is not stored yet, the oldest first.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

use threadfold::{message::ThreadId, store::Journal};

use super::{lock::locked, views::Row};
use crate::relay::Link;

/// The maximum number of compactions that wait to be stored. Beyond, the oldest is dropped.
pub(super) const MAX_WAITING: usize = 256;

/// What a compaction made.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) row: Arc<Row>,
    pub(super) journal: Journal,
    /// The view that the row replaces.
    pub(super) parent: Option<Link>,
}

/// What waits to be stored, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Unstored {
    made: Mutex<VecDeque<Made>>,
    /// Held while one task stores.
    pub(super) storing: tokio::sync::Mutex<()>,
    /// Whether storing takes longer than a request waits.
    pub(super) is_stalled: AtomicBool,
    /// Whether the line that the database is gone was written.
    pub(super) noted_gone: AtomicBool,
}

impl Unstored {
    /// The log of a thread, if its newest compaction waits to be stored.
    pub(super) fn journal(&self, thread: &ThreadId) -> Option<Journal> {
        let made = locked(&self.made);
        let newest = made.iter().rfind(|made| made.row.about.thread == *thread)?;
        Some(newest.journal.clone())
    }

    pub(super) fn is_empty(&self) -> bool {
        locked(&self.made).is_empty()
    }

    /// Adds what is to be stored. Returns what is dropped for it.
    pub(super) fn push(&self, new: Made) -> Option<Made> {
        let mut made = locked(&self.made);
        made.push_back(new);
        if made.len() > MAX_WAITING { made.pop_front() } else { None }
    }

    pub(super) fn first(&self) -> Option<Made> {
        locked(&self.made).front().cloned()
    }

    /// Keeps how far the oldest is stored: its log may be, and its view not yet.
    pub(super) fn put_back(&self, tried: Made) {
        let mut made = locked(&self.made);
        if let Some(first) = made.front_mut().filter(|first| Arc::ptr_eq(&first.row, &tried.row)) {
            *first = tried;
        }
    }

    /// Removes what was stored, unless it was dropped in the meantime.
    pub(super) fn done(&self, stored: &Made) {
        let mut made = locked(&self.made);
        if made.front().is_some_and(|first| Arc::ptr_eq(&first.row, &stored.row)) {
            made.pop_front();
        }
    }
}
