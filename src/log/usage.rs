//! The tokens that were billed, and how full the context is.
//!
//! The two differ, because every request is billed for the whole conversation again. The billed
//! tokens are the sum of all answers' usage. The size of the context follows from the *last* answer
//! alone, and only until the messages before it are rewritten.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::event::{Event, LoggedEvent};
use crate::{
    message::{Message, Role, Usage},
    tokens::TokenCounter,
};

/// The tokens billed over the life of a thread. No compaction, undo or truncation reduces them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TotalUsage {
    /// The tokens of answers, of tools that called models themselves, and of requests that kept the
    /// provider's cache alive.
    pub thread: Usage,
    /// The tokens of compactions, failed ones included.
    pub compaction: Usage,
    /// The number of events with usage.
    pub events: usize,
}

/// Returns the tokens that were billed for these events.
///
/// ```
/// use threadfold::{Message, Usage, log::{self, Event, LoggedEvent}, message::Timestamp};
///
/// let mut answer = Message::assistant("Yes.");
/// answer.make_mut().usage = Some(Usage::new(100, 50));
/// let event = Event::MessageAppended(answer);
/// let total = log::total_usage(&[LoggedEvent { seq: 0, at: Timestamp(0), event }]);
/// assert_eq!((total.thread, total.events), (Usage::new(100, 50), 1));
/// ```
#[must_use]
pub fn total_usage(events: &[LoggedEvent]) -> TotalUsage {
    let mut total = TotalUsage::default();
    events.iter().for_each(|logged| total.record(&logged.event));
    total
}

impl TotalUsage {
    /// Adds the usage of one event, for hosts that keep a running total.
    ///
    /// ```
    /// use threadfold::{Message, log::{Event, TotalUsage}};
    ///
    /// let mut total = TotalUsage::default();
    /// total.record(&Event::MessageAppended(Message::user("hi")));
    /// assert_eq!(total, TotalUsage::default());
    /// ```
    pub fn record(&mut self, event: &Event) {
        let (account, usage) = match event {
            Event::MessageAppended(message) => (&mut self.thread, cost(message)),
            Event::Compacted(record) => (&mut self.compaction, record.usage),
            Event::CompactionFailed(failure) => (&mut self.compaction, failure.usage),
            Event::Spent { usage } => (&mut self.thread, *usage),
            Event::SystemPromptSet { .. }
            | Event::LocalNotice { .. }
            | Event::Truncated { .. }
            | Event::CompactionUndone { .. }
            | Event::RuleAdded { .. }
            | Event::RuleRevoked { .. }
            | Event::NoteWritten { .. }
            | Event::Host { .. }
            | Event::ResultCut(_)
            | Event::Malformed { .. } => return,
        };
        if usage != Usage::default() {
            *account += usage;
            self.events += 1;
        }
    }

    /// Returns the tokens of the conversation and its compactions together.
    ///
    /// ```
    /// use threadfold::{Usage, log::TotalUsage};
    ///
    /// let mut total = TotalUsage::default();
    /// (total.thread, total.compaction) = (Usage::new(900, 50), Usage::new(100, 10));
    /// assert_eq!(total.total(), Usage::new(1_000, 60));
    /// ```
    #[must_use]
    pub fn total(&self) -> Usage {
        self.thread + self.compaction
    }
}

/// Returns the tokens of the context after an answer, if the provider reported them.
pub(super) fn reported_tokens(message: &Message) -> Option<u64> {
    let usage = message.usage.filter(|usage| message.role == Role::Assistant && !usage.is_zero());
    usage.map(|usage| usage.context_tokens())
}

/// The last event that determined the size of the context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LastCount {
    /// The context was neither counted nor rewritten.
    #[default]
    Never,
    /// The provider reported these tokens.
    Reported(u64),
    /// Messages were rewritten.
    Rewritten,
}

/// Returns the last count of a context and the number of messages appended since. `before` is the
/// same pair before these events.
pub(super) fn last_count(events: &[LoggedEvent], before: (LastCount, usize)) -> (LastCount, usize) {
    let (mut last, mut empty) = (before, HashSet::new());
    for logged in events {
        last = match &logged.event {
            Event::MessageAppended(message) => match reported_tokens(message) {
                Some(tokens) => (LastCount::Reported(tokens), 0),
                None => (last.0, last.1.saturating_add(1)),
            },
            Event::Truncated { from, len } if len >= from => last,
            Event::Compacted(record) if record.plan.is_empty() => {
                empty.insert(record.id);
                last
            }
            // An empty compaction changed nothing, so its undo keeps the count.
            Event::CompactionUndone { id } if empty.contains(id) => last,
            // An unreadable event may have rewritten the thread, so its earlier counts do not hold.
            Event::Truncated { .. }
            | Event::Compacted(_)
            | Event::CompactionUndone { .. }
            | Event::Malformed { .. } => (LastCount::Rewritten, 0),
            Event::SystemPromptSet { .. }
            | Event::LocalNotice { .. }
            | Event::CompactionFailed(_)
            | Event::RuleAdded { .. }
            | Event::RuleRevoked { .. }
            | Event::NoteWritten { .. }
            | Event::Host { .. }
            | Event::ResultCut(_)
            | Event::Spent { .. } => last,
        };
    }
    last
}

/// Returns the provider's count, if no later event made it obsolete, and an estimate of the
/// messages that it does not include: those after it; without a count, those since the last
/// rewrite, or all.
pub(super) fn usage_since(
    (count, since): (LastCount, usize),
    messages: &[Message],
    counter: &dyn TokenCounter,
) -> (Option<u64>, u64) {
    let (_, after) = messages.split_at(messages.len().saturating_sub(since));
    match count {
        LastCount::Never => (None, counter.messages(messages)),
        LastCount::Reported(tokens) => (Some(tokens), counter.messages(after)),
        LastCount::Rewritten => (None, counter.messages(after)),
    }
}

/// Returns the usage of a message: its own, and the usage of the tools whose results it holds.
fn cost(message: &Message) -> Usage {
    let tools = message.tool_results().filter_map(|result| result.usage.as_deref().copied());
    message.usage.into_iter().chain(tools).sum()
}
