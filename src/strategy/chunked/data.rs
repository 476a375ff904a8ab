//! What a host sees of a run: its options, its next step, and the records of its finished steps.

use std::{ops::Range, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    message::{Message, Request, Text, Usage},
    render::{ChunkBudget, RenderOptions},
    strategy::run_error::RunError,
};

/// The next step of a run, or its end.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, Model, testing::ExtractiveModel};
/// use threadfold::strategy::{CompactionRun, Chunked, RunStep};
///
/// let thread = [
///     Message::user("Fix src/parse.rs. Never touch the lexer, whatever it does."),
///     Message::assistant("I read src/parse.rs and found that it parses nothing at all."),
/// ];
/// let rules = "- Never touch the lexer, whatever it does.\n";
/// let mut run = CompactionRun::new(&thread, None, Chunked::default())?.with_rules(rules);
/// while let RunStep::Call { request, .. } = run.step() {
///     run.handle(block_on(ExtractiveModel.complete(request.clone())))?;
/// }
/// let RunStep::Done { summary } = run.step() else { panic!("the model answered") };
/// assert!(summary.contains("src/parse.rs"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunStep<'a> {
    /// Call a model with this request and pass the outcome to the run.
    Call {
        /// The request to send. A durable host can store answers under its [`Request::key`].
        request: &'a Request,
        /// Index of the chunk.
        chunk: usize,
        /// Number of chunks so far. It grows if a chunk exceeds the window and is halved.
        total: usize,
        /// Time to wait before the call: zero except for a retry.
        after: Duration,
    },
    /// The run is complete: every chunk was folded in or has an extract in the summary.
    /// [`CompactionRun::notes`] lists the chunks that no model folded in.
    ///
    /// [`CompactionRun::notes`]: super::CompactionRun::notes
    Done {
        /// The summary. At its end may be the lists of the user's quoted rules, for which the
        /// request asks; [`Quotes::cut`](crate::ledger::Quotes::cut) separates them.
        summary: &'a str,
    },
    /// The run ended without a summary.
    Failed {
        /// Why.
        error: &'a RunError,
    },
}

/// The record of the work on one chunk, for inspection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChunkStep {
    /// The bytes of the rendering that the chunk covers.
    pub bytes: Range<usize>,
    /// The conversation after the prompt: answers, with long texts shortened, and the results of
    /// their calls.
    pub messages: Vec<Message>,
    /// Token usage of its calls.
    pub usage: Usage,
    /// Size of the summary afterwards, in bytes.
    pub summary_bytes: usize,
    /// How the work ended.
    pub outcome: ChunkOutcome,
    /// Why no model folded the chunk in completely; `None` if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<RunError>,
}

/// How the work on one chunk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChunkOutcome {
    /// The chunk was folded into the summary.
    Folded,
    /// The model found nothing in it to add.
    Unchanged,
    /// It was folded in, but the work ended early: at the limit on rounds or on the conversation,
    /// because a call failed, or because its edit did not fit and was shortened.
    Capped,
    /// It exceeded the model's window and was cut into two halves.
    Halved,
    /// Its edit did not fit the summary, which is condensed; the chunk is repeated.
    Full,
    /// The model condensed the summary before this chunk.
    Condensed,
    /// The summary was shortened without a model before this chunk.
    Clipped,
    /// No model folded it in; at the end of the run the summary gets an extract of it.
    Skipped,
    /// The run failed or was aborted at this chunk.
    Failed,
}

options! {
    /// Folds the thread chunk by chunk into a summary that a model edits. For threads that exceed
    /// any single request.
    ///
    /// Everything before the last legal cut is summarised; open calls stay after it. An earlier
    /// summary is edited and not rewritten, so lines that still hold stay word for word and cost no
    /// output tokens. The message that the user typed last stays word for word, unless a next
    /// prompt follows. If the context window is known, every request with its answer fits it, for
    /// windows from about 3,500 tokens.
    ///
    /// If at least one chunk is folded in, it ends with a proposal. A full summary is
    /// condensed, by the model if possible. For chunks that the model refuses or does not fold in,
    /// and for all chunks after a permanent failure, the summary gets an extract made without a
    /// model. If the model answers but folds nothing in, and the thread is over its target, the
    /// proposal is that of [`Digest`](crate::strategy::Digest). The notes of the proposal list the
    /// chunks that no model summarised.
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
        /// The sections of the summary, in order: one text each that describes its content. Empty
        /// for the built-in sections.
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
        /// and results of their calls. At this limit the work on the chunk ends, as at
        /// `max_rounds`.
        pub conversation_bytes: usize = 200_000,
        /// Upper limit for the bytes of each other text in a request: next prompt, instructions, rules.
        pub aside_bytes: usize = 8_000,
        /// Upper limit for the tokens of one answer.
        pub answer_tokens: u64 = 8_192,
        /// Upper limit for the retries of one call after retryable failures.
        pub max_retries: usize = 4,
    }
}
