//! Batches: summaries of consecutive ranges of a thread. A summary message stores its batches as
//! data, next to the text that is composed from them.

use serde::{Deserialize, Serialize};

use super::{compaction::CompactionId, text::Text, usage::Timestamp};

/// The name of a batch: the compaction that created it, and its index there.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct BatchId {
    /// The compaction, or the default id if no log numbers compactions.
    pub compaction: CompactionId,
    /// The index among the batches of that compaction, from 0.
    pub index: u32,
}

/// A summary of one range of a thread.
///
/// A [`Summary`](super::Summary) that is composed from batches carries all of them, including those
/// that its text omits, so that the next compaction needs only the thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// The name of the batch.
    pub id: BatchId,
    /// 0 for a batch made from messages; for one made from batches, one more than the deepest of
    /// them.
    pub depth: u32,
    /// When the first message of the range was appended.
    pub start: Timestamp,
    /// When the last message of the range was appended.
    pub end: Timestamp,
    /// How many messages the range had.
    pub messages: usize,
    /// The summary of the range.
    pub text: Text,
    /// The batches of which it is made, and which it replaces. Empty for one made from messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<BatchId>,
}

impl Batch {
    /// Returns a batch of depth 0 that covers no messages, replaces none and has the default times.
    #[must_use]
    pub fn new(id: BatchId, text: impl Into<Text>) -> Self {
        Self {
            id,
            depth: 0,
            start: Timestamp::default(),
            end: Timestamp::default(),
            messages: 0,
            text: text.into(),
            replaces: Vec::new(),
        }
    }
}
