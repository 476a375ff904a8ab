//! The input of a strategy as one value, and the size of a thread against its target.

use super::{
    brief::Brief,
    contract::StrategyError,
    snapshot::{Rejection, Snapshot},
};
use crate::message::{ContextWindow, Message, Request, Summary, Text};

/// A thread to compact, and its brief. Cheap to clone, like the snapshot.
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

impl Snapshot {
    /// The target of the brief, if the thread exceeds it.
    pub(super) fn missed_target(&self, brief: &Brief) -> Option<u64> {
        brief.target.filter(|target| self.size() > *target)
    }

    /// Whether the thread is within its target, if any, and the next request can be sent as it is.
    pub(super) fn has_room(&self, brief: &Brief) -> bool {
        let fits = self.window().is_none_or(|window| self.size() <= window.tokens());
        fits && !brief.is_needed() && self.missed_target(brief).is_none()
    }

    /// Refuses a request that does not fit the window together with its answer.
    pub(super) fn check_window(&self, request: &Request) -> Result<(), StrategyError> {
        let answer = request.max_output.unwrap_or(0);
        let tokens = self.counter().request(request).saturating_add(answer);
        match self.window().map(ContextWindow::tokens) {
            Some(window) if tokens > window => Err(StrategyError::TooLong { tokens, window }),
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses a thread that is not smaller than this one, or is over the target.
    pub(super) fn check_size(&self, messages: &[Message], brief: &Brief) -> Result<(), Rejection> {
        let before = self.size();
        let after = self.counter().messages(messages);
        if after >= before {
            return Err(Rejection::NotSmaller { before, after });
        }
        match brief.target {
            Some(target) if after > target => Err(Rejection::OverTarget { after, target }),
            Some(_) | None => Ok(()),
        }
    }
}
