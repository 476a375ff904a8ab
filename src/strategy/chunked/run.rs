//! The run: a thread is folded, chunk by chunk, into one summary.
//!
//! Each chunk is a conversation of its own with a small agent that edits `/summary.md`; the file
//! goes from chunk to chunk, the conversations do not. The run is a value: it can be stored after
//! any step and taken up in another process, and asks no second time about a chunk that is done.
//!
//! The table of states stands at [`state`](super::state).

use crate::message::UnexpectedInput;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, de};

use super::{
    condense::clipped,
    cover,
    options::RunOptions,
    prompt,
    state::{self, Data, State, Task},
    step::{ChunkOutcome, ChunkStep, RunStep},
    tools,
};
use crate::strategy::run_error::RunError;
use crate::{
    compact::legality,
    message::{
        ContentBlock, Message, ModelError, ModelErrorKind, Role, StopReason, Text, ToolUse, Turn,
        Usage,
    },
    render::{chunk_ranges, render},
};

/// A chat answer of this many bytes, where an edit was due, was meant to be one.
const CHAT: usize = 80;

/// So many bytes of a text stay in the conversation about a chunk. Only edits count there.
const SAID: usize = 1_000;

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
        let chunks: Vec<_> =
            chunk_ranges(&rendered, options.chunks).into_iter().map(|chunk| chunk.bytes).collect();
        let (found, limit) = (chunks.len(), options.max_chunks);
        if found == 0 {
            return Err(RunError::NothingToSummarise);
        }
        if found > limit {
            return Err(RunError::TooManyChunks { found, limit });
        }
        let rendered = rendered.into_text().into();
        Ok(Self { data: Data::new(rendered, chunks, next_prompt, options) })
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
        if let State::Asking { after, task } = self.data.state
            && untouched
        {
            let retries = self.data.retries;
            self.data.ask_about_chunk();
            (self.data.retries, self.data.state) = (retries, State::Asking { after, task });
        }
        self
    }

    /// Returns the next step. Asking twice gives the same.
    #[must_use]
    pub fn step(&self) -> RunStep<'_> {
        let data = &self.data;
        match &data.state {
            State::Asking { after, task } => RunStep::Call {
                request: &data.request,
                chunk: data.done,
                total: data.chunks.len(),
                after: *after,
                key: match task {
                    Task::Fold => key(data.chunk()),
                    Task::Condense => !key(self.summary()),
                },
            },
            State::Done => RunStep::Done { summary: self.summary() },
            State::Failed { error } => RunStep::Failed { error },
        }
    }

    /// Takes the model's answer: runs its calls, and goes on to the next round, chunk or end.
    ///
    /// # Errors
    ///
    /// [`UnexpectedInput`] if the run has ended.
    pub fn handle_turn(&mut self, turn: Turn) -> Result<(), UnexpectedInput> {
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

    fn condense(&mut self, turn: Turn) {
        let Turn { message, stop_reason, .. } = turn;
        if stop_reason == StopReason::Aborted {
            return self.data.fail(self.stopped(stop_reason));
        }
        let calls = message.tool_uses().next().is_some();
        let complete = state::is_complete(&stop_reason) && !calls;
        let texts = message.content.iter().filter_map(ContentBlock::as_text);
        let text = texts.map(|text| text.as_str()).collect::<Vec<_>>().join("\n");
        self.say(shortened(message));
        self.data.condense(complete.then_some(text.as_str()));
    }

    fn fold(&mut self, turn: Turn) {
        self.data.rounds = self.data.rounds.saturating_add(1);
        let Turn { message, stop_reason, .. } = turn;
        let chat: usize =
            message.content.iter().filter_map(ContentBlock::as_text).map(|text| text.len()).sum();
        self.say(shortened(message));
        self.mend();
        let calls = self.open_calls();
        match stop_reason {
            StopReason::Aborted => self.data.fail(self.stopped(stop_reason)),
            StopReason::Refusal => self.data.give_up(self.stopped(stop_reason)),
            StopReason::ContextWindowExceeded => self.data.shrink(),
            _ if !calls.is_empty() => self.carry_out(&calls),
            StopReason::MaxTokens => self.ask_again(GO_ON),
            StopReason::PauseTurn => self.check_caps(),
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::Other(_) => self.end_chunk(chat),
        }
    }

    fn stopped(&self, reason: StopReason) -> RunError {
        RunError::Stopped { chunk: self.data.done + 1, reason }
    }

    fn carry_out(&mut self, calls: &[ToolUse]) {
        let most = self.data.options.summary_bytes;
        let answered = tools::answer(&mut self.data.workspace, calls.iter(), most);
        self.data.refused |= answered.message.tool_results().any(|result| result.is_error);
        if let Some(shorter) = answered.too_large {
            self.data.too_large = Some(shorter.into());
        }
        self.say(answered.message);
        self.check_caps();
    }

    /// Takes the failure of a call: the run asks again later, halves the chunk, goes on without a
    /// model, or fails where nothing was folded in yet.
    ///
    /// Once something was folded in, the run ends with a summary, whatever fails: the chunks that
    /// are left have extracts in it. A host that would rather wait for its model does not hand the
    /// failure over, but stores the run and asks the same again later.
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
    /// # Ok::<(), threadfold::message::UnexpectedInput>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UnexpectedInput`] if the run has ended.
    pub fn handle_error(&mut self, error: ModelError) -> Result<(), UnexpectedInput> {
        let State::Asking { task, .. } = self.data.state else { return Err(not_asked()) };
        self.data.chunk_usage += error.usage;
        if let ModelErrorKind::Retryable { after } = error.kind {
            let wait = WAITS.get(self.data.retries).or(WAITS.last()).copied().unwrap_or_default();
            let after = after.unwrap_or(Duration::from_secs(wait));
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

    /// Ends the run without a summary. One that has ended stays as it is.
    pub fn abort(&mut self) {
        if let State::Asking { .. } = self.data.state {
            self.data.fail(RunError::Aborted { chunk: self.data.done + 1 });
        }
    }

    /// Takes a run that failed or was aborted up again, at the chunk where it stopped and from
    /// the summary before it; from the first chunk where none was folded in. The steps stay, and so
    /// do the chunks that are done. A run that has not failed stays as it is.
    pub fn retry(&mut self) {
        if let State::Failed { .. } = self.data.state {
            self.data.retry();
        }
    }

    /// The summary so far. Complete only when the run is done.
    #[must_use]
    pub fn summary(&self) -> &str {
        self.data.summary()
    }

    /// What was done so far, the failing chunk included.
    #[must_use]
    pub fn steps(&self) -> &[ChunkStep] {
        &self.data.steps
    }

    /// What was summarised without a model so far, and why: one sentence for each stretch of
    /// chunks. Empty if a model folded everything in.
    ///
    /// ```
    /// use threadfold::{Message, Turn, message::StopReason};
    /// use threadfold::strategy::{CompactionRun, RunOptions, RunStep};
    ///
    /// let thread = [Message::user("Fix the parser."), Message::assistant("It is fixed.")];
    /// let mut run = CompactionRun::new(&thread, None, RunOptions::default()).unwrap();
    /// assert!(run.notes().is_empty());
    /// let no = Turn::new(Message::assistant("No."), StopReason::Refusal, None);
    /// run.handle_turn(no).unwrap();
    /// let note = "summarised without a model: chunk 1 of 1 (the model stopped with refusal at chunk 1)";
    /// assert_eq!(run.notes(), [note]);
    /// ```
    #[must_use]
    pub fn notes(&self) -> Vec<Text> {
        cover::notes(&self.data.chunks, &self.data.steps)
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
        self.check_caps();
    }

    /// The model says that it is done with the chunk.
    fn end_chunk(&mut self, chat: usize) {
        let chunk = self.data.done + 1;
        let (blank, changed) = (!self.data.has_summary(), self.data.has_changed());
        // An edit that was refused, or written as chat, was meant to be one.
        let idle = !changed && (self.data.refused || chat > CHAT);
        if self.data.should_condense() {
            self.data.make_room();
        } else if (idle || blank) && !self.data.nudged {
            self.data.nudged = true;
            self.ask_again(NUDGE);
        } else if blank {
            self.data.give_up(RunError::BlankSummary { chunk });
        } else if idle {
            self.data.give_up(RunError::NotFolded { chunk });
        } else {
            let outcome = if changed { ChunkOutcome::Folded } else { ChunkOutcome::Unchanged };
            self.data.close_chunk(outcome, None);
        }
    }

    /// At the cap on rounds and on the conversation, what was folded in counts.
    fn check_caps(&mut self) {
        let Data { rounds, options, request, .. } = &self.data;
        let said = request.messages.iter().skip(1).map(|message| message.text_bytes());
        let said = usize::try_from(said.fold(0, u64::saturating_add)).unwrap_or(usize::MAX);
        let rounds = *rounds;
        if rounds < options.max_rounds.max(1) && said <= options.conversation_bytes {
            return;
        }
        if self.data.should_condense() {
            self.data.make_room();
        } else if self.data.has_changed() && self.data.has_summary() {
            self.data.close_chunk(ChunkOutcome::Capped, None);
        } else {
            self.data.give_up(RunError::TooManyRounds { chunk: self.data.done + 1, rounds });
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

/// The answer with long texts cut: no edit is in them, and they would be sent with every call.
fn shortened(mut message: Message) -> Message {
    let is_long = |block: &ContentBlock| block.as_text().is_some_and(|text| text.len() > SAID);
    if message.content.iter().any(is_long) {
        for block in &mut message.make_mut().content {
            if let Some(text) = block.as_text().filter(|text| text.len() > SAID) {
                *block = ContentBlock::text(clipped(text, SAID));
            }
        }
    }
    message
}

/// The FNV-1a hash of a chunk and the version of the prompts: stable over processes and builds.
fn key(chunk: &str) -> u64 {
    let version = prompt::VERSION.to_le_bytes();
    version.iter().chain(chunk.as_bytes()).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn not_asked() -> UnexpectedInput {
    UnexpectedInput::new("an answer", "the run has ended")
}
