//! The error of a strategy that reads the thread in chunks.

use serde::{Deserialize, Serialize};

use crate::message::{ModelError, ModelErrorKind, StopReason, Text};

/// Why a strategy that reads the thread in chunks (`chunked`, `rolling`) gave up, or why no
/// model folded a chunk in. The thread is unchanged in every case.
///
/// A run ends without a summary only if no chunk was folded in, or if it was aborted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunError {
    /// The thread has no text.
    #[error("the thread renders to nothing")]
    NothingToSummarise,
    /// The thread needs more chunks than [`Chunked::max_chunks`](super::Chunked::max_chunks).
    #[error("{found} chunks are needed; the maximum is {limit}")]
    TooManyChunks {
        /// Number of chunks needed.
        found: usize,
        /// Upper limit.
        limit: usize,
    },
    /// The model changed nothing within the limits on rounds and on the conversation.
    #[error("chunk {chunk} was not finished after {rounds} rounds")]
    TooManyRounds {
        /// Which chunk, from 1.
        chunk: usize,
        /// Number of rounds.
        rounds: usize,
    },
    /// The model left the summary blank, even after a reminder, or answered without an account.
    #[error("the summary was still blank after chunk {chunk}")]
    BlankSummary {
        /// Which chunk, from 1.
        chunk: usize,
    },
    /// The model had something to add but did not change the summary, even after a reminder: its
    /// edits were refused, or it wrote them as chat. Or it called a tool instead of writing an account.
    #[error("chunk {chunk} was not folded into the summary")]
    NotFolded {
        /// Which chunk, from 1.
        chunk: usize,
    },
    /// The model stopped for a reason after which it cannot continue.
    #[error("the model stopped with {reason} at chunk {chunk}")]
    Stopped {
        /// Which chunk, from 1.
        chunk: usize,
        /// Why the model stopped.
        reason: StopReason,
    },
    /// The model call failed, and so did its retries.
    #[error("chunk {chunk} failed{}: {kind}{}", after_tries(*.tries), after_colon(.message))]
    Model {
        /// Which chunk, from 1.
        chunk: usize,
        /// The number of calls that failed, one after the other.
        tries: usize,
        /// Kind of the last failure.
        kind: ModelErrorKind,
        /// Message of the model or provider.
        message: Text,
    },
    /// Even the smallest piece of the thread does not fit the model's window.
    #[error("chunk {chunk} does not fit the model's window even at {bytes} bytes")]
    DoesNotFit {
        /// Which chunk, from 1.
        chunk: usize,
        /// Size of the piece in bytes.
        bytes: usize,
    },
    /// The host aborted the run.
    #[error("aborted at chunk {chunk}")]
    Aborted {
        /// Which chunk, from 1.
        chunk: usize,
    },
    /// The stored run has a format that this build does not read.
    #[error("the run has format {found}; this build reads {expected}")]
    Format {
        /// The format of the run.
        found: u32,
        /// The format that this build reads.
        expected: u32,
    },
    /// The chunks of the stored run do not fit its text.
    #[error("chunk {chunk} of the stored run does not fit its text")]
    Chunks {
        /// Which chunk, from 1.
        chunk: usize,
    },
    /// An option has an invalid value.
    #[error("{option} is {found}; {rule}")]
    Option {
        /// The option.
        option: Text,
        /// Its value.
        found: Text,
        /// What the value should be.
        rule: Text,
    },
}

impl RunError {
    /// Whether the model answered but folded nothing in.
    pub(super) fn is_unfolded(&self) -> bool {
        matches!(
            self,
            Self::TooManyRounds { .. } | Self::BlankSummary { .. } | Self::NotFolded { .. }
        )
    }

    /// The error of a call about this chunk, after this many tries.
    pub(super) fn model(chunk: usize, tries: usize, error: &ModelError) -> Self {
        let ModelError { kind, message, .. } = error.clone();
        Self::Model { chunk, tries, kind, message }
    }

    /// The error of an option with an invalid value.
    pub(super) fn option(option: &str, found: impl Into<Text>, rule: &str) -> Self {
        Self::Option { option: option.into(), found: found.into(), rule: rule.into() }
    }
}

fn after_tries(tries: usize) -> String {
    if tries > 1 { format!(", tried {tries} times") } else { String::new() }
}

fn after_colon(message: &Text) -> String {
    if message.is_blank() { String::new() } else { format!(": {message}") }
}
