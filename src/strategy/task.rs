//! The input of a strategy as one value.

use super::{brief::Brief, snapshot::Snapshot};
use crate::message::{Summary, Text};

/// A thread to compact, and the brief for it. Cheap to clone, as its thread.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) thread: Snapshot,
    pub(super) brief: Brief,
}

impl Task {
    pub(super) fn new(thread: &Snapshot, brief: &Brief) -> Self {
        Self { thread: thread.clone(), brief: brief.clone() }
    }

    /// Returns the task with another form of its thread.
    pub(super) fn with_thread(&self, thread: Snapshot) -> Self {
        Self { thread, brief: self.brief.clone() }
    }

    /// Returns a summary with this text and the number of the compaction.
    pub(super) fn summary(&self, text: impl Into<Text>) -> Summary {
        Summary { compaction: self.brief.compaction, ..Summary::new(text) }
    }

    /// The target of the brief, if the thread exceeds it.
    pub(super) fn missed_target(&self) -> Option<u64> {
        self.thread.missed_target(&self.brief)
    }
}
