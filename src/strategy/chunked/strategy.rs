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
    run::CompactionRun,
};
use crate::{
    compact::Plan,
    ledger::Quotes,
    message::{ContextWindow, Message, ModelErrorKind},
    render::ChunkBudget,
    strategy::{
        ask::Ask,
        clip::clip,
        contract::CompactionStrategy,
        digest::{self, Digest},
        error::{Result, StrategyError},
        full_summary, lists,
        proposal::Proposal,
        rejection::Rejection,
        run_error::RunError,
        tail::Candidate,
        view::View,
    },
    tokens::{self, TokenCounter},
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
        loop {
            run.skip_requests_unless(|request| view.thread.check_window(request).is_ok());
            let Some(call) = run.call() else { return job.concluded(run) };
            let answer = ask.once(&call).await;
            // The run requested this call, so it accepts the answer.
            let _ = run.handle(answer);
        }
    }
}

impl Chunked {
    /// Returns the run for the messages before the cut.
    fn run_for(&self, job: &SummaryJob, head: &[Message]) -> Result<CompactionRun> {
        let task = &job.task;
        let options = within_window(task, head, self.clone())?;
        let bytes = bytes(job.summary_tokens(), head, task.thread.counter());
        let summary_bytes = options.summary_bytes.min(bytes).max(MIN_SUMMARY);
        let options = Chunked { summary_bytes, ..options };
        // If the earlier summary leaves too little room for edits, it is read as an ordinary
        // message instead.
        let earlier = full_summary::split(head, &task.brief);
        match earlier.filter(|(text, _)| text.len() <= summary_bytes / 2) {
            Some((text, new)) => Ok(new_run(&new, task, options)?.with_summary(&text)),
            None => Ok(new_run(head, task, options)?),
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
    fn concluded(&self, run: CompactionRun) -> Result<Proposal> {
        match run.step() {
            RunStep::Done { summary } => {
                let ((summary, quotes), notes) = (Quotes::cut(summary), run.notes());
                // The fill needs the room that the rendered thread takes.
                drop(run);
                let task = self.task.quoting(&quotes);
                let summary = task.thread.own_text(&summary);
                let job = Self { task, candidate: self.candidate.clone() };
                let fitting = job.fitting(&summary);
                fitting.map(|proposal| Proposal { notes, quotes, ..proposal })
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
        if let RunError::Model { kind: ModelErrorKind::NoModel, .. } = error {
            return Err(StrategyError::NeedsModel);
        }
        Err(error.into())
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

/// A run needs at least this many bytes for a chunk and the summary.
const MIN_ROOM: usize = 1_200;

/// Tokens of the results of an edit, and of the message that asks for a correction.
const RESULTS: u64 = 120;

/// Returns the run for these messages, with the instructions and next prompt of the brief and the standing
/// rules of the thread.
fn new_run(
    messages: &[Message],
    View { thread, brief }: &View,
    options: Chunked,
) -> Result<CompactionRun, RunError> {
    let run = CompactionRun::new(messages, brief.next_prompt.clone(), options)?;
    let run = match brief.reason.instructions() {
        Some(instructions) => run.with_instructions(instructions.clone()),
        None => run,
    };
    let rules = lists::for_model(thread);
    Ok(if rules.is_empty() { run } else { run.with_rules(rules) })
}

/// Returns the options with chunk, summary, answer and aside limits lowered until a request with
/// all of them fits the window, if the window is known. Providers are not relied on for this: some
/// truncate a long request instead of refusing it.
///
/// # Errors
///
/// [`StrategyError::TooLong`] if the prompt leaves too little room.
fn within_window(task: &View, head: &[Message], options: Chunked) -> Result<Chunked> {
    let window = task.thread.window().map(ContextWindow::tokens);
    let Some(window) = window else { return Ok(options) };
    let counter = task.thread.counter();
    let answer = options.answer_tokens.min(window / 10).max(1);
    // If the model is asked again, its edit is part of the request.
    let conversation = answer.saturating_add(RESULTS);
    // A tenth stays free, because counts are estimates.
    let usable = (window - window / 10).saturating_sub(answer.saturating_add(conversation));
    // Every request repeats the asides, which must leave most of the room to chunk and summary.
    let most =
        bytes(usable.saturating_sub(fixed_tokens(task, options.clone(), 0)?), head, counter) / 8;
    let aside_bytes = options.aside_bytes.min(most);
    let fixed = fixed_tokens(task, options.clone(), aside_bytes)?;
    let room = bytes(usable.saturating_sub(fixed), head, counter);
    if room < MIN_ROOM {
        let tokens = fixed.saturating_add(answer.saturating_add(conversation));
        return Err(StrategyError::TooLong { tokens, window });
    }
    let most = room - room / 3;
    let chunks = if options.chunks.max() > most {
        ChunkBudget { target: most - most / 6, tolerance: most / 6 }
    } else {
        options.chunks
    };
    Ok(Chunked {
        chunks,
        summary_bytes: options.summary_bytes.min(room / 3),
        conversation_bytes: options.conversation_bytes.min(bytes(conversation, head, counter)),
        aside_bytes,
        answer_tokens: answer,
        ..options
    })
}

/// Returns the tokens of a request without chunk and summary, with this limit on the asides.
fn fixed_tokens(task: &View, options: Chunked, aside_bytes: usize) -> Result<u64, RunError> {
    let run = new_run(&[Message::user(".")], task, Chunked { aside_bytes, ..options })?;
    let RunStep::Call { request, .. } = run.step() else { return Ok(0) };
    Ok(task.thread.counter().request(request))
}

/// Returns the bytes of this many tokens, at the bytes per token of the thread (1 to 3).
fn bytes(room: u64, thread: &[Message], counter: &dyn TokenCounter) -> usize {
    let tokens = counter.messages(thread).max(1);
    let bytes = tokens::text_bytes(thread).clamp(tokens, tokens.saturating_mul(3));
    let room = u128::from(room) * u128::from(bytes) / u128::from(tokens);
    usize::try_from(room).unwrap_or(usize::MAX)
}
