//! The strategy interface: state machines that propose a plan and never act.
//!
//! A strategy has no async code, no I/O and no clock. It begins an [`Attempt`], which returns its
//! next step and takes the answer, until it proposes a [`Plan`] or gives up. One driver runs every
//! strategy, and one check ([`Snapshot::accept`]) judges every proposal.
//!
//! Errors and notes are redacted too, because models and providers quote the text of requests.
//!
//! An attempt that finds nothing to remove before it asks a model is not a compaction: a session
//! assigns no number, emits no event and logs nothing.

use std::{error::Error, fmt, time::Duration};

use super::{brief::Brief, rejection::Rejection, run_error::RunError, snapshot::Snapshot};
use crate::{
    compact::{CompactError, Plan},
    ledger::{QuotedChanges, Quotes},
    log::Rung,
    message::{
        Batch, ModelError, ModelErrorKind, Redactor, Request, StopReason, Text, Turn, Usage,
        redact::{Redaction, redacted_text},
    },
    retention::Retention,
};

/// An algorithm that makes a thread smaller.
///
/// ```
/// use threadfold::{Plan, compact::CompactOptions, strategy::*};
/// use threadfold::compact::Position;
///
/// /// Drops the first half of the thread.
/// #[derive(Debug)]
/// struct Halve;
///
/// impl CompactionStrategy for Halve {
///     fn name(&self) -> &str {
///         "halve"
///     }
///
///     fn begin(&self, thread: &Snapshot, _: &Brief) -> Box<dyn Attempt> {
///         let half = thread.cut_at_or_before(thread.messages().len() / 2);
///         let edit = (Position::before(0)..Position::before(half), vec![]);
///         attempt::propose(Plan::from_edits(
///             thread.messages(),
///             vec![edit],
///             &CompactOptions::default(),
///         ))
///     }
/// }
/// ```
pub trait CompactionStrategy: fmt::Debug + Send + Sync {
    /// The name under which it is registered, in kebab case.
    fn name(&self) -> &str;

    /// Begins an attempt on this thread.
    fn begin(&self, thread: &Snapshot, brief: &Brief) -> Box<dyn Attempt>;
}

/// One run of a strategy: a state machine that returns its next step and takes the answer.
///
/// ```
/// use threadfold::{Message, Turn, message::StopReason, strategy::*};
///
/// let thread = Snapshot::new(vec![
///     Message::user(format!("Where is the parser? {}", "I looked. ".repeat(40))),
///     Message::assistant("In src/parse.rs."),
///     Message::user("How long is it?"),
/// ]);
/// let strategy = Summarize { messages: 1, user_messages: 0, ..Summarize::default() };
/// let mut attempt = strategy.begin(&thread, &Brief::default());
/// // A driver calls the requested model and hands the answer back.
/// while let Step::Call { model, request, .. } = attempt.step() {
///     assert_eq!(model, ModelRole::Conversation);
///     assert_eq!(request.messages.len(), 3);
///     let answer = Message::assistant("The parser is in src/parse.rs.");
///     attempt.handle(Ok(Turn::new(answer, StopReason::EndTurn, None)));
/// }
/// let Step::Proposed(proposal) = attempt.step() else { panic!("the model answered") };
/// assert_eq!(proposal.plan.messages_after(), 2);
/// ```
pub trait Attempt: fmt::Debug + Send {
    /// Returns the next step. Calling it again returns the same step.
    fn step(&self) -> Step<'_>;

    /// Takes the answer to the call that [`step`](Self::step) requested. Ignored if no call was
    /// requested.
    fn handle(&mut self, answer: Result<Turn, ModelError>);
}

/// The next step of an attempt, or its end.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Step<'a> {
    /// Call a model with this request and pass the answer to [`Attempt::handle`].
    Call {
        /// Which model to call.
        model: ModelRole,
        /// The request to send.
        request: &'a Request,
        /// Number of finished calls.
        done: usize,
        /// Number of calls needed in all, as far as known.
        total: usize,
        /// Time to wait before the call: zero except for a retry.
        after: Duration,
    },
    /// The attempt ended with this proposal.
    Proposed(&'a Proposal),
    /// The attempt gave up.
    Failed(&'a StrategyError),
}

/// A proposed plan for the thread that the attempt began with, with its batches, reports and cost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Proposal {
    /// The edits of the thread.
    pub plan: Plan,
    /// The batches that the compaction makes, also those that a later one of them replaces. They
    /// become part of its record in the log.
    pub batches: Vec<Batch>,
    /// The strategies that a ladder tried, in order. The rung without a failure made the plan. If
    /// all failed, the plan is the smallest one that missed only the target.
    pub rungs: Vec<Rung<StrategyError>>,
    /// How much of the conversation's facts the compacted thread keeps, if that was audited.
    pub retention: Option<Retention>,
    /// Notes for the user on what no model summarised and why, one sentence each. Usually empty.
    pub notes: Vec<Text>,
    /// The user's words that the model quoted beside its summary, not checked yet.
    pub quotes: Quotes,
    /// What these quotes change in the standing rules; set by [`Snapshot::settle`], which checks
    /// them.
    pub quoted: QuotedChanges,
    /// Why the compacted thread keeps too few facts; set by [`Snapshot::settle`] if it does.
    pub shortfall: Option<Text>,
    /// Token usage of all model calls of the attempt; set by [`drive`](crate::drive::drive()).
    pub usage: Usage,
    /// Number of these calls.
    pub calls: usize,
    /// Whether the fill wrote the last summary, so that it has its lists already.
    pub(crate) is_filled: bool,
}

/// Which of the host's models to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelRole {
    /// The model that holds the conversation.
    Conversation,
    /// A fast and cheap model; the conversation's model if none is configured.
    Fast,
    /// The conversation's provider, which is asked to
    /// [compact](crate::model::Model::compact_natively) instead of to answer.
    Native,
}

pub(super) type Result<T, E = StrategyError> = std::result::Result<T, E>;

/// Why an attempt gave up. The thread is unchanged in every case.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StrategyError {
    /// The strategy calls a model, and none is configured.
    #[error("this strategy needs a model, but none is configured")]
    NeedsModel,
    /// The conversation's provider does not offer a compaction, or its answer holds none.
    #[error("the provider of the conversation made no compaction of its own")]
    NotNative,
    /// The thread holds nothing that this strategy could remove.
    #[error("nothing to compact: {reason}")]
    NothingToCompact {
        /// The reason, with numbers.
        reason: Text,
    },
    /// The request that the model would have to read exceeds its window.
    #[error("the summary request needs about {tokens} tokens; the window has {window}")]
    TooLong {
        /// Tokens of the request and its answer.
        tokens: u64,
        /// Size of the window in tokens.
        window: u64,
    },
    /// The model call failed.
    #[error(transparent)]
    Model(Box<ModelError>),
    /// The answer holds no text.
    #[error("the model answered without a summary ({stop_reason})")]
    BlankSummary {
        /// Why the model stopped.
        stop_reason: StopReason,
    },
    /// The model called a tool instead of answering with text.
    #[error("the model called {tool} instead of writing a summary")]
    CalledTool {
        /// Name of the tool.
        tool: Text,
    },
    /// The answer was cut off or refused.
    #[error("the summary is incomplete: the model stopped with {stop_reason}")]
    Incomplete {
        /// Why the model stopped.
        stop_reason: StopReason,
    },
    /// The plan could not be built.
    #[error(transparent)]
    Plan(#[from] CompactError),
    /// The acceptance check rejected the plan.
    #[error("rejected: {0}")]
    Rejected(#[from] Rejection),
    /// The chunked run ended without a summary.
    #[error(transparent)]
    Run(Box<RunError>),
    /// The summary keeps too few of the conversation's facts.
    #[error("{0}")]
    KeepsTooLittle(Text),
    /// Every rung of the ladder failed.
    #[error("every strategy of the ladder failed{}", listed(.rungs))]
    NoRung {
        /// The result of each rung, in order.
        rungs: Vec<Rung<StrategyError>>,
    },
    /// The attempt reached the limit on model calls.
    #[error("gave up after {calls} calls of a model")]
    TooManyCalls {
        /// Number of calls made.
        calls: usize,
    },
    /// The strategy's code panicked, in a session or on a rung of a ladder. The attempt is dropped.
    #[error("the strategy {strategy} panicked: {message}")]
    Panicked {
        /// Name of the strategy.
        strategy: Text,
        /// The panic's message.
        message: Text,
    },
}

impl Proposal {
    /// Returns the proposal of a plan.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            batches: Vec::new(),
            rungs: Vec::new(),
            retention: None,
            notes: Vec::new(),
            quotes: Quotes::default(),
            quoted: QuotedChanges::default(),
            shortfall: None,
            usage: Usage::default(),
            calls: 0,
            is_filled: false,
        }
    }

    /// Returns the proposal of a plan whose last summary the fill wrote.
    pub(super) fn filled(plan: Plan) -> Self {
        Self { is_filled: true, ..Self::new(plan) }
    }
}

impl From<Plan> for Proposal {
    fn from(plan: Plan) -> Self {
        Self::new(plan)
    }
}

impl StrategyError {
    /// Whether the thread needed no compaction and no model was called.
    ///
    /// ```
    /// use threadfold::strategy::StrategyError;
    ///
    /// let nothing = StrategyError::NothingToCompact { reason: "one message".into() };
    /// assert!(nothing.is_nothing_to_compact());
    /// assert!(!StrategyError::NeedsModel.is_nothing_to_compact());
    /// ```
    #[must_use]
    pub fn is_nothing_to_compact(&self) -> bool {
        let Self::NoRung { rungs } = self else {
            return matches!(self, Self::NothingToCompact { .. });
        };
        rungs.iter().all(|rung| {
            rung.calls == 0 && rung.failure.as_ref().is_some_and(Self::is_nothing_to_compact)
        })
    }

    /// Whether the request exceeded the model's window; for a ladder, whether that happened on any
    /// rung.
    ///
    /// ```
    /// use threadfold::message::{ModelError, ModelErrorKind};
    /// use threadfold::strategy::StrategyError;
    ///
    /// let (limit, found) = (Some(200_000), None);
    /// let kind = ModelErrorKind::Overflow { limit, found, output: None };
    /// assert!(StrategyError::from_model(ModelError::new(kind, "prompt is too long")).is_too_long());
    /// assert!(!StrategyError::NeedsModel.is_too_long());
    /// ```
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        if let Self::Model(error) = self {
            return error.is_overflow();
        }
        let Self::NoRung { rungs } = self else { return matches!(self, Self::TooLong { .. }) };
        rungs.iter().filter_map(|rung| rung.failure.as_ref()).any(Self::is_too_long)
    }
}

impl Rung<StrategyError> {
    /// Returns the form that a log stores.
    ///
    /// ```
    /// use threadfold::{Message, strategy::*};
    ///
    /// let thread = Snapshot::new(vec![Message::user("hi")]);
    /// let ladder = Ladder::new([std::sync::Arc::new(KeepRecent::default()) as _]);
    /// let attempt = ladder.begin(&thread, &Brief::default());
    /// let Step::Failed(StrategyError::NoRung { rungs }) = attempt.step() else {
    ///     panic!("one message")
    /// };
    /// let report = rungs[0].report();
    /// assert_eq!((report.strategy.as_str(), report.calls), ("keep-recent", 0));
    /// assert!(report.failure.is_some_and(|words| words.starts_with("nothing to compact")));
    /// ```
    #[must_use]
    pub fn report(&self) -> Rung {
        let failure = self.failure.as_ref().map(|failure| failure.to_string().into());
        Rung { strategy: self.strategy.clone(), failure, usage: self.usage, calls: self.calls }
    }
}

/// Lists the failure of each rung.
fn listed(rungs: &[Rung<StrategyError>]) -> String {
    let failed: Vec<String> = rungs
        .iter()
        .filter_map(|rung| Some(format!("{}: {}", rung.strategy, rung.failure.as_ref()?)))
        .collect();
    if failed.is_empty() { String::new() } else { format!(": {}", failed.join("; ")) }
}

impl Proposal {
    /// Redacts the failures of the rungs and the notes.
    pub(crate) fn redact(&mut self, redactor: &dyn Redactor) {
        let mut redaction = Redaction::of(redactor);
        self.plan =
            self.plan.clone().with_new_messages(|message| *message = redaction.message(message));
        for batch in &mut self.batches {
            redact(&mut batch.text, redactor);
        }
        redact_rungs(&mut self.rungs, redactor);
        self.notes.iter_mut().for_each(|note| redact(note, redactor));
    }
}

impl StrategyError {
    /// The kind of an error as a constant, without any text of the error.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::NeedsModel => "needs_model",
            Self::NotNative => "not_native",
            Self::NothingToCompact { .. } => "nothing_to_compact",
            Self::TooLong { .. } => "too_long",
            Self::Model(error) => match error.kind {
                ModelErrorKind::Overflow { .. } => "overflow",
                ModelErrorKind::Retryable { .. } => "retryable",
                ModelErrorKind::Authentication => "authentication",
                ModelErrorKind::Refused => "refused",
                ModelErrorKind::NoModel => "no_model",
                ModelErrorKind::Other => "model",
            },
            Self::BlankSummary { .. } => "blank_summary",
            Self::CalledTool { .. } => "called_tool",
            Self::Incomplete { .. } => "incomplete",
            Self::Plan(_) => "plan",
            Self::Rejected(_) => "rejected",
            Self::KeepsTooLittle(_) => "keeps_too_little",
            Self::Run(_) => "run",
            Self::NoRung { .. } => "no_rung",
            Self::TooManyCalls { .. } => "too_many_calls",
            Self::Panicked { .. } => "panicked",
        }
    }

    /// Redacts every text from a model, a provider or a strategy.
    pub(crate) fn redact(&mut self, redactor: &dyn Redactor) {
        match self {
            Self::NothingToCompact { reason: text }
            | Self::CalledTool { tool: text }
            | Self::Panicked { message: text, strategy: _ } => redact(text, redactor),
            Self::BlankSummary { stop_reason } | Self::Incomplete { stop_reason } => {
                redact_reason(stop_reason, redactor);
            }
            Self::Model(error) => redact_model(error, redactor),
            Self::Run(error) => redact_run(error, redactor),
            Self::NoRung { rungs } => redact_rungs(rungs, redactor),
            Self::NeedsModel
            | Self::NotNative
            | Self::TooLong { .. }
            | Self::Plan(_)
            | Self::Rejected(_)
            | Self::KeepsTooLittle(_)
            | Self::TooManyCalls { .. } => {}
        }
    }
}

fn redact(text: &mut Text, redactor: &dyn Redactor) {
    *text = redacted_text(text, redactor);
}

fn redact_rungs(rungs: &mut [Rung<StrategyError>], redactor: &dyn Redactor) {
    let failures = rungs.iter_mut().filter_map(|rung| rung.failure.as_mut());
    failures.for_each(|failure| failure.redact(redactor));
}

fn redact_run(error: &mut RunError, redactor: &dyn Redactor) {
    match error {
        RunError::Stopped { reason, .. } => redact_reason(reason, redactor),
        RunError::Model { message, .. } | RunError::Exhausted { message, .. } => {
            redact(message, redactor);
        }
        RunError::NothingToSummarise
        | RunError::TooManyChunks { .. }
        | RunError::TooManyRounds { .. }
        | RunError::BlankSummary { .. }
        | RunError::NotFolded { .. }
        | RunError::DoesNotFit { .. }
        | RunError::Aborted { .. }
        | RunError::Format { .. }
        | RunError::Chunks { .. }
        | RunError::Option { .. }
        | RunError::NoRoom { .. }
        | RunError::PieceTooLarge { .. }
        | RunError::NotSmaller { .. } => {}
    }
}

/// Redacts the message, and drops the source error if its text holds secrets.
fn redact_model(error: &mut ModelError, redactor: &dyn Redactor) {
    let message = redacted_text(&error.message, redactor);
    let mut sources = std::iter::successors(error.source(), |source| (*source).source());
    let shows_secret = sources.any(|source| {
        let words = Text::from(source.to_string());
        redacted_text(&words, redactor) != words
    });
    if message != error.message || shows_secret {
        *error = ModelError::new(error.kind.clone(), message).with_usage(error.usage);
    }
}

/// Redacts the name of an unknown stop reason. Known names are constants of this crate.
fn redact_reason(reason: &mut StopReason, redactor: &dyn Redactor) {
    if let StopReason::Other(name) = reason {
        redact(name, redactor);
    }
}
