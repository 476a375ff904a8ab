//! Compactions that are prepared without changing the thread: in the background, or as a preview.
//!
//! The future that prepares a compaction borrows nothing, so a host can run it on any task. Its
//! result can be adopted as long as the messages that it was prepared for are still in the thread;
//! messages appended since are kept.
//!
//! The messages themselves are compared, by handle, so an undone compaction in between does no
//! harm. The number of a prepared compaction is reserved at its start, because its summaries carry
//! it; numbers in a log are unique but need not ascend.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};

use super::{
    events::Emit,
    session::{Session, Settings},
};
use crate::{
    compact::{CompactError, CompactReport, Plan},
    compaction::redacted,
    drive::{Calls, CompactionError, CompactionSpan, with_facts},
    log::CompactionRecord,
    message::{CompactionId, CompactionReason, ContentBlock, Delta, Message, StopReason, Text},
    model::{Agent, AgentModel},
    store::Journal,
    strategy::{
        self, Brief, CompactionStrategy, Fallback, ModelCall, Proposal, Rejection, Snapshot,
        StrategyError, Terms, View,
    },
};

/// A compaction to be prepared, with a copy of the thread from when the job was made.
#[derive(Debug)]
struct CompactionJob {
    /// The agent that is asked if the strategy calls the conversation's own model.
    agent: Box<dyn Agent>,
    settings: Settings,
    strategy: Arc<dyn CompactionStrategy>,
    /// The thread without its facts, which may have to be read from the store first.
    snapshot: Snapshot,
    journal: Journal,
    brief: Brief,
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
    strategy: Text,
    brief: Brief,
    span: CompactionSpan,
    outcome: Result<(Proposal, CompactReport), CompactionError>,
}

impl CompactionJob {
    /// Runs the strategy and returns the prepared compaction.
    async fn run(
        mut self,
        observe: &mut (dyn FnMut(&ModelCall, Option<&Delta>) + Send),
    ) -> PreparedCompaction {
        let span = CompactionSpan::begin(
            self.journal.thread(),
            self.journal.log().thread_id(),
            self.strategy.name(),
            &self.brief,
        );
        let outcome = self.prepare(&span, observe).await;
        let Self { journal, strategy, snapshot, brief, .. } = self;
        let (messages, strategy) = (journal.thread().messages().clone(), strategy.name().into());
        PreparedCompaction { messages, snapshot, strategy, brief, span, outcome }
    }

    async fn prepare(
        &mut self,
        span: &CompactionSpan,
        mut observe: &mut (dyn FnMut(&ModelCall, Option<&Delta>) + Send),
    ) -> Result<(Proposal, CompactReport), CompactionError> {
        let snapshot = self.snapshot.clone();
        self.snapshot = with_facts(snapshot, &mut self.journal, &self.brief).await?;
        let conversation = AgentModel(self.agent.as_ref());
        let redactor = self.journal.redactor().map(AsRef::as_ref);
        let models = self.settings.models(&conversation, redactor);
        let view = View::new(self.snapshot.clone(), self.journal.redacted(&self.brief));
        let terms = Terms { fallback: Some(Fallback::IfNeeded), once: false, anyway: true };
        let mut calls = Calls { models, span, listener: &mut observe };
        let proposal = strategy::propose(self.strategy.as_ref(), &view, &mut calls, terms).await;
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
}

impl Session {
    /// Returns a future that prepares a compaction of the present thread with the session's
    /// strategy. It borrows nothing: run it on a task of its own while the conversation continues,
    /// and [adopt](Self::adopt) the result. It may be dropped at any point.
    ///
    /// If the strategy calls the conversation's own model, the future asks its copy of the agent.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, strategy::KeepRecent, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["one", "two", "three"]));
    /// let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    /// let builder = Session::builder(ModelAgent::new(model)).strategy(Arc::new(keep));
    /// let mut session = builder.build()?;
    /// block_on(async { session.send("A long question about many things.").await })?;
    /// block_on(async { session.send("Another one.").await })?;
    ///
    /// let job = session.prepare_compaction();
    /// block_on(async { session.send("The thread goes on.").await })?;
    /// let done = block_on(async { session.adopt(job.await).await })?;
    /// assert!(done.report.after.tokens < done.report.before.tokens);
    /// assert_eq!(session.messages().len(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prepare_compaction(&mut self) -> BoxFuture<'static, PreparedCompaction> {
        self.prepare_compaction_observed(|_, _| {})
    }

    /// Same as [`prepare_compaction`](Self::prepare_compaction), and reports progress to `observe`:
    /// each call of a model, first with `None` and then with each delta of the answer.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
    /// use threadfold::{ModelAgent, Session, strategy::Summarize};
    /// use threadfold::testing::ScriptedModel;
    ///
    /// let story = "Once upon a time there was a parser. ".repeat(20);
    /// let model = Arc::new(ScriptedModel::new([story.as_str(), "The end.", "A tale of a parser."]));
    /// let short = Summarize { messages: 2, ..Summarize::default() };
    /// let builder = Session::builder(ModelAgent::new(model)).strategy(Arc::new(short));
    /// let mut session = builder.build()?;
    /// block_on(async { session.send("Tell me a story.").await })?;
    /// block_on(async { session.send("And then?").await })?;
    ///
    /// let calls = Arc::new(AtomicUsize::new(0));
    /// let counter = calls.clone();
    /// let job = session.prepare_compaction_observed(move |_call, delta| {
    ///     counter.fetch_add(usize::from(delta.is_none()), Ordering::Relaxed);
    /// });
    /// let prepared = block_on(job);
    /// assert_eq!(prepared.outcome().map_err(Clone::clone)?.calls, 1);
    /// assert_eq!(calls.load(Ordering::Relaxed), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prepare_compaction_observed(
        &mut self,
        observe: impl FnMut(&ModelCall, Option<&Delta>) + Send + 'static,
    ) -> BoxFuture<'static, PreparedCompaction> {
        self.prepare_for(CompactionReason::Background, observe)
    }

    /// Same as [`prepare_compaction_observed`](Self::prepare_compaction_observed), for any reason.
    pub(super) fn prepare_for(
        &mut self,
        reason: CompactionReason,
        mut observe: impl FnMut(&ModelCall, Option<&Delta>) + Send + 'static,
    ) -> BoxFuture<'static, PreparedCompaction> {
        let strategy = Arc::clone(&self.settings.strategy);
        let job = self.job(strategy, reason);
        async move { job.run(&mut observe).await }.boxed()
    }

    /// Returns the compaction that another strategy would make, without changing the thread. Its
    /// report has the sizes, and the facts that would be kept and lost. The result can be
    /// [adopted](Self::adopt) or dropped.
    ///
    /// The future may be dropped at any point.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, strategy::KeepRecent, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["one", "two"]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// block_on(async { session.send("What is wrong in src/parse.rs?").await })?;
    /// block_on(async { session.send("Another one.").await })?;
    ///
    /// let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    /// let preview = block_on(session.preview(Arc::new(keep)));
    /// let report = preview.report().map_err(Clone::clone)?;
    /// assert_eq!((report.before.messages, report.after.messages), (4, 2));
    /// let lost = report.retention.iter().flat_map(|retention| &retention.missing);
    /// assert_eq!(lost.map(|fact| fact.text.as_str()).collect::<Vec<_>>(), ["src/parse.rs"]);
    /// assert_eq!(session.messages().len(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn preview(&mut self, strategy: Arc<dyn CompactionStrategy>) -> PreparedCompaction {
        self.job(strategy, CompactionReason::Manual { instructions: None })
            .run(&mut |_, _| {})
            .await
    }

    /// Applies a prepared compaction, if the messages that it was prepared for are still in the
    /// thread. Messages appended since stay, and their reasoning is marked. As with any other
    /// compaction, thread, log and store change, and it can be undone. Its start and end events are
    /// the first events of the next stream.
    ///
    /// The future may be dropped at any point: before the commit nothing has changed, and after it
    /// the next turn writes the store.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, strategy::KeepRecent, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["In src/parse.rs.", "A hundred lines."]));
    /// let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    /// let builder = Session::builder(ModelAgent::new(model)).strategy(Arc::new(keep));
    /// let mut session = builder.build()?;
    /// block_on(async { session.send("Where is the parser?").await })?;
    /// block_on(async { session.send("How long is it?").await })?;
    ///
    /// let (first, second) = (session.prepare_compaction(), session.prepare_compaction());
    /// let done = block_on(async { session.adopt(first.await).await })?;
    /// assert_eq!(done.report.after.messages, session.messages().len());
    /// let error = block_on(async { session.adopt(second.await).await }).unwrap_err();
    /// assert!(error.to_string().contains("from message 0 on"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionError`] in these cases. The cost of the preparation is then in the log.
    ///
    /// - The preparation failed.
    /// - The thread was rewritten since: [`CompactError::Rewritten`] names the first message that
    ///   differs.
    /// - Another compaction has used its id ([`Rejection::NumberTaken`]), for example in a resumed
    ///   session.
    pub async fn adopt(
        &mut self,
        prepared: PreparedCompaction,
    ) -> Result<CompactionRecord, CompactionError> {
        let PreparedCompaction { messages, strategy, brief, span, outcome, .. } = prepared;
        if let Err(error) = &outcome
            && error.is_nothing_to_compact()
        {
            return Err(error.clone());
        }
        // Drop the target: it predates the messages appended since.
        let mut brief = Brief { now: self.now(), target: None, ..brief };
        let snapshot = self.conversation().snapshot_for(&brief).await?;
        let mut outcome =
            outcome.and_then(|(proposal, _)| self.fitted(proposal, &messages, &snapshot, &brief));
        if let Some(id) = brief.compaction.filter(|id| self.log().is_ended(*id)) {
            // Summaries and batches hold the id, so it cannot be changed. The failure is
            // recorded under a new one.
            outcome =
                outcome.and_then(|proposal| Err(proposal.failed(Rejection::NumberTaken { id })));
            brief.compaction = Some(self.next_compaction());
        }
        self.carry_out_deferred(&strategy, &brief, outcome, &span).await
    }

    /// Applies a plan that was made for these messages, as a compaction of its own.
    pub(super) async fn apply_again(
        &mut self,
        strategy: Text,
        plan: Plan,
        messages: Arc<Vec<Message>>,
    ) -> Result<CompactionRecord, CompactionError> {
        // A host's text is used unchanged, and a redone plan was settled the first time, so do not
        // settle the plan again.
        let reason = CompactionReason::Manual { instructions: None };
        let brief = Brief { retention: None, ..self.brief(reason, None) };
        let plan = plan.with_new_messages(|message| renumber(message, brief.compaction));
        let proposal = Proposal::new(plan);
        let snapshot = self.conversation().ruled_snapshot();
        let outcome = self.fitted(proposal, &messages, &snapshot, &brief);
        let span = self.conversation().span(&strategy, &brief);
        self.carry_out_deferred(&strategy, &brief, outcome, &span).await
    }

    fn job(
        &mut self,
        strategy: Arc<dyn CompactionStrategy>,
        reason: CompactionReason,
    ) -> CompactionJob {
        let brief = self.brief(reason, self.requested_target());
        self.reserved = self.next_compaction().next();
        CompactionJob {
            agent: self.agent.fork(),
            settings: self.settings.clone(),
            strategy,
            snapshot: self.conversation().ruled_snapshot(),
            journal: self.journal.clone(),
            brief,
        }
    }

    /// Carries out a proposal while no stream is open: its events are the first of the next one.
    async fn carry_out_deferred(
        &mut self,
        strategy: &str,
        brief: &Brief,
        outcome: Result<Proposal, CompactionError>,
        span: &CompactionSpan,
    ) -> Result<CompactionRecord, CompactionError> {
        let mut emit = Emit { shared: Arc::clone(&self.shared), defers: true };
        self.end_interrupted(&mut emit).await?;
        self.carry_out(strategy, brief, outcome, None, (span, &mut emit)).await
    }

    /// The target, in tokens, of a compaction that the user, the host or the agent requests.
    pub(super) fn requested_target(&self) -> Option<u64> {
        self.auto.requested_target(self.pressure(0))
    }

    /// Adapts a proposal for the earlier messages to the present thread, given as a snapshot.
    fn fitted(
        &self,
        mut proposal: Proposal,
        messages: &Arc<Vec<Message>>,
        snapshot: &Snapshot,
        brief: &Brief,
    ) -> Result<Proposal, CompactionError> {
        let pairs = messages.iter().zip(self.messages().iter());
        let same = pairs.take_while(|(one, other)| one.ptr_eq(other) || one == other).count();
        if same < messages.len() {
            let rewritten = CompactError::Rewritten { message: same };
            return Err(proposal.failed(Rejection::from(rewritten)));
        }
        proposal.plan = proposal.plan.extended(self.messages());
        proposal.accepted(snapshot, brief)
    }
}

/// Sets the id of this compaction in the summaries of a message.
fn renumber(message: &mut Message, id: Option<CompactionId>) {
    if !message.is_summary() {
        return;
    }
    for block in &mut message.make_mut().content {
        if let ContentBlock::Summary(summary) = block {
            summary.compaction = id;
        }
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
