//! The caps of a run.

use serde::{Deserialize, Serialize};

use crate::render::{ChunkBudget, RenderOptions};

/// How a thread is summarised chunk by chunk, and how much of everything there may be. Whatever a
/// model does, a run ends within these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// How the thread is rendered for the summariser.
    pub render: RenderOptions,
    /// How large chunks are, in bytes.
    pub chunks: ChunkBudget,
    /// The most chunks, those that come of halving among them.
    pub max_chunks: usize,
    /// The most rounds for one chunk: answers of the model, whatever they hold.
    pub max_rounds: usize,
    /// The most bytes that the summary may have.
    pub summary_bytes: usize,
    /// The most bytes of the conversation about one chunk after its prompt: answers, and the
    /// results of their calls. At the cap the chunk ends as at the cap on rounds.
    pub conversation_bytes: usize,
    /// The most bytes of each of the texts beside the chunk: the next prompt, the focus, the rules.
    pub aside_bytes: usize,
    /// The most tokens of one answer.
    pub answer_tokens: u64,
    /// The most times that one call is tried again after a failure that may pass.
    pub max_retries: usize,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            render: RenderOptions {
                // What a tool printed at length is rarely worth its tokens twice.
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
