//! The run: a thread is folded, chunk by chunk, into one summary.
//!
//! Each chunk is a conversation of its own with a small agent that edits `/summary.md`; the file
//! goes from chunk to chunk, the conversations do not. The run is a value: it can be stored after
//! any step and taken up in another process, and asks no second time about a chunk that is done.

use std::{ops::Range, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, de};

use super::{
    halve::halve,
    options::{NotAsked, RunError, RunOptions, StoredRunError},
    prompt::{self, ChunkPrompt, SUMMARY},
    step::{ChunkOutcome, ChunkStep, RunStep},
    tools,
};
use crate::{
    compact::legality,
    edl::Workspace,
    message::{
        ContentBlock, Message, ModelError, ModelErrorKind, Request, Role, StopReason, Text,
        ToolUse, Turn, Usage,
    },
    render::{chunk_ranges, render},
};

/// The version of the stored form.
const FORMAT: u32 = 1;

/// A chunk is not halved below this, in bytes.
const MIN_CHUNK: usize = 2_000;

/// A chat answer of this many bytes, where an edit was due, was meant to be one.
const CHAT: usize = 80;

/// How long to wait before a call is tried again, where the provider does not say.
const WAITS: [u64; 4] = [1, 5, 10, 30];

/// A provider that asks for more than this is not waited for.
const MAX_WAIT: Duration = Duration::from_secs(600);

const NUDGE: &str = include_str!("../prompts/chunk_nudge.md");
const GO_ON: &str = include_str!("../prompts/chunk_go_on.md");

/// A thread on its way into a summary. A machine: ask for its [`step`](Self::step), do what it
/// says, and tell it what came of it.
///
/// ```
/// use threadfold::{Message, strategy::{CompactionRun, RunError, RunOptions, RunStep}};
///
/// let thread = [Message::user("Fix the parser."), Message::assistant("It is fixed.")];
/// let run = CompactionRun::new(&thread, None, RunOptions::default())?.with_focus("the parser");
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
pub struct CompactionRun {
    data: Data,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Data {
    format: u32,
    options: RunOptions,
    focus: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rules: Option<Text>,
    next_prompt: Option<Message>,
    rendered: Text,
    /// Where the chunks are in the rendering.
    chunks: Vec<Range<usize>>,
    /// How many of them are done: the next one is at work.
    done: usize,
    workspace: Workspace,
    /// The workspace as it was before the chunk at work.
    before: Workspace,
    /// The conversation about the chunk at work.
    request: Request,
    rounds: usize,
    retries: usize,
    nudged: bool,
    /// Whether an edit of the chunk at work was refused.
    refused: bool,
    chunk_usage: Usage,
    state: State,
    steps: Vec<ChunkStep>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum State {
    Asking { after: Duration },
    Done,
    Failed { error: RunError },
}

impl CompactionRun {
    /// Returns the run over a thread. The next prompt is told to the summariser and kept for
    /// whoever needs it back.
    ///
    /// # Errors
    ///
    /// [`RunError::NothingToSummarise`] and [`RunError::TooManyChunks`].
    pub fn new(
        messages: &[Message],
        next_prompt: Option<Message>,
        options: RunOptions,
    ) -> Result<Self, RunError> {
        let rendered = render(messages, &options.render);
        let chunks: Vec<Range<usize>> =
            chunk_ranges(&rendered, options.chunks).into_iter().map(|chunk| chunk.bytes).collect();
        if chunks.is_empty() {
            return Err(RunError::NothingToSummarise);
        }
        check_count(chunks.len(), options.max_chunks)?;
        let mut workspace = Workspace::new();
        // The path is our own, so it names a file.
        let _ = workspace.insert(SUMMARY, "");
        let mut run = Self {
            data: Data {
                format: FORMAT,
                options,
                focus: None,
                rules: None,
                next_prompt,
                rendered: rendered.into_text().into(),
                chunks,
                done: 0,
                before: workspace.clone(),
                workspace,
                request: Request::default(),
                rounds: 0,
                retries: 0,
                nudged: false,
                refused: false,
                chunk_usage: Usage::default(),
                state: State::Done,
                steps: Vec::new(),
            },
        };
        run.open_chunk();
        Ok(run)
    }

    /// Returns the run with what the summary should attend to.
    #[must_use]
    pub fn with_focus(mut self, focus: impl Into<Text>) -> Self {
        self.data.focus = Some(focus.into());
        self.reopened()
    }

    /// Returns the run with a list of rules that are kept beside the summary, so that it need not
    /// repeat them.
    #[must_use]
    pub fn with_rules(mut self, rules: impl Into<Text>) -> Self {
        self.data.rules = Some(rules.into());
        self.reopened()
    }

    /// Asks the first question anew, if it has not been answered.
    fn reopened(mut self) -> Self {
        let untouched = self.data.rounds == 0 && self.data.steps.is_empty();
        if let State::Asking { after } = self.data.state
            && untouched
        {
            let retries = self.data.retries;
            self.open_chunk();
            (self.data.retries, self.data.state) = (retries, State::Asking { after });
        }
        self
    }

    /// Returns the next step. Asking twice gives the same.
    #[must_use]
    pub fn step(&self) -> RunStep<'_> {
        let Data { request, chunks, done, state, .. } = &self.data;
        match state {
            State::Asking { after } => RunStep::Call {
                request,
                chunk: *done,
                total: chunks.len(),
                after: *after,
                key: key(self.chunk()),
            },
            State::Done => RunStep::Done { summary: self.summary() },
            State::Failed { error } => RunStep::Failed { error },
        }
    }

    /// Takes the model's answer: runs its calls, and goes on to the next round, chunk or end.
    ///
    /// # Errors
    ///
    /// [`NotAsked`] if the run has ended.
    pub fn handle_turn(&mut self, turn: Turn) -> Result<(), NotAsked> {
        let State::Asking { after } = &mut self.data.state else { return Err(NotAsked) };
        *after = Duration::ZERO;
        self.data.retries = 0;
        self.data.rounds = self.data.rounds.saturating_add(1);
        self.data.chunk_usage += turn.usage.unwrap_or_default();
        let Turn { message, stop_reason, .. } = turn;
        let chat: usize =
            message.content.iter().filter_map(ContentBlock::as_text).map(|text| text.len()).sum();
        self.say(message);
        self.mend();
        let calls = self.open_calls();
        match stop_reason {
            StopReason::Refusal | StopReason::Aborted => {
                self.fail(RunError::Stopped { chunk: self.data.done + 1, reason: stop_reason });
            }
            StopReason::ContextWindowExceeded => self.shrink(),
            _ if !calls.is_empty() => {
                let most = self.data.options.summary_bytes;
                let results = tools::answer(&mut self.data.workspace, calls.iter(), most);
                self.data.refused |= results.tool_results().any(|result| result.is_error);
                self.say(results);
                self.check_rounds();
            }
            StopReason::MaxTokens => self.ask_again(GO_ON),
            StopReason::PauseTurn => self.check_rounds(),
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::Other(_) => self.end_chunk(chat),
        }
        Ok(())
    }

    /// Takes the failure of a call: the run asks again later, halves the chunk, or fails.
    ///
    /// ```
    /// use threadfold::message::{Message, ModelError, ModelErrorKind};
    /// use threadfold::strategy::{CompactionRun, RunOptions, RunStep};
    ///
    /// let thread = [Message::user("Fix the parser."), Message::assistant("It is fixed.")];
    /// let mut run = CompactionRun::new(&thread, None, RunOptions::default()).unwrap();
    /// let busy = ModelError::new(ModelErrorKind::Retryable { after: None }, "overloaded");
    /// run.handle_error(busy)?;
    /// assert!(matches!(run.step(), RunStep::Call { after, .. } if !after.is_zero()));
    /// # Ok::<(), threadfold::strategy::NotAsked>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NotAsked`] if the run has ended.
    pub fn handle_error(&mut self, error: ModelError) -> Result<(), NotAsked> {
        let State::Asking { .. } = self.data.state else { return Err(NotAsked) };
        self.data.chunk_usage += error.usage;
        if error.is_overflow() {
            self.shrink();
            return Ok(());
        }
        if let ModelErrorKind::Retryable { after } = error.kind {
            let wait = WAITS.get(self.data.retries).or(WAITS.last()).copied().unwrap_or_default();
            let after = after.unwrap_or(Duration::from_secs(wait));
            if self.data.retries < self.data.options.max_retries && after <= MAX_WAIT {
                self.data.retries += 1;
                self.data.state = State::Asking { after };
                return Ok(());
            }
        }
        let ModelError { kind, message, .. } = error;
        self.fail(RunError::Model { chunk: self.data.done + 1, kind, message });
        Ok(())
    }

    /// Ends the run without a summary. One that has ended stays as it is.
    pub fn abort(&mut self) {
        if let State::Asking { .. } = self.data.state {
            self.fail(RunError::Aborted { chunk: self.data.done + 1 });
        }
    }

    /// Takes a run that failed or was aborted up again, at the chunk where it stopped and from
    /// the summary before it. The steps stay, and so do the chunks that are done. A run that has
    /// not failed stays as it is.
    pub fn retry(&mut self) {
        if let State::Failed { .. } = self.data.state {
            self.data.workspace = self.data.before.clone();
            self.open_chunk();
        }
    }

    /// The summary so far. Complete only when the run is done.
    #[must_use]
    pub fn summary(&self) -> &str {
        tools::summary(&self.data.workspace)
    }

    /// What was done so far, the failing chunk included.
    #[must_use]
    pub fn steps(&self) -> &[ChunkStep] {
        &self.data.steps
    }

    /// What the user typed and is sent after the compaction.
    #[must_use]
    pub fn next_prompt(&self) -> Option<&Message> {
        self.data.next_prompt.as_ref()
    }

    /// What all calls cost so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.data.steps.iter().map(|step| step.usage).sum::<Usage>() + self.data.chunk_usage
    }

    /// The text of the chunk at work.
    fn chunk(&self) -> &str {
        let Data { rendered, chunks, done, .. } = &self.data;
        chunks.get(*done).and_then(|bytes| rendered.get(bytes.clone())).unwrap_or_default()
    }

    /// Opens the conversation about the next chunk, or ends the run if there is none.
    fn open_chunk(&mut self) {
        let total = self.data.chunks.len();
        if self.data.done >= total {
            self.data.request = Request::default();
            self.data.state = State::Done;
            return;
        }
        let prompt = ChunkPrompt {
            index: self.data.done,
            total,
            transcript: self.chunk(),
            summary: self.summary(),
            summary_bytes: self.data.options.summary_bytes,
            next_prompt: self.data.next_prompt.as_ref(),
            focus: self.data.focus.as_deref(),
            rules: self.data.rules.as_deref(),
        };
        self.data.request = prompt.request(self.data.options.answer_tokens);
        self.data.rounds = 0;
        self.data.retries = 0;
        self.data.nudged = false;
        self.data.refused = false;
        self.data.state = State::Asking { after: Duration::ZERO };
    }

    fn say(&mut self, message: Message) {
        self.data.request.messages.make_mut().push(message);
    }

    /// Providers refuse blank text and ids that come twice, and models write both.
    fn mend(&mut self) {
        let messages = self.data.request.messages.to_vec();
        self.data.request.messages = legality::repair(messages).0.into();
    }

    /// The calls that wait for their results, under the ids that they have in the conversation.
    fn open_calls(&self) -> Vec<ToolUse> {
        let last = self.data.request.messages.last();
        let last = last.filter(|message| message.role == Role::Assistant);
        last.into_iter().flat_map(|message| message.tool_uses()).cloned().collect()
    }

    fn ask_again(&mut self, text: &'static str) {
        self.say(Message::user(text.trim_end()));
        self.check_rounds();
    }

    /// The model says that it is done with the chunk.
    fn end_chunk(&mut self, chat: usize) {
        let blank = self.summary().trim().is_empty();
        // An edit that was refused, or written as chat, was meant to be one.
        let idle = !self.has_changed() && (self.data.refused || chat > CHAT);
        if (idle || blank) && !self.data.nudged {
            self.data.nudged = true;
            self.ask_again(NUDGE);
        } else if blank {
            self.fail(RunError::BlankSummary { chunk: self.data.done + 1 });
        } else if idle {
            self.fail(RunError::NotFolded { chunk: self.data.done + 1 });
        } else {
            let folded = self.has_changed();
            self.close_chunk(if folded { ChunkOutcome::Folded } else { ChunkOutcome::Unchanged });
        }
    }

    /// At the cap on rounds, what was folded in counts; if nothing was, the run fails.
    fn check_rounds(&mut self) {
        let rounds = self.data.rounds;
        if rounds < self.data.options.max_rounds.max(1) {
            return;
        }
        if self.has_changed() && !self.summary().trim().is_empty() {
            self.close_chunk(ChunkOutcome::Capped);
        } else {
            self.fail(RunError::TooManyRounds { chunk: self.data.done + 1, rounds });
        }
    }

    fn has_changed(&self) -> bool {
        self.summary() != tools::summary(&self.data.before)
    }

    fn close_chunk(&mut self, outcome: ChunkOutcome) {
        self.record(outcome);
        // Only the summary goes on. Registers and scratch files belong to a conversation that the
        // next chunk knows nothing of, and would count against its room.
        let mut workspace = Workspace::new();
        let _ = workspace.insert(SUMMARY, self.summary());
        self.data.before = workspace.clone();
        self.data.workspace = workspace;
        self.data.done += 1;
        self.open_chunk();
    }

    /// The chunk does not fit the model's window: it goes on in two halves, from where the
    /// summary was before it.
    fn shrink(&mut self) {
        let at = self.data.done;
        let Some(bytes) = self.data.chunks.get(at).cloned() else { return };
        let middle = halve(self.chunk()).filter(|_| bytes.len() > MIN_CHUNK);
        let Some(middle) = middle.map(|middle| bytes.start + middle) else {
            return self.fail(RunError::DoesNotFit { chunk: at + 1, bytes: bytes.len() });
        };
        if let Err(error) = check_count(self.data.chunks.len() + 1, self.data.options.max_chunks) {
            return self.fail(error);
        }
        self.data.workspace = self.data.before.clone();
        self.record(ChunkOutcome::Halved);
        self.data.chunks.splice(at..=at, [bytes.start..middle, middle..bytes.end]);
        self.open_chunk();
    }

    fn fail(&mut self, error: RunError) {
        self.record(ChunkOutcome::Failed);
        self.data.state = State::Failed { error };
    }

    fn record(&mut self, outcome: ChunkOutcome) {
        // The prompt is left out: it is the chunk, which the rendering has.
        let messages = self.data.request.messages.iter().skip(1).cloned().collect();
        self.data.steps.push(ChunkStep {
            bytes: self.data.chunks.get(self.data.done).cloned().unwrap_or_default(),
            messages,
            usage: std::mem::take(&mut self.data.chunk_usage),
            summary_bytes: self.summary().len(),
            outcome,
        });
    }
}

impl Data {
    /// A stored run may have been written by anybody.
    fn check(&self) -> Result<(), StoredRunError> {
        if self.format != FORMAT {
            return Err(StoredRunError::Format { found: self.format, expected: FORMAT });
        }
        let mut next = 0;
        for (index, bytes) in self.chunks.iter().enumerate() {
            let fits = bytes.start == next && self.rendered.get(bytes.clone()).is_some();
            if !fits || bytes.is_empty() {
                return Err(StoredRunError::Chunks { chunk: index + 1 });
            }
            next = bytes.end;
        }
        let working = matches!(self.state, State::Asking { .. });
        let at_work = self.done < self.chunks.len();
        let done = self.state == State::Done && self.done != self.chunks.len();
        if next != self.rendered.len() || (working && !at_work) || done {
            return Err(StoredRunError::Chunks { chunk: self.done.saturating_add(1) });
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for CompactionRun {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let data = Data::deserialize(deserializer)?;
        data.check().map_err(de::Error::custom)?;
        Ok(Self { data })
    }
}

fn check_count(found: usize, limit: usize) -> Result<(), RunError> {
    if found > limit { Err(RunError::TooManyChunks { found, limit }) } else { Ok(()) }
}

/// The FNV-1a hash of a chunk and the version of the prompts: stable over processes and builds.
fn key(chunk: &str) -> u64 {
    let version = prompt::VERSION.to_le_bytes();
    version.iter().chain(chunk.as_bytes()).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
