//! What a proxy did since its start, as numbers.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters that only grow. Each is read by itself, so they need no order.
#[derive(Debug, Default)]
pub(super) struct Tally {
    requests: AtomicU64,
    compactions: AtomicU64,
    smaller: AtomicU64,
    bytes_less: AtomicU64,
    refused: AtomicU64,
    hidden: AtomicU64,
}

/// The counters at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Requests for an answer of a model.
    pub(crate) requests: u64,
    /// Compactions of threads.
    pub(crate) compactions: u64,
    /// Answered requests whose thread was sent smaller.
    pub(crate) smaller: u64,
    /// The bytes by which these were smaller, in all.
    pub(crate) bytes_less: u64,
    /// Refusals for the length that reached the agent.
    pub(crate) refused: u64,
    /// Requests that the provider refused for their length and answered after a compaction.
    pub(crate) hidden: u64,
}

impl Tally {
    pub(super) fn asked(&self) {
        self.requests.fetch_add(1, Relaxed);
    }

    pub(super) fn compacted(&self) {
        self.compactions.fetch_add(1, Relaxed);
    }

    /// A request of `own` bytes was answered after it was sent with `sent` bytes.
    pub(super) fn answered(&self, own: usize, sent: usize, after_refusal: bool) {
        if sent < own {
            self.smaller.fetch_add(1, Relaxed);
            self.bytes_less.fetch_add((own - sent) as u64, Relaxed);
        }
        self.hidden.fetch_add(u64::from(after_refusal), Relaxed);
    }

    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    pub(super) fn counts(&self) -> Counts {
        let Self { requests, compactions, smaller, bytes_less, refused, hidden } = self;
        Counts {
            requests: requests.load(Relaxed),
            compactions: compactions.load(Relaxed),
            smaller: smaller.load(Relaxed),
            bytes_less: bytes_less.load(Relaxed),
            refused: refused.load(Relaxed),
            hidden: hidden.load(Relaxed),
        }
    }
}
