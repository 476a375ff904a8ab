//! Positions between blocks, and the positions of checkpoints.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::message::{CheckpointId, Message};

/// A place in a thread: before a block of a message. The order of positions is that of the thread.
///
/// `block` may be the number of blocks, which stands for the end of the message. The end of the
/// thread is block 0 of the message after the last.
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
    /// The place before a message, or the end of the thread.
    #[must_use]
    pub const fn before(message: usize) -> Self {
        Self { message, block: 0 }
    }
}

/// Where a checkpoint of a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Its marker ends here.
    At(Position),
    /// It has several markers.
    Ambiguous,
}

/// Where each checkpoint of a thread is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(HashMap<CheckpointId, Place>);

impl Places {
    #[doc(hidden)]
    pub fn of<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Self {
        let mut places = Self::default();
        for (index, message) in messages.into_iter().enumerate() {
            places.add(index, message);
        }
        places
    }

    /// Adds the checkpoints of one more message, which has this index.
    #[doc(hidden)]
    pub fn add(&mut self, index: usize, message: &Message) {
        for (id, block) in message.checkpoints() {
            let place = Place::At(Position { message: index, block });
            self.0.entry(id).and_modify(|known| *known = Place::Ambiguous).or_insert(place);
        }
    }

    /// Where a checkpoint is; `None` if it is unknown.
    #[doc(hidden)]
    pub fn place(&self, id: CheckpointId) -> Option<Place> {
        self.0.get(&id).copied()
    }
}
