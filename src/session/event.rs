//! What happens while a session works.

use serde::{Deserialize, Serialize};

use crate::{
    auto::Notice,
    compact::CompactReport,
    log::RungReport,
    message::{CompactionId, CompactionReason, StopReason, Text, ThreadId, Timestamp, Usage},
};

/// One thing that happens while a session works, in the order in which it happens.
///
/// In serde it is an object with a `type` and the fields of the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionEvent {
    /// A piece of the answer.
    TextDelta {
        /// The piece.
        text: Text,
    },
    /// A piece of the model's reasoning.
    ThinkingDelta {
        /// The piece.
        text: Text,
    },
    /// A tool is called.
    ToolStarted {
        /// The call.
        id: Text,
        /// The tool.
        name: Text,
    },
    /// A tool gave its result.
    ToolFinished {
        /// The call.
        id: Text,
        /// The tool.
        name: Text,
        /// Whether it failed.
        is_error: bool,
    },
    /// A compaction began, went on or ended.
    Compaction(CompactionEvent),
    /// A line for the person who watches. It is in the log, and never sent to a model.
    Notice {
        /// The line.
        text: Text,
    },
    /// A message that was queued while the turn went on begins a turn of its own.
    QueuedMessage {
        /// What it says.
        text: Text,
    },
    /// A turn is over.
    TurnEnded {
        /// Why the model stopped.
        stop_reason: StopReason,
        /// How many answers the turn had.
        rounds: u32,
        /// What they cost together.
        usage: Usage,
    },
    /// The host aborted. Nothing follows.
    Aborted,
}

/// What becomes of one compaction: one start, any number of other events, and exactly one end,
/// which is the completion, the failure or the cancellation.
///
/// In serde it is an object with a `status`, its names those of the Agent Client Protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionEvent {
    /// It began.
    Started {
        /// Its number in the log.
        id: CompactionId,
        /// The thread.
        thread: ThreadId,
        /// When.
        at: Timestamp,
        /// Why.
        reason: CompactionReason,
        /// The strategy.
        strategy: Text,
    },
    /// A model is asked.
    Progress {
        /// Its number in the log.
        id: CompactionId,
        /// How many calls are done.
        done: usize,
        /// How many there will be, as far as is known.
        total: usize,
    },
    /// A piece of what a model writes for it.
    SummaryDelta {
        /// Its number in the log.
        id: CompactionId,
        /// The piece.
        text: Text,
    },
    /// It was carried out.
    Completed {
        /// Its number in the log.
        id: CompactionId,
        /// The thread.
        thread: ThreadId,
        /// When.
        at: Timestamp,
        /// What it did, in numbers.
        report: CompactReport,
        /// What it cost.
        usage: Usage,
        /// What was tried, in order, where the strategy tries others; the last is what did it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rungs: Vec<RungReport>,
    },
    /// It came to nothing; the thread is as it was.
    Failed {
        /// Its number in the log.
        id: CompactionId,
        /// The thread.
        thread: ThreadId,
        /// When.
        at: Timestamp,
        /// What went wrong.
        error: Text,
    },
    /// The stream of events was dropped before it ended; the thread is as it was.
    Cancelled {
        /// Its number in the log.
        id: CompactionId,
        /// The thread.
        thread: ThreadId,
        /// When that was noticed.
        at: Timestamp,
    },
}

impl CompactionEvent {
    /// The number of the compaction.
    #[must_use]
    pub fn id(&self) -> CompactionId {
        match self {
            Self::Started { id, .. }
            | Self::Progress { id, .. }
            | Self::SummaryDelta { id, .. }
            | Self::Completed { id, .. }
            | Self::Failed { id, .. }
            | Self::Cancelled { id, .. } => *id,
        }
    }

    /// Whether it is the last event of its compaction.
    #[must_use]
    pub fn is_end(&self) -> bool {
        match self {
            Self::Completed { .. } | Self::Failed { .. } | Self::Cancelled { .. } => true,
            Self::Started { .. } | Self::Progress { .. } | Self::SummaryDelta { .. } => false,
        }
    }
}

/// The line that says why automatic compaction rests.
pub(super) fn notice_line(notice: &Notice) -> String {
    match notice {
        Notice::Suspended { tokens, threshold } => format!(
            "Automatic compaction rests: it does not bring {tokens} tokens under {threshold}."
        ),
        Notice::Paused { failures, until } => {
            format!("Automatic compaction rests until {until}, after {failures} failures in a row.")
        }
    }
}
