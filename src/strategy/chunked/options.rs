//! The limits of a run, and why it ends without a summary.

use serde::{Deserialize, Serialize};

use crate::{
    message::{ModelErrorKind, StopReason, Text},
    render::{ChunkBudget, RenderOptions},
};

/// Options and limits of a run. Every run ends within these limits, whatever the model answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// How the thread is rendered for the summariser.
    pub render: RenderOptions,
    /// Size of a chunk in bytes.
    pub chunks: ChunkBudget,
    /// Upper limit for the number of chunks, including those from halving.
    pub max_chunks: usize,
    /// Upper limit for the model's answers about one chunk.
    pub max_rounds: usize,
    /// Upper limit for the bytes of the summary.
    pub summary_bytes: usize,
    /// Upper limit for the bytes of the conversation about one chunk after its prompt: answers and
    /// results of their calls. Reaching it ends the chunk, as reaching `max_rounds` does.
    pub conversation_bytes: usize,
    /// Upper limit for the bytes of each text beside the chunk: next prompt, focus, rules.
    pub aside_bytes: usize,
    /// Upper limit for the tokens of one answer.
    pub answer_tokens: u64,
    /// Upper limit for the retries of one call after retryable failures.
    pub max_retries: usize,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            render: RenderOptions {
                // Long tool output is rarely worth sending a second time.
                tool_result_cap: Some(12_000),
                tool_input_cap: Some(6_000),
                ..RenderOptions::default()
            },
            chunks: ChunkBudget::default(),
            max_chunks: 500,
            max_rounds: 8,
            summary_bytes: 60_000,
            conversation_bytes: 200_000,
            aside_bytes: 8_000,
            answer_tokens: 8_192,
            max_retries: 4,
        }
    }
}

/// Why a run ended without a summary, or why no model folded a chunk in.
///
/// A run ends without a summary only if no chunk was folded in at all, or if it was aborted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunError {
    /// The thread has no text.
    #[error("the thread renders to nothing")]
    NothingToSummarise,
    /// The thread needs more chunks than [`RunOptions::max_chunks`].
    #[error("{found} chunks are needed, {limit} are the most")]
    TooManyChunks {
        /// Number of chunks needed.
        found: usize,
        /// Upper limit.
        limit: usize,
    },
    /// The model changed nothing within the limits on rounds and on the conversation.
    #[error("chunk {chunk} was not done after {rounds} rounds")]
    TooManyRounds {
        /// Which chunk, from 1.
        chunk: usize,
        /// Number of rounds.
        rounds: usize,
    },
    /// The model left the summary blank, even after a reminder.
    #[error("the summary was still blank after chunk {chunk}")]
    BlankSummary {
        /// Which chunk, from 1.
        chunk: usize,
    },
    /// The model had something to add but did not change the summary, even after a reminder: its
    /// edits were refused, or it wrote them as chat.
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
    /// The model call failed, including its retries.
    #[error("chunk {chunk}: {message}")]
    Model {
        /// Which chunk, from 1.
        chunk: usize,
        /// Kind of the failure.
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
}

/// Why a stored run cannot be resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoredRunError {
    /// A newer version of the crate stored it.
    #[error("the run has format {found}, this build reads {expected}")]
    Format {
        /// Format of the stored run.
        found: u32,
        /// Newest format that this build reads.
        expected: u32,
    },
    /// Its chunks do not fit its text.
    #[error("chunk {chunk} of the stored run does not fit its text")]
    Chunks {
        /// Which chunk, from 1.
        chunk: usize,
    },
}

/// The run has ended and takes no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run asked for nothing")]
pub struct NotAsked;
