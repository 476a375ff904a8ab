//! Batches: the pieces of a summary that is kept in pieces.

use serde::{Deserialize, Serialize};

use super::{compaction::CompactionId, text::Text, usage::Timestamp};

/// The name of a batch: the compaction that made it, and which of its batches it is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct BatchId {
    /// The compaction; the default one where no log numbers them.
    pub compaction: CompactionId,
    /// The place among the batches of that compaction.
    pub index: u32,
}

/// What one stretch of a thread said, in short.
///
/// A [`Summary`](super::Summary) that is a view of batches carries them, those that the view
/// leaves out too, so that the next compaction needs nothing but the thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Batch {
    /// Its name.
    pub id: BatchId,
    /// 0 for a batch of messages; one more than its deepest source for a batch of batches.
    pub depth: u32,
    /// When the first message of the stretch came.
    pub start: Timestamp,
    /// When the last one came.
    pub end: Timestamp,
    /// How many messages the stretch had.
    pub messages: usize,
    /// What it said.
    pub text: Text,
}

impl Batch {
    /// Returns a batch of depth 0 over no messages at no time.
    #[must_use]
    pub fn new(id: BatchId, text: impl Into<Text>) -> Self {
        Self {
            id,
            depth: 0,
            start: Timestamp::default(),
            end: Timestamp::default(),
            messages: 0,
            text: text.into(),
        }
    }
}
