//! The tokens that were billed, and how full the context is.
//!
//! The two differ, because every request is billed for the whole conversation again. The sum of all
//! answers' usage is what was billed. How full the context is follows from the *last* answer alone,
//! and only until the messages before it are rewritten.
//!
//! What a compaction saved is the usage that the provider reported since, less what the same requests
//! would have cost without it.

use std::{cell::LazyCell, collections::HashSet};

use serde::{Deserialize, Serialize};

use super::{
    event::{CompactionRecord, Event, LoggedEvent},
    event_log::EventLog,
};
use crate::{
    compact::Prices,
    message::{CompactionId, Message, Role, Timestamp, Usage},
    tokens::TokenCounter,
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
            Event::SystemPromptSet { .. }
            | Event::LocalNotice { .. }
            | Event::Truncated { .. }
            | Event::CompactionUndone { .. }
            | Event::RuleAdded { .. }
            | Event::RuleRevoked { .. }
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

/// As [`usage_since`], for all events of a log and its replayed messages.
pub(crate) fn usage_of(
    events: &[LoggedEvent],
    messages: &[Message],
    counter: &dyn TokenCounter,
) -> (Option<u64>, u64) {
    usage_since(last_count(events, (LastCount::Never, 0)), messages, counter)
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
        | Event::RuleAdded { .. }
        | Event::RuleRevoked { .. }
        | Event::Host { .. }
        | Event::ResultCut(_)
        | Event::Unknown { .. } => Effect::Nothing,
    }
}

/// What a compaction has saved since it was committed, until the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct NetGain {
    /// The number of answers since the compaction for which the provider reported usage.
    pub answers: u64,
    /// The sum of the usage that the provider reported for these answers.
    pub reported: Usage,
    /// The usage that the same answers would have had without the compaction.
    pub otherwise: Usage,
    /// The bill of `otherwise`, less that of `reported` and that of the compaction's own model
    /// calls. Negative while the compaction has not paid for itself.
    pub gain: i64,
}

impl EventLog {
    /// Returns what a compaction has saved so far; `None` if the log holds no such compaction or no
    /// answer with usage before it. It reads the events that are held, and needs a whole log for a
    /// compaction before its [`base`](Self::base).
    ///
    /// `otherwise` assumes that without the compaction each prompt would have been longer by the
    /// saved tokens of the report, that each would have begun with the whole previous prompt, and
    /// that the cache lives as long as the prices state. The last assumption concerns only
    /// `otherwise`, because `reported` is the provider's own count.
    ///
    /// The time is linear in the events.
    ///
    /// ```
    /// # use threadfold::{EventLog, compact::Prices, message::CompactionId};
    /// # let log = EventLog::new("main".parse()?);
    /// let prices = r#"{"input": 3, "cached": 0.3, "cache_write": 3.75, "output": 15}"#;
    /// let prices: Prices = serde_json::from_str(prices)?;
    /// assert_eq!(log.net_gain(CompactionId(0), &prices), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn net_gain(&self, id: CompactionId, prices: &Prices) -> Option<NetGain> {
        let mut before: Option<(Timestamp, u64)> = None;
        let mut compaction: Option<&CompactionRecord> = None;
        let mut gain = NetGain::default();
        for logged in self.events() {
            if let Event::Compacted(record) = &logged.event {
                match compaction {
                    None if record.id == id => compaction = Some(record),
                    None => {}
                    Some(_) => break,
                }
            }
            let Event::MessageAppended(message) = &logged.event else { continue };
            let Some(usage) = message.usage else { continue };
            let prompt = usage.input.saturating_add(compaction.map_or(0, saved));
            if compaction.is_some() {
                let (at, last) = before?;
                let is_warm = logged.at.0.saturating_sub(at.0) < prices.cache_life_ms;
                gain.answers += 1;
                gain.reported += usage;
                gain.otherwise +=
                    prices.usage(prompt, if is_warm { last } else { 0 }, usage.output);
            }
            before = Some((logged.at, prompt));
        }
        let spent = prices.bill(&compaction?.usage).saturating_add(prices.bill(&gain.reported));
        gain.gain = prices.bill(&gain.otherwise).saturating_sub(spent);
        Some(gain)
    }

    /// What the latest standing compaction has saved so far.
    pub(crate) fn latest_gain(&self, prices: &Prices) -> Option<i64> {
        let latest = self.standing().last()?.id;
        self.net_gain(latest, prices).map(|gain| gain.gain)
    }

    /// Whether the provider's cache of the last answer still lives. Without prices its life is
    /// unknown, so it counts as cold.
    pub(crate) fn is_warm(&self, now: Timestamp, prices: Option<&Prices>) -> bool {
        let Some(prices) = prices else { return false };
        let answered = self.state().totals.answered;
        answered.is_some_and(|at| now.0.saturating_sub(at.0) < prices.cache_life_ms)
    }
}

fn saved(record: &CompactionRecord) -> u64 {
    record.report.before.tokens.saturating_sub(record.report.after.tokens)
}
