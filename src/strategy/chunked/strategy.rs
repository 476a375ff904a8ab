//! `chunked`: the run as a strategy.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{condense::condense, fit, options::RunOptions, run::CompactionRun, step::RunStep};
use crate::strategy::run_error::RunError;
use crate::{
    compact::{CompactOptions, Plan, Position, legality},
    message::{ContentBlock, Message, ModelError, ModelErrorKind, Role, Summary, Turn},
    strategy::{
        attempt,
        brief::Brief,
        contract::{
            Attempt, CompactionStrategy, ModelRole, Progress, Proposal, Step, StrategyError,
        },
        digest::Digest,
        snapshot::{Rejection, Snapshot},
        tail, whole,
    },
};

/// What stands behind the summary when the agent was in the middle of its work and the user typed
/// nothing: a request that ends with a summary alone asks for nothing.
const CONTINUE: &str = "Please continue.";

/// A summary is not asked to be, and not made, shorter than this, in bytes.
const MIN_SUMMARY: usize = 200;

/// Folds the thread chunk by chunk into a summary by a small agent that edits it. For threads that
/// no single request of the summariser can hold.
///
/// Everything up to the last legal cut is summarised: calls that are still open stay behind it.
/// What the user typed last stays word for word, unless the next prompt follows anyway. Where the
/// window of the conversation is known, every request with its answer fits it, from windows of some
/// 3,500 tokens up.
///
/// Once a part is folded in, the attempt ends with a proposal. A summary that is full is condensed,
/// first by the model; a part that the model refuses, or does not fold in, and all parts after a
/// failure that stays are put in as an extract that needs no model. Where the model answers and
/// folds nothing in although the thread is over its target, the proposal is that of [`Digest`]. The notes of the proposal name what no
/// model summarised.
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
        let head: Vec<Message> = whole::messages(head).collect();
        let place = Place { thread: thread.clone(), brief: brief.clone(), cut };
        match self.begun(&place, &head) {
            Ok(run) => Box::new(Chunking { place, run, outcome: None }),
            Err(error) => attempt::propose(Err::<Plan, _>(error)),
        }
    }
}

impl Chunked {
    /// The run over what stands before the cut.
    fn begun(&self, place: &Place, head: &[Message]) -> Result<CompactionRun, StrategyError> {
        let options = fit::within_window(&place.thread, &place.brief, head, self.run.clone())?;
        let room = place.summary_tokens();
        let bytes = fit::bytes(room, head, place.thread.counter());
        let summary_bytes = options.summary_bytes.min(bytes).max(MIN_SUMMARY);
        let options = RunOptions { summary_bytes, ..options };
        Ok(fit::begun(head, &place.thread, &place.brief, options)?)
    }
}

/// A thread, and where a summary is to be put in.
#[derive(Debug)]
struct Place {
    thread: Snapshot,
    brief: Brief,
    /// What stands before this gives way to the summary.
    cut: usize,
}

impl Place {
    /// The plan of putting a summary in.
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

    /// The most tokens that a summary may have, with what is put behind it left free.
    fn summary_tokens(&self) -> u64 {
        let counter = self.thread.counter();
        let before = counter.messages(self.thread.messages());
        let most = self.brief.target.unwrap_or(u64::MAX).min(before.saturating_sub(1));
        let mut after = self.thread.messages().to_vec();
        let fixed = match self.plan(".").map(|plan| plan.apply(&mut after)) {
            Ok(Ok(_)) => counter.messages(&after),
            Ok(Err(_)) | Err(_) => 0,
        };
        let room = most.saturating_sub(fixed);
        room.saturating_sub(self.brief.reserve().min(room / 2))
    }

    /// Returns the plan of a summary, which is made shorter until the thread is as small as it has
    /// to be.
    fn fitting(&self, summary: &str) -> Result<Plan, StrategyError> {
        let mut summary = summary.trim().to_owned();
        loop {
            let plan = self.plan(&summary)?;
            match self.thread.accept(&plan, &self.brief) {
                Ok(_) => return Ok(plan),
                Err(Rejection::OverTarget { .. } | Rejection::NotSmaller { .. })
                    if summary.len() > MIN_SUMMARY =>
                {
                    summary = condense(&summary, summary.len() / 4 * 3);
                }
                Err(rejection) => return Err(rejection.into()),
            }
        }
    }

    /// Whether the thread is larger than it may be.
    fn is_over_target(&self) -> bool {
        let tokens = self.thread.counter().messages(self.thread.messages());
        self.brief.target.is_some_and(|target| tokens > target)
    }

    /// The proposal of a digest, where a model answered and wrote no summary.
    fn digest(&self, why: RunError) -> Result<Proposal, StrategyError> {
        let attempt = Digest::default().begin(&self.thread, &self.brief);
        match attempt.step() {
            Step::Proposed(proposal) => {
                let note = format!("summarised without a model: the whole thread ({why})");
                Ok(Proposal { notes: vec![note.into()], ..proposal.clone() })
            }
            Step::Call { .. } | Step::Failed(_) => Err(why.into()),
        }
    }
}

#[derive(Debug)]
struct Chunking {
    place: Place,
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
            Err(error) => self.run.handle_error(error),
        };
        if handled.is_err() {
            return;
        }
        let outcome = match self.run.step() {
            RunStep::Call { .. } => return,
            RunStep::Done { summary } => {
                let plan = self.place.fitting(summary);
                plan.map(|plan| Proposal { notes: self.run.notes(), ..Proposal::new(plan) })
            }
            RunStep::Failed { error } => self.failed(error.clone()),
        };
        self.outcome = Some(outcome);
    }
}

impl Chunking {
    /// Where the model answered, but wrote no summary, and the thread has to become smaller, a digest
    /// takes its place. Where the model did not answer, another way may do better.
    fn failed(&self, error: RunError) -> Result<Proposal, StrategyError> {
        match error {
            RunError::TooManyRounds { .. }
            | RunError::BlankSummary { .. }
            | RunError::NotFolded { .. }
                if self.place.is_over_target() =>
            {
                self.place.digest(error)
            }
            RunError::Model { kind: ModelErrorKind::NoModel, .. } => Err(StrategyError::NeedsModel),
            RunError::TooManyRounds { .. }
            | RunError::BlankSummary { .. }
            | RunError::NotFolded { .. }
            | RunError::NothingToSummarise
            | RunError::TooManyChunks { .. }
            | RunError::Stopped { .. }
            | RunError::Model { .. }
            | RunError::DoesNotFit { .. }
            | RunError::Aborted { .. }
            | RunError::Format { .. }
            | RunError::Chunks { .. }
            | RunError::Option { .. }
            | RunError::NoRoom { .. }
            | RunError::Exhausted { .. }
            | RunError::PieceTooLarge { .. }
            | RunError::NotSmaller { .. } => Err(error.into()),
        }
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
