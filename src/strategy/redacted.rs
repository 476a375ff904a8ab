//! Redaction of strategy errors, and of the failures and notes in proposals: models and providers
//! quote what they were sent.

use super::{
    contract::{Proposal, Rung, StrategyError},
    run_error::RunError,
};
use crate::message::{
    ModelError, ModelErrorKind, Redactor, StopReason, Text, redact::redacted_text,
};

impl Proposal {
    /// Returns the proposal with its failures and notes redacted.
    pub(crate) fn redacted(self, redactor: &dyn Redactor) -> Self {
        let notes = self.notes.iter().map(|note| redacted_text(note, redactor)).collect();
        Self { rungs: of_rungs(self.rungs, redactor), notes, ..self }
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

    /// Returns the error with every text from a model, a provider or a strategy redacted.
    pub(crate) fn redacted(self, redactor: &dyn Redactor) -> Self {
        let text = |text: &Text| redacted_text(text, redactor);
        match self {
            Self::NothingToCompact { reason } => Self::NothingToCompact { reason: text(&reason) },
            Self::Model(error) => Self::Model(Box::new(of_model(*error, redactor))),
            Self::BlankSummary { stop_reason } => {
                Self::BlankSummary { stop_reason: stopped(stop_reason, redactor) }
            }
            Self::Panicked { strategy, message } => {
                Self::Panicked { strategy, message: text(&message) }
            }
            Self::CalledTool { tool } => Self::CalledTool { tool: text(&tool) },
            Self::Incomplete { stop_reason } => {
                Self::Incomplete { stop_reason: stopped(stop_reason, redactor) }
            }
            Self::Run(error) => Self::Run(Box::new(match *error {
                RunError::Stopped { chunk, reason } => {
                    RunError::Stopped { chunk, reason: stopped(reason, redactor) }
                }
                RunError::Model { chunk, kind, message } => {
                    RunError::Model { chunk, kind, message: text(&message) }
                }
                RunError::Exhausted { chunk, tries, kind, message } => {
                    RunError::Exhausted { chunk, tries, kind, message: text(&message) }
                }
                error @ (RunError::NothingToSummarise
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
                | RunError::NotSmaller { .. }) => error,
            })),
            Self::NoRung { rungs } => Self::NoRung { rungs: of_rungs(rungs, redactor) },
            error @ (Self::NeedsModel
            | Self::NotNative
            | Self::TooLong { .. }
            | Self::Plan(_)
            | Self::Rejected(_)
            | Self::KeepsTooLittle(_)
            | Self::TooManyCalls { .. }) => error,
        }
    }
}

fn of_rungs(rungs: Vec<Rung>, redactor: &dyn Redactor) -> Vec<Rung> {
    let rung = |rung: Rung| Rung {
        failure: rung.failure.map(|failure| failure.redacted(redactor)),
        ..rung
    };
    rungs.into_iter().map(rung).collect()
}

/// Redacts the message, and drops the source error if its text holds secrets.
fn of_model(error: ModelError, redactor: &dyn Redactor) -> ModelError {
    let message = redacted_text(&error.message, redactor);
    let source = std::error::Error::source(&error);
    let mut sources = std::iter::successors(source, |source| source.source());
    let shows = |source: &dyn std::error::Error| {
        let words = Text::from(source.to_string());
        redacted_text(&words, redactor) != words
    };
    if message == error.message && !sources.any(shows) {
        return error;
    }
    let usage = error.usage;
    let mut clean = ModelError::new(error.kind, message);
    clean.usage = usage;
    clean
}

fn stopped(reason: StopReason, redactor: &dyn Redactor) -> StopReason {
    // The names of known stop reasons are constants of this crate and hold no secrets.
    let StopReason::Other(words) = &reason else { return reason };
    StopReason::Other(redacted_text(words, redactor))
}
