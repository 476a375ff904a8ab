//! What happens to a thread.

use serde::{Deserialize, Serialize};

use crate::{
    compact::{CompactReport, Plan},
    ledger::RuleId,
    message::{CompactionId, CompactionReason, Json, Message, Text, Timestamp, Usage},
};

/// One thing that happened to a thread, with its place in the log and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// The place in the log: 0 for the first event, and no gaps.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

/// What can happen to a thread. Only messages are sent to a model, and the latest system prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A message came.
    MessageAppended(Message),
    /// The system prompt is this from now on.
    SystemPromptSet(SystemPrompt),
    /// A line for the person who watches, such as the one that says how a compaction went.
    LocalNotice(LocalNotice),
    /// Messages were dropped from the end.
    Truncated(Truncated),
    /// The thread was compacted.
    Compacted(Box<CompactionRecord>),
    /// A compaction came to nothing; the thread stayed as it was.
    CompactionFailed(Box<CompactionFailure>),
    /// What a compaction did was taken back.
    CompactionUndone(CompactionUndone),
    /// The host gave a standing rule, or took one back.
    RuleChanged(RuleChange),
    /// Something of the host's own, such as the approval of a tool call.
    Host(HostEvent),
    /// An event of a kind that this build does not know, kept as it is.
    Unknown(UnreadEvent),
    /// An event of a known kind that cannot be read, kept as it is.
    Malformed(UnreadEvent),
}

/// A system prompt and who set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemPrompt {
    /// The prompt.
    pub text: Text,
    /// Who set it.
    pub by: PromptAuthor,
}

/// Who set a system prompt. The model is sent the host's and then the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptAuthor {
    /// The application.
    Host,
    /// The person who uses it.
    User,
}

/// A line that is shown and never sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalNotice {
    /// The line.
    pub text: Text,
}

/// A cut from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncated {
    /// How many messages there were.
    pub from: usize,
    /// How many stayed.
    pub len: usize,
}

/// What a compaction did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompactionRecord {
    /// Its number.
    pub id: CompactionId,
    /// Why the thread was compacted.
    pub reason: CompactionReason,
    /// The strategy that was asked for.
    pub strategy: Text,
    /// The edit. Replay needs nothing else.
    pub plan: Plan,
    /// What it did, in numbers.
    #[serde(default)]
    pub report: CompactReport,
    /// What its calls of models cost together.
    #[serde(default)]
    pub usage: Usage,
    /// What was tried, in order. What did it has no failure; it is the last, unless what was tried
    /// after it keeps even less. Empty where a strategy stands alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rungs: Vec<RungReport>,
    /// How many entries of the archive belong to it. They are seen only while this event stands, and
    /// none are if it says that there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub archived: usize,
}

/// Why a compaction came to nothing, and what it cost all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompactionFailure {
    /// Its number.
    pub id: CompactionId,
    /// Why the thread was to be compacted.
    pub reason: CompactionReason,
    /// The strategy that was asked for.
    pub strategy: Text,
    /// What went wrong.
    pub error: Text,
    /// What its calls of models cost together.
    #[serde(default)]
    pub usage: Usage,
    /// What was tried, in order. Empty where a strategy stands alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rungs: Vec<RungReport>,
}

/// What became of one rung of a ladder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RungReport {
    /// The strategy of the rung.
    pub strategy: Text,
    /// Why it came to nothing; `None` for the one that was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Text>,
    /// What its calls of models cost together.
    #[serde(default)]
    pub usage: Usage,
    /// How many calls there were.
    #[serde(default)]
    pub calls: usize,
}

/// The compaction that was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionUndone {
    /// Its number.
    pub id: CompactionId,
}

/// What the host did to the standing rules. What the user types changes them too, and is read from
/// the messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuleChange {
    /// It gave one.
    Added {
        /// The rule.
        text: Text,
    },
    /// It took one back, its own or one of the user.
    Revoked {
        /// Its name.
        id: RuleId,
    },
}

/// Something that only the host understands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEvent {
    /// The host's name for it.
    pub kind: Text,
    /// What the host wants kept.
    pub data: Json,
}

/// An event that was read as far as its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadEvent {
    /// Its kind; empty if the event has no shape that could name one.
    pub kind: Text,
    /// The whole event as stored, its kind among it. It is written back as it is.
    pub data: Json,
}

impl CompactionRecord {
    /// Returns the record of an edit that cost nothing.
    #[must_use]
    pub fn new(
        id: CompactionId,
        reason: CompactionReason,
        strategy: impl Into<Text>,
        plan: Plan,
    ) -> Self {
        Self {
            id,
            reason,
            strategy: strategy.into(),
            plan,
            report: CompactReport::default(),
            usage: Usage::default(),
            rungs: Vec::new(),
            archived: 0,
        }
    }
}

impl CompactionFailure {
    /// Returns the record of a failure that cost nothing.
    #[must_use]
    pub fn new(
        id: CompactionId,
        reason: CompactionReason,
        strategy: impl Into<Text>,
        error: impl Into<Text>,
    ) -> Self {
        Self {
            id,
            reason,
            strategy: strategy.into(),
            error: error.into(),
            usage: Usage::default(),
            rungs: Vec::new(),
        }
    }
}

impl RungReport {
    /// Returns the report of a rung that was accepted and cost nothing.
    #[must_use]
    pub fn new(strategy: impl Into<Text>) -> Self {
        Self { strategy: strategy.into(), failure: None, usage: Usage::default(), calls: 0 }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}
