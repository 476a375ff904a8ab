//! What a strategy gets to see, as one value, and the size of a thread against its target.

use super::{brief::Brief, error::StrategyError, rejection::Rejection, snapshot::Snapshot};
use crate::{
    ledger::Quotes,
    message::{
        CompactionReason, ContextWindow, Message, ModelError, ModelErrorKind, Request, Summary,
        Text,
    },
};

/// The share of the window that a request for a summary leaves free.
const SPARE_SHARE: u64 = 64;

/// What a strategy sees: the thread to compact, and why and how far. Cheap to clone.
#[derive(Clone, Debug)]
pub struct View {
    /// The thread.
    pub thread: Snapshot,
    /// The reason, the target and the limits.
    pub brief: Brief,
}

impl View {
    /// Returns the view of a thread with this brief.
    #[must_use]
    pub fn new(thread: Snapshot, brief: Brief) -> Self {
        Self { thread, brief }
    }

    /// Returns the view with another form of its thread.
    pub(super) fn with_thread(&self, thread: Snapshot) -> Self {
        Self { thread, brief: self.brief.clone() }
    }

    /// Returns the view with the rules that hold after these quotes.
    pub(super) fn quoting(&self, quotes: &Quotes) -> Self {
        match quotes.is_empty() {
            true => self.clone(),
            false => self.with_thread(self.thread.quoted(quotes, &self.brief).0),
        }
    }

    /// Returns a summary with this text and the number of the compaction.
    pub(super) fn summary(&self, text: impl Into<Text>) -> Summary {
        Summary { compaction: self.brief.compaction, ..Summary::new(text) }
    }

    /// The target of the brief, if the thread exceeds it.
    pub(super) fn missed_target(&self) -> Option<u64> {
        self.thread.missed_target(&self.brief)
    }

    /// Refuses the thread, which is within this target.
    pub(super) fn within<T>(&self, target: u64) -> Result<T, StrategyError> {
        let size = self.thread.size();
        let reason = format!("about {size} tokens are within the target of {target}");
        Err(StrategyError::NothingToCompact { reason: reason.into() })
    }

    /// Refuses a thread within its target, unless somebody asks for its first compaction: only who
    /// asks for one expects a compaction that nothing needs.
    ///
    /// # Errors
    ///
    /// [`StrategyError::NothingToCompact`], with size and target.
    pub(super) fn check_need(&self) -> Result<(), StrategyError> {
        let is_done = self.brief.reason == CompactionReason::Threshold
            || self.thread.messages().iter().any(Message::is_summary);
        match (self.missed_target(), self.brief.target) {
            (None, Some(target)) if is_done => self.within(target),
            _ => Ok(()),
        }
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

    /// Returns the request with as many tokens for its answer as the window has room for beside the
    /// prompt, at most as many as it asks for. A quarter of the room stays free, because an answer is
    /// in tokens as the provider counts them, and a small part of the window, because counts are
    /// estimates. Without a known window the request stays as it is.
    ///
    /// # Errors
    ///
    /// [`StrategyError::TooLong`] if less than an eighth of the answer fits.
    pub(super) fn with_answer_room(&self, request: Request) -> Result<Request, StrategyError> {
        let asked = request.max_output.unwrap_or(0);
        let Some(window) = self.window().map(ContextWindow::tokens) else { return Ok(request) };
        let prompt = self.counter().request(&request);
        let room = window.saturating_sub(window / SPARE_SHARE).saturating_sub(prompt);
        let answer = asked.min(room - room / 4);
        if answer < (asked / 8).max(1) {
            let tokens = prompt.saturating_add(asked / 8);
            return Err(StrategyError::TooLong { tokens, window });
        }
        Ok(Request { max_output: Some(answer), ..request })
    }

    /// Returns the snapshot with the window that this refusal of a request shows, in tokens of its
    /// counter; `None` if the refusal states no limit.
    pub(super) fn after_refusal(&self, request: &Request, error: &ModelError) -> Option<Self> {
        let ModelErrorKind::Overflow { limit: Some(limit), found, output } = error.kind else {
            return None;
        };
        let answer = request.max_output.unwrap_or(0);
        let prompt = self.counter().request(request);
        // What was counted as `found` is the prompt, or the prompt and the answer.
        let counted = match (found, output) {
            (Some(found), None) if found > limit.saturating_add(answer) => found - answer,
            (Some(found), _) => found,
            (None, _) => prompt,
        };
        let ours = u128::from(limit) * u128::from(prompt) / u128::from(counted.max(prompt).max(1));
        let ours = u64::try_from(ours).unwrap_or(limit);
        let window = ours.min(self.window().map_or(u64::MAX, ContextWindow::tokens));
        Some(self.clone().with_window(Some(ContextWindow::new(window))))
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
