//! What a run says: its next step, and the record of those it took.

use std::{ops::Range, time::Duration};

use serde::{Deserialize, Serialize};

use crate::message::{Message, Request, Usage};
use crate::strategy::run_error::RunError;

/// What a run needs next, or how it ended.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, Model, testing::ExtractiveModel};
/// use threadfold::strategy::{CompactionRun, RunOptions, RunStep};
///
/// let thread = [
///     Message::user("Fix src/parse.rs. Never touch the lexer, whatever it does."),
///     Message::assistant("I read src/parse.rs and found that it parses nothing at all."),
/// ];
/// let rules = "- Never touch the lexer, whatever it does.\n";
/// let mut run = CompactionRun::new(&thread, None, RunOptions::default())?.with_rules(rules);
/// while let RunStep::Call { request, .. } = run.step() {
///     match block_on(ExtractiveModel.complete(request.clone())) {
///         Ok(turn) => run.handle_turn(turn)?,
///         Err(error) => run.handle_error(error)?,
///     }
/// }
/// let RunStep::Done { summary } = run.step() else { panic!("the model answered") };
/// assert!(summary.contains("src/parse.rs"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunStep<'a> {
    /// Ask a model this, and hand what comes of it to the run.
    Call {
        /// What to ask.
        request: &'a Request,
        /// Which chunk it is about, from 0.
        chunk: usize,
        /// How many chunks there are, as far as is known: one that does not fit is halved.
        total: usize,
        /// How long to wait before the call: nothing, but for a call that is tried again.
        after: Duration,
        /// The same for the same chunk under the same prompts: by this a durable host knows a
        /// chunk that it has had answered.
        key: u64,
    },
    /// Every chunk was folded in, or has an extract in the summary. [`CompactionRun::notes`] names
    /// those that no model folded in.
    ///
    /// [`CompactionRun::notes`]: super::CompactionRun::notes
    Done {
        /// The summary.
        summary: &'a str,
    },
    /// There will be no summary.
    Failed {
        /// Why.
        error: &'a RunError,
    },
}

/// What was done about one chunk, for whoever wants to look into it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChunkStep {
    /// The bytes of the rendering that the chunk covers.
    pub bytes: Range<usize>,
    /// What was said about it after the prompt: answers, long texts in them shortened, and the
    /// results of their calls.
    pub messages: Vec<Message>,
    /// What it cost.
    pub usage: Usage,
    /// The size of the summary afterwards, in bytes.
    pub summary_bytes: usize,
    /// How it ended.
    pub outcome: ChunkOutcome,
    /// Why no model folded it in, or not to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<RunError>,
}

/// How the work on one chunk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChunkOutcome {
    /// It was folded into the summary.
    Folded,
    /// The model found nothing in it to add.
    Unchanged,
    /// It was folded in, and the work ended before the model said that it was done: at the cap on
    /// rounds or on the conversation, because a call failed, or because its edit did not fit and was
    /// shortened.
    Capped,
    /// It did not fit the model's window, and goes on in two halves.
    Halved,
    /// Its edit did not fit the summary. The summary is condensed, and the chunk is asked again.
    Full,
    /// The summary was condensed by the model, before the chunk is asked.
    Condensed,
    /// The summary was condensed without a model, before the chunk is asked.
    Clipped,
    /// No model folded it in. An extract of it, made without a model, stands in the summary at the
    /// end of the run.
    Skipped,
    /// The run failed or was aborted at it.
    Failed,
}
