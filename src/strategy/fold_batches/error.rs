//! Why a thread is not folded into batches.

use crate::message::{ModelErrorKind, Text};

/// Why a thread is not folded into batches. The thread is untouched in every case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FoldError {
    /// An option has an invalid value.
    #[error("{option} is {found}: {rule}")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        found: Text,
        /// Which values are valid.
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
    /// The model call failed, including its retries.
    #[error("chunk {chunk} failed, tried {tries} times: {kind}{}", appended(.message))]
    Exhausted {
        /// Which chunk, from 1; one more than the last if older batches were merged.
        chunk: usize,
        /// Number of calls about the chunk or a part of it.
        tries: u32,
        /// Kind of the last failure.
        kind: ModelErrorKind,
        /// Message of the model or provider.
        message: Text,
    },
    /// Even the smallest piece of a chunk does not fit the model's window.
    #[error("chunk {chunk} does not fit the model's window even at about {tokens} tokens")]
    DoesNotFit {
        /// Which chunk, from 1.
        chunk: usize,
        /// Tokens of the piece.
        tokens: u64,
    },
    /// The batches are not smaller than the messages that they replace.
    #[error("the batches have about {after} tokens, what they stand for has {before}")]
    NotSmaller {
        /// Tokens of the replaced messages.
        before: u64,
        /// Tokens of the batches' message.
        after: u64,
    },
}

fn appended(message: &Text) -> String {
    if message.is_blank() { String::new() } else { format!(": {message}") }
}
