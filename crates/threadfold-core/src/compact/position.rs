//! Positions between blocks, and the positions of checkpoints.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::message::{CheckpointId, Message};

/// A position in a thread: before a block of a message. Positions are ordered like the thread.
///
/// `block` may equal the number of blocks, which is the end of the message. The end of the thread
/// is block 0 of the message after the last.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Position {
    /// The index of the message.
    pub message: usize,
    /// The index of the block in it.
    pub block: usize,
}

impl Position {
    /// The position before a message, or at the end of the thread.
    #[must_use]
    pub const fn before(message: usize) -> Self {
        Self { message, block: 0 }
    }
}

/// The position of a checkpoint.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointPosition {
    /// The position after the checkpoint.
    At(Position),
    /// The thread contains the checkpoint more than once.
    Ambiguous,
}

/// The position of every checkpoint of a thread.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointIndex(HashMap<CheckpointId, CheckpointPosition>);

impl CheckpointIndex {
    pub fn of<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Self {
        let mut index = Self::default();
        for (message_index, message) in messages.into_iter().enumerate() {
            index.add(message_index, message);
        }
        index
    }

    /// Adds the checkpoints of the message with this index.
    pub fn add(&mut self, index: usize, message: &Message) {
        for (id, block) in message.checkpoints() {
            let position = CheckpointPosition::At(Position { message: index, block });
            let entry = self.0.entry(id);
            entry.and_modify(|found| *found = CheckpointPosition::Ambiguous).or_insert(position);
        }
    }

    /// Returns the position of a checkpoint; `None` if it is not in the thread.
    pub fn find(&self, id: CheckpointId) -> Option<CheckpointPosition> {
        self.0.get(&id).copied()
    }
}
