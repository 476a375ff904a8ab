//! An edit by positions, and the errors of edits.

use std::ops::Range;

use super::position::Position;
use crate::message::{CheckpointId, InvalidValue, Message, Text};

/// A range of blocks and the messages to put in its place.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub(super) range: Range<Position>,
    pub(super) insert: Vec<Message>,
}

/// Why replacements cannot be read or planned, or a plan does not fit a thread. The thread is
/// unchanged in every case.
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
    #[error("replacement {index} covers an empty range{}", named(.from, .to))]
    Empty {
        /// The index of the replacement.
        index: usize,
        /// The checkpoint before the range, if the replacement names one.
        from: Option<CheckpointId>,
        /// The checkpoint at the end of the range, if the replacement names one.
        to: Option<CheckpointId>,
    },
    /// An edit names a position that the thread does not have.
    #[error(
        "replacement {index} names block {} of message {}, which is not there: the thread has \
         {messages} message{}", .at.block, .at.message, if *.messages == 1 { "" } else { "s" }
    )]
    OutOfRange {
        /// The index of the edit.
        index: usize,
        /// The position.
        at: Position,
        /// The number of messages in the thread.
        messages: usize,
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
    /// A field of the input of the `compact` tool has the wrong type.
    #[error("{field} must be {expected}, found {found}")]
    Type {
        /// The field, such as `replacements[0].to`.
        field: Text,
        /// The expected type.
        expected: &'static str,
        /// The value as JSON, cut after 40 characters.
        found: Text,
    },
    /// A required field of the input is missing.
    #[error("{field} is missing")]
    Missing {
        /// The field.
        field: Text,
    },
    /// A field of the input is not known.
    #[error("{field} is not a field of a replacement; the fields are from, to and summary")]
    UnknownField {
        /// The field.
        field: Text,
    },
    /// A text of the input is not a checkpoint id.
    #[error("{field}: {error}")]
    Checkpoint {
        /// The field.
        field: Text,
        /// Why the text is not a checkpoint id.
        error: Box<InvalidValue>,
    },
    /// The list of ranges is empty.
    #[error("replacements is empty: name at least one range")]
    NoReplacements,
    /// The thread has a different length than the plan was made for.
    #[error("the plan was made for {planned} messages; the thread has {found}")]
    Length {
        /// The number of messages that the plan was made for.
        planned: usize,
        /// The number of messages in the thread.
        found: usize,
    },
    /// Messages that the plan was made for have been replaced since.
    #[error("the thread was rewritten from message {message} on since the plan was made")]
    Rewritten {
        /// The index of the first message that differs.
        message: usize,
    },
    /// A splice is out of order or out of range. Only possible for stored plans and
    /// [`Plan::from_splices`](super::Plan::from_splices).
    #[error("splice {splice} of the plan is out of order or out of range")]
    Splice {
        /// The index of the splice.
        splice: usize,
    },
    /// A part refers to a message that its splice does not remove, or to blocks that the message
    /// does not have.
    #[error("splice {splice} of the plan keeps blocks of message {message} that are not there")]
    Part {
        /// The index of the splice.
        splice: usize,
        /// The index of the message.
        message: usize,
    },
    /// The plan has a version that this build does not read.
    #[error("the plan has version {found}; this build reads {expected}")]
    Version {
        /// The version of the plan.
        found: u32,
        /// The version that this build reads.
        expected: u32,
    },
}

/// Returns the position in its normal form: the end of a message becomes the start of the next,
/// which is the same place in the thread.
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
