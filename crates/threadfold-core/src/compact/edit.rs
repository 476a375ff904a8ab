//! One edit, by positions, and why edits are refused.

use std::ops::Range;

use super::position::Position;
use crate::message::{CheckpointId, Message, Text};

/// A range of blocks and the messages to put in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The blocks that go. Empty for an edit that only inserts.
    pub range: Range<Position>,
    /// The messages that come.
    pub insert: Vec<Message>,
}

/// Why replacements cannot be planned. The thread is untouched in every case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// The thread holds no such checkpoint.
    #[error("replacement {index} names checkpoint {id}, which is not in the thread")]
    UnknownCheckpoint {
        /// Which of the replacements.
        index: usize,
        /// The checkpoint that it names.
        id: CheckpointId,
    },
    /// The thread holds the checkpoint more than once.
    #[error("replacement {index} names checkpoint {id}, which is in the thread more than once")]
    AmbiguousCheckpoint {
        /// Which of the replacements.
        index: usize,
        /// The checkpoint that it names.
        id: CheckpointId,
    },
    /// The range ends before it starts.
    #[error("replacement {index} ends before it starts{}", named(.from, .to))]
    Inverted {
        /// Which of the replacements.
        index: usize,
        /// The checkpoint that it opens after, if it named one.
        from: Option<CheckpointId>,
        /// The checkpoint that it closes with, if it named one.
        to: Option<CheckpointId>,
    },
    /// The range holds nothing.
    #[error("replacement {index} holds nothing{}", named(.from, .to))]
    Empty {
        /// Which of the replacements.
        index: usize,
        /// The checkpoint that it opens after, if it named one.
        from: Option<CheckpointId>,
        /// The checkpoint that it closes with, if it named one.
        to: Option<CheckpointId>,
    },
    /// An edit names a position that the thread does not have.
    #[error("replacement {index} names block {} of message {}, which is not there", .at.block, .at.message)]
    OutOfRange {
        /// Which of the edits.
        index: usize,
        /// The position.
        at: Position,
    },
    /// Two ranges share at least one block.
    #[error("replacements {first} and {second} overlap")]
    Overlap {
        /// The one that starts earlier.
        first: usize,
        /// The one that starts within it.
        second: usize,
    },
    /// The range holds a call without its result, or a result without its call; or what is put in
    /// its place would end the turn between the two.
    #[error("replacement {index} divides tool call {id} from its result")]
    SplitsToolPair {
        /// Which of the replacements.
        index: usize,
        /// The call.
        id: Text,
    },
    /// The range holds calls without a result yet, or a message of another role would follow them.
    #[error("replacement {index} holds calls that are still open: {}", list(.ids))]
    OpenCalls {
        /// Which of the replacements.
        index: usize,
        /// The calls.
        ids: Vec<Text>,
    },
}

/// The end of a message and the start of the next are one place: this returns the latter.
pub(super) fn normal(messages: &[Message], at: Position) -> Position {
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
