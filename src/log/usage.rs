//! What was billed, and how full the context is: two questions with two answers.
//!
//! Every call is billed for the whole conversation again, so the sum of all calls says what was
//! spent and nothing of the context. How full the context is says the *last* call alone, and only
//! until something before it is rewritten.

use std::{cell::LazyCell, collections::HashSet};

use serde::{Deserialize, Serialize};

use super::event::{Event, LoggedEvent};
use crate::{
    message::{CompactionId, ContextWindow, Message, Role, Usage},
    tokens::{Calibrated, TokenCounter},
};

/// What was billed over the life of a thread. No compaction, undo or truncation takes from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TotalUsage {
    /// The conversation: its answers, and the tools that asked models themselves.
    pub thread: Usage,
    /// Compactions, those that came to nothing too.
    pub compaction: Usage,
    /// How many events had something to add.
    pub events: usize,
}

/// How full the context of a thread is, and how that is known.
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
    /// The context when it was last counted as a whole.
    pub counted: ContextCount,
    /// The estimated tokens of the messages that came since: results of tools, the next prompt. All
    /// of the thread, if it was never counted.
    pub pending: u64,
}

/// How many tokens the context had, by who counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextCount {
    /// The provider: prompt and answer of a call, system prompt and tools included.
    Reported(u64),
    /// A counter, after the thread was rewritten: its messages, and nothing beside them.
    Estimated(u64),
    /// Not counted. Providers that do not count report zeros or nothing.
    #[default]
    Unknown,
}

/// Returns what was billed for all that happened.
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

/// Returns how full the context is, for a log and the messages that it gives on replay.
///
/// That is what the last call reported, if nothing was rewritten since. A compaction, its undo and
/// a truncation leave an estimate until the next answer that is counted: what kept answers once
/// reported was of another thread, and what stands in messages that a compaction put in was never
/// of this one. Linear in the messages at most, and otherwise in what came since.
///
/// A [`Thread`](crate::Thread) that lives along with the log knows the same in constant time.
///
/// ```
/// use threadfold::{Message, log::{self, ContextCount, Event, LoggedEvent, Truncated}};
/// use threadfold::{message::Timestamp, tokens::ByteEstimate};
///
/// let logged = |seq, event| LoggedEvent { seq, at: Timestamp(0), event };
/// let question = Message::user("Well?");
/// let events = [
///     logged(0, Event::MessageAppended(question.clone())),
///     logged(1, Event::MessageAppended(Message::assistant("Yes."))),
///     logged(2, Event::Truncated(Truncated { from: 2, len: 1 })),
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
    let idle = LazyCell::new(|| events.iter().filter_map(idle).collect::<HashSet<_>>());
    // Behind the last rewrite there are only appends, so what they brought is the end of the thread.
    let mut since = 0_usize;
    for logged in events.iter().rev() {
        let (before, after) = messages.split_at(messages.len().saturating_sub(since));
        let counted = match effect(&logged.event) {
            Effect::Nothing => continue,
            Effect::Undone(id) if idle.contains(&id) => continue,
            Effect::Appended(None) => {
                since += 1;
                continue;
            }
            Effect::Appended(Some(tokens)) => ContextCount::Reported(tokens),
            Effect::Undone(_) | Effect::Rewritten => {
                ContextCount::Estimated(counter.messages(before))
            }
        };
        return ContextUsage { counted, pending: counter.messages(after) };
    }
    ContextUsage { counted: ContextCount::Unknown, pending: counter.messages(messages) }
}

impl TotalUsage {
    /// Adds what one event cost, for hosts that keep the total as events come.
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
            Event::SystemPromptSet(_)
            | Event::LocalNotice(_)
            | Event::Truncated(_)
            | Event::CompactionUndone(_)
            | Event::RuleChanged(_)
            | Event::Host(_)
            | Event::Unknown(_)
            | Event::Malformed(_) => return,
        };
        if usage != Usage::default() {
            *account += usage;
            self.events += 1;
        }
    }

    /// The conversation and its compactions together.
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
    /// The tokens to reckon with: what was counted and what came since. `None` if it was never
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

    /// The tokens to assume: counted, or else estimated.
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

    /// The part of a window that is full: 1 is all of it. 0 where nothing is known, and for a window
    /// of nothing, so that no threshold is reached.
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

    /// Returns the same with what stands beside the messages of every request, system prompt and
    /// tools, in tokens. A reported count holds it already.
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

    /// Returns the same with its estimates in the tokens that providers report, for a thread that
    /// counts with the base of the ratio. What was reported stays.
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

/// The size of the context after an answer, where its provider reported it.
pub(super) fn reported_tokens(message: &Message) -> Option<u64> {
    let usage = message.usage.filter(|usage| message.role == Role::Assistant && !usage.is_zero());
    usage.map(|usage| usage.context_tokens())
}

/// What a message cost: its call, and those of the tools whose results it brings.
fn cost(message: &Message) -> Usage {
    let tools = message.tool_results().filter_map(|result| result.usage.as_deref().copied());
    message.usage.into_iter().chain(tools).sum()
}

/// What an event does to what is known of the context.
enum Effect {
    /// Nothing.
    Nothing,
    /// A message came, and with it a count where its provider said one.
    Appended(Option<u64>),
    /// What was counted before no longer holds.
    Rewritten,
    /// Nor does it here, unless this compaction changed nothing.
    Undone(CompactionId),
}

/// The number of a compaction that changed nothing.
fn idle(logged: &LoggedEvent) -> Option<CompactionId> {
    if let Event::Compacted(record) = &logged.event {
        return record.plan.is_empty().then_some(record.id);
    }
    None
}

fn effect(event: &Event) -> Effect {
    match event {
        Event::MessageAppended(message) => Effect::Appended(reported_tokens(message)),
        Event::Truncated(cut) if cut.len < cut.from => Effect::Rewritten,
        Event::Compacted(record) if !record.plan.is_empty() => Effect::Rewritten,
        // What cannot be read may have been a rewrite, and an estimate is never far off.
        Event::Malformed(_) => Effect::Rewritten,
        Event::CompactionUndone(undone) => Effect::Undone(undone.id),
        Event::Truncated(_)
        | Event::Compacted(_)
        | Event::SystemPromptSet(_)
        | Event::LocalNotice(_)
        | Event::CompactionFailed(_)
        | Event::RuleChanged(_)
        | Event::Host(_)
        | Event::Unknown(_) => Effect::Nothing,
    }
}
