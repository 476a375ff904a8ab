//! One edit, by positions, and why edits are refused.

use std::ops::Range;

use super::position::Position;
use crate::message::{CheckpointId, InvalidValue, Message, Text};

/// A range of blocks and the messages to put in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The blocks that go. Empty for an edit that only inserts.
    pub range: Range<Position>,
    /// The messages that come.
    pub insert: Vec<Message>,
}

/// Why replacements cannot be read or planned, or a plan does not fit a thread. The thread is
/// unchanged in every case.
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
    /// A field of the input of the `compact` tool has another type.
    #[error("{field} must be {expected}, found {found}")]
    Type {
        /// The field, such as `replacements[0].to`.
        field: Text,
        /// What belongs there.
        expected: &'static str,
        /// What is there, abridged.
        found: Text,
    },
    /// A field of the input that is needed and not there.
    #[error("{field} is missing")]
    Missing {
        /// The field.
        field: Text,
    },
    /// A field of the input that does not exist.
    #[error("{field} is not a field of a replacement; from, to and summary are")]
    UnknownField {
        /// The field.
        field: Text,
    },
    /// A text of the input that is not a checkpoint id.
    #[error("{field}: {error}")]
    Checkpoint {
        /// The field.
        field: Text,
        /// What is wrong with the id.
        error: Box<InvalidValue>,
    },
    /// The input names no range at all.
    #[error("replacements is empty: name at least one range")]
    NoReplacements,
    /// The thread has another length than the plan was made for.
    #[error("the plan was made for {planned} messages, the thread has {found}")]
    Length {
        /// How many messages the thread had.
        planned: usize,
        /// How many it has.
        found: usize,
    },
    /// The messages that the plan was made for are not all there any more.
    #[error("the thread was rewritten from message {message} on since the plan was made")]
    Rewritten {
        /// The first message that is another one.
        message: usize,
    },
    /// A splice is out of order or out of range. Only stored plans can be so.
    #[error("splice {splice} of the plan is out of order or out of range")]
    Splice {
        /// Which of the splices.
        splice: usize,
    },
    /// A part names a message that is not replaced, or blocks that it does not have.
    #[error("splice {splice} of the plan keeps blocks of message {message} that are not there")]
    Part {
        /// Which of the splices.
        splice: usize,
        /// The message that the part names.
        message: usize,
    },
    /// The plan was stored by a newer build.
    #[error("the plan has version {found}, this build reads up to {newest}")]
    Version {
        /// The version of the plan.
        found: u32,
        /// The newest version that this build reads.
        newest: u32,
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
