//! Why a turn broke off.

use crate::{
    drive::CompactionError,
    ledger::RuleError,
    log::AppendError,
    message::{ModelError, Text},
    store::StoreError,
    turn::TurnError,
};

/// Why a turn broke off. The session can be used again: what was appended stays, what was not is
/// not there, and calls that nobody answered are answered before the next message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The model did not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The request does not fit the window, and no compaction helps.
    #[error(
        "the request has about {tokens} tokens and the window holds {limit}; system prompt, tools \
         and the newest messages alone have {floor}{}", after(.tried)
    )]
    CannotFit {
        /// What the smallest request would have.
        floor: u64,
        /// What the request has.
        tokens: u64,
        /// What fits.
        limit: u64,
        /// How the compaction went that was tried, if one was.
        tried: Option<Text>,
    },
    /// A compaction that was asked for came to nothing.
    #[error(transparent)]
    Compaction(#[from] CompactionError),
    /// The store could not be written. What happened is in the log, and is stored with the next
    /// turn.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log refused an event: thread and log do not tell of the same messages.
    #[error(transparent)]
    Log(#[from] AppendError),
    /// A text cannot be a rule. Nothing has changed.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The machine of the turn refused what it was told. This is a defect of the session.
    #[error(transparent)]
    Turn(#[from] TurnError),
}

fn after(tried: &Option<Text>) -> String {
    tried.as_ref().map(|tried| format!("; compacting came to nothing: {tried}")).unwrap_or_default()
}
