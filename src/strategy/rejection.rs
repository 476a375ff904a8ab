//! Why a proposal is rejected.

use crate::{
    compact::{CompactError, legality::Violation},
    message::{CompactionId, Text},
};

/// Why a proposal is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The plan was made for another thread.
    #[error(transparent)]
    Stale(#[from] CompactError),
    /// The plan would make the thread illegal in a way in which it was not illegal before.
    #[error("the thread would be illegal: {violation}")]
    Illegal {
        /// The first new violation.
        violation: Violation,
    },
    /// The open calls would change: results would be removed whose calls stay, or calls that still
    /// wait for their results.
    #[error("the compaction would change which tool calls are open: {}", list(.ids))]
    OpenCalls {
        /// Ids of the calls that are open either before or after, but not both.
        ids: Vec<Text>,
    },
    /// The thread would be empty.
    #[error("nothing would be left of the thread")]
    Empty,
    /// A new summary is blank.
    #[error("a summary is blank")]
    Blank,
    /// The thread would not be smaller.
    #[error("the thread would not be smaller: about {after} tokens instead of {before}")]
    NotSmaller {
        /// Tokens before.
        before: u64,
        /// Tokens after.
        after: u64,
    },
    /// The thread would be smaller, but over the target.
    #[error("about {after} tokens would remain; the target is {target}")]
    OverTarget {
        /// Tokens after.
        after: u64,
        /// The target in tokens.
        target: u64,
    },
    /// The message that the user typed last would be removed, and no next prompt follows.
    #[error("the last message that the user typed would be gone")]
    LosesLastUserMessage,
    /// A message that the model has not read would change.
    #[error("message {message} would change, and the model has not read it yet")]
    TouchesUnread {
        /// Index of the message.
        message: usize,
    },
    /// The compaction was prepared under an id that another one has used since.
    #[error("compaction id {id} is already used")]
    NumberTaken {
        /// The id.
        id: CompactionId,
    },
}

fn list(ids: &[Text]) -> String {
    ids.iter().map(Text::as_str).collect::<Vec<_>>().join(", ")
}
