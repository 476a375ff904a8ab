//! Why a strategy gives up.

use std::error::Error;

use super::{rejection::Rejection, run_error::RunError};
use crate::{
    compact::CompactError,
    log::Rung,
    message::{ModelError, ModelErrorKind, Redactor, StopReason, Text, redact::redacted_text},
};

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

impl From<RunError> for StrategyError {
    fn from(error: RunError) -> Self {
        if error == RunError::NothingToSummarise {
            return Self::NothingToCompact { reason: "the thread has no text".into() };
        }
        if let RunError::Model { kind: ModelErrorKind::NoModel, .. } = error {
            return Self::NeedsModel;
        }
        Self::Run(Box::new(error))
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
                ModelErrorKind::VoidReasoning => "void_reasoning",
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

pub(super) fn redact(text: &mut Text, redactor: &dyn Redactor) {
    *text = redacted_text(text, redactor);
}

pub(super) fn redact_rungs(rungs: &mut [Rung<StrategyError>], redactor: &dyn Redactor) {
    let failures = rungs.iter_mut().filter_map(|rung| rung.failure.as_mut());
    failures.for_each(|failure| failure.redact(redactor));
}

fn redact_run(error: &mut RunError, redactor: &dyn Redactor) {
    match error {
        RunError::Stopped { reason, .. } => redact_reason(reason, redactor),
        RunError::Model { message, .. } => redact(message, redactor),
        RunError::NothingToSummarise
        | RunError::TooManyChunks { .. }
        | RunError::TooManyRounds { .. }
        | RunError::BlankSummary { .. }
        | RunError::NotFolded { .. }
        | RunError::DoesNotFit { .. }
        | RunError::Aborted { .. }
        | RunError::Format { .. }
        | RunError::Chunks { .. }
        | RunError::Option { .. } => {}
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
