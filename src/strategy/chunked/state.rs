//! The data of a run, and its transitions from chunk to chunk.
//!
//! | state | input | next state |
//! |---|---|---|
//! | folding a chunk | calls | folding: their results are sent |
//! | folding a chunk | calls that changed the summary, none refused, with the word DONE | the next chunk |
//! | folding a chunk | end of the answer; the summary changed, or there was nothing to add | the next chunk |
//! | folding a chunk | end of the answer; the edits did not fit the summary | condensing, once a chunk |
//! | folding a chunk | end of the answer; an expected edit is missing | folding: a reminder is sent, once a chunk |
//! | folding a chunk | limit, refusal or failure; the summary changed | the next chunk |
//! | folding a chunk | limit, refusal or failure; an edit did not fit | the shortened edit is applied; the next chunk |
//! | folding a chunk | limit, refusal or failure; there was no edit | the chunk is skipped; the next chunk |
//! | folding a chunk | overflow of the window | folding its first half |
//! | folding a chunk | the first request does not fit the known window | folding its first half; with a shorter summary if the chunk is short |
//! | folding a chunk | a later request does not fit the known window | as at a limit |
//! | folding a chunk | retryable failure | the same call, later |
//! | folding a chunk | failure that every call will have | all remaining chunks are skipped; done |
//! | condensing | any | folding, with the summary from the answer or shortened without a model |
//! | the next chunk | the summary is nearly full | condensing |
//! | the next chunk | no chunk is left | done; failed if none was folded in |
//!
//! As long as no chunk is folded in, a failed call fails the run, and so do [`MAX_UNFOLDED`]
//! skipped chunks: no work is lost by that, and the caller may have another strategy.

use std::{ops::Range, time::Duration};

use super::{
    condense::condense,
    cover,
    data::{self, ChunkOutcome, ChunkStep, Chunked, Data, FORMAT, State, Task, workspace_of},
    prompt,
};
use crate::{
    message::{Message, ModelErrorKind, Request, Text},
    strategy::{error::Result, run_error::RunError},
};

/// Chunks of at most this many bytes are not halved.
const MIN_CHUNK: usize = 2_000;

/// A summary of at most this many bytes is not shortened to make a request fit.
const MIN_SUMMARY: usize = 200;

/// The run fails after this many chunks if none of them was folded in.
const MAX_UNFOLDED: usize = 3;

/// Assumed bytes per token of a summary.
const BYTES_PER_TOKEN: u64 = 3;

impl Data {
    pub(super) fn new(
        rendered: String,
        chunks: Vec<Range<usize>>,
        next_prompt: Option<Message>,
        options: Chunked,
    ) -> Self {
        let workspace = workspace_of("");
        let before = workspace.clone();
        let mut data = Self {
            format: FORMAT,
            options,
            next_prompt,
            rendered,
            chunks,
            before,
            workspace,
            ..Self::default()
        };
        data.ask_about_chunk();
        data
    }

    /// Starts from this earlier summary, which the run updates.
    pub(super) fn begin_with(&mut self, summary: &str) {
        self.workspace = workspace_of(&format!("{}\n", summary.trim_end()));
        self.before = self.workspace.clone();
    }

    /// Whether a chunk was folded in, the current one included.
    pub(super) fn has_folded(&self) -> bool {
        let mut outcomes = self.steps.iter().map(|step| step.outcome);
        self.has_changed()
            || outcomes.any(|it| matches!(it, ChunkOutcome::Folded | ChunkOutcome::Capped))
    }

    /// Whether the current chunk changed the summary.
    pub(super) fn has_changed(&self) -> bool {
        self.summary() != data::summary(&self.before)
    }

    /// Opens the conversation about the current chunk. If the summary is nearly full, a
    /// conversation that condenses it comes first. Ends the run if all chunks are done.
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

    /// Opens the conversation about the current chunk.
    pub(super) fn ask_about_chunk(&mut self) {
        self.request = prompt::chunk(self);
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

    /// Whether to condense the summary and repeat the current chunk: its edits did not fit, and
    /// there is something to condense.
    pub(super) fn should_condense(&self) -> bool {
        let has_detail = self.summary().len() > self.options.summary_bytes / 4;
        self.too_large.is_some() && !self.condensed && !self.has_changed() && has_detail
    }

    /// Condenses the summary; the current chunk is then repeated.
    pub(super) fn make_room(&mut self) {
        self.record(ChunkOutcome::Full, None);
        self.workspace = self.before.clone();
        self.ask_to_condense();
    }

    fn ask_to_condense(&mut self) {
        self.request = prompt::shorter(self, self.condensed_bytes());
        self.ask(Task::Condense);
    }

    /// Upper limit for the bytes of a condensed summary: half of the room, or what one answer
    /// holds.
    fn condensed_bytes(&self) -> usize {
        let answer = self.options.answer_tokens.saturating_mul(BYTES_PER_TOKEN);
        let answer = usize::try_from(answer).unwrap_or(usize::MAX);
        (self.options.summary_bytes / 2).min(answer)
    }

    /// Replaces the summary by the model's shorter one, or shortens it without a model, and opens
    /// the conversation about the chunk.
    pub(super) fn condense(&mut self, answer: Option<&str>) {
        let limit = self.condensed_bytes();
        // An answer over the limit is accepted if it still makes room. A far shorter one is
        // probably a refusal and not a summary.
        let most = limit.saturating_add(limit / 2).min(self.summary().len() / 4 * 3);
        let least = self.summary().len().min(limit) / 8;
        let answer = answer.map(str::trim);
        let (text, outcome) =
            match answer.filter(|text| (least.max(1)..=most).contains(&text.len())) {
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

    /// Ends the work on the current chunk before the model is done. Its edits are kept. If there
    /// are none, its last edit that did not fit is shortened and applied; without any edit the
    /// chunk is skipped.
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
        // Registers and scratch files belong to the conversation about this chunk, and would count
        // against the room of the next one.
        self.workspace = workspace_of(self.summary());
        self.before = self.workspace.clone();
        self.condensed = false;
        self.done += 1;
        if !self.has_folded() && self.done >= MAX_UNFOLDED.min(self.chunks.len()) {
            let first = self.steps.iter().find_map(|step| step.failure.clone());
            let error = first.unwrap_or(RunError::BlankSummary { chunk: self.done });
            self.request = Request::default();
            self.state = State::Failed { error };
        } else {
            self.open_chunk();
        }
    }

    /// Handles a call that failed and is not retried. If other chunks may still succeed, only this
    /// chunk is given up. Otherwise the run fails if no chunk is folded in yet, else it skips the
    /// remaining chunks.
    pub(super) fn call_failed(&mut self, kind: &ModelErrorKind, message: &Text) {
        let why = |chunk| RunError::Model { chunk, kind: kind.clone(), message: message.clone() };
        let last = self.steps.last().and_then(|step| step.failure.as_ref());
        let is_second = matches!(last, Some(RunError::Model { .. }));
        let chunk_only = match kind {
            ModelErrorKind::Refused => true,
            ModelErrorKind::Other => self.has_folded() && !is_second,
            ModelErrorKind::Overflow { .. }
            | ModelErrorKind::Retryable { .. }
            | ModelErrorKind::Authentication
            | ModelErrorKind::NoModel => false,
        };
        if !chunk_only && !self.has_folded() {
            return self.fail(why(self.done + 1));
        }
        self.give_up(why(self.done + 1));
        while !chunk_only && matches!(self.state, State::Asking { .. }) {
            // No model reads the remaining chunks, so do not condense the summary for them.
            (self.request, self.condensed) = (Request::default(), true);
            self.close_chunk(ChunkOutcome::Skipped, Some(why(self.done + 1)));
        }
    }

    /// Halves the current chunk, which exceeds the model's window, and opens the conversation about
    /// its first half with the summary before the chunk.
    pub(super) fn shrink(&mut self) {
        let index = self.done;
        let Some(bytes) = self.chunks.get(index).cloned() else { return };
        self.workspace = self.before.clone();
        self.too_large = None;
        let middle = halve(self.chunk()).filter(|_| bytes.len() > MIN_CHUNK);
        let Some(middle) = middle.map(|middle| bytes.start + middle) else {
            return self.give_up(RunError::DoesNotFit { chunk: index + 1, bytes: bytes.len() });
        };
        let (found, limit) = (self.chunks.len() + 1, self.options.max_chunks);
        if found > limit {
            return self.give_up(RunError::TooManyChunks { found, limit });
        }
        self.record(ChunkOutcome::Halved, None);
        self.chunks.splice(index..=index, [bytes.start..middle, middle..bytes.end]);
        self.ask_about_chunk();
    }

    /// Shortens the request about the current chunk, whose estimate exceeds the window: halves the
    /// chunk or, if that is short already, the summary.
    pub(super) fn shorten_request(&mut self) {
        let is_short =
            self.chunk().len() <= MIN_CHUNK || self.chunks.len() >= self.options.max_chunks;
        let bytes = self.summary().len();
        if is_short && bytes > MIN_SUMMARY {
            self.workspace = workspace_of(&condense(self.summary(), bytes / 2));
            self.before = self.workspace.clone();
            self.record(ChunkOutcome::Clipped, None);
            self.ask_about_chunk();
        } else {
            self.shrink();
        }
    }

    /// Ends the run. The summary gets an extract of the chunks that no model folded in.
    fn finish(&mut self) {
        let gaps = cover::gaps(&self.chunks, &self.steps);
        let most = self.options.summary_bytes;
        let summary = cover::with_extract(self.summary(), &self.rendered, &gaps, most);
        self.workspace = workspace_of(&summary);
        self.request = Request::default();
        self.state = State::Done;
    }

    /// Ends the run without a summary.
    pub(super) fn fail(&mut self, error: RunError) {
        self.record(ChunkOutcome::Failed, Some(error.clone()));
        self.state = State::Failed { error };
    }

    /// Resumes a failed run with the summary before the current chunk, or from the first chunk if
    /// none was folded in.
    pub(super) fn retry(&mut self) {
        self.workspace = self.before.clone();
        if !self.has_folded() {
            self.done = 0;
        }
        self.condensed = false;
        self.open_chunk();
    }

    fn record(&mut self, outcome: ChunkOutcome, failure: Option<RunError>) {
        // The first message is the prompt. It repeats the chunk, which is in the rendering.
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

    /// Checks a stored run, which is untrusted: its chunks must cover the rendering.
    pub(super) fn check(&self) -> Result<(), RunError> {
        if self.format != FORMAT {
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
        let done_fits = match self.state {
            State::Asking { .. } => self.done < self.chunks.len(),
            State::Done => self.done == self.chunks.len(),
            State::Failed { .. } => true,
        };
        if next != self.rendered.len() || !done_fits {
            return Err(RunError::Chunks { chunk: self.done.saturating_add(1) });
        }
        Ok(())
    }
}

/// Returns the byte at which to cut: in the middle third after the last blank line, else after the
/// last line break, else after the last space, else at the first character border from the middle
/// on. `None` for a text of fewer than two characters.
pub(super) fn halve(text: &str) -> Option<usize> {
    let (start, end) = (border_from(text, text.len() / 3)?, border_from(text, text.len() * 2 / 3)?);
    let middle = text.get(start..end)?;
    let found = ["\n\n", "\n", " "]
        .into_iter()
        .find_map(|gap| middle.rfind(gap).map(|at| start + at + gap.len()));
    let found = found.or_else(|| border_from(text, text.len() / 2));
    found.filter(|at| (1..text.len()).contains(at))
}

/// Returns the first character border at or after an offset.
fn border_from(text: &str, offset: usize) -> Option<usize> {
    (offset..=text.len()).find(|at| text.is_char_boundary(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cut_is_at_the_best_border_of_the_middle_third() {
        assert_eq!(halve("aaaa\n\nbb bb\ncccc"), Some(6));
        assert_eq!(halve("aaaaaa bbbbb"), Some(7));
        assert_eq!(halve("aaaaaa"), Some(3));
        assert_eq!(halve("漢漢漢"), Some(6));
        assert_eq!(halve("a"), None);
        assert_eq!(halve(""), None);
    }
}
