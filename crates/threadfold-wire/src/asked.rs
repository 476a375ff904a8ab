//! What a client asks of a server that compacts: the value that a gateway matches on.

use threadfold_core::message::Text;

/// The compaction that a request asks its server for, as
/// [`Dialect::compaction_asked`](crate::Dialect::compaction_asked) returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionAsked {
    /// When to compact.
    pub when: CompactionTime,
    /// The client's prompt for the compaction, if it sent one. It replaces the server's own.
    pub instructions: Option<Text>,
}

/// When a server is asked to compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionTime {
    /// Now: the answer is the compaction and nothing else.
    Now,
    /// Before the answer, if the prompt has at least this many tokens.
    From(u64),
    /// Before the answer, from a size on that the server chooses.
    ServerDefault,
}

impl CompactionTime {
    /// Reads the size that a parameter states.
    pub(crate) fn from_tokens(tokens: Option<u64>) -> Self {
        tokens.map_or(Self::ServerDefault, Self::From)
    }
}
