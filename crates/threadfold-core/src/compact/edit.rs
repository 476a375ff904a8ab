//! An edit by positions, and the errors of edits.

use std::ops::Range;

use super::position::Position;
use crate::message::{CheckpointId, Message, Text};

/// A range of blocks and the messages to put in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The blocks to remove. An empty range only inserts.
    pub range: Range<Position>,
    /// The messages to insert in their place.
    pub insert: Vec<Message>,
}

/// Why no plan can be made of replacements or edits. The thread is unchanged in every case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// The checkpoint is not in the thread.
    #[error("replacement {index} names checkpoint {id}, which is not in the thread")]
    UnknownCheckpoint {
        /// The index of the replacement.
        index: usize,
        /// The checkpoint.
        id: CheckpointId,
    },
    /// The checkpoint is in the thread more than once.
    #[error("replacement {index} names checkpoint {id}, which is in the thread more than once")]
    AmbiguousCheckpoint {
        /// The index of the replacement.
        index: usize,
        /// The checkpoint.
        id: CheckpointId,
    },
    /// The range ends before it starts.
    #[error("replacement {index} ends before it starts{}", named(.from, .to))]
    Inverted {
        /// The index of the replacement or edit.
        index: usize,
        /// The checkpoint before the range, if the replacement names one.
        from: Option<CheckpointId>,
        /// The checkpoint at the end of the range, if the replacement names one.
        to: Option<CheckpointId>,
    },
    /// The range contains no blocks.
    #[error("replacement {index} holds nothing{}", named(.from, .to))]
    Empty {
        /// The index of the replacement.
        index: usize,
        /// The checkpoint before the range, if the replacement names one.
        from: Option<CheckpointId>,
        /// The checkpoint at the end of the range, if the replacement names one.
        to: Option<CheckpointId>,
    },
    /// An edit names a position that the thread does not have.
    #[error("replacement {index} names block {} of message {}, which is not there", .at.block, .at.message)]
    OutOfRange {
        /// The index of the edit.
        index: usize,
        /// The position.
        at: Position,
    },
    /// Two ranges share at least one block.
    #[error("replacements {first} and {second} overlap")]
    Overlap {
        /// The index of the range that starts earlier.
        first: usize,
        /// The index of the range that starts within it.
        second: usize,
    },
    /// The range contains a tool call without its result, or a result without its call; or the
    /// inserted messages would end the run of messages between the two.
    #[error("replacement {index} divides tool call {id} from its result")]
    SplitsToolPair {
        /// The index of the replacement or edit.
        index: usize,
        /// The id of the call.
        id: Text,
    },
    /// The range contains calls that have no result yet, or a message of another role would follow
    /// them.
    #[error("replacement {index} holds calls that are still open: {}", list(.ids))]
    OpenCalls {
        /// The index of the replacement or edit.
        index: usize,
        /// The ids of the calls.
        ids: Vec<Text>,
    },
}

/// Returns one form for two that are equivalent: the end of a message becomes the start of the
/// next.
pub(super) fn normalized(messages: &[Message], at: Position) -> Position {
    match messages.get(at.message) {
        Some(message) if at.block >= message.content.len() => Position::before(at.message + 1),
        Some(_) | None => at,
    }
}

fn named(from: &Option<CheckpointId>, to: &Option<CheckpointId>) -> String {
    let from = from.map(|id| format!(" from {id}")).unwrap_or_default();
    let to = to.map(|id| format!(" to {id}")).unwrap_or_default();
    let both = format!("{from}{to}");
    if both.is_empty() { both } else { format!(":{both}") }
}

fn list(ids: &[Text]) -> String {
    ids.iter().map(Text::as_str).collect::<Vec<_>>().join(", ")
}
