//! What a run holds, and how it goes from chunk to chunk.
//!
//! | state | what comes | next state |
//! |---|---|---|
//! | folding a chunk | calls | folding: their results are sent |
//! | folding a chunk | the end, and the summary changed or nothing was to add | the next chunk |
//! | folding a chunk | the end, and the edits did not fit the summary | condensing, once a chunk |
//! | folding a chunk | the end without an edit that was due | folding: nudged, once a chunk |
//! | folding a chunk | the cap, a refusal, a failure, and the summary changed | the next chunk |
//! | folding a chunk | the same, and an edit did not fit | the edit counts, shortened; the next chunk |
//! | folding a chunk | the same, and there was none | the chunk is skipped; the next chunk |
//! | folding a chunk | an overflow of the window | folding its first half |
//! | folding a chunk | a failure that may pass | the same call, later |
//! | folding a chunk | a failure that all calls will have | all chunks left are skipped; done |
//! | condensing | anything | folding: by the answer, or without a model |
//! | the next chunk | the summary is nearly full | condensing |
//! | the next chunk | there is none | done; failed if none was folded in |
//!
//! As long as nothing was folded in, a call that fails fails the run, and so do [`MAX_UNFOLDED`]
//! chunks: nothing is lost yet, and the caller may know a better way.

use std::{ops::Range, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    condense::condense,
    cover,
    halve::halve,
    options::RunOptions,
    prompt::{ChunkPrompt, CondensePrompt, SUMMARY},
    step::{ChunkOutcome, ChunkStep},
    tools,
};
use crate::strategy::run_error::RunError;
use crate::{
    edl::Workspace,
    message::{Message, ModelErrorKind, Request, StopReason, Text, Usage},
};

/// The version of the stored form. Runs of version 1 are read: what they lack has a default.
pub(super) const FORMAT: u32 = 2;

/// A chunk is not halved below this, in bytes.
const MIN_CHUNK: usize = 2_000;

/// After so many chunks of which none was folded in, none of the others is tried.
const MAX_UNFOLDED: usize = 3;

/// How many bytes of an answer the summary needs for each token.
const BYTES_PER_TOKEN: u64 = 3;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Data {
    pub(super) format: u32,
    pub(super) options: RunOptions,
    pub(super) focus: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rules: Option<Text>,
    pub(super) next_prompt: Option<Message>,
    pub(super) rendered: Text,
    /// Where the chunks are in the rendering.
    pub(super) chunks: Vec<Range<usize>>,
    /// How many of them are done: the next one is at work.
    pub(super) done: usize,
    pub(super) workspace: Workspace,
    /// The workspace as it was before the chunk at work.
    pub(super) before: Workspace,
    /// The conversation about the chunk at work.
    pub(super) request: Request,
    pub(super) rounds: usize,
    pub(super) retries: usize,
    pub(super) nudged: bool,
    /// Whether an edit of the chunk at work was refused.
    pub(super) refused: bool,
    /// The summary as the last edit that did not fit would have left it, made shorter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) too_large: Option<Text>,
    /// Whether the summary was condensed for the chunk at work.
    #[serde(default)]
    pub(super) condensed: bool,
    pub(super) chunk_usage: Usage,
    pub(super) state: State,
    pub(super) steps: Vec<ChunkStep>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum State {
    Asking {
        after: Duration,
        #[serde(default)]
        task: Task,
    },
    Done,
    Failed {
        error: RunError,
    },
}

/// What the model is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Task {
    /// To fold the chunk at work into the summary.
    #[default]
    Fold,
    /// To make the summary shorter.
    Condense,
}

impl Data {
    pub(super) fn new(
        rendered: Text,
        chunks: Vec<Range<usize>>,
        next_prompt: Option<Message>,
        options: RunOptions,
    ) -> Self {
        let workspace = workspace_of("");
        let mut data = Self {
            format: FORMAT,
            options,
            focus: None,
            rules: None,
            next_prompt,
            rendered,
            chunks,
            done: 0,
            before: workspace.clone(),
            workspace,
            request: Request::default(),
            rounds: 0,
            retries: 0,
            nudged: false,
            refused: false,
            too_large: None,
            condensed: false,
            chunk_usage: Usage::default(),
            state: State::Done,
            steps: Vec::new(),
        };
        data.ask_about_chunk();
        data
    }

    /// The summary so far.
    pub(super) fn summary(&self) -> &str {
        tools::summary(&self.workspace)
    }

    /// The text of the chunk at work.
    pub(super) fn chunk(&self) -> &str {
        let bytes = self.chunks.get(self.done);
        bytes.and_then(|bytes| self.rendered.get(bytes.clone())).unwrap_or_default()
    }

    /// Whether a model wrote anything that counts.
    pub(super) fn has_summary(&self) -> bool {
        !self.summary().trim().is_empty()
    }

    /// Whether the summary is another than before the chunk at work.
    pub(super) fn has_changed(&self) -> bool {
        self.summary() != tools::summary(&self.before)
    }

    /// Opens the conversation about the next chunk, after the summary was condensed if it is nearly
    /// full, or ends the run if there is none.
    pub(super) fn open_chunk(&mut self) {
        let most = self.options.summary_bytes;
        if self.done >= self.chunks.len() {
            self.finish();
        } else if !self.condensed && self.summary().len() > most - most / 8 {
            self.ask_to_condense();
        } else {
            self.ask_about_chunk();
        }
    }

    /// Opens the conversation about the chunk at work.
    pub(super) fn ask_about_chunk(&mut self) {
        let prompt = ChunkPrompt {
            index: self.done,
            total: self.chunks.len(),
            transcript: self.chunk(),
            summary: self.summary(),
            summary_bytes: self.options.summary_bytes,
            aside_bytes: self.options.aside_bytes,
            next_prompt: self.next_prompt.as_ref(),
            focus: self.focus.as_deref(),
            rules: self.rules.as_deref(),
        };
        self.request = prompt.request(self.options.answer_tokens);
        self.rounds = 0;
        self.nudged = false;
        self.refused = false;
        self.too_large = None;
        self.ask(Task::Fold);
    }

    fn ask(&mut self, task: Task) {
        self.retries = 0;
        self.state = State::Asking { after: Duration::ZERO, task };
    }

    /// Whether the summary is condensed before the chunk at work is asked about again: its edits
    /// did not fit, and there is something to condense.
    pub(super) fn should_condense(&self) -> bool {
        let worth = self.summary().len() > self.options.summary_bytes / 4;
        self.too_large.is_some() && !self.condensed && !self.has_changed() && worth
    }

    /// Asks for the chunk at work again, with a shorter summary.
    pub(super) fn make_room(&mut self) {
        self.record(ChunkOutcome::Full, None);
        self.workspace = self.before.clone();
        self.ask_to_condense();
    }

    fn ask_to_condense(&mut self) {
        let prompt = CondensePrompt {
            summary: self.summary(),
            most: self.condensed_bytes(),
            aside_bytes: self.options.aside_bytes,
            focus: self.focus.as_deref(),
        };
        self.request = prompt.request(self.options.answer_tokens);
        self.ask(Task::Condense);
    }

    /// The most bytes that a condensed summary may have: half of the room, if one answer holds that.
    fn condensed_bytes(&self) -> usize {
        let answer = self.options.answer_tokens.saturating_mul(BYTES_PER_TOKEN);
        let answer = usize::try_from(answer).unwrap_or(usize::MAX);
        (self.options.summary_bytes / 2).min(answer)
    }

    /// Takes a shorter summary from the model, or makes one without it, and asks about the chunk.
    pub(super) fn condense(&mut self, answer: Option<&str>) {
        let asked = self.condensed_bytes();
        // An answer over what was asked is fine as long as it makes room. One that is far shorter
        // is no summary: the model said that it is done, or declined.
        let most = asked.saturating_add(asked / 2).min(self.summary().len() / 4 * 3);
        let least = self.summary().len().min(asked) / 8;
        let fits = |text: &&str| (least.max(1)..=most).contains(&text.len());
        let (text, outcome) = match answer.map(str::trim).filter(fits) {
            Some(text) => (format!("{text}\n"), ChunkOutcome::Condensed),
            None => {
                let most = self.options.summary_bytes / 2;
                (condense(self.summary(), most), ChunkOutcome::Clipped)
            }
        };
        self.workspace = workspace_of(&text);
        self.before = self.workspace.clone();
        self.record(outcome, None);
        self.condensed = true;
        self.ask_about_chunk();
    }

    /// The chunk at work will not be worked on any longer. What was folded in of it counts, else
    /// its last edit that did not fit, made shorter; if there is none, it is skipped.
    pub(super) fn give_up(&mut self, why: RunError) {
        if let Some(shorter) = self.too_large.take().filter(|_| !self.has_changed()) {
            self.workspace = workspace_of(&shorter);
        }
        if self.has_changed() && self.has_summary() {
            self.close_chunk(ChunkOutcome::Capped, Some(why));
        } else {
            self.workspace = self.before.clone();
            self.close_chunk(ChunkOutcome::Skipped, Some(why));
        }
    }

    pub(super) fn close_chunk(&mut self, outcome: ChunkOutcome, failure: Option<RunError>) {
        self.record(outcome, failure);
        // Only the summary goes on. Registers and scratch files belong to a conversation that the
        // next chunk knows nothing of, and would count against its room.
        self.workspace = workspace_of(self.summary());
        self.before = self.workspace.clone();
        self.condensed = false;
        self.done += 1;
        if !self.has_summary() && self.done >= MAX_UNFOLDED.min(self.chunks.len()) {
            let first = self.steps.iter().find_map(|step| step.failure.clone());
            let error = first.unwrap_or(RunError::BlankSummary { chunk: self.done });
            self.request = Request::default();
            self.state = State::Failed { error };
        } else {
            self.open_chunk();
        }
    }

    /// A call failed for good, or would have to be waited for too long. The run fails if nothing is
    /// lost by that, goes on where the failure may be one of this chunk alone, and else skips the
    /// chunks that are left.
    pub(super) fn call_failed(&mut self, kind: &ModelErrorKind, message: &Text) {
        let why = |chunk| RunError::Model { chunk, kind: kind.clone(), message: message.clone() };
        let by_call = |step: &ChunkStep| matches!(step.failure, Some(RunError::Model { .. }));
        let again = self.steps.last().is_some_and(by_call);
        let alone = match kind {
            ModelErrorKind::Refused => true,
            ModelErrorKind::Other => self.has_summary() && !again,
            ModelErrorKind::Overflow { .. }
            | ModelErrorKind::Retryable { .. }
            | ModelErrorKind::Authentication
            | ModelErrorKind::NoModel => false,
        };
        let chunk = self.done + 1;
        if !alone && !self.has_summary() {
            return self.fail(why(chunk));
        }
        self.give_up(why(chunk));
        while !alone && matches!(self.state, State::Asking { .. }) {
            self.chunk_skipped(why(self.done + 1));
        }
    }

    /// Skips the chunk at work without a call.
    fn chunk_skipped(&mut self, why: RunError) {
        self.request = Request::default();
        self.condensed = true;
        self.close_chunk(ChunkOutcome::Skipped, Some(why));
    }

    /// The chunk does not fit the model's window: it goes on in two halves, from where the
    /// summary was before it.
    pub(super) fn shrink(&mut self) {
        let at = self.done;
        let Some(bytes) = self.chunks.get(at).cloned() else { return };
        self.workspace = self.before.clone();
        self.too_large = None;
        let middle = halve(self.chunk()).filter(|_| bytes.len() > MIN_CHUNK);
        let Some(middle) = middle.map(|middle| bytes.start + middle) else {
            return self.give_up(RunError::DoesNotFit { chunk: at + 1, bytes: bytes.len() });
        };
        let (found, limit) = (self.chunks.len() + 1, self.options.max_chunks);
        if found > limit {
            return self.give_up(RunError::TooManyChunks { found, limit });
        }
        self.record(ChunkOutcome::Halved, None);
        self.chunks.splice(at..=at, [bytes.start..middle, middle..bytes.end]);
        self.ask_about_chunk();
    }

    /// Ends the run. What no model folded in has an extract in the summary.
    fn finish(&mut self) {
        let gaps = cover::gaps(&self.chunks, &self.steps);
        let most = self.options.summary_bytes;
        let summary = cover::covered(self.summary(), &self.rendered, &gaps, most);
        self.workspace = workspace_of(&summary);
        self.request = Request::default();
        self.state = State::Done;
    }

    /// Ends the run without a summary.
    pub(super) fn fail(&mut self, error: RunError) {
        self.record(ChunkOutcome::Failed, Some(error.clone()));
        self.state = State::Failed { error };
    }

    /// Takes a run that failed up again, from the summary before the chunk at work. Where nothing
    /// was folded in, all chunks are asked about again.
    pub(super) fn retry(&mut self) {
        self.workspace = self.before.clone();
        if !self.has_summary() {
            self.done = 0;
        }
        self.condensed = false;
        self.open_chunk();
    }

    fn record(&mut self, outcome: ChunkOutcome, failure: Option<RunError>) {
        // The prompt is left out: it is the chunk, which the rendering has.
        let messages = self.request.messages.iter().skip(1).cloned().collect();
        self.steps.push(ChunkStep {
            bytes: self.chunks.get(self.done).cloned().unwrap_or_default(),
            messages,
            usage: std::mem::take(&mut self.chunk_usage),
            summary_bytes: self.summary().len(),
            outcome,
            failure,
        });
    }

    /// A stored run may have been written by anybody.
    pub(super) fn check(&self) -> Result<(), RunError> {
        if !(1..=FORMAT).contains(&self.format) {
            return Err(RunError::Format { found: self.format, expected: FORMAT });
        }
        let mut next = 0;
        for (index, bytes) in self.chunks.iter().enumerate() {
            let fits = bytes.start == next && self.rendered.get(bytes.clone()).is_some();
            if !fits || bytes.is_empty() {
                return Err(RunError::Chunks { chunk: index + 1 });
            }
            next = bytes.end;
        }
        let working = matches!(self.state, State::Asking { .. });
        let at_work = self.done < self.chunks.len();
        let done = self.state == State::Done && self.done != self.chunks.len();
        if next != self.rendered.len() || (working && !at_work) || done {
            return Err(RunError::Chunks { chunk: self.done.saturating_add(1) });
        }
        Ok(())
    }
}

/// Whether the model gave the answer to its end.
pub(super) fn is_complete(reason: &StopReason) -> bool {
    match reason {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::Other(_) => true,
        StopReason::ToolUse
        | StopReason::MaxTokens
        | StopReason::PauseTurn
        | StopReason::Refusal
        | StopReason::ContextWindowExceeded
        | StopReason::Aborted => false,
    }
}

/// A workspace with nothing but the summary.
fn workspace_of(summary: &str) -> Workspace {
    let mut workspace = Workspace::new();
    // The path is our own, so it names a file.
    let _ = workspace.insert(SUMMARY, summary);
    workspace
}
