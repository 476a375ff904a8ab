//! What a strategy is told beside the thread.

use crate::message::{CompactionId, CompactionReason, Message, Timestamp};

/// What a strategy is told beside the thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brief {
    /// The number that the compaction will have, where a log numbers them. Summaries carry it.
    pub compaction: Option<CompactionId>,
    /// Why the thread is compacted, and what the person who asked wants kept in mind.
    pub reason: CompactionReason,
    /// What the user typed and is sent next, after the compaction.
    pub next_prompt: Option<Message>,
    /// The most tokens that the thread may have afterwards.
    pub target: Option<u64>,
    /// The time of the attempt.
    pub now: Timestamp,
}
