//! What a strategy proposes.

use super::error::{StrategyError, redact, redact_rungs};
use crate::{
    compact::{
        CompactError, CompactReport, CompactionCost, Plan, Prices, PromptChange, Size,
        VoidReasoning,
    },
    ledger::{QuotedChanges, Quotes},
    log::Rung,
    message::{Batch, Message, Redactor, Text, ToolSpec, Usage, redact::Redaction},
    retention::{Facts, Retention},
    tokens::TokenCounter,
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
    /// The user's words that the models quoted beside their summaries, not checked yet. Those of all
    /// strategies that were tried are added, whatever became of their summaries.
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

    /// Returns the proposal of a plan that the model wrote for this thread. It is audited, and nothing
    /// is added to the model's summaries.
    pub(crate) fn audited(
        plan: Plan,
        thread: &[Message],
        facts: Option<&Facts>,
    ) -> Result<Self, CompactError> {
        let after = plan.after(thread)?;
        let retention = facts.map(|facts| facts.beside(&after).retention().shortened());
        Ok(Self { retention, ..Self::new(plan) })
    }

    /// Returns the report of the plan for this thread, with the strategy's retention and notes, and
    /// with the reasoning that is void if the provider binds it.
    pub(crate) fn report(
        &self,
        thread: &[Message],
        counter: &dyn TokenCounter,
        binds_reasoning: bool,
    ) -> Result<CompactReport, CompactError> {
        let Proposal { plan, retention, notes, .. } = self;
        let after = plan.after(thread)?;
        let mut report = CompactReport::new(Size::of(thread, counter), &after, plan, counter);
        if binds_reasoning {
            report.void_reasoning = VoidReasoning::of(&after, counter);
        }
        report.retention = retention.clone().map(Box::new);
        report.notes.clone_from(notes);
        Ok(report)
    }

    /// Returns the cost and the savings of the compaction; `None` without prices. The request
    /// consists of system prompt, tools and messages; `is_warm` is whether the provider still
    /// caches it.
    pub(crate) fn cost(
        &self,
        prices: Option<Prices>,
        (system, tools, thread): (&[Message], &[ToolSpec], &[Message]),
        report: &CompactReport,
        counter: &dyn TokenCounter,
        is_warm: bool,
    ) -> Option<Box<CompactionCost>> {
        let prices = prices?;
        let untouched = thread.get(..self.plan.first_touched()).unwrap_or(thread);
        let fixed = counter.tools(tools).saturating_add(counter.messages(system));
        let sizes = [counter.messages(untouched), report.before.tokens, report.after.tokens];
        let [kept, before, after] = sizes.map(|messages| fixed.saturating_add(messages));
        let change = PromptChange { kept, before, after };
        Some(Box::new(prices.compaction(change, &self.usage, is_warm)))
    }

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

impl From<Plan> for Proposal {
    fn from(plan: Plan) -> Self {
        Self::new(plan)
    }
}
