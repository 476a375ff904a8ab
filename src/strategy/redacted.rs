//! Redaction of strategy errors, and of the failures and notes in proposals: models and providers
//! quote what they were sent.

use std::error::Error;

use super::{
    contract::{Proposal, StrategyError},
    run_error::RunError,
};
use crate::log::Rung;
use crate::message::{
    ModelError, ModelErrorKind, Redactor, StopReason, Text, redact::redacted_text,
};

impl Proposal {
    /// Redacts the failures of the rungs and the notes.
    pub(crate) fn redact(&mut self, redactor: &dyn Redactor) {
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
