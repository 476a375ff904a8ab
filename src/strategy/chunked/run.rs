//! The run: folds a thread, chunk by chunk, into one summary.
//!
//! Each chunk has its own conversation with a model that edits `/summary.md`; only the file is
//! carried on to the next chunk. The run is a value: it can be stored after any step and resumed in
//! another process, and does not repeat finished chunks.
//!
//! [`state`](super::state) documents the states.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, de};

use super::{
    condense::clipped,
    cover,
    data::{ChunkOutcome, ChunkStep, Chunked, Data, RunStep, State, Task},
    prompt, tools,
};
use crate::{
    compact::legality,
    message::{
        Answer, ContentBlock, InvalidValue, Message, ModelError, ModelErrorKind, Request, Role,
        StopReason, Text, ToolUse, Usage,
    },
    render::{chunk_ranges, render},
    strategy::{
        ask::{ModelCall, backoff, is_complete},
        error::Result,
        instructions,
        proposal::ModelRole,
        run_error::RunError,
    },
};

/// An answer without calls whose text has more bytes than this was probably meant as an edit.
const CHAT: usize = 80;

/// Upper limit for the bytes of a text block in the conversation about a chunk.
const MAX_TEXT: usize = 1_000;

/// If the provider asks for a longer wait, the call is not retried.
const MAX_WAIT: Duration = Duration::from_secs(600);

const NUDGE: &str = include_str!("../prompts/chunk_nudge.md");
const GO_ON: &str = include_str!("../prompts/chunk_go_on.md");

/// Folds a thread, chunk by chunk, into one summary. A state machine: call [`step`](Self::step),
/// make the model call that it returns, and pass the outcome to [`handle_answer`](Self::handle_answer)
/// or [`handle_error`](Self::handle_error).
///
/// ```
/// use threadfold::{Message, strategy::{CompactionRun, RunError, Chunked, RunStep}};
///
/// let thread = [Message::user("Fix the parser."), Message::assistant("It is fixed.")];
/// let run = CompactionRun::new(&thread, None, Chunked::default())?.with_instructions("the parser");
/// let RunStep::Call { chunk, total, .. } = run.step() else { panic!("it has not been asked") };
/// assert_eq!((chunk, total), (0, 1));
///
/// let stored = serde_json::to_string(&run).unwrap();
/// let mut again: CompactionRun = serde_json::from_str(&stored).unwrap();
/// assert_eq!(again, run);
/// again.abort();
/// assert!(matches!(again.step(), RunStep::Failed { error: RunError::Aborted { chunk: 1 } }));
/// again.retry();
/// assert!(matches!(again.step(), RunStep::Call { chunk: 0, .. }));
/// # Ok::<(), RunError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
#[must_use]
pub struct CompactionRun {
    data: Data,
}

impl CompactionRun {
    /// Returns the run for a thread. The prompts mention the next prompt, and
    /// [`next_prompt`](Self::next_prompt) returns it.
    ///
    /// # Errors
    ///
    /// - [`RunError::NothingToSummarise`] if the thread has no text.
    /// - [`RunError::TooManyChunks`] if it needs more than [`Chunked::max_chunks`].
    /// - [`RunError::Option`] if the prompt or a section of the options is blank.
    pub fn new(
        messages: &[Message],
        next_prompt: Option<Message>,
        options: Chunked,
    ) -> Result<Self, RunError> {
        instructions::check(options.prompt.as_ref(), &options.sections)?;
        let rendered = render(messages, &options.render);
        let chunks = chunk_ranges(&rendered, options.chunks);
        let (found, limit) = (chunks.len(), options.max_chunks);
        if found == 0 {
            return Err(RunError::NothingToSummarise);
        }
        if found > limit {
            return Err(RunError::TooManyChunks { found, limit });
        }
        Ok(Self { data: Data::new(rendered.into_text(), chunks, next_prompt, options) })
    }

    /// Returns the run with the user's instructions: what the summary should concentrate on.
    ///
    /// ```
    /// use threadfold::{Message, strategy::{Chunked, CompactionRun, RunError, RunStep}};
    ///
    /// let thread = [Message::user("Fix the parser."), Message::assistant("It is fixed.")];
    /// let run = CompactionRun::new(&thread, None, Chunked::default())?;
    /// let run = run.with_instructions("the names of the tests").with_rules("- Never touch the lexer.\n");
    /// let RunStep::Call { request, .. } = run.step() else { panic!("no model was asked yet") };
    /// let prompt = request.messages[0].content[0].as_text().unwrap();
    /// assert!(prompt.contains("the names of the tests") && prompt.contains("Never touch the lexer."));
    /// # Ok::<(), RunError>(())
    /// ```
    pub fn with_instructions(mut self, instructions: impl Into<Text>) -> Self {
        self.data.instructions = Some(instructions.into());
        self.with_new_prompt()
    }

    /// Returns the run with a list of rules that are kept beside the summary, so that it need not
    /// repeat them.
    pub fn with_rules(mut self, rules: impl Into<Text>) -> Self {
        self.data.rules = Some(rules.into());
        self.with_new_prompt()
    }

    /// Returns the run with an earlier summary, which it updates. The run's messages must be those
    /// that followed this summary.
    ///
    /// ```
    /// use threadfold::{Message, strategy::{CompactionRun, RunError, Chunked, RunStep}};
    ///
    /// let new = [Message::user("Now fix the lexer.")];
    /// let run = CompactionRun::new(&new, None, Chunked::default())?;
    /// let run = run.with_summary("The parser is fixed.");
    /// let RunStep::Call { request, .. } = run.step() else { panic!("it has not been asked") };
    /// let prompt = request.messages[0].content[0].as_text().unwrap();
    /// assert!(prompt.contains("<summary>\nThe parser is fixed.\n</summary>"), "{prompt}");
    /// # Ok::<(), RunError>(())
    /// ```
    pub fn with_summary(mut self, summary: &str) -> Self {
        self.data.begin_with(summary);
        self.with_new_prompt()
    }

    /// Rewrites the first prompt, unless it has been answered.
    fn with_new_prompt(mut self) -> Self {
        if self.data.rounds == 0 && self.data.steps.is_empty() {
            self.data.request = prompt::chunk(&self.data);
        }
        self
    }

    /// Returns the next step. Calling it again returns the same step.
    #[must_use]
    pub fn step(&self) -> RunStep<'_> {
        let data = &self.data;
        match &data.state {
            State::Asking { after, .. } => RunStep::Call {
                request: &data.request,
                chunk: data.done,
                total: data.chunks.len(),
                after: *after,
            },
            State::Done => RunStep::Done { summary: self.summary() },
            State::Failed { error } => RunStep::Failed { error },
        }
    }

    /// The call of the fast model that the run needs next; `None` if it has ended.
    ///
    /// ```
    /// use threadfold::{Message, strategy::{Chunked, CompactionRun, ModelRole, RunError}};
    ///
    /// let thread = [Message::user("Fix the parser."), Message::assistant("It is fixed.")];
    /// let mut run = CompactionRun::new(&thread, None, Chunked::default())?;
    /// assert!(run.call().is_some_and(|call| call.model == ModelRole::Fast && call.total == 1));
    /// run.abort();
    /// assert_eq!(run.call(), None);
    /// # Ok::<(), RunError>(())
    /// ```
    #[must_use]
    pub fn call(&self) -> Option<ModelCall> {
        let RunStep::Call { request, chunk, total, after } = self.step() else { return None };
        let call = ModelCall::new(ModelRole::Fast, request.clone());
        Some(ModelCall { done: chunk, total, after, ..call })
    }

    /// Takes the outcome of the [call](Self::call): [`handle_answer`](Self::handle_answer) or
    /// [`handle_error`](Self::handle_error).
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if the run has ended.
    pub fn handle(&mut self, answer: Result<Answer, ModelError>) -> Result<(), InvalidValue> {
        match answer {
            Ok(turn) => self.handle_answer(turn),
            Err(error) => self.handle_error(error),
        }
    }

    /// Takes the model's answer: runs its calls and continues with the next round or chunk, or
    /// ends.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if the run has ended.
    pub fn handle_answer(&mut self, turn: Answer) -> Result<(), InvalidValue> {
        let State::Asking { after, task } = &mut self.data.state else { return Err(not_asked()) };
        let task = *task;
        *after = Duration::ZERO;
        self.data.retries = 0;
        self.data.chunk_usage += turn.usage.unwrap_or_default();
        match task {
            Task::Fold => self.fold(turn),
            Task::Condense => self.condense(turn),
        }
        Ok(())
    }

    fn condense(&mut self, turn: Answer) {
        let Answer { message, stop_reason, .. } = turn;
        if stop_reason == StopReason::Aborted {
            return self.data.fail(self.stopped(stop_reason));
        }
        let calls = message.tool_uses().next().is_some();
        let complete = is_complete(&stop_reason) && !calls;
        let text = prompt::text_of(&message);
        self.push(shortened(message));
        self.data.condense(complete.then_some(text.as_str()));
    }

    fn fold(&mut self, turn: Answer) {
        self.data.rounds = self.data.rounds.saturating_add(1);
        let Answer { message, stop_reason, .. } = turn;
        let text = prompt::text_of(&message);
        self.push(shortened(message));
        self.repair();
        let calls = self.open_calls();
        match stop_reason {
            StopReason::Aborted => self.data.fail(self.stopped(stop_reason)),
            StopReason::Refusal => self.data.give_up(self.stopped(stop_reason)),
            StopReason::ContextWindowExceeded => self.data.shrink(),
            _ if !calls.is_empty() => self.run_calls(&calls, says_done(&text)),
            StopReason::MaxTokens => self.ask_again(GO_ON),
            StopReason::PauseTurn => self.check_caps(),
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::Other(_) => self.end_chunk(text.len()),
        }
    }

    fn stopped(&self, reason: StopReason) -> RunError {
        RunError::Stopped { chunk: self.data.done + 1, reason }
    }

    /// Runs the calls. If the model said that they complete its work and they did, it is not asked
    /// again, which saves sending the chunk a second time.
    fn run_calls(&mut self, calls: &[ToolUse], completes: bool) {
        let most = self.data.options.summary_bytes;
        let results = tools::run_calls(&mut self.data.workspace, calls, most);
        let refused = results.message.tool_results().any(|result| result.is_error);
        self.data.refused |= refused;
        if let Some(shorter) = results.too_large {
            self.data.too_large = Some(shorter.into());
        }
        self.push(results.message);
        if completes && !refused && self.data.has_changed() && self.data.has_summary() {
            self.data.close_chunk(ChunkOutcome::Folded, None);
        } else {
            self.check_caps();
        }
    }

    /// Takes the failure of a call: the run retries it after a wait, halves the chunk, continues
    /// without a model, or fails if nothing was folded in yet.
    ///
    /// If a chunk was folded in before, no failure loses the summary: the run ends with it, and
    /// with extracts of the remaining chunks. A host that prefers to wait for its model does not
    /// call this, but stores the run and makes the same call later.
    ///
    /// ```
    /// use threadfold::message::{Message, ModelError, ModelErrorKind};
    /// use threadfold::strategy::{CompactionRun, Chunked, RunStep};
    ///
    /// let thread = [Message::user("Fix the parser."), Message::assistant("It is fixed.")];
    /// let mut run = CompactionRun::new(&thread, None, Chunked::default()).unwrap();
    /// let busy = ModelError::new(ModelErrorKind::Retryable { after: None }, "overloaded");
    /// run.handle_error(busy)?;
    /// assert!(matches!(run.step(), RunStep::Call { after, .. } if !after.is_zero()));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if the run has ended.
    pub fn handle_error(&mut self, error: ModelError) -> Result<(), InvalidValue> {
        let State::Asking { task, .. } = self.data.state else { return Err(not_asked()) };
        self.data.chunk_usage += error.usage;
        if let ModelErrorKind::Retryable { after } = error.kind {
            let after = after.unwrap_or_else(|| backoff(self.data.retries));
            if self.data.retries < self.data.options.max_retries && after <= MAX_WAIT {
                self.data.retries = self.data.retries.saturating_add(1);
                self.data.state = State::Asking { after, task };
                return Ok(());
            }
        }
        match task {
            Task::Condense => self.data.condense(None),
            Task::Fold if error.is_overflow() => self.data.shrink(),
            Task::Fold => self.data.call_failed(&error.kind, &error.message),
        }
        Ok(())
    }

    /// Ends the run without a summary. Has no effect on a run that has ended.
    pub fn abort(&mut self) {
        if let State::Asking { .. } = self.data.state {
            self.data.fail(RunError::Aborted { chunk: self.data.done + 1 });
        }
    }

    /// Resumes a run that failed or was aborted, at the chunk where it stopped and with the summary
    /// before that chunk; if no chunk was folded in, at the first one. Finished chunks and recorded
    /// steps stay. Has no effect on a run that has not failed.
    ///
    /// ```
    /// use threadfold::{Message, strategy::{Chunked, CompactionRun, RunError, RunStep}};
    ///
    /// let thread = [Message::user("Fix the parser."), Message::assistant("It is fixed.")];
    /// let mut run = CompactionRun::new(&thread, None, Chunked::default())?;
    /// run.abort();
    /// assert!(matches!(run.step(), RunStep::Failed { error: RunError::Aborted { chunk: 1 } }));
    /// run.retry();
    /// assert!(matches!(run.step(), RunStep::Call { .. }));
    /// # Ok::<(), RunError>(())
    /// ```
    pub fn retry(&mut self) {
        if let State::Failed { .. } = self.data.state {
            self.data.retry();
        }
    }

    /// The summary so far; complete once the run is done. A host can show it while the run goes on.
    /// At its end may be lists of quotes, see [`RunStep::Done`].
    ///
    /// ```
    /// use threadfold::{Message, strategy::{Chunked, CompactionRun, RunError, RunStep}};
    ///
    /// let new = [Message::user("Now fix the lexer.")];
    /// let run = CompactionRun::new(&new, None, Chunked::default())?.with_summary("The parser works.");
    /// assert!(matches!(run.step(), RunStep::Call { .. }));
    /// assert_eq!(run.summary(), "The parser works.\n");
    /// # Ok::<(), RunError>(())
    /// ```
    #[must_use]
    pub fn summary(&self) -> &str {
        self.data.summary()
    }

    /// The recorded steps so far, including a failing chunk.
    #[must_use]
    pub fn steps(&self) -> &[ChunkStep] {
        &self.data.steps
    }

    /// Notes for the user on what was summarised without a model so far, and why: one sentence for
    /// each run of neighbouring chunks. Empty if a model folded everything in.
    ///
    /// ```
    /// use threadfold::{Answer, Message, message::StopReason};
    /// use threadfold::strategy::{CompactionRun, Chunked, RunStep};
    ///
    /// let thread = [Message::user("Fix the parser."), Message::assistant("It is fixed.")];
    /// let mut run = CompactionRun::new(&thread, None, Chunked::default()).unwrap();
    /// assert!(run.notes().is_empty());
    /// let no = Answer::new(Message::assistant("No."), StopReason::Refusal, None);
    /// run.handle_answer(no).unwrap();
    /// let note = "summarised without a model: chunk 1 of 1 \
    ///             (the model stopped with refusal at chunk 1)";
    /// assert_eq!(run.notes(), [note]);
    /// ```
    #[must_use]
    pub fn notes(&self) -> Vec<Text> {
        cover::notes(&self.data.chunks, &self.data.steps)
    }

    /// The user message that is sent right after the compaction.
    #[must_use]
    pub fn next_prompt(&self) -> Option<&Message> {
        self.data.next_prompt.as_ref()
    }

    /// Token usage of all calls so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.data.steps.iter().map(|step| step.usage).sum::<Usage>() + self.data.chunk_usage
    }

    fn push(&mut self, message: Message) {
        Arc::make_mut(&mut self.data.request.messages).push(message);
    }

    /// Repairs the conversation: models write blank text and duplicate ids, which providers refuse.
    fn repair(&mut self) {
        let messages = self.data.request.messages.to_vec();
        self.data.request.messages = legality::repair(messages).0.into();
    }

    /// The calls of the last message, with their ids after the repair.
    fn open_calls(&self) -> Vec<ToolUse> {
        let last = self.data.request.messages.last();
        let last = last.filter(|message| message.role == Role::Assistant);
        last.into_iter().flat_map(|message| message.tool_uses()).cloned().collect()
    }

    fn ask_again(&mut self, text: &'static str) {
        self.push(Message::user(text.trim_end()));
        self.check_caps();
    }

    /// Handles an answer without calls: the model regards the chunk as done. `chat` is the size of
    /// its text in bytes.
    fn end_chunk(&mut self, chat: usize) {
        let chunk = self.data.done + 1;
        let (folded, changed) = (self.data.has_folded(), self.data.has_changed());
        // The model had something to add, but its edit was refused or written as plain text.
        let idle = !changed && (self.data.refused || chat > CHAT);
        if self.data.should_condense() {
            self.data.make_room();
        } else if (idle || !folded || !self.data.has_summary()) && !self.data.nudged {
            self.data.nudged = true;
            self.ask_again(NUDGE);
        } else if !self.data.has_summary() {
            self.data.give_up(RunError::BlankSummary { chunk });
        } else if idle || !folded {
            self.data.give_up(RunError::NotFolded { chunk });
        } else {
            let outcome = if changed { ChunkOutcome::Folded } else { ChunkOutcome::Unchanged };
            self.data.close_chunk(outcome, None);
        }
    }

    /// Ends the chunk if it has reached the limit on rounds or on its conversation. Edits made so
    /// far are kept.
    fn check_caps(&mut self) {
        let Data { rounds, options, request, .. } = &self.data;
        let bytes = request.messages.iter().skip(1).map(|message| message.text_bytes());
        let bytes = usize::try_from(bytes.fold(0, u64::saturating_add)).unwrap_or(usize::MAX);
        let rounds = *rounds;
        if rounds >= options.max_rounds.max(1) || bytes > options.conversation_bytes {
            self.end_capped();
        }
    }

    /// Ends the work on the chunk before the model is done.
    fn end_capped(&mut self) {
        let (chunk, rounds) = (self.data.done + 1, self.data.rounds);
        if self.data.should_condense() {
            self.data.make_room();
        } else if self.data.has_changed() && self.data.has_summary() {
            self.data.close_chunk(ChunkOutcome::Capped, None);
        } else {
            self.data.give_up(RunError::TooManyRounds { chunk, rounds });
        }
    }

    /// Continues without a call as long as the next request does not fit the window. This is needed
    /// because the limits of the options are in bytes and assume answers within
    /// [`Chunked::answer_tokens`]: a model may write more, or text with fewer bytes per token.
    pub(super) fn skip_requests_unless(&mut self, fits: impl Fn(&Request) -> bool) {
        while let State::Asking { task, .. } = self.data.state
            && !fits(&self.data.request)
        {
            match task {
                Task::Condense => self.data.condense(None),
                Task::Fold if self.data.rounds > 0 => self.end_capped(),
                Task::Fold => self.data.shorten_request(),
            }
        }
    }
}

impl<'de> Deserialize<'de> for CompactionRun {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let data = Data::deserialize(deserializer)?;
        data.check().map_err(de::Error::custom)?;
        Ok(Self { data })
    }
}

/// Whether a text has the word DONE, which announces the last edit of a chunk.
fn says_done(text: &str) -> bool {
    text.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == "DONE")
}

/// The answer with long texts clipped: edits are in calls, and every further request of the chunk
/// would repeat the texts.
fn shortened(mut message: Message) -> Message {
    for index in 0..message.content.len() {
        let text = message.content.get(index).and_then(ContentBlock::as_text);
        let Some(text) = text.filter(|text| text.len() > MAX_TEXT) else { continue };
        let clipped = ContentBlock::text(clipped(text, MAX_TEXT));
        if let Some(block) = message.make_mut().content.get_mut(index) {
            *block = clipped;
        }
    }
    message
}

fn not_asked() -> InvalidValue {
    InvalidValue::unexpected("an answer", "the run has ended")
}
