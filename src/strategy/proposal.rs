//! What a strategy proposes.

use super::error::{StrategyError, redact, redact_rungs};
use crate::{
    compact::Plan,
    ledger::{QuotedChanges, Quotes},
    log::Rung,
    message::{Batch, Redactor, Text, Usage, redact::Redaction},
    retention::Retention,
};

/// A proposed plan for the thread of a view, with its batches, reports and cost.
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

impl Proposal {
    /// Redacts the new messages, the batches, the failures of the rungs and the notes.
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
