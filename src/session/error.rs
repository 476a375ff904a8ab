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
    /// The request does not fit the window even if everything that can go goes. In tokens, estimated.
    #[error(
        "the request has about {tokens} tokens and {limit} fit; the system prompt has {system}, the \
         tools {tools}, and what was typed last {newest}{}{}", after(.tried),
        advice(*.system, *.tools, *.newest)
    )]
    CannotFit {
        /// The smallest request.
        floor: u64,
        /// The request as it is.
        tokens: u64,
        /// What fits: the window without the output reserve.
        limit: u64,
        /// The system prompt, standing rules in it included.
        system: u64,
        /// The tools.
        tools: u64,
        /// What was typed last, or is about to be sent.
        newest: u64,
        /// Why the compaction failed that was tried, if one was.
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
    tried.as_ref().map(|tried| format!("; compacting failed: {tried}")).unwrap_or_default()
}

/// What helps, by the largest part.
fn advice(system: u64, tools: u64, newest: u64) -> &'static str {
    match newest.max(system).max(tools) {
        0 => "",
        most if most == newest => "; send less at once, such as a file by its path",
        most if most == tools => "; offer fewer tools, or describe them in fewer words",
        _ => "; shorten the system prompt",
    }
}
