//! The limits of a run.

use serde::{Deserialize, Serialize};

use crate::{
    message::Text,
    render::{ChunkBudget, RenderOptions},
};

/// Options and limits of a run. Every run ends within these limits, whatever the model answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// How the thread is rendered for the summariser.
    pub render: RenderOptions,
    /// System prompt of the summarising model, instead of the built-in one.
    pub prompt: Option<Text>,
    /// What belongs into the summary, one text for each section and in this order, instead of the
    /// built-in sections.
    pub sections: Vec<Text>,
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
            prompt: None,
            sections: Vec::new(),
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
