//! What a strategy is: machines that propose, and never act.
//!
//! A strategy has no async, no I/O and no clock. It begins an [`Attempt`], which says what it
//! needs next and is told what came of it, until it proposes a [`Plan`] or gives up. One driver
//! runs them all, and one check ([`Snapshot::accept`]) judges every proposal.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    brief::Brief,
    chunked::options::RunError,
    fold_batches::error::FoldError,
    snapshot::{Rejection, Snapshot},
};
use crate::{
    compact::{CompactError, Plan},
    log::RungReport,
    message::{Batch, BatchId, ModelError, Request, StopReason, Text, Turn, Usage},
    retention::{Retention, Shortfall},
};

/// A way of making a thread smaller.
///
/// ```
/// use threadfold::{Plan, compact::CompactOptions, strategy::*};
/// use threadfold::compact::{Edit, Position};
///
/// /// Drops the first half, without a word.
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
///         let edit = Edit { range: Position::before(0)..Position::before(half), insert: vec![] };
///         attempt::propose(Plan::from_edits(
///             thread.messages(),
///             vec![edit],
///             &CompactOptions::default(),
///         ))
///     }
/// }
/// ```
pub trait CompactionStrategy: fmt::Debug + Send + Sync {
    /// The name by which it is registered, in kebab case.
    fn name(&self) -> &str;

    /// Begins an attempt on this thread.
    fn begin(&self, thread: &Snapshot, brief: &Brief) -> Box<dyn Attempt>;
}

/// One run of a strategy: a machine that is asked for its next step and told what came of it.
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
/// // What a driver does: ask the model that is named, and hand over what comes of it.
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
    /// Returns the next step. Asking twice gives the same.
    fn step(&self) -> Step<'_>;

    /// Takes the answer to the call that [`step`](Self::step) asked for. An answer that nobody
    /// asked for changes nothing.
    fn handle(&mut self, answer: Result<Turn, ModelError>);
}

/// What an attempt needs next, or how it ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Step<'a> {
    /// Ask a model this and hand the answer to [`Attempt::handle`].
    Call {
        /// Which model.
        model: ModelRole,
        /// What to ask.
        request: &'a Request,
        /// How far the attempt is.
        progress: Progress,
        /// How long to wait before the call: nothing, but for a call that is tried again.
        after: Duration,
    },
    /// The attempt proposes this.
    Proposed(&'a Proposal),
    /// The attempt gave up.
    Failed(&'a StrategyError),
}

/// How far an attempt is, in calls of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Calls that are done.
    pub done: usize,
    /// Calls that are needed, as far as is known.
    pub total: usize,
}

/// What an attempt proposes: a plan for the thread that it began with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Proposal {
    /// The edit.
    pub plan: Plan,
    /// What goes to the archive with it, before the plan is carried out.
    pub archive: Vec<ArchiveEntry>,
    /// What was tried, in order, by a strategy that tries others; the one that did not fail made
    /// the plan. If all failed, the plan is the smallest of those that only miss the target.
    pub rungs: Vec<Rung>,
    /// What of everything that was said the thread still says afterwards, where that was looked at.
    pub retention: Option<Retention>,
    /// What a person should know of how the plan came about, one sentence each: which part of the
    /// thread no model summarised, and why. Empty if all went as it should.
    pub notes: Vec<Text>,
}

/// A batch for the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ArchiveEntry {
    /// The batch.
    pub batch: Batch,
    /// The batches that it stands for. They are listed no more once it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<BatchId>,
}

/// What became of one rung of a ladder.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rung {
    /// The strategy of the rung.
    pub strategy: Text,
    /// Why it came to nothing; `None` for the one that was accepted.
    pub failure: Option<StrategyError>,
    /// What its calls of models cost together.
    pub usage: Usage,
    /// How many calls there were.
    pub calls: usize,
}

/// Which of the host's models is to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelRole {
    /// The one that the conversation is held with.
    Conversation,
    /// A fast and cheap one; the conversation's own where there is none.
    Fast,
}

/// Why an attempt gave up. The thread is untouched in every case.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StrategyError {
    /// The strategy asks a model, and none is configured.
    #[error("this strategy needs a model, and none is configured")]
    NeedsModel,
    /// There is nothing in the thread that this strategy could take.
    #[error("nothing to compact: {reason}")]
    NothingToCompact {
        /// Why not, with numbers.
        reason: Text,
    },
    /// What the model would have to read is longer than its window.
    #[error("about {tokens} tokens to sum up do not fit a window of {window}")]
    TooLong {
        /// What the request would have, answer included.
        tokens: u64,
        /// What the window holds.
        window: u64,
    },
    /// The model did not answer.
    #[error(transparent)]
    Model(Box<ModelError>),
    /// The model answered without a word of text.
    #[error("the model answered without a summary ({stop_reason})")]
    BlankSummary {
        /// Why it stopped.
        stop_reason: StopReason,
    },
    /// The model called tools although none was to be called.
    #[error("the model called {tool} instead of writing a summary")]
    CalledTool {
        /// The tool.
        tool: Text,
    },
    /// The model stopped before its summary was complete.
    #[error("the summary is incomplete: the model stopped with {stop_reason}")]
    Incomplete {
        /// Why it stopped.
        stop_reason: StopReason,
    },
    /// The plan could not be made.
    #[error(transparent)]
    Plan(#[from] CompactError),
    /// The plan was made, and the acceptance check refused it.
    #[error("rejected: {0}")]
    Rejected(#[from] Rejection),
    /// The run over the chunks of the thread ended without a summary.
    #[error(transparent)]
    Run(Box<RunError>),
    /// The thread could not be folded into batches.
    #[error(transparent)]
    Fold(Box<FoldError>),
    /// Its summary keeps too little of what was said.
    #[error(transparent)]
    KeepsTooLittle(#[from] Shortfall),
    /// Every rung of the ladder came to nothing.
    #[error("no rung of the ladder did it{}", listed(.rungs))]
    NoRung {
        /// What became of each, in order.
        rungs: Vec<Rung>,
    },
    /// The attempt asked for more calls than any attempt may.
    #[error("gave up after {calls} calls of a model")]
    TooManyCalls {
        /// How many there were.
        calls: usize,
    },
    /// Its code panicked, in a session or on a rung of a ladder. It is not asked again.
    #[error("the strategy {strategy} panicked: {message}")]
    Panicked {
        /// Its name.
        strategy: Text,
        /// What the panic said.
        message: Text,
    },
}

impl Proposal {
    /// Returns the proposal of a plan.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self { plan, archive: Vec::new(), rungs: Vec::new(), retention: None, notes: Vec::new() }
    }
}

impl StrategyError {
    /// Whether there was nothing to do, and nothing was asked: the thread is fine as it is.
    ///
    /// ```
    /// use threadfold::strategy::StrategyError;
    ///
    /// assert!(StrategyError::NothingToCompact { reason: "one message".into() }.is_nothing_to_compact());
    /// assert!(!StrategyError::NeedsModel.is_nothing_to_compact());
    /// ```
    #[must_use]
    pub fn is_nothing_to_compact(&self) -> bool {
        let idle = |rung: &Rung| {
            rung.calls == 0 && rung.failure.as_ref().is_some_and(Self::is_nothing_to_compact)
        };
        match self {
            Self::NothingToCompact { .. } => true,
            Self::NoRung { rungs } => rungs.iter().all(idle),
            Self::NeedsModel
            | Self::TooLong { .. }
            | Self::Model(_)
            | Self::BlankSummary { .. }
            | Self::CalledTool { .. }
            | Self::Incomplete { .. }
            | Self::Plan(_)
            | Self::Rejected(_)
            | Self::KeepsTooLittle(_)
            | Self::Run(_)
            | Self::Fold(_)
            | Self::TooManyCalls { .. }
            | Self::Panicked { .. } => false,
        }
    }

    /// Whether the model could not hold what it was to read; of a ladder, whether it was so on any
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
        match self {
            Self::TooLong { .. } => true,
            Self::Model(error) => error.is_overflow(),
            Self::NoRung { rungs } => {
                let too_long = |rung: &Rung| rung.failure.as_ref().is_some_and(Self::is_too_long);
                rungs.iter().any(too_long)
            }
            Self::NeedsModel
            | Self::NothingToCompact { .. }
            | Self::BlankSummary { .. }
            | Self::CalledTool { .. }
            | Self::Incomplete { .. }
            | Self::Plan(_)
            | Self::Rejected(_)
            | Self::KeepsTooLittle(_)
            | Self::Run(_)
            | Self::Fold(_)
            | Self::TooManyCalls { .. }
            | Self::Panicked { .. } => false,
        }
    }
}

impl ArchiveEntry {
    /// Returns the entry of a batch that stands for no other.
    #[must_use]
    pub fn new(batch: Batch) -> Self {
        Self { batch, replaces: Vec::new() }
    }
}

impl Rung {
    /// Returns the form that a log stores.
    ///
    /// ```
    /// use threadfold::{Message, strategy::*};
    ///
    /// let thread = Snapshot::new(vec![Message::user("hi")]);
    /// let ladder = Ladder::new([std::sync::Arc::new(KeepRecent::default()) as _]);
    /// let attempt = ladder.begin(&thread, &Brief::default());
    /// let Step::Failed(StrategyError::NoRung { rungs }) = attempt.step() else { panic!("one message") };
    /// let report = rungs[0].report();
    /// assert_eq!((report.strategy.as_str(), report.calls), ("keep-recent", 0));
    /// assert!(report.failure.is_some_and(|words| words.starts_with("nothing to compact")));
    /// ```
    #[must_use]
    pub fn report(&self) -> RungReport {
        let mut report = RungReport::new(self.strategy.clone());
        report.failure = self.failure.as_ref().map(|failure| failure.to_string().into());
        (report.usage, report.calls) = (self.usage, self.calls);
        report
    }
}

/// What became of each rung, in the words of its failure.
fn listed(rungs: &[Rung]) -> String {
    let failed = |rung: &Rung| Some(format!("{}: {}", rung.strategy, rung.failure.as_ref()?));
    let failed: Vec<String> = rungs.iter().filter_map(failed).collect();
    if failed.is_empty() { String::new() } else { format!(": {}", failed.join("; ")) }
}

const _: Option<(Box<dyn CompactionStrategy>, Box<dyn Attempt>)> = None;
