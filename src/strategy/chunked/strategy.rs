//! `chunked`: a [`CompactionRun`] as a strategy.

use std::ops::Range;

use super::{condense::condense, fit, options::Chunked, run::CompactionRun, step::RunStep};
use crate::{
    compact::{CompactOptions, Plan, Position},
    message::{Message, ModelError, ModelErrorKind, Summary, Turn},
    strategy::{
        attempt,
        brief::Brief,
        contract::{Attempt, CompactionStrategy, ModelRole, Proposal, Step, StrategyError},
        digest::Digest,
        full_summary,
        run_error::RunError,
        snapshot::{Rejection, Snapshot},
        tail,
    },
};

/// Lower limit for the size of a summary, in bytes.
const MIN_SUMMARY: usize = 200;

impl CompactionStrategy for Chunked {
    fn name(&self) -> &str {
        "chunked"
    }

    fn begin(&self, thread: &Snapshot, brief: &Brief) -> Box<dyn Attempt> {
        let cut = thread.without_reasoning().cut_at_or_before(thread.messages().len());
        let kept = kept(thread, brief, cut);
        if let Err(error) = tail::check_worth(thread, brief, cut, &kept, 0) {
            return attempt::propose(Err(error));
        }
        let head: Vec<Message> =
            full_summary::messages(thread.messages().iter().take(cut)).collect();
        let job = SummaryJob { thread: thread.clone(), brief: brief.clone(), cut };
        match self.run_for(&job, &head) {
            Ok(run) => Box::new(ChunkedAttempt { job, run, outcome: None }),
            Err(error) => attempt::propose(Err::<Plan, _>(error)),
        }
    }
}

impl Chunked {
    /// Returns the run for the messages before the cut.
    fn run_for(&self, job: &SummaryJob, head: &[Message]) -> Result<CompactionRun, StrategyError> {
        let options = fit::within_window(&job.thread, &job.brief, head, self.clone())?;
        let room = job.summary_tokens();
        let bytes = fit::bytes(room, head, job.thread.counter());
        let summary_bytes = options.summary_bytes.min(bytes).max(MIN_SUMMARY);
        let options = Chunked { summary_bytes, ..options };
        // A summary that leaves too little room for edits is read like every other message.
        let earlier = full_summary::split(head, &job.brief)
            .filter(|(text, _)| text.len() <= summary_bytes / 2);
        let Some((summary, new)) = earlier else {
            return Ok(fit::new_run(head, &job.thread, &job.brief, options)?);
        };
        Ok(fit::new_run(&new, &job.thread, &job.brief, options)?.with_summary(&summary))
    }
}

/// A thread and the cut before which a summary replaces its messages.
#[derive(Debug)]
struct SummaryJob {
    thread: Snapshot,
    brief: Brief,
    /// Index of the first message that stays.
    cut: usize,
}

impl SummaryJob {
    /// Returns the plan that inserts this summary.
    fn plan(&self, summary: &str) -> Result<Plan, StrategyError> {
        let thread = &self.thread;
        let messages = thread.messages();
        let kept = kept(thread, &self.brief, self.cut);
        let summary = Summary { compaction: self.brief.compaction, ..Summary::new(summary.trim()) };
        let is_last = self.cut == messages.len();
        let message = tail::summary_message(thread, &self.brief, summary, is_last);
        let edits = tail::remove_except(kept, self.cut, vec![message]);
        Ok(Plan::from_edits(messages, edits, &CompactOptions::default())?)
    }

    /// Upper limit for the tokens of a summary, without those reserved for the addendum.
    fn summary_tokens(&self) -> u64 {
        let before = self.thread.size();
        let most = self.brief.target.unwrap_or(u64::MAX).min(before.saturating_sub(1));
        // With a summary of one character, everything else has its final size.
        let frame = self.plan(".");
        let fixed = frame.map_or(0, |frame| self.thread.tokens_after(&frame).unwrap_or(0));
        let room = most.saturating_sub(fixed);
        room.saturating_sub(self.brief.reserve().min(room / 2))
    }

    /// Returns the plan that inserts the summary, shortened until the acceptance check finds the
    /// thread small enough.
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

    /// Returns the proposal of [`Digest`], for a model that answered but wrote no summary.
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
struct ChunkedAttempt {
    job: SummaryJob,
    run: CompactionRun,
    /// Set when the run ends.
    outcome: Option<Result<Proposal, StrategyError>>,
}

impl Attempt for ChunkedAttempt {
    fn step(&self) -> Step<'_> {
        match (&self.outcome, self.run.step()) {
            (Some(Ok(proposal)), _) => Step::Proposed(proposal),
            (Some(Err(error)), _) => Step::Failed(error),
            (None, RunStep::Call { request, chunk, total, after, .. }) => {
                Step::Call { model: ModelRole::Fast, request, done: chunk, total, after }
            }
            (None, RunStep::Done { .. } | RunStep::Failed { .. }) => {
                debug_assert!(false, "a run that ended has an outcome");
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
                let plan = self.job.fitting(summary);
                plan.map(|plan| Proposal { notes: self.run.notes(), ..Proposal::new(plan) })
            }
            RunStep::Failed { error } => self.failed(error.clone()),
        };
        self.outcome = Some(outcome);
    }
}

impl ChunkedAttempt {
    /// Handles a run without a summary. If the model answered and the thread is over its target, a
    /// digest is proposed; if it did not answer, another strategy may do better.
    fn failed(&self, error: RunError) -> Result<Proposal, StrategyError> {
        let is_idle = matches!(
            error,
            RunError::TooManyRounds { .. }
                | RunError::BlankSummary { .. }
                | RunError::NotFolded { .. }
        );
        if is_idle && tail::missed_target(&self.job.thread, &self.job.brief).is_some() {
            return self.job.digest(error);
        }
        if let RunError::Model { kind: ModelErrorKind::NoModel, .. } = error {
            return Err(StrategyError::NeedsModel);
        }
        Err(error.into())
    }
}

/// The blocks that stay word for word: those of the last typed message, unless a next prompt
/// follows.
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
