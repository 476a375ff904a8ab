//! The run: reads a thread chunk by chunk, and has a model write what is to stay of it.
//!
//! There are two [writers](Writer). One edits a file, `/summary.md`: each chunk has its own
//! conversation with a model, and only the file is carried on to the next chunk. The other one writes
//! an account of each part of the thread: its answer about a chunk is added to the account of the part,
//! and the next request shows the accounts so far. The run is a value: it can be stored after any step
//! and resumed in another process, and does not repeat finished chunks.
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
//! With accounts a chunk is one call, and nothing is condensed:
//!
//! | input | next state |
//! |---|---|
//! | an account | the next chunk |
//! | an answer without an account, a refusal | an extract of the chunk is its account; the next chunk |
//! | overflow of the window | folding the first half, which ends between two messages if possible |
//! | retryable failure | the same call, later; for the first half if the provider states no wait |
//! | failure that every call will have | extracts of all remaining chunks; done |
//!
//! As long as no chunk is folded in, a failed call fails the run, and so do [`MAX_UNFOLDED`]
//! skipped chunks: no work is lost by that, and the caller may have another strategy.

use std::{ops::Range, sync::Arc, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use threadfold_edl::Workspace;

use super::{
    chunks::{Chunks, border, halve},
    condense::{clipped, condense},
    cover,
    data::{ChunkOutcome, ChunkStep, Chunked, RunStep},
    prompt::{self, Prompts, Writer},
    tools::{self, summary, workspace_of},
};
use crate::{
    compact::legality,
    ledger::Quotes,
    message::{
        Answer, ContentBlock, InvalidValue, Message, ModelError, ModelErrorKind, Request, Role,
        StopReason, Text, ToolUse, Usage,
    },
    render::{chunk_ranges, render},
    strategy::{
        ask::{Ask, ModelCall, Retries, Tried, is_complete, quoted_summary_of},
        error::{Result, StrategyError},
        instructions,
        proposal::ModelRole,
        run_error::RunError,
        view::View,
    },
};

/// Version of the stored form, the only one that is read.
const FORMAT: u32 = 1;

/// An answer without calls whose text has more bytes than this was probably meant as an edit.
const CHAT: usize = 80;

/// Upper limit for the bytes of a text block in the conversation about a chunk.
const MAX_TEXT: usize = 1_000;

/// Chunks of at most this many bytes are not halved.
const MIN_CHUNK: usize = 2_000;

/// A summary of at most this many bytes is not shortened to make a request fit.
const MIN_SUMMARY: usize = 200;

/// The run fails after this many chunks if none of them was folded in.
const MAX_UNFOLDED: usize = 3;

/// Assumed bytes per token of a summary.
const BYTES_PER_TOKEN: u64 = 3;

const NUDGE: &str = include_str!("../prompts/chunk_nudge.md");
const GO_ON: &str = include_str!("../prompts/chunk_go_on.md");

/// Folds a thread, chunk by chunk, into one summary. A state machine: call [`step`](Self::step),
/// make the model call that it returns, and pass the outcome to [`handle`](Self::handle).
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
#[must_use]
pub struct CompactionRun {
    format: u32,
    prompts: Prompts,
    rendered: String,
    /// The bytes of each chunk in the rendering.
    chunks: Chunks,
    /// The accounts of the parts so far, and the quotes in the answers with them. Not used if the
    /// model edits a file.
    accounts: Vec<Account>,
    quotes: Quotes,
    workspace: Workspace,
    /// The workspace before the current chunk.
    before: Workspace,
    /// The conversation about the current chunk.
    request: Request,
    rounds: usize,
    /// Whether the model was reminded to edit the summary.
    nudged: bool,
    /// Whether an edit of the current chunk was refused.
    refused: bool,
    /// The summary after the last edit that did not fit, shortened without a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    too_large: Option<Text>,
    /// Whether the summary was condensed for the current chunk.
    condensed: bool,
    chunk_usage: Usage,
    state: State,
    steps: Vec<ChunkStep>,
}

/// The account of a part of the thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Account {
    /// The bytes of the part in the rendering; none if the account was known before the run.
    bytes: Range<usize>,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum State {
    Asking { after: Duration, task: Task },
    Done,
    Failed { error: RunError },
}

/// The task of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Task {
    /// Fold the current chunk into the summary.
    Fold,
    /// Shorten the summary.
    Condense,
}

impl Serialize for CompactionRun {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for CompactionRun {
    /// Reads and checks a stored run, which is untrusted.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let run = Self::deserialize(deserializer)?;
        run.check().map_err(de::Error::custom)?;
        Ok(run)
    }
}

impl CompactionRun {
    /// Returns the run for a thread. The prompts mention the next prompt.
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
        let prompts = Prompts { options, next_prompt, ..Prompts::default() };
        Self::of_parts([(messages, String::new())], prompts)
    }

    /// Returns the run that reads these parts of a thread in order. If the prompts ask for accounts, it
    /// writes one of each part; one that is known stands beside no messages.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub(crate) fn of_parts<M: AsRef<[Message]>>(
        parts: impl IntoIterator<Item = (M, String)>,
        prompts: Prompts,
    ) -> Result<Self, RunError> {
        let Chunked { render: options, chunks: budget, max_chunks: limit, .. } = &prompts.options;
        instructions::check(prompts.options.prompt.as_ref(), &prompts.options.sections)?;
        let (mut rendered, mut all, mut accounts) = (String::new(), Vec::new(), Vec::new());
        for (messages, account) in parts {
            let (start, part) = (rendered.len(), render(messages.as_ref(), options));
            let chunks = chunk_ranges(&part, *budget).into_iter();
            all.extend(chunks.map(|bytes| start + bytes.start..start + bytes.end));
            // The first part is usually the whole thread, which should not be copied.
            if start == 0 {
                rendered = part.into_text()
            } else {
                rendered.push_str(&part)
            }
            accounts.push(Account { bytes: start..rendered.len(), text: account });
        }
        let (found, limit) = (all.len(), *limit);
        if found == 0 {
            return Err(RunError::NothingToSummarise);
        }
        if found > limit {
            return Err(RunError::TooManyChunks { found, limit });
        }
        let mut run = Self {
            format: FORMAT,
            prompts,
            rendered,
            chunks: Chunks { all, ..Chunks::default() },
            accounts,
            quotes: Quotes::default(),
            workspace: workspace_of(""),
            before: workspace_of(""),
            request: Request::default(),
            rounds: 0,
            nudged: false,
            refused: false,
            too_large: None,
            condensed: false,
            chunk_usage: Usage::default(),
            state: State::Done,
            steps: Vec::new(),
        };
        run.open_chunk();
        Ok(run)
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
        self.prompts.instructions = Some(instructions.into());
        self.with_new_prompt()
    }

    /// Returns the run with a list of rules that are kept beside the summary, so that it need not
    /// repeat them.
    pub fn with_rules(mut self, rules: impl Into<Text>) -> Self {
        self.prompts.rules = Some(rules.into());
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
        self.set_summary(&format!("{}\n", summary.trim_end()));
        self.with_new_prompt()
    }

    /// Rewrites the first prompt, unless it has been answered.
    fn with_new_prompt(mut self) -> Self {
        if self.rounds == 0 && self.steps.is_empty() {
            self.request = self.chunk_request();
        }
        self
    }

    /// Returns the next step. Calling it again returns the same step.
    #[must_use]
    pub fn step(&self) -> RunStep<'_> {
        match &self.state {
            State::Asking { after, .. } => RunStep::Call {
                request: &self.request,
                chunk: self.chunks.done,
                total: self.chunks.all.len(),
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

    /// Takes the outcome of the [call](Self::call). After an answer it runs the calls of the model,
    /// and continues with the next round or chunk, or ends. After a failure it repeats the call
    /// later, halves the chunk, continues without a model, or fails if nothing was folded in yet.
    ///
    /// If a chunk was folded in before, no failure loses the summary: the run ends with it, and
    /// with extracts of the remaining chunks. A host that prefers to wait for its model does not
    /// pass the failure on, but stores the run and makes the same call later.
    ///
    /// ```
    /// use threadfold::message::{Message, ModelError, ModelErrorKind};
    /// use threadfold::strategy::{CompactionRun, Chunked, RunStep};
    ///
    /// let thread = [Message::user("Fix the parser."), Message::assistant("It is fixed.")];
    /// let mut run = CompactionRun::new(&thread, None, Chunked::default()).unwrap();
    /// let busy = ModelError::new(ModelErrorKind::Retryable { after: None }, "overloaded");
    /// run.handle(Err(busy))?;
    /// assert!(matches!(run.step(), RunStep::Call { after, .. } if !after.is_zero()));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if the run has ended.
    pub fn handle(&mut self, answer: Result<Answer, ModelError>) -> Result<(), InvalidValue> {
        let State::Asking { task, .. } = self.state else {
            return Err(InvalidValue::unexpected("an answer", "the run has ended"));
        };
        match answer {
            Ok(answer) => self.handle_answer(answer, task),
            Err(error) => self.handle_error(error, task),
        }
        Ok(())
    }

    /// Ends the run without a summary. Has no effect on a run that has ended.
    pub fn abort(&mut self) {
        if let State::Asking { .. } = self.state {
            self.fail(RunError::Aborted { chunk: self.number() });
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
        let State::Failed { .. } = self.state else { return };
        self.workspace = self.before.clone();
        if !self.has_folded() {
            self.chunks.done = 0;
            let extracts = self.accounts.iter_mut().filter(|account| !account.bytes.is_empty());
            extracts.for_each(|account| account.text.clear());
        }
        self.condensed = false;
        self.open_chunk();
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
        summary(&self.workspace)
    }

    /// The recorded steps so far, including a failing chunk.
    #[must_use]
    pub fn steps(&self) -> &[ChunkStep] {
        &self.steps
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
    /// run.handle(Ok(no)).unwrap();
    /// let note = "summarised without a model: chunk 1 of 1 \
    ///             (the model stopped with refusal at chunk 1)";
    /// assert_eq!(run.notes(), [note]);
    /// ```
    #[must_use]
    pub fn notes(&self) -> Vec<Text> {
        cover::notes(&self.chunks.all, &self.steps)
    }

    /// Token usage of all calls so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.steps.iter().map(|step| step.usage).sum::<Usage>() + self.chunk_usage
    }

    /// Has a model answer the calls of the run until it ends. Their progress includes the calls before
    /// the run and those that will follow it. Returns the number of calls that are finished then,
    /// without those that were repeated.
    pub(crate) async fn drive(
        &mut self,
        view: &View,
        ask: &mut Ask<'_>,
        (before, following): (usize, usize),
    ) -> usize {
        loop {
            self.skip_requests_unless(|request| view.thread.check_window(request).is_ok());
            let Some(mut call) = self.call() else { return before + self.chunks.done };
            call.done = call.done.saturating_add(before);
            call.total = call.total.saturating_add(before).saturating_add(following);
            let answer = ask.once(&call).await;
            // The run requested this call, so it accepts the answer.
            let _ = self.handle(answer);
        }
    }

    /// Returns the accounts of the parts after the run, and the quotes in the answers.
    ///
    /// # Errors
    ///
    /// The error with which the run failed.
    pub(crate) fn into_accounts(self) -> Result<(Vec<String>, Quotes), RunError> {
        if let State::Failed { error } = self.state {
            return Err(error);
        }
        let texts = self.accounts.into_iter().map(|account| account.text);
        Ok((texts.collect(), self.quotes))
    }

    /// Continues without a call as long as the next request does not fit the window. This is needed
    /// because the limits of the options are in bytes and assume answers within
    /// [`Chunked::answer_tokens`]: a model may write more, or text with fewer bytes per token.
    fn skip_requests_unless(&mut self, fits: impl Fn(&Request) -> bool) {
        while let State::Asking { task, .. } = self.state
            && !fits(&self.request)
        {
            match task {
                Task::Condense => self.condense(None),
                Task::Fold if self.rounds > 0 => self.end_capped(),
                Task::Fold => self.shorten_request(),
            }
        }
    }

    fn handle_answer(&mut self, answer: Answer, task: Task) {
        self.state = State::Asking { after: Duration::ZERO, task };
        self.chunks.tried = Tried::default();
        self.chunk_usage += answer.usage.unwrap_or_default();
        if self.writes_accounts() {
            return self.handle_account(&answer);
        }
        let Answer { message, stop_reason, .. } = answer;
        let text = prompt::text_of(&message);
        let has_calls = message.tool_uses().next().is_some();
        self.push(shortened(message));
        if task == Task::Condense {
            if stop_reason == StopReason::Aborted {
                return self.fail(self.stopped(stop_reason));
            }
            let is_summary = is_complete(&stop_reason) && !has_calls;
            return self.condense(is_summary.then_some(text.as_str()));
        }
        self.rounds = self.rounds.saturating_add(1);
        self.repair();
        let calls = self.open_calls();
        match stop_reason {
            StopReason::Aborted => self.fail(self.stopped(stop_reason)),
            StopReason::Refusal => self.give_up(self.stopped(stop_reason)),
            StopReason::ContextWindowExceeded => self.shrink(),
            _ if !calls.is_empty() => self.run_calls(&calls, says_done(&text)),
            StopReason::MaxTokens => self.ask_again(GO_ON),
            StopReason::PauseTurn => self.check_caps(),
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::Other(_) => self.end_chunk(text.len()),
        }
    }

    /// Handles the answer about a chunk that should be an account of it.
    fn handle_account(&mut self, answer: &Answer) {
        self.push(shortened(answer.message.clone()));
        let chunk = self.number();
        match (&answer.stop_reason, quoted_summary_of(answer)) {
            (StopReason::Aborted, _) => self.fail(self.stopped(StopReason::Aborted)),
            (StopReason::ContextWindowExceeded, _) => self.shrink(),
            (_, Ok((account, quotes))) => {
                self.quotes.extend(quotes);
                self.add_account(&account);
                self.close_chunk(ChunkOutcome::Folded, None);
            }
            (_, Err(StrategyError::BlankSummary { .. })) => {
                self.give_up(RunError::BlankSummary { chunk });
            }
            (reason, Err(StrategyError::Incomplete { .. })) => {
                self.give_up(self.stopped(reason.clone()));
            }
            (_, Err(_)) => self.give_up(RunError::NotFolded { chunk }),
        }
    }

    fn handle_error(&mut self, error: ModelError, task: Task) {
        self.chunk_usage += error.usage;
        let mut retries = Retries::of_job(self.prompts.options.max_retries);
        if let Writer::Accounts { first_wait, .. } = self.prompts.writer {
            retries.first_wait = Some(first_wait);
        }
        match (retries.wait(&mut self.chunks.tried, &error), task) {
            (Some(after), task) => {
                // Without a requested wait, the failure may be a timeout of a long chunk.
                if error.kind == (ModelErrorKind::Retryable { after: None })
                    && let Some(border) = self.border()
                {
                    self.divide(border);
                    self.request = self.chunk_request();
                }
                self.state = State::Asking { after, task };
            }
            (None, Task::Condense) => self.condense(None),
            (None, Task::Fold) if error.is_overflow() => self.shrink(),
            (None, Task::Fold) => self.call_failed(&error),
        }
    }

    /// Handles a call that failed and is not retried. If other chunks may still succeed, only this
    /// chunk is given up. Otherwise the run fails if no chunk is folded in yet, else it skips the
    /// remaining chunks.
    fn call_failed(&mut self, error: &ModelError) {
        let tries = self.chunks.tried.retries.saturating_add(1);
        let last = self.steps.last().and_then(|step| step.failure.as_ref());
        let is_second = matches!(last, Some(RunError::Model { .. }));
        let chunk_only = match error.kind {
            ModelErrorKind::Refused => true,
            ModelErrorKind::Other | ModelErrorKind::VoidReasoning => {
                self.has_folded() && !is_second
            }
            ModelErrorKind::Overflow { .. }
            | ModelErrorKind::Retryable { .. }
            | ModelErrorKind::Authentication
            | ModelErrorKind::NoModel => false,
        };
        let why = |chunk| RunError::model(chunk, tries, error);
        if !chunk_only && !self.has_folded() {
            return self.fail(why(self.number()));
        }
        self.give_up(why(self.number()));
        if chunk_only || !matches!(self.state, State::Asking { .. }) {
            return;
        }
        // No model reads the remaining chunks.
        self.request = Request::default();
        while self.chunks.current().is_some() {
            self.record_end(ChunkOutcome::Skipped, Some(why(self.number())));
        }
        self.finish();
    }

    /// Runs the calls. If the model said that they complete its work and they did, it is not asked
    /// again, which saves sending the chunk a second time.
    fn run_calls(&mut self, calls: &[ToolUse], completes: bool) {
        let most = self.prompts.options.summary_bytes;
        let results = tools::run_calls(&mut self.workspace, calls, most, &mut self.too_large);
        let refused = results.tool_results().any(|result| result.is_error);
        self.refused |= refused;
        self.push(results);
        if completes && !refused && self.has_changed() && self.has_summary() {
            self.close_chunk(ChunkOutcome::Folded, None);
        } else {
            self.check_caps();
        }
    }

    fn push(&mut self, message: Message) {
        Arc::make_mut(&mut self.request.messages).push(message);
    }

    /// Repairs the conversation: models write blank text and duplicate ids, which providers refuse.
    fn repair(&mut self) {
        let messages = self.request.messages.to_vec();
        self.request.messages = legality::repair(messages).0.into();
    }

    /// The calls of the last message, with their ids after the repair.
    fn open_calls(&self) -> Vec<ToolUse> {
        let last = self.request.messages.last();
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
        let chunk = self.number();
        let (folded, changed) = (self.has_folded(), self.has_changed());
        // The model had something to add, but its edit was refused or written as plain text.
        let idle = !changed && (self.refused || chat > CHAT);
        if self.should_condense() {
            self.make_room();
        } else if (idle || !folded || !self.has_summary()) && !self.nudged {
            self.nudged = true;
            self.ask_again(NUDGE);
        } else if !self.has_summary() {
            self.give_up(RunError::BlankSummary { chunk });
        } else if idle || !folded {
            self.give_up(RunError::NotFolded { chunk });
        } else {
            let outcome = if changed { ChunkOutcome::Folded } else { ChunkOutcome::Unchanged };
            self.close_chunk(outcome, None);
        }
    }

    /// Ends the chunk if it has reached the limit on rounds or on its conversation. Edits made so
    /// far are kept.
    fn check_caps(&mut self) {
        let Self { rounds, request, prompts: Prompts { options, .. }, .. } = self;
        let bytes = request.messages.iter().skip(1).map(|message| message.text_bytes());
        let bytes = usize::try_from(bytes.fold(0, u64::saturating_add)).unwrap_or(usize::MAX);
        if *rounds >= options.max_rounds.max(1) || bytes > options.conversation_bytes {
            self.end_capped();
        }
    }

    /// Ends the work on the chunk before the model is done.
    fn end_capped(&mut self) {
        if self.should_condense() {
            self.make_room();
        } else if self.has_changed() && self.has_summary() {
            self.close_chunk(ChunkOutcome::Capped, None);
        } else {
            let (chunk, rounds) = (self.number(), self.rounds);
            self.give_up(RunError::TooManyRounds { chunk, rounds });
        }
    }

    /// Whether a chunk was folded in, the current one included.
    fn has_folded(&self) -> bool {
        let mut outcomes = self.steps.iter().map(|step| step.outcome);
        self.has_changed()
            || outcomes.any(|it| matches!(it, ChunkOutcome::Folded | ChunkOutcome::Capped))
    }

    /// Whether the current chunk changed the summary.
    fn has_changed(&self) -> bool {
        self.summary() != summary(&self.before)
    }

    /// Whether the summary has any text.
    fn has_summary(&self) -> bool {
        !self.summary().trim().is_empty()
    }

    fn writes_accounts(&self) -> bool {
        matches!(self.prompts.writer, Writer::Accounts { .. })
    }

    /// Adds what is known of the current chunk to the account that covers it.
    fn add_account(&mut self, text: &str) {
        let Some(start) = self.chunks.current().map(|bytes| bytes.start) else { return };
        let covers = self.accounts.iter_mut().find(|account| account.bytes.contains(&start));
        let Some(Account { text: account, .. }) = covers else { return };
        account.push_str(if account.is_empty() { "" } else { "\n\n" });
        account.push_str(text);
    }

    /// The accounts of everything before this byte and around it, joined.
    fn accounts_until(&self, byte: usize) -> String {
        let until = self.accounts.iter().take_while(|account| account.bytes.start <= byte);
        let texts = until.map(|account| account.text.as_str()).filter(|text| !text.is_empty());
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// Puts this summary in place of the one before, without registers and scratch files: they belong
    /// to the conversation about one chunk, and would count against the room of the next one.
    fn set_summary(&mut self, summary: &str) {
        self.workspace = workspace_of(summary);
        self.before = self.workspace.clone();
    }

    /// The number of the current chunk, from 1.
    fn number(&self) -> usize {
        self.chunks.done.saturating_add(1)
    }

    /// The text of the current chunk; empty once all are done.
    fn chunk(&self) -> &str {
        let Some(bytes) = self.chunks.current() else { return "" };
        let chunk = self.rendered.get(bytes.clone());
        debug_assert!(chunk.is_some(), "a run that is read is checked: {bytes:?}");
        chunk.unwrap_or_default()
    }

    fn chunk_request(&self) -> Request {
        let place = (self.number(), self.chunks.all.len());
        self.prompts.request(place, self.summary(), self.chunk())
    }

    /// Opens the conversation about the current chunk. If the summary is nearly full, a
    /// conversation that condenses it comes first. Ends the run if all chunks are done.
    fn open_chunk(&mut self) {
        let most = self.prompts.options.summary_bytes;
        let Some(bytes) = self.chunks.current() else { return self.finish() };
        if self.writes_accounts() {
            self.set_summary(&clipped(&self.accounts_until(bytes.start), most));
            self.ask_about_chunk();
        } else if !self.condensed && self.summary().len() > most - most / 8 {
            self.ask_to_condense();
        } else {
            self.ask_about_chunk();
        }
    }

    /// Opens the conversation about the current chunk.
    fn ask_about_chunk(&mut self) {
        self.request = self.chunk_request();
        self.rounds = 0;
        self.nudged = false;
        self.refused = false;
        self.too_large = None;
        self.ask(Task::Fold);
    }

    fn ask(&mut self, task: Task) {
        self.chunks.tried = Tried::default();
        self.state = State::Asking { after: Duration::ZERO, task };
    }

    /// Whether to condense the summary and repeat the current chunk: its edits did not fit, and
    /// there is something to condense.
    fn should_condense(&self) -> bool {
        let has_detail = self.summary().len() > self.prompts.options.summary_bytes / 4;
        self.too_large.is_some() && !self.condensed && !self.has_changed() && has_detail
    }

    /// Condenses the summary; the current chunk is then repeated.
    fn make_room(&mut self) {
        self.record(ChunkOutcome::Full, None);
        self.workspace = self.before.clone();
        self.ask_to_condense();
    }

    fn ask_to_condense(&mut self) {
        self.request = self.prompts.shorter(self.summary(), self.condensed_bytes());
        self.ask(Task::Condense);
    }

    /// Upper limit for the bytes of a condensed summary: half of the room, or what one answer
    /// holds.
    fn condensed_bytes(&self) -> usize {
        (self.prompts.options.summary_bytes / 2).min(self.answer_bytes())
    }

    /// The bytes that one answer holds.
    fn answer_bytes(&self) -> usize {
        let bytes = self.prompts.options.answer_tokens.saturating_mul(BYTES_PER_TOKEN);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Replaces the summary by the model's shorter one, or shortens it without a model, and opens
    /// the conversation about the chunk.
    fn condense(&mut self, answer: Option<&str>) {
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
                    let most = self.prompts.options.summary_bytes / 2;
                    (condense(self.summary(), most), ChunkOutcome::Clipped)
                }
            };
        self.set_summary(&text);
        self.record(outcome, None);
        self.condensed = true;
        self.ask_about_chunk();
    }

    /// Ends the work on the current chunk before the model is done. Its edits are kept. If there
    /// are none, its last edit that did not fit is shortened and applied; without any edit the
    /// chunk is skipped.
    fn give_up(&mut self, why: RunError) {
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

    fn close_chunk(&mut self, outcome: ChunkOutcome, failure: Option<RunError>) {
        self.record_end(outcome, failure);
        let summary = self.summary().to_owned();
        self.set_summary(&summary);
        self.condensed = false;
        let done = self.chunks.done;
        if !self.has_folded() && done >= MAX_UNFOLDED.min(self.chunks.all.len()) {
            let first = self.steps.iter().find_map(|step| step.failure.clone());
            let error = first.unwrap_or(RunError::BlankSummary { chunk: done });
            self.request = Request::default();
            self.state = State::Failed { error };
        } else {
            self.open_chunk();
        }
    }

    /// Records the end of the work on the current chunk, and goes on to the next one.
    fn record_end(&mut self, outcome: ChunkOutcome, failure: Option<RunError>) {
        if outcome == ChunkOutcome::Skipped && self.writes_accounts() {
            self.add_account(&cover::extract(self.chunk(), self.answer_bytes()));
        }
        self.record(outcome, failure);
        self.chunks.done += 1;
    }

    /// Halves the current chunk, which exceeds the model's window, and opens the conversation about
    /// its first half with the summary before the chunk.
    fn shrink(&mut self) {
        let Some(bytes) = self.chunks.current().cloned() else { return };
        self.workspace = self.before.clone();
        self.too_large = None;
        let (chunk, found) = (self.number(), self.chunks.all.len() + 1);
        let middle = || halve(self.chunk()).filter(|_| bytes.len() > MIN_CHUNK);
        let middle = self.border().or_else(|| Some(bytes.start + middle()?));
        let Some(middle) = middle else {
            return self.give_up(RunError::DoesNotFit { chunk, bytes: bytes.len() });
        };
        let limit = self.prompts.options.max_chunks;
        if found > limit {
            return self.give_up(RunError::TooManyChunks { found, limit });
        }
        self.divide(middle);
        self.ask_about_chunk();
    }

    /// The byte between two messages at which to cut the current chunk, for accounts, which divide
    /// no message without need. `None` for a short chunk.
    fn border(&self) -> Option<usize> {
        let chunk = self.chunks.current().filter(|bytes| bytes.len() > MIN_CHUNK)?;
        let border = self.writes_accounts().then(|| border(self.chunk())).flatten();
        Some(chunk.start + border?)
    }

    /// Cuts the current chunk at this byte.
    fn divide(&mut self, middle: usize) {
        self.record(ChunkOutcome::Halved, None);
        self.chunks.divide(middle);
    }

    /// Shortens the request about the current chunk, whose estimate exceeds the window: halves the
    /// chunk or, if that is short already, the summary.
    fn shorten_request(&mut self) {
        let is_short = self.chunk().len() <= MIN_CHUNK
            || self.chunks.all.len() >= self.prompts.options.max_chunks;
        let bytes = self.summary().len();
        if is_short && bytes > MIN_SUMMARY {
            self.set_summary(&condense(self.summary(), bytes / 2));
            self.record(ChunkOutcome::Clipped, None);
            self.ask_about_chunk();
        } else {
            self.shrink();
        }
    }

    /// Ends the run. The summary gets an extract of the chunks that no model folded in.
    fn finish(&mut self) {
        let gaps = cover::gaps(&self.chunks.all, &self.steps);
        let most = self.prompts.options.summary_bytes;
        let summary = match self.writes_accounts() {
            true => self.accounts_until(self.rendered.len()),
            false => cover::with_extract(self.summary(), &self.rendered, &gaps, most),
        };
        self.workspace = workspace_of(&summary);
        self.request = Request::default();
        self.state = State::Done;
    }

    fn stopped(&self, reason: StopReason) -> RunError {
        RunError::Stopped { chunk: self.number(), reason }
    }

    /// Ends the run without a summary.
    fn fail(&mut self, error: RunError) {
        self.record(ChunkOutcome::Failed, Some(error.clone()));
        self.state = State::Failed { error };
    }

    fn record(&mut self, outcome: ChunkOutcome, failure: Option<RunError>) {
        // The first message is the prompt. It repeats the chunk, which is in the rendering.
        let messages = self.request.messages.iter().skip(1).cloned().collect();
        self.steps.push(ChunkStep {
            bytes: self.chunks.current().cloned().unwrap_or_default(),
            messages,
            usage: std::mem::take(&mut self.chunk_usage),
            summary_bytes: self.summary().len(),
            outcome,
            failure,
        });
    }

    /// Checks a stored run: its chunks must cover the rendering.
    fn check(&self) -> Result<(), RunError> {
        if self.format != FORMAT {
            return Err(RunError::Format { found: self.format, expected: FORMAT });
        }
        let mut next = 0;
        for (index, bytes) in self.chunks.all.iter().enumerate() {
            let fits = bytes.start == next && self.rendered.get(bytes.clone()).is_some();
            if !fits || bytes.is_empty() {
                return Err(RunError::Chunks { chunk: index + 1 });
            }
            next = bytes.end;
        }
        let (done, all) = (self.chunks.done, self.chunks.all.len());
        let done_fits = match self.state {
            State::Asking { .. } => done < all,
            State::Done => done == all,
            State::Failed { .. } => true,
        };
        if next != self.rendered.len() || !done_fits {
            return Err(RunError::Chunks { chunk: self.number() });
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(texts: &[&str]) -> CompactionRun {
        let writer = Writer::Accounts { timeout: None, first_wait: Duration::ZERO };
        let prompts = Prompts { writer, ..Prompts::default() };
        let parts = texts.iter().map(|text| ([Message::user(*text)], String::new()));
        CompactionRun::of_parts(parts, prompts).unwrap()
    }

    fn says(text: &str) -> Result<Answer, ModelError> {
        Ok(Answer::new(Message::assistant(text), StopReason::EndTurn, None))
    }

    #[test]
    fn a_stored_run_goes_on_with_its_accounts() {
        let mut run = accounts(&["One.", "Two."]);
        for answer in ["First.\n<user_rules>\n- One.\n</user_rules>", "Second."] {
            let stored = serde_json::to_string(&run).unwrap();
            run = serde_json::from_str(&stored).unwrap();
            run.handle(says(answer)).unwrap();
        }
        assert_eq!(run.step(), RunStep::Done { summary: "First.\n\nSecond." });
        let (texts, quotes) = run.into_accounts().unwrap();
        assert_eq!(texts, ["First.", "Second."]);
        assert_eq!(quotes.rules, ["One."]);
    }

    #[test]
    fn a_chunk_that_is_read_again_has_no_extract() {
        let mut run = accounts(&["One."]);
        run.handle(says(" ")).unwrap();
        let error = RunError::BlankSummary { chunk: 1 };
        assert_eq!(run.step(), RunStep::Failed { error: &error });
        run.retry();
        run.handle(says("First.")).unwrap();
        assert_eq!(run.into_accounts().unwrap().0, ["First."]);
    }

    #[test]
    fn a_chunk_without_an_account_has_an_extract_at_its_place() {
        let mut run = accounts(&["One.", "Two.", "Three."]);
        for answer in ["First.", " ", "Third."] {
            run.handle(says(answer)).unwrap();
        }
        assert_eq!(run.notes().len(), 1);
        let (texts, _) = run.into_accounts().unwrap();
        assert_eq!((&*texts[0], &*texts[2]), ("First.", "Third."));
        assert!(texts[1].starts_with("(An extract: ") && texts[1].contains("Two."), "{texts:?}");
    }
}
