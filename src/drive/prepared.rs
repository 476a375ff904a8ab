//! A compaction that is prepared without changing the thread, and adopted later.
//!
//! A job holds a copy of the thread and borrows nothing of its driver, so it can run on any task
//! while the conversation goes on. Its result can be adopted as long as the messages that it was
//! prepared for are still in the thread; messages appended since are kept. The messages themselves
//! are compared, by handle, so an undone compaction in between does no harm.

use std::sync::Arc;

use super::{
    compact::with_facts,
    models::{Calls, Models},
    span::CompactionSpan,
};
use crate::{
    compact::CompactReport,
    compaction::{CompactionError, redacted},
    message::{Delta, Message, StopReason, Text},
    store::Journal,
    strategy::{
        self, Brief, CompactionStrategy, ModelCall, Proposal, Rejection, Snapshot, StrategyError,
        Terms, View,
    },
};

/// A compaction to be prepared, with a copy of the thread from when the job was made.
#[derive(Debug)]
pub(crate) struct CompactionJob {
    pub(crate) strategy: Arc<dyn CompactionStrategy>,
    /// The thread as the strategy sees it.
    pub(crate) snapshot: Snapshot,
    /// Whether the snapshot has its facts; otherwise they are read from the journal first, and so
    /// perhaps from the store.
    pub(crate) has_facts: bool,
    pub(crate) journal: Journal,
    pub(crate) brief: Brief,
    pub(crate) terms: Terms,
}

/// A prepared compaction, or the error that ended its preparation. The thread has not changed.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use threadfold::{ModelAgent, Session, strategy::KeepRecent, testing::ScriptedModel};
///
/// let model = Arc::new(ScriptedModel::new(["In src/parse.rs.", "A hundred lines."]));
/// let mut session = Session::builder(ModelAgent::new(model)).build()?;
/// block_on(async { session.send("Where is the parser?").await })?;
/// block_on(async { session.send("How long is it?").await })?;
/// let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
/// let preview = block_on(session.preview(Arc::new(keep)));
/// assert_eq!(preview.report().map_err(Clone::clone)?.after.messages, 2);
/// let proposal = preview.outcome().map_err(Clone::clone)?;
/// assert_eq!((proposal.calls, proposal.plan.messages_after()), (0, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct PreparedCompaction {
    messages: Arc<Vec<Message>>,
    /// The thread as the strategy saw it.
    snapshot: Snapshot,
    pub(crate) strategy: Text,
    pub(crate) brief: Brief,
    pub(crate) span: CompactionSpan,
    outcome: Result<(Proposal, CompactReport), CompactionError>,
}

impl CompactionJob {
    /// Runs the strategy with these models and returns the prepared compaction.
    pub(crate) async fn run(
        mut self,
        models: Models<'_>,
        observe: &mut (dyn FnMut(&ModelCall, Option<&Delta>) + Send),
    ) -> PreparedCompaction {
        let span = CompactionSpan::begin(
            self.journal.thread(),
            self.journal.log().thread_id(),
            self.strategy.name(),
            &self.brief,
        );
        let outcome = self.prepare(&span, models, observe).await;
        let Self { journal, strategy, snapshot, brief, .. } = self;
        let (messages, strategy) = (journal.thread().messages().clone(), strategy.name().into());
        PreparedCompaction { messages, snapshot, strategy, brief, span, outcome }
    }

    async fn prepare(
        &mut self,
        span: &CompactionSpan,
        models: Models<'_>,
        mut observe: &mut (dyn FnMut(&ModelCall, Option<&Delta>) + Send),
    ) -> Result<(Proposal, CompactReport), CompactionError> {
        if !self.has_facts {
            let snapshot = self.snapshot.clone();
            self.snapshot = with_facts(snapshot, &mut self.journal, &self.brief).await?;
        }
        let redactor = self.journal.redactor().map(AsRef::as_ref);
        let models = Models { redactor: redactor.or(models.redactor), ..models };
        let view = View::new(self.snapshot.clone(), self.journal.redacted(&self.brief));
        let mut calls = Calls { models, span, listener: &mut observe };
        let proposal =
            strategy::propose(self.strategy.as_ref(), &view, &mut calls, self.terms).await;
        let proposal = proposal.map_err(CompactionError::from);
        reported(&self.snapshot, redacted(proposal, redactor)?, &self.brief)
    }
}

impl PreparedCompaction {
    /// Returns the sizes before and after, and the retention.
    ///
    /// # Errors
    ///
    /// The [`CompactionError`] that ended the preparation.
    pub fn report(&self) -> Result<&CompactReport, &CompactionError> {
        self.outcome.as_ref().map(|(_, report)| report)
    }

    /// The text of the last new summary, for a person to read or edit; `None` if there is none.
    #[must_use]
    pub fn summary(&self) -> Option<&Text> {
        let (proposal, _) = self.outcome.as_ref().ok()?;
        let summaries = proposal.plan.new_messages().flat_map(Message::summaries);
        summaries.last().map(|summary| &summary.text)
    }

    /// Returns the compaction with this text in place of its last new [summary](Self::summary). It
    /// is checked again, and facts that the text omits are appended to it as to any summary. The
    /// outcome is an error if the text is blank or the proposal is no longer acceptable.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ContentBlock, ModelAgent, Session};
    /// use threadfold::{strategy::Summarize, testing::ScriptedModel};
    ///
    /// let story = "Once upon a time there was a parser. ".repeat(20);
    /// let model = Arc::new(ScriptedModel::new([story.as_str(), "The end.", "A tale."]));
    /// let short = Summarize { messages: 2, ..Summarize::default() };
    /// let builder = Session::builder(ModelAgent::new(model)).strategy(Arc::new(short));
    /// let mut session = builder.build()?;
    /// block_on(async { session.send("Tell me a story.").await })?;
    /// block_on(async { session.send("And then?").await })?;
    ///
    /// let prepared = block_on(session.prepare_compaction());
    /// let edited = format!("{} It is about a parser.", prepared.summary().ok_or("a summary")?);
    /// block_on(session.adopt(prepared.edited(edited)))?;
    /// let mut blocks = session.messages().iter().flat_map(|message| &message.content);
    /// let is_edited = |block: &ContentBlock| matches!(block, ContentBlock::Summary(summary)
    ///     if summary.text.starts_with("A tale. It is about a parser."));
    /// assert!(blocks.any(is_edited));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn edited(self, text: impl Into<Text>) -> Self {
        let text = text.into();
        let Self { outcome, snapshot, brief, .. } = self;
        let outcome = outcome.and_then(|(proposal, _)| {
            if text.trim().is_empty() {
                let blank = StrategyError::BlankSummary { stop_reason: StopReason::EndTurn };
                return Err(proposal.failed(blank));
            }
            let plan = proposal.plan.with_last_summary(text);
            // Audit and lists were those of the text that is replaced.
            let proposal = Proposal { plan, retention: None, is_filled: false, ..proposal };
            let (usage, calls) = (proposal.usage, proposal.calls);
            // As the strategy's own proposal, it may miss the target.
            let settled = snapshot.settle_within(proposal, &brief, brief.limit);
            let settled = settled.map_err(|why| CompactionError::new(why).after(usage, calls))?;
            reported(&snapshot, settled, &brief)
        });
        Self { outcome, snapshot, brief, ..self }
    }

    /// Returns the proposal and its cost.
    ///
    /// # Errors
    ///
    /// The [`CompactionError`] that ended the preparation.
    pub fn outcome(&self) -> Result<&Proposal, &CompactionError> {
        self.outcome.as_ref().map(|(proposal, _)| proposal)
    }

    /// Returns the proposal for the present thread, given with its snapshot: messages that were
    /// appended since are kept.
    ///
    /// # Errors
    ///
    /// The [`CompactionError`] that ended the preparation, or that the thread was rewritten since.
    pub(crate) fn fitted(
        &self,
        present: &[Message],
        snapshot: &Snapshot,
        brief: &Brief,
    ) -> Result<Proposal, CompactionError> {
        let proposal = self.outcome().map_err(Clone::clone)?.clone();
        proposal.extended(&self.messages, present)?.accepted(snapshot, brief)
    }
}

/// The proposal with its report.
fn reported(
    snapshot: &Snapshot,
    proposal: Proposal,
    brief: &Brief,
) -> Result<(Proposal, CompactReport), CompactionError> {
    let binds = brief.binds_reasoning;
    let report = proposal.report(snapshot.messages(), snapshot.counter(), binds);
    let report = report.map_err(|stale| proposal.failed(Rejection::from(stale)))?;
    Ok((proposal, report))
}

const _: () = {
    const fn send<T: Send + Sync + 'static>() {}
    send::<PreparedCompaction>();
};
