//! Why folding comes to nothing.

use crate::message::{ModelErrorKind, Text};

/// Why a thread is not folded into batches. The thread is untouched in every case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FoldError {
    /// An option has a value that it cannot have.
    #[error("{option} is {found}: {rule}")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        found: Text,
        /// What it should be.
        rule: &'static str,
    },
    /// The window has no room for a request beside its fixed parts and the answer.
    #[error("a window of {window} tokens has no room for a chunk: about {fixed} are taken before")]
    NoRoom {
        /// The window in tokens.
        window: u64,
        /// Tokens of the prompts and of the answer.
        fixed: u64,
    },
    /// The model could not be reached, or failed, also when tried again.
    #[error("chunk {chunk} failed, tried {tries} times: {kind}{}", said(.message))]
    Exhausted {
        /// Which chunk, from 1; the one behind the last where batches are summed up again.
        chunk: usize,
        /// How often it was asked about, in whole or in part.
        tries: u32,
        /// What kind of failure the last one was.
        kind: ModelErrorKind,
        /// In whose words.
        message: Text,
    },
    /// Even the smallest piece of a chunk does not fit the model's window.
    #[error("chunk {chunk} does not fit the model's window even at about {tokens} tokens")]
    DoesNotFit {
        /// Which chunk, from 1.
        chunk: usize,
        /// The size of the piece.
        tokens: u64,
    },
    /// The batches are no smaller than what they stand for.
    #[error("the batches have about {after} tokens, what they stand for has {before}")]
    NotSmaller {
        /// Tokens of what would go.
        before: u64,
        /// Tokens of what would come.
        after: u64,
    },
}

fn said(message: &Text) -> String {
    if message.is_blank() { String::new() } else { format!(": {message}") }
}
