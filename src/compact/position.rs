//! Places between blocks.

use serde::{Deserialize, Serialize};

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
