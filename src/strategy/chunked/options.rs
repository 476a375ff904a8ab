//! The strategy `chunked`: its options, which are the limits of a run.

use serde::{Deserialize, Serialize};

use crate::{
    message::Text,
    render::{ChunkBudget, RenderOptions},
};

options! {
    /// Folds the thread chunk by chunk into a summary that a model edits. For threads that exceed
    /// any single request.
    ///
    /// Everything before the last legal cut is summarised; open calls stay after it. An earlier
    /// summary is edited, so that its lines which still hold stay word for word and cost no tokens.
    /// The message that the user typed last stays word for word, unless a next prompt follows. If
    /// the context window is known, every request with its answer fits it, for windows from about
    /// 3,500 tokens.
    ///
    /// Once a chunk is folded in, the attempt ends with a proposal. A full summary is condensed, by
    /// the model if possible. Chunks that the model refuses or does not fold in, and all chunks
    /// after a permanent failure, are added as an extract made without a model. If the model
    /// answers but folds nothing in, and the thread is over its target, the proposal is that of
    /// [`Digest`](crate::strategy::Digest). The notes of the proposal name what no model
    /// summarised.
    ///
    /// The fields are also the options and limits of a [`CompactionRun`](super::CompactionRun).
    /// Every run ends within these limits, whatever the model answers.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Chunked {
        /// How the thread is rendered for the summariser.
        pub render: RenderOptions = RenderOptions {
            // Long tool output is rarely worth sending a second time.
            tool_result_cap: Some(12_000),
            tool_input_cap: Some(6_000),
            ..RenderOptions::default()
        },
        /// System prompt of the summarising model, instead of the built-in one.
        pub prompt: Option<Text> = None,
        /// What belongs into the summary, one text for each section and in this order, instead of
        /// the built-in sections.
        pub sections: Vec<Text> = Vec::new(),
        /// Size of a chunk in bytes.
        pub chunks: ChunkBudget = ChunkBudget::default(),
        /// Upper limit for the number of chunks, including those from halving.
        pub max_chunks: usize = 500,
        /// Upper limit for the model's answers about one chunk.
        pub max_rounds: usize = 8,
        /// Upper limit for the bytes of the summary.
        pub summary_bytes: usize = 60_000,
        /// Upper limit for the bytes of the conversation about one chunk after its prompt: answers
        /// and results of their calls. Reaching it ends the chunk, as reaching `max_rounds` does.
        pub conversation_bytes: usize = 200_000,
        /// Upper limit for the bytes of each text beside the chunk: next prompt, focus, rules.
        pub aside_bytes: usize = 8_000,
        /// Upper limit for the tokens of one answer.
        pub answer_tokens: u64 = 8_192,
        /// Upper limit for the retries of one call after retryable failures.
        pub max_retries: usize = 4,
    }
}
