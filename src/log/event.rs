//! The events of a thread.

use serde::{Deserialize, Serialize};

use crate::{
    compact::{CompactReport, Plan},
    ledger::RuleId,
    message::{CompactionId, CompactionReason, Json, Message, Text, Timestamp, ToolResult, Usage},
};

/// An event of a thread, with its index in the log and its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedEvent {
    /// The index in the log, from 0 and without gaps.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

/// An event of a thread. Only messages and the latest system prompts are sent to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A message was appended.
    MessageAppended(Message),
    /// A system prompt was set. It replaces the earlier one of the same author.
    SystemPromptSet(SystemPrompt),
    /// A line was shown to the user, such as the result of a compaction.
    LocalNotice(LocalNotice),
    /// Messages were dropped from the end.
    Truncated(Truncated),
    /// The thread was compacted.
    Compacted(Box<CompactionRecord>),
    /// A compaction failed, and the thread is unchanged.
    CompactionFailed(Box<CompactionFailure>),
    /// A compaction was undone.
    CompactionUndone(CompactionUndone),
    /// The host added a standing rule or revoked one.
    RuleChanged(RuleChange),
    /// An event of the host's own, such as the approval of a tool call.
    Host(HostEvent),
    /// The whole of a tool result that was longer than the host allows: the thread holds it cut.
    ResultCut(Box<ToolResult>),
    /// An event of a kind that this build does not know, kept unchanged.
    Unknown(UnreadEvent),
    /// An event of a known kind that cannot be read, kept unchanged.
    Malformed(UnreadEvent),
}

/// A system prompt and its author.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemPrompt {
    /// The prompt.
    pub text: Text,
    /// Who set it.
    pub by: PromptAuthor,
}

/// The author of a system prompt. A request contains the host's prompt, followed by the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptAuthor {
    /// The application.
    Host,
    /// The user.
    User,
}

/// A line that is shown to the user and never sent to a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalNotice {
    /// The line.
    pub text: Text,
}

/// The removal of messages from the end of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncated {
    /// The number of messages before.
    pub from: usize,
    /// The number of messages after.
    pub len: usize,
}

/// A successful compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompactionRecord {
    /// The id of the compaction.
    pub id: CompactionId,
    /// Why the thread was compacted.
    pub reason: CompactionReason,
    /// The name of the requested strategy.
    pub strategy: Text,
    /// The edit. A replay needs nothing else.
    pub plan: Plan,
    /// Sizes before and after, and other numbers.
    #[serde(default)]
    pub report: CompactReport,
    /// The tokens of its model calls together.
    #[serde(default)]
    pub usage: Usage,
    /// The rungs of the ladder that were tried, in order. The successful one has no failure; it is
    /// the last, unless a later one kept even less. Empty if the strategy is no ladder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rungs: Vec<RungReport>,
    /// The number of archive entries that belong to it. They are visible only while this compaction
    /// is standing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub archived: usize,
}

/// A failed compaction, and the tokens that it cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompactionFailure {
    /// The id of the compaction.
    pub id: CompactionId,
    /// Why the thread was to be compacted.
    pub reason: CompactionReason,
    /// The name of the requested strategy.
    pub strategy: Text,
    /// The error.
    pub error: Text,
    /// The tokens of its model calls together.
    #[serde(default)]
    pub usage: Usage,
    /// The rungs of the ladder that were tried, in order. Empty if the strategy is no ladder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rungs: Vec<RungReport>,
}

/// The result of one rung of a ladder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RungReport {
    /// The name of the rung's strategy.
    pub strategy: Text,
    /// Why it failed; `None` for the rung that was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Text>,
    /// The tokens of its model calls together.
    #[serde(default)]
    pub usage: Usage,
    /// The number of model calls.
    #[serde(default)]
    pub calls: usize,
}

/// The undo of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionUndone {
    /// The id of the compaction.
    pub id: CompactionId,
}

/// A change of the standing rules by the host. The user's changes are read from the messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuleChange {
    /// The host added a rule.
    Added {
        /// The text of the rule.
        text: Text,
    },
    /// The host revoked a rule, its own or one of the user.
    Revoked {
        /// The id of the rule.
        id: RuleId,
    },
}

/// An event of the host, which the log stores and ignores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEvent {
    /// The host's name for the event.
    pub kind: Text,
    /// The host's data.
    pub data: Json,
}

/// An event of which only the kind could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadEvent {
    /// The kind; empty if the JSON has none.
    pub kind: Text,
    /// The whole event as stored, including its kind. It is written back unchanged.
    pub data: Json,
}

impl CompactionRecord {
    /// Returns the record of a compaction without model calls.
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
    /// Returns the record of a failure without model calls.
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
    /// Returns the report of a rung that was accepted without model calls.
    #[must_use]
    pub fn new(strategy: impl Into<Text>) -> Self {
        Self { strategy: strategy.into(), failure: None, usage: Usage::default(), calls: 0 }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}
