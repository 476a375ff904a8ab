//! The events of a thread.

use serde::{Deserialize, Serialize};

use crate::{
    compact::{CompactReport, Plan},
    ledger::QuotedChanges,
    message::{
        Batch, CompactionId, CompactionReason, Json, Message, Text, Timestamp, ToolResult, Usage,
    },
};

const MESSAGE_APPENDED: &str = "message_appended";
const SYSTEM_PROMPT_SET: &str = "system_prompt_set";
const LOCAL_NOTICE: &str = "local_notice";
const TRUNCATED: &str = "truncated";
pub(super) const COMPACTED: &str = "compacted";
pub(super) const COMPACTION_FAILED: &str = "compaction_failed";
const COMPACTION_UNDONE: &str = "compaction_undone";
const RULE_ADDED: &str = "rule_added";
const RULE_REVOKED: &str = "rule_revoked";
const NOTE_WRITTEN: &str = "note_written";
const HOST: &str = "host";
const RESULT_CUT: &str = "result_cut";
const SPENT: &str = "spent";

/// All kinds, as stored.
pub(super) const KINDS: [&str; 13] = [
    MESSAGE_APPENDED,
    SYSTEM_PROMPT_SET,
    LOCAL_NOTICE,
    TRUNCATED,
    COMPACTED,
    COMPACTION_FAILED,
    COMPACTION_UNDONE,
    RULE_ADDED,
    RULE_REVOKED,
    NOTE_WRITTEN,
    HOST,
    RESULT_CUT,
    SPENT,
];

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

/// An event of a thread. Only the messages that the events result in are sent to a model.
// `remote` makes the derived functions inherent: the traits also handle `Malformed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A message was appended.
    MessageAppended(Message),
    /// A system prompt was set. It replaces the earlier one of the same author in the log, and is
    /// only recorded: a session sends the prompt of its settings.
    SystemPromptSet {
        /// The prompt.
        text: Text,
        /// Whether the user is its author, and not the host.
        #[serde(rename = "by", with = "author")]
        by_user: bool,
    },
    /// A line was shown to the user, such as the result of a compaction.
    LocalNotice {
        /// The line.
        text: Text,
    },
    /// Messages were dropped from the end.
    Truncated {
        /// The number of messages before the truncation.
        from: usize,
        /// The number of messages that stay.
        len: usize,
    },
    /// The thread was compacted.
    Compacted(Box<CompactionRecord>),
    /// A compaction failed, and the thread is unchanged.
    CompactionFailed(Box<CompactionFailure>),
    /// A compaction was undone.
    CompactionUndone {
        /// The id of the compaction.
        id: CompactionId,
    },
    /// The host added a standing rule. The user's rules are the quotes in the records of compactions.
    RuleAdded {
        /// The text of the rule.
        text: Text,
    },
    /// The host revoked a rule, its own or one of the user.
    RuleRevoked {
        /// The id of the rule.
        id: Text,
    },
    /// The agent wrote a note for itself.
    NoteWritten {
        /// The name of the note. A note of the same name is replaced.
        name: Text,
        /// The text of the note. A blank one removes the note.
        text: Text,
    },
    /// An event of the host's own, such as the approval of a tool call.
    Host {
        /// The host's name for the event.
        kind: Text,
        /// The host's data.
        data: Json,
    },
    /// A tool result that is longer than the host allows, in full. The thread holds it without its
    /// middle.
    ResultCut(Box<ToolResult>),
    /// The model was asked, and no message holds its answer: the last prompt was sent again while the
    /// user was away, to keep the provider's cache alive; the window cut the answer off, so it was
    /// asked for anew; or the call failed.
    Spent {
        /// The tokens that the provider billed for it.
        usage: Usage,
    },
    /// A [`Compacted`](Self::Compacted) or [`CompactionFailed`](Self::CompactionFailed) that was
    /// read from a store and cannot be parsed, kept unchanged. The thread keeps its messages.
    #[serde(skip)]
    Malformed {
        /// The kind.
        kind: Text,
        /// The whole event as stored, including its kind.
        data: Json,
    },
}

impl Event {
    /// Returns the kind, as stored.
    ///
    /// ```
    /// use threadfold::{Message, log::Event};
    ///
    /// assert_eq!(Event::MessageAppended(Message::user("hi")).kind(), "message_appended");
    /// ```
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::MessageAppended(_) => MESSAGE_APPENDED,
            Self::SystemPromptSet { .. } => SYSTEM_PROMPT_SET,
            Self::LocalNotice { .. } => LOCAL_NOTICE,
            Self::Truncated { .. } => TRUNCATED,
            Self::Compacted(_) => COMPACTED,
            Self::CompactionFailed(_) => COMPACTION_FAILED,
            Self::CompactionUndone { .. } => COMPACTION_UNDONE,
            Self::RuleAdded { .. } => RULE_ADDED,
            Self::RuleRevoked { .. } => RULE_REVOKED,
            Self::NoteWritten { .. } => NOTE_WRITTEN,
            Self::Host { .. } => HOST,
            Self::ResultCut(_) => RESULT_CUT,
            Self::Spent { .. } => SPENT,
            Self::Malformed { kind, .. } => kind,
        }
    }
}

/// The stored form of the author of a system prompt.
mod author {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize, Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Author {
        Host,
        User,
    }

    pub(super) fn serialize<S: Serializer>(by_user: &bool, to: S) -> Result<S::Ok, S::Error> {
        (if *by_user { Author::User } else { Author::Host }).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
        Author::deserialize(from).map(|author| match author {
            Author::Host => false,
            Author::User => true,
        })
    }
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
    /// What the provider counted before the compaction; `None` if it had counted nothing since the
    /// thread was last rewritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// The sum of the tokens of its model calls.
    #[serde(default)]
    pub usage: Usage,
    /// The number of its model calls.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls: usize,
    /// The rungs of the ladder that were tried, in order. The rung that made the plan has no
    /// failure. It is the last one, unless a later rung kept even fewer facts. Empty if the
    /// strategy is no ladder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rungs: Vec<Rung>,
    /// The batches that it made, also those that a later one of them replaces.
    /// [`EventLog::batches`](super::EventLog::batches) lists the current ones of a thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<Batch>,
    /// What the user's quoted words in the model's answer changed in the standing rules. Undoing the
    /// compaction does not take it back, because the user typed these words.
    #[serde(default, skip_serializing_if = "QuotedChanges::is_empty")]
    pub quoted: QuotedChanges,
}

/// The last count of a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The tokens of the context after the last answer: prompt and answer.
    pub tokens: u64,
    /// The tokens of the messages after that answer, as the counter estimates them.
    pub since: u64,
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
    pub rungs: Vec<Rung>,
}

/// The result of one rung of a ladder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rung<E = Text> {
    /// The name of the rung's strategy.
    pub strategy: Text,
    /// Why it failed: an error, or its text in a log. `None` for the rung that was accepted.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub failure: Option<E>,
    /// The sum of the tokens of its model calls.
    #[serde(default)]
    pub usage: Usage,
    /// The number of model calls.
    #[serde(default)]
    pub calls: usize,
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
            counted: None,
            usage: Usage::default(),
            calls: 0,
            rungs: Vec::new(),
            batches: Vec::new(),
            quoted: QuotedChanges::default(),
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

impl Rung {
    /// Returns the report of a rung that was accepted without model calls.
    #[must_use]
    pub fn new(strategy: impl Into<Text>) -> Self {
        Self { strategy: strategy.into(), failure: None, usage: Usage::default(), calls: 0 }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}
