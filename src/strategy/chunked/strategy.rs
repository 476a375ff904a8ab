//! `chunked`: the run as a strategy.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{
    options::{RunError, RunOptions},
    run::CompactionRun,
    step::RunStep,
};
use crate::{
    compact::{CompactOptions, Plan, Position, legality},
    message::{
        ContentBlock, ContextWindow, Message, ModelError, ModelErrorKind, Role, Summary, Turn,
    },
    render::ChunkBudget,
    strategy::{
        attempt,
        brief::Brief,
        contract::{
            Attempt, CompactionStrategy, ModelRole, Progress, Proposal, Step, StrategyError,
        },
        rules,
        snapshot::Snapshot,
        tail, whole,
    },
    tokens,
};

/// What stands behind the summary when the agent was in the middle of its work and the user typed
/// nothing: a request that ends with a summary alone asks for nothing.
const CONTINUE: &str = "Please continue.";

/// With less room than this for a chunk and the summary, in bytes, nothing is asked.
const MIN_ROOM: usize = 3_000;

/// Folds the thread chunk by chunk into a summary by a small agent that edits it. For threads that
/// no single request of the summariser can hold.
///
/// Everything up to the last legal cut is summarised: calls that are still open stay behind it.
/// What the user typed last stays word for word, unless the next prompt follows anyway. Where the
/// window of the conversation is known, every chunk is small enough for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Chunked {
    /// The caps of the run.
    pub run: RunOptions,
}

impl CompactionStrategy for Chunked {
    fn name(&self) -> &str {
        "chunked"
    }

    fn begin(&self, thread: &Snapshot, brief: &Brief) -> Box<dyn Attempt> {
        let points = legality::cut_points(thread.without_reasoning().messages());
        let cut = points.last().copied().unwrap_or_default();
        let head = thread.messages().get(..cut).unwrap_or_default();
        let kept = kept(thread, brief, cut);
        if let Err(error) = tail::check_worth(thread, brief, cut, &kept, 0) {
            return attempt::propose(Err(error));
        }
        let mut options = self.run.clone();
        if let Some(target) = brief.target.and_then(|target| usize::try_from(target).ok()) {
            // A token has about three bytes, and the summary is not all that is left.
            options.summary_bytes = options.summary_bytes.min(target.saturating_mul(2));
        }
        let head: Vec<Message> = whole::messages(head).collect();
        let options = match within_window(thread, brief, &head, options) {
            Ok(options) => options,
            Err(error) => return attempt::propose(Err::<Plan, _>(error)),
        };
        match begun(&head, thread, brief, options) {
            Ok(run) => {
                let (thread, brief) = (thread.clone(), brief.clone());
                Box::new(Chunking { thread, brief, cut, run, outcome: None })
            }
            Err(error) => attempt::propose(Err::<Plan, _>(StrategyError::from(error))),
        }
    }
}

/// The run about these messages, with what the brief says.
fn begun(
    messages: &[Message],
    thread: &Snapshot,
    brief: &Brief,
    options: RunOptions,
) -> Result<CompactionRun, RunError> {
    let run = CompactionRun::new(messages, brief.next_prompt.clone(), options)?;
    let run = match brief.reason.focus() {
        Some(focus) => run.with_focus(focus.clone()),
        None => run,
    };
    let rules = rules::told(thread);
    Ok(if rules.is_empty() { run } else { run.with_rules(rules) })
}

/// Returns the options with chunk, summary and answers so small that a request with all of them fits
/// the window, where that is known: not every provider refuses what it cannot hold, some cut it off.
fn within_window(
    thread: &Snapshot,
    brief: &Brief,
    head: &[Message],
    options: RunOptions,
) -> Result<RunOptions, StrategyError> {
    let Some(window) = thread.window().map(ContextWindow::tokens) else { return Ok(options) };
    let counter = thread.counter();
    let answer = options.answer_tokens.min(window / 8).max(1);
    let run = begun(&[Message::user(".")], thread, brief, options.clone())?;
    let RunStep::Call { request, .. } = run.step() else { return Ok(options) };
    // An edit stays in the conversation when the model is asked again. A tenth stays free, because
    // counts are estimates.
    let fixed = counter.request(request).saturating_add(answer.saturating_mul(2));
    let room = (window - window / 10).saturating_sub(fixed);
    let bytes_per_token = (tokens::text_bytes(head) / counter.messages(head).max(1)).clamp(1, 3);
    let room = usize::try_from(room.saturating_mul(bytes_per_token)).unwrap_or(usize::MAX);
    if room < MIN_ROOM {
        return Err(StrategyError::TooLong { tokens: fixed, window });
    }
    let most = room - room / 3;
    let chunks = if options.chunks.max() > most {
        ChunkBudget { target: most - most / 6, tolerance: most / 6 }
    } else {
        options.chunks
    };
    let summary_bytes = options.summary_bytes.min(room / 3);
    Ok(RunOptions { chunks, summary_bytes, answer_tokens: answer, ..options })
}

#[derive(Debug)]
struct Chunking {
    thread: Snapshot,
    brief: Brief,
    cut: usize,
    run: CompactionRun,
    outcome: Option<Result<Proposal, StrategyError>>,
}

impl Attempt for Chunking {
    fn step(&self) -> Step<'_> {
        match (&self.outcome, self.run.step()) {
            (Some(Ok(proposal)), _) => Step::Proposed(proposal),
            (Some(Err(error)), _) => Step::Failed(error),
            (None, RunStep::Call { request, chunk, total, after, .. }) => {
                let progress = Progress { done: chunk, total };
                Step::Call { model: ModelRole::Fast, request, progress, after }
            }
            // A run that ends leaves an outcome behind, so these are never asked for.
            (None, RunStep::Done { .. } | RunStep::Failed { .. }) => {
                Step::Failed(&StrategyError::NeedsModel)
            }
        }
    }

    fn handle(&mut self, answer: Result<Turn, ModelError>) {
        if self.outcome.is_some() {
            return;
        }
        let handled = match answer {
            Ok(turn) => self.run.handle_turn(turn),
            Err(error) if error.kind == ModelErrorKind::NoModel => {
                self.outcome = Some(Err(StrategyError::NeedsModel));
                return;
            }
            Err(error) => self.run.handle_error(error),
        };
        if handled.is_err() {
            return;
        }
        let outcome = match self.run.step() {
            RunStep::Call { .. } => return,
            RunStep::Done { summary } => self.plan(summary).map(Proposal::new),
            RunStep::Failed { error } => Err(error.clone().into()),
        };
        self.outcome = Some(outcome);
    }
}

impl Chunking {
    fn plan(&self, summary: &str) -> Result<Plan, StrategyError> {
        let thread = &self.thread;
        let messages = thread.messages();
        let kept = kept(thread, &self.brief, self.cut);
        let summary = Summary { compaction: self.brief.compaction, ..Summary::new(summary.trim()) };
        let mut content = vec![ContentBlock::from(summary)];
        let at_work = legality::open_loop(messages).is_some();
        if self.brief.next_prompt.is_none() && at_work && self.cut == messages.len() {
            content.push(ContentBlock::text(CONTINUE));
        }
        let insert = vec![Message::new(Role::User, content)];
        let edits = tail::take_all_but(kept, self.cut, insert);
        Ok(Plan::from_edits(messages, edits, &CompactOptions::default())?)
    }
}

/// What stays word for word: what the user typed last, unless something else follows anyway.
fn kept(thread: &Snapshot, brief: &Brief, cut: usize) -> Vec<Range<Position>> {
    match brief.next_prompt {
        Some(_) => Vec::new(),
        None => tail::typed(thread, cut, 1, 0),
    }
}

impl From<RunError> for StrategyError {
    fn from(error: RunError) -> Self {
        if error == RunError::NothingToSummarise {
            return Self::NothingToCompact { reason: "the thread has no text".into() };
        }
        Self::Run(Box::new(error))
    }
}
