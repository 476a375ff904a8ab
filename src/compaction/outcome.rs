//! What came of asking the models, and of the whole compaction.

use crate::{
    compact::{CompactError, CompactReport, CompactionCost, Prices, PromptChange, Size},
    message::{CompactionId, Message, Redactor, ToolSpec, Usage},
    strategy::{Brief, Proposal, Snapshot, StrategyError},
    tokens::TokenCounter,
};

/// What driving gave: a proposal, and what it cost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Driven {
    /// The proposal.
    pub proposal: Proposal,
    /// What all calls cost together, as far as the models said.
    pub usage: Usage,
    /// How many calls there were.
    pub calls: usize,
}

/// Why driving gave nothing, and what it cost all the same.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct DriveError {
    /// Why.
    #[source]
    pub error: StrategyError,
    /// What all calls cost together, as far as the models said.
    pub usage: Usage,
    /// How many calls there were.
    pub calls: usize,
}

/// What a compaction did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Done {
    /// Its number in the log.
    pub id: CompactionId,
    /// What it did, in numbers.
    pub report: CompactReport,
    /// What its calls of models cost together.
    pub usage: Usage,
    /// How many calls there were.
    pub calls: usize,
}

/// Returns what an attempt came to without what the redactor, if there is one, takes out of the words
/// of failures: those of the attempt, of its rungs and in its notes.
pub(crate) fn redacted(
    outcome: Result<Driven, DriveError>,
    redactor: Option<&dyn Redactor>,
) -> Result<Driven, DriveError> {
    let Some(redactor) = redactor else { return outcome };
    match outcome {
        Ok(driven) => Ok(Driven { proposal: driven.proposal.redacted(redactor), ..driven }),
        Err(failed) => Err(DriveError { error: failed.error.redacted(redactor), ..failed }),
    }
}

impl Driven {
    /// Returns a proposal that cost nothing.
    #[must_use]
    pub fn new(proposal: Proposal) -> Self {
        Self { proposal, usage: Usage::default(), calls: 0 }
    }

    /// Returns this if its plan passes the acceptance check.
    ///
    /// ```
    /// use threadfold::{Message, Plan, Replacement, compact::CompactOptions, drive::Driven};
    /// use threadfold::strategy::{Brief, Proposal, Snapshot};
    ///
    /// let thread = Snapshot::new(vec![Message::assistant("Hello!"), Message::user("Fix the parser.")]);
    /// // Of the whole thread, so what the user asked for would be gone.
    /// let all = Replacement::new("Hi.");
    /// let plan = Plan::new(thread.messages(), &[all], &CompactOptions::default())?;
    /// let error = Driven::new(Proposal::new(plan)).accepted(&thread, &Brief::default()).unwrap_err();
    /// assert_eq!(error.to_string(), "rejected: the last message that the user typed would be gone");
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DriveError`], with what was spent, if it does not.
    pub fn accepted(self, thread: &Snapshot, brief: &Brief) -> Result<Self, DriveError> {
        let Self { proposal, usage, calls } = self;
        match thread.settle(proposal, brief) {
            Ok(settled) => Ok(Self { proposal: settled.proposal, usage, calls }),
            Err(rejection) => Err(DriveError { error: rejection.into(), usage, calls }),
        }
    }

    /// The error of a compaction whose proposal could not be used.
    pub(crate) fn failed(&self, error: impl Into<StrategyError>) -> DriveError {
        DriveError { error: error.into(), usage: self.usage, calls: self.calls }
    }

    /// What the plan does to this thread, with what the strategy says of it.
    pub(crate) fn report(
        &self,
        thread: &[Message],
        counter: &dyn TokenCounter,
    ) -> Result<CompactReport, CompactError> {
        let Proposal { plan, retention, notes, .. } = &self.proposal;
        let after = plan.after(thread)?;
        let mut report = CompactReport::new(Size::of(thread, counter), &after, plan, counter);
        report.retention = retention.clone().map(Box::new);
        report.notes.clone_from(notes);
        Ok(report)
    }

    /// What the compaction costs and saves, if the prices are known. The request is given as system
    /// prompt, tools and messages; `is_warm` says whether the provider still has its cache.
    pub(crate) fn cost(
        &self,
        prices: Option<Prices>,
        (system, tools, thread): (&[Message], &[ToolSpec], &[Message]),
        report: &CompactReport,
        counter: &dyn TokenCounter,
        is_warm: bool,
    ) -> Option<Box<CompactionCost>> {
        let prices = prices?;
        let untouched = thread.get(..self.proposal.plan.first_touched()).unwrap_or(thread);
        let fixed = counter.tools(tools).saturating_add(counter.messages(system));
        let request = |messages: u64| fixed.saturating_add(messages);
        let change = PromptChange {
            kept: request(counter.messages(untouched)),
            before: request(report.before.tokens),
            after: request(report.after.tokens),
        };
        Some(Box::new(prices.compaction(change, &self.usage, is_warm)))
    }
}

impl DriveError {
    /// Returns the error of an attempt that asked nobody.
    #[must_use]
    pub fn new(error: StrategyError) -> Self {
        Self { error, usage: Usage::default(), calls: 0 }
    }

    /// Whether there was nothing to do, and nothing was asked: the thread is fine as it is.
    #[must_use]
    pub fn is_nothing_to_compact(&self) -> bool {
        self.calls == 0 && self.error.is_nothing_to_compact()
    }
}
