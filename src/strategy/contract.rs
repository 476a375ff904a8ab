//! The strategy interface: what a strategy gets, what it returns, and why it may give up.
//!
//! A strategy proposes and never acts. It has no I/O and no clock; what it awaits is its [`Ask`]. One
//! driver runs every strategy, and one check ([`Snapshot::accept`](super::Snapshot::accept)) judges
//! every proposal.
//!
//! Errors and notes are redacted too, because models and providers quote the text of requests.
//!
//! A strategy that finds nothing to remove before it asks a model is not a compaction: a session
//! assigns no number, emits no event and logs nothing.

use std::{error::Error, fmt};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{ask::Ask, rejection::Rejection, run_error::RunError, view::View};
use crate::{
    compact::{CompactError, Plan},
    ledger::{QuotedChanges, Quotes},
    log::Rung,
    message::{
        Batch, BatchId, ModelError, ModelErrorKind, Redactor, StopReason, Text, Usage,
        redact::{Redaction, redacted_text},
    },
    retention::Retention,
};

/// An algorithm that makes a thread smaller.
///
/// ```
/// use async_trait::async_trait;
/// use futures::executor::block_on;
/// use threadfold::{Message, Plan, Request};
/// use threadfold::strategy::{Ask, CompactionStrategy, ModelRole, Proposal, StrategyError, View};
/// use threadfold::strategy::{Brief, Snapshot, summary_of};
/// use threadfold::{drive::{Models, propose}, testing::ScriptedModel};
///
/// /// Sums up everything before the user's newest text.
/// #[derive(Debug)]
/// struct SumUp;
///
/// #[async_trait]
/// impl CompactionStrategy for SumUp {
///     fn name(&self) -> &str {
///         "sum-up"
///     }
///
///     async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
///         let messages = view.thread.messages();
///         let last = messages.iter().rposition(Message::is_typed).unwrap_or(messages.len());
///         let cut = view.thread.cut_at_or_before(last);
///         let question = Message::user("Sum up the conversation so far.");
///         let request = [&messages[..cut], &[question]].concat();
///         let answer = ask.question(ModelRole::Fast, Request::new(request)).await?;
///         Ok(Plan::summarise(messages, 0..cut, summary_of(&answer)?)?.into())
///     }
/// }
///
/// let long = Message::assistant("I looked. ".repeat(40));
/// let thread = [Message::user("Where is the parser?"), long, Message::user("How long is it?")];
/// let thread = Snapshot::new(thread.to_vec());
/// let model = ScriptedModel::new(["They looked for the parser."]);
/// let models = Models::one(&model);
/// let driven = block_on(propose(&SumUp, &thread, &Brief::default(), models, &mut |_, _| {}))?;
/// assert_eq!((driven.calls, driven.plan.messages_after()), (1, 2));
/// # Ok::<(), threadfold::drive::CompactionError>(())
/// ```
#[async_trait]
pub trait CompactionStrategy: fmt::Debug + Send + Sync {
    /// The name under which it is registered, in kebab case.
    fn name(&self) -> &str;

    /// Proposes a plan for this thread. Models are asked through `ask` only, and nothing else is
    /// awaited, so that the same answers give the same proposal. The future may be dropped at any
    /// point; nothing has changed then.
    ///
    /// # Errors
    ///
    /// [`StrategyError`]; [`StrategyError::NothingToCompact`] if nothing can be removed. The thread
    /// is unchanged in every case.
    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError>;
}

/// A proposed plan for the thread of a view, with its batches, reports and cost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Proposal {
    /// The edits of the thread.
    pub plan: Plan,
    /// Batches to archive before the plan is applied.
    pub archive: Vec<ArchiveEntry>,
    /// The strategies that a ladder tried, in order. The rung without a failure made the plan. If
    /// all failed, the plan is the smallest one that missed only the target.
    pub rungs: Vec<Rung<StrategyError>>,
    /// How much of the conversation's facts the compacted thread keeps, if that was audited.
    pub retention: Option<Retention>,
    /// Notes for the user on what no model summarised and why, one sentence each. Usually empty.
    pub notes: Vec<Text>,
    /// The user's words that the model quoted beside its summary, not checked yet.
    pub quotes: Quotes,
    /// What these quotes change in the standing rules; set by
    /// [`Snapshot::settle`](super::Snapshot::settle), which checks them.
    pub quoted: QuotedChanges,
    /// Why the compacted thread keeps too few facts; set by
    /// [`Snapshot::settle`](super::Snapshot::settle) if it does.
    pub shortfall: Option<Text>,
    /// Token usage of all model calls; set by the [driver](crate::drive).
    pub usage: Usage,
    /// Number of these calls.
    pub calls: usize,
    /// Whether the fill wrote the last summary, so that it has its lists already.
    pub(crate) is_filled: bool,
}

/// A batch to archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveEntry {
    /// The batch.
    pub batch: Batch,
    /// Ids of the archived batches that this batch replaces. The archive no longer lists those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<BatchId>,
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

/// Why a strategy gave up. The thread is unchanged in every case.
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
    /// The strategy reached the limit on model calls.
    #[error("gave up after {calls} calls of a model")]
    TooManyCalls {
        /// Number of calls made.
        calls: usize,
    },
    /// The strategy's code panicked.
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
            archive: Vec::new(),
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
    /// Returns [`StrategyError::NeedsModel`] if no model is configured, else
    /// [`StrategyError::Model`].
    ///
    /// ```
    /// use threadfold::message::{ModelError, ModelErrorKind};
    /// use threadfold::strategy::StrategyError;
    ///
    /// let none = ModelError::new(ModelErrorKind::NoModel, "");
    /// assert!(matches!(StrategyError::from_model(none), StrategyError::NeedsModel));
    /// let refused = ModelError::new(ModelErrorKind::Refused, "no");
    /// assert!(matches!(StrategyError::from_model(refused), StrategyError::Model(_)));
    /// ```
    #[must_use]
    pub fn from_model(error: ModelError) -> Self {
        if error.kind == ModelErrorKind::NoModel {
            Self::NeedsModel
        } else {
            Self::Model(Box::new(error))
        }
    }

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

impl ArchiveEntry {
    /// Returns the entry of a batch that replaces no other.
    #[must_use]
    pub fn new(batch: Batch) -> Self {
        Self { batch, replaces: Vec::new() }
    }
}

impl Rung<StrategyError> {
    /// Returns the form that a log stores.
    ///
    /// ```
    /// use threadfold::{Message, strategy::*};
    ///
    /// let view = View::new(Snapshot::new(vec![Message::user("hi")]), Brief::default());
    /// let ladder = Ladder::new([std::sync::Arc::new(KeepRecent::default()) as _]);
    /// let Err(StrategyError::NoRung { rungs }) = without_model(&ladder, &view) else {
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
        for batch in self.archive.iter_mut().map(|entry| &mut entry.batch) {
            redact(&mut batch.text, redactor);
        }
        redact_rungs(&mut self.rungs, redactor);
        self.notes.iter_mut().for_each(|note| redact(note, redactor));
    }
}

impl StrategyError {
    /// The rungs that failed with this error: those of a ladder, or the strategy itself.
    pub(super) fn rungs(&self, rung: Rung<Self>) -> Vec<Rung<Self>> {
        if let Self::NoRung { rungs } = self {
            return rungs.clone();
        }
        vec![Rung { failure: Some(self.clone()), ..rung }]
    }

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
