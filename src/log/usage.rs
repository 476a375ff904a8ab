//! The tokens that were billed, and how full the context is.
//!
//! The two differ, because every request is billed for the whole conversation again. The sum of all
//! answers' usage is what was billed. How full the context is follows from the *last* answer alone,
//! and only until the messages before it are rewritten.

use std::{cell::LazyCell, collections::HashSet};

use serde::{Deserialize, Serialize};

use super::event::{Event, LoggedEvent};
use crate::{
    message::{CompactionId, ContextWindow, Message, Role, Usage},
    tokens::{Calibrated, TokenCounter},
};

/// The tokens billed over the life of a thread. No compaction, undo or truncation reduces them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TotalUsage {
    /// The tokens of answers, and of tools that called models themselves.
    pub thread: Usage,
    /// The tokens of compactions, failed ones included.
    pub compaction: Usage,
    /// The number of events with usage.
    pub events: usize,
}

/// How full the context of a thread is, and who counted it.
///
/// ```
/// use threadfold::{ContextWindow, Message, Thread, Usage, log::{ContextCount, ContextUsage}};
///
/// let mut answer = Message::assistant("Yes.");
/// answer.make_mut().usage = Some(Usage::new(90, 10));
/// let thread: Thread = [Message::user("Well?"), answer, Message::user("Why?")].into_iter().collect();
///
/// let context = thread.context_usage();
/// assert_eq!(context, ContextUsage { counted: ContextCount::Reported(100), pending: 6 });
/// assert_eq!(context.tokens(), Some(106));
/// assert_eq!(context.pressure(ContextWindow::new(1_000)), 0.106);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextUsage {
    /// The tokens when the context was last counted as a whole.
    pub counted: ContextCount,
    /// The estimated tokens of the messages appended since, such as tool results and the next
    /// prompt; of the whole thread if it was never counted.
    pub pending: u64,
}

/// The tokens of the context, and who counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextCount {
    /// The provider reported them for a request and its answer, with system prompt and tools.
    Reported(u64),
    /// A counter estimated them after the thread was rewritten: the messages only.
    Estimated(u64),
    /// Not counted: some providers report zeros or no usage.
    #[default]
    Unknown,
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

/// Returns how full the context is, for a log and its replayed messages.
///
/// This is the usage that the last answer reported, if no message was rewritten since. After a
/// compaction, its undo or a truncation it is an estimate until the next answer reports its usage:
/// the usage in kept answers is that of another thread. The time is linear in the messages at most.
///
/// [`Thread::context_usage`](crate::Thread::context_usage) gives the same result in constant time.
///
/// ```
/// use threadfold::{Message, log::{self, ContextCount, Event, LoggedEvent}};
/// use threadfold::{message::Timestamp, tokens::ByteEstimate};
///
/// let logged = |seq, event| LoggedEvent { seq, at: Timestamp(0), event };
/// let question = Message::user("Well?");
/// let events = [
///     logged(0, Event::MessageAppended(question.clone())),
///     logged(1, Event::MessageAppended(Message::assistant("Yes."))),
///     logged(2, Event::Truncated { from: 2, len: 1 }),
/// ];
/// let context = log::context_usage(&events, &[question], &ByteEstimate::TRIGGER);
/// assert_eq!(context.counted, ContextCount::Estimated(6));
/// ```
#[must_use]
pub fn context_usage(
    events: &[LoggedEvent],
    messages: &[Message],
    counter: &dyn TokenCounter,
) -> ContextUsage {
    usage_since(last_count(events, (LastCount::Never, 0)), messages, counter)
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
            Event::SystemPromptSet { .. }
            | Event::LocalNotice { .. }
            | Event::Truncated { .. }
            | Event::CompactionUndone { .. }
            | Event::RuleChanged(_)
            | Event::Host { .. }
            | Event::ResultCut(_)
            | Event::Unknown { .. }
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

impl ContextUsage {
    /// Returns the counted tokens and the pending ones together; `None` if the context was never
    /// counted.
    #[must_use]
    pub fn tokens(&self) -> Option<u64> {
        match self.counted {
            ContextCount::Reported(tokens) | ContextCount::Estimated(tokens) => {
                Some(tokens.saturating_add(self.pending))
            }
            ContextCount::Unknown => None,
        }
    }

    /// Returns [`tokens`](Self::tokens), or the estimate if the context was never counted.
    ///
    /// ```
    /// use threadfold::log::{ContextCount, ContextUsage};
    ///
    /// let unknown = ContextUsage { counted: ContextCount::Unknown, pending: 50 };
    /// assert_eq!((unknown.tokens(), unknown.tokens_or_estimate()), (None, 50));
    /// ```
    #[must_use]
    pub fn tokens_or_estimate(&self) -> u64 {
        self.tokens().unwrap_or(self.pending)
    }

    /// Returns the fraction of a window that is full; 1 is all of it. It is 0 if the context was
    /// never counted, and for a window of 0 tokens, so that no threshold is reached.
    ///
    /// ```
    /// use threadfold::{ContextWindow, log::{ContextCount, ContextUsage}};
    ///
    /// let window = ContextWindow::new(1_000);
    /// let counted = ContextUsage { counted: ContextCount::Reported(700), pending: 50 };
    /// assert_eq!(counted.pressure(window), 0.75);
    /// let unknown = ContextUsage { counted: ContextCount::Unknown, pending: 750 };
    /// assert_eq!(unknown.pressure(window), 0.0);
    /// ```
    #[must_use]
    pub fn pressure(&self, window: ContextWindow) -> f64 {
        match (self.tokens(), window.tokens()) {
            (None, _) | (_, 0) => 0.0,
            (Some(tokens), window) => tokens as f64 / window as f64,
        }
    }

    /// Adds the tokens of system prompt and tools, which are sent with every request. A reported
    /// count includes them already.
    ///
    /// ```
    /// use threadfold::log::{ContextCount::{Estimated, Reported, Unknown}, ContextUsage};
    ///
    /// let with = |counted| ContextUsage { counted, pending: 5 }.with_overhead(20).tokens_or_estimate();
    /// assert_eq!((with(Reported(100)), with(Estimated(100)), with(Unknown)), (105, 125, 25));
    /// ```
    #[must_use]
    pub fn with_overhead(self, tokens: u64) -> Self {
        match self.counted {
            ContextCount::Reported(_) => self,
            ContextCount::Estimated(counted) => {
                Self { counted: ContextCount::Estimated(counted.saturating_add(tokens)), ..self }
            }
            ContextCount::Unknown => Self { pending: self.pending.saturating_add(tokens), ..self },
        }
    }

    /// Scales the estimates to the tokens that providers report, for a thread whose counter is the
    /// base of the ratio. Reported tokens stay.
    ///
    /// ```
    /// use threadfold::{log::{ContextCount, ContextUsage}, tokens::Calibrated};
    ///
    /// let mut ratio = Calibrated::default();
    /// ratio.learn(1_000, 1_200);
    /// let estimate = ContextUsage { counted: ContextCount::Estimated(1_000), pending: 0 };
    /// assert_eq!(estimate.calibrated(&ratio).tokens(), Some(1_044));
    /// ```
    #[must_use]
    pub fn calibrated(self, ratio: &Calibrated) -> Self {
        let counted = match self.counted {
            ContextCount::Reported(_) | ContextCount::Unknown => self.counted,
            ContextCount::Estimated(counted) => ContextCount::Estimated(ratio.scale(counted)),
        };
        Self { counted, pending: ratio.scale(self.pending) }
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
    let empty =
        LazyCell::new(|| events.iter().filter_map(empty_compaction).collect::<HashSet<_>>());
    // After the last rewrite there are only appends, and their messages are the end of the thread.
    let mut since = 0_usize;
    for logged in events.iter().rev() {
        match effect(&logged.event) {
            Effect::Nothing => {}
            Effect::Undone(id) if empty.contains(&id) => {}
            Effect::Appended(None) => since += 1,
            Effect::Appended(Some(tokens)) => return (LastCount::Reported(tokens), since),
            Effect::Undone(_) | Effect::Rewritten => return (LastCount::Rewritten, since),
        }
    }
    (before.0, before.1.saturating_add(since))
}

/// Returns how full the context is by its last count.
pub(super) fn usage_since(
    (count, since): (LastCount, usize),
    messages: &[Message],
    counter: &dyn TokenCounter,
) -> ContextUsage {
    let (before, after) = messages.split_at(messages.len().saturating_sub(since));
    match count {
        LastCount::Never => {
            ContextUsage { counted: ContextCount::Unknown, pending: counter.messages(messages) }
        }
        LastCount::Reported(tokens) => ContextUsage {
            counted: ContextCount::Reported(tokens),
            pending: counter.messages(after),
        },
        LastCount::Rewritten => ContextUsage {
            counted: ContextCount::Estimated(counter.messages(before)),
            pending: counter.messages(after),
        },
    }
}

/// Returns the usage of a message: its own, and that of the tools whose results it holds.
fn cost(message: &Message) -> Usage {
    let tools = message.tool_results().filter_map(|result| result.usage.as_deref().copied());
    message.usage.into_iter().chain(tools).sum()
}

/// How an event changes the usage of the context.
enum Effect {
    Nothing,
    /// A message was appended, with the context's tokens if the provider reported them.
    Appended(Option<u64>),
    /// Earlier counts are no longer valid.
    Rewritten,
    /// Earlier counts are no longer valid, unless this compaction changed nothing.
    Undone(CompactionId),
}

/// Returns the id of a compaction that changed nothing.
fn empty_compaction(logged: &LoggedEvent) -> Option<CompactionId> {
    if let Event::Compacted(record) = &logged.event {
        return record.plan.is_empty().then_some(record.id);
    }
    None
}

fn effect(event: &Event) -> Effect {
    match event {
        Event::MessageAppended(message) => Effect::Appended(reported_tokens(message)),
        Event::Truncated { from, len } if len < from => Effect::Rewritten,
        Event::Compacted(record) if !record.plan.is_empty() => Effect::Rewritten,
        // An unreadable event may have rewritten the thread, so its earlier counts do not hold.
        Event::Malformed { .. } => Effect::Rewritten,
        Event::CompactionUndone { id } => Effect::Undone(*id),
        Event::Truncated { .. }
        | Event::Compacted(_)
        | Event::SystemPromptSet { .. }
        | Event::LocalNotice { .. }
        | Event::CompactionFailed(_)
        | Event::RuleChanged(_)
        | Event::Host { .. }
        | Event::ResultCut(_)
        | Event::Unknown { .. } => Effect::Nothing,
    }
}
