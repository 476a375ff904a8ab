//! `chunked`: a [`CompactionRun`] as a strategy, with chunks small enough that each request fits
//! the context window.
//!
//! The file begins with the last summary of the thread, so lines that still hold cost no tokens and
//! do not change. Until a chunk has changed the file, the run counts as one in which nothing was
//! folded in, so a model that answers without an edit does not lose the new messages.

use async_trait::async_trait;

use super::{
    condense::condense,
    data::{Chunked, RunStep},
    prompt::{Prompts, Writer},
    run::CompactionRun,
    window::bytes,
};
use crate::{
    compact::Plan,
    ledger::Quotes,
    message::Message,
    strategy::{
        ask::Ask,
        clip::clip,
        contract::CompactionStrategy,
        digest::{self, Digest},
        error::Result,
        full_summary,
        proposal::Proposal,
        rejection::Rejection,
        run_error::RunError,
        tail::Candidate,
        view::View,
    },
};

/// Lower limit for the size of a summary, in bytes.
const MIN_SUMMARY: usize = 200;

#[async_trait]
impl CompactionStrategy for Chunked {
    fn name(&self) -> &str {
        "chunked"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal> {
        let messages = view.thread.messages();
        let cut = view.thread.without_reasoning().past_cuts().last().copied().unwrap_or(0);
        // Unless a next prompt follows, the last typed message stays word for word.
        let candidate = match view.brief.next_prompt {
            Some(_) => Candidate { cut, kept: Vec::new(), trim: Vec::new() },
            None => view.with_newest(cut, None),
        };
        view.check_need()?;
        view.check_worth(&candidate, 0)?;
        let head: Vec<Message> = full_summary::messages(messages.iter().take(cut)).collect();
        let job = SummaryJob { task: view.clone(), candidate };
        let mut run = self.run_for(&job, &head)?;
        // The run holds the rendered thread now.
        drop(head);
        run.drive(view, ask, (0, 0)).await;
        job.concluded(run, ask)
    }
}

impl Chunked {
    /// Returns the run for the messages before the cut.
    fn run_for(&self, job: &SummaryJob, head: &[Message]) -> Result<CompactionRun> {
        let task = &job.task;
        let prompts = Prompts::new(task, self.clone(), Writer::Edits);
        let mut prompts = prompts.within_window(task, head)?;
        let bytes = bytes(job.summary_tokens(), head, task.thread.counter());
        let summary_bytes = prompts.options.summary_bytes.min(bytes).max(MIN_SUMMARY);
        prompts.options.summary_bytes = summary_bytes;
        // If the earlier summary leaves too little room for edits, it is read as an ordinary
        // message instead.
        let earlier = full_summary::split(head, &task.brief);
        match earlier.filter(|(text, _)| text.len() <= summary_bytes / 2) {
            Some((text, new)) => {
                let run = CompactionRun::of_parts([(new, String::new())], prompts)?;
                Ok(run.with_summary(&text))
            }
            None => Ok(CompactionRun::of_parts([(head, String::new())], prompts)?),
        }
    }
}

/// A thread to summarise, and the candidate that stays beside the summary.
#[derive(Debug)]
struct SummaryJob {
    task: View,
    candidate: Candidate,
}

impl SummaryJob {
    /// Returns the plan that inserts this summary.
    fn plan(&self, summary: &str) -> Result<Plan> {
        let Self { task, candidate } = self;
        let is_last = candidate.cut == task.thread.messages().len();
        candidate.plan(task, vec![task.summary_message(task.summary(summary.trim()), is_last)])
    }

    /// Upper limit for the tokens of a summary, without those reserved for the addendum.
    fn summary_tokens(&self) -> u64 {
        let View { thread, brief } = &self.task;
        let before = thread.size();
        let most = brief.target.unwrap_or(u64::MAX).min(before.saturating_sub(1));
        // Measure the plan with a summary of one character: the rest then has its final size.
        let frame = self.plan(".");
        let fixed = frame.map_or(0, |frame| thread.tokens_after(&frame).unwrap_or(0));
        let room = most.saturating_sub(fixed);
        room.saturating_sub(brief.reserve().min(room / 2))
    }

    /// Returns the plan that fills the target beside the summary, or else inserts the summary,
    /// shortened until the thread passes the acceptance check.
    fn fitting(&self, summary: &str) -> Result<Proposal> {
        let mut summary = summary.trim().to_owned();
        let filled = self.task.missed_target().and_then(|_| {
            let room = digest::summary_room(&self.task, self.candidate.cut);
            let text = clip(&summary, room, self.task.thread.counter());
            digest::filled_beside(&self.task, &self.task.summary(text), self.candidate.cut)
        });
        if let Some(plan) = filled {
            return Ok(Proposal::filled(plan));
        }
        loop {
            let plan = self.plan(&summary)?;
            match self.task.thread.accept(&plan, &self.task.brief) {
                Ok(_) => return Ok(Proposal::new(plan)),
                Err(Rejection::OverTarget { .. } | Rejection::NotSmaller { .. })
                    if summary.len() > MIN_SUMMARY =>
                {
                    summary = condense(&summary, summary.len() / 4 * 3);
                }
                Err(rejection) => return Err(rejection.into()),
            }
        }
    }

    /// Returns what a run that has ended proposes.
    fn concluded(&self, run: CompactionRun, ask: &mut Ask<'_>) -> Result<Proposal> {
        match run.step() {
            RunStep::Done { summary } => {
                let ((summary, quotes), notes) = (Quotes::cut(summary), run.notes());
                // The fill needs the room that the rendered thread takes.
                drop(run);
                let task = self.task.quoting(&quotes);
                ask.quoted(quotes);
                let summary = task.thread.own_text(&summary);
                let job = Self { task, candidate: self.candidate.clone() };
                let fitting = job.fitting(&summary);
                fitting.map(|proposal| Proposal { notes, ..proposal })
            }
            RunStep::Failed { error } => {
                let error = error.clone();
                drop(run);
                self.failed(error)
            }
            RunStep::Call { chunk, .. } => Err(RunError::Aborted { chunk }.into()),
        }
    }

    /// Handles a run without a summary. If the model answered and the thread is over its target, a
    /// digest is proposed; if it did not answer, another strategy may do better.
    fn failed(&self, error: RunError) -> Result<Proposal> {
        if error.is_unfolded() && self.task.missed_target().is_some() {
            let Ok(proposal) = Digest::default().proposal(&self.task) else {
                return Err(error.into());
            };
            let note = format!("summarised without a model: the whole thread ({error})");
            return Ok(Proposal { notes: vec![note.into()], ..proposal });
        }
        Err(error.into())
    }
}
