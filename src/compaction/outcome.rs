//! The outcome of an attempt at a compaction: its check, its error, its report and its cost.

use super::error::CompactionError;
use crate::{
    compact::{CompactError, CompactReport, CompactionCost, Prices, PromptChange, Size},
    message::{Message, Redactor, ToolSpec},
    strategy::{Brief, Proposal, Snapshot, StrategyError},
    tokens::TokenCounter,
};

/// Returns the outcome of an attempt with redacted error texts: its own, those of its rungs, and
/// those in its notes. Providers quote requests in their errors.
pub(crate) fn redacted(
    mut outcome: Result<Proposal, CompactionError>,
    redactor: Option<&dyn Redactor>,
) -> Result<Proposal, CompactionError> {
    match (&mut outcome, redactor) {
        (_, None) => {}
        (Ok(proposal), Some(redactor)) => proposal.redact(redactor),
        (Err(failed), Some(redactor)) => failed.redact(redactor),
    }
    outcome
}

impl Proposal {
    /// Returns the proposal if its plan passes the acceptance check.
    ///
    /// ```
    /// use threadfold::{Message, Plan, Replacement, compact::CompactOptions};
    /// use threadfold::strategy::{Brief, Proposal, Snapshot};
    ///
    /// let thread = Snapshot::new(vec![Message::assistant("Hello!"), Message::user("Fix the parser.")]);
    /// // Of the whole thread, so what the user asked for would be gone.
    /// let all = Replacement::new("Hi.");
    /// let plan = Plan::new(thread.messages(), &[all], &CompactOptions::default())?;
    /// let error = Proposal::new(plan).accepted(&thread, &Brief::default()).unwrap_err();
    /// assert_eq!(error.to_string(), "rejected: the last message that the user typed would be gone");
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionError`], with the tokens that were spent, if it does not.
    pub fn accepted(self, thread: &Snapshot, brief: &Brief) -> Result<Self, CompactionError> {
        let (usage, calls) = (self.usage, self.calls);
        let settled = thread.settle(self, brief);
        settled.map_err(|rejection| CompactionError::new(rejection).after(usage, calls))
    }

    /// Returns the error of a compaction whose proposal could not be used.
    pub(crate) fn failed(&self, error: impl Into<StrategyError>) -> CompactionError {
        CompactionError::new(error).after(self.usage, self.calls)
    }

    /// Returns the report of the plan for this thread, with the strategy's retention and notes.
    pub(crate) fn report(
        &self,
        thread: &[Message],
        counter: &dyn TokenCounter,
    ) -> Result<CompactReport, CompactError> {
        let Proposal { plan, retention, notes, .. } = self;
        let after = plan.after(thread)?;
        let mut report = CompactReport::new(Size::of(thread, counter), &after, plan, counter);
        report.retention = retention.clone().map(Box::new);
        report.notes.clone_from(notes);
        Ok(report)
    }

    /// Returns what the compaction costs and saves; `None` without prices. The request is given as
    /// system prompt, tools and messages; `is_warm` is whether the provider still caches it.
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
}
