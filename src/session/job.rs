//! Compactions that are prepared without changing the thread: in the background, or as a preview.
//!
//! The future that prepares a compaction borrows nothing, so a host can run it on any task. See
//! [`PreparedCompaction`] for what is compared when its result is adopted.
//!
//! The number of a prepared compaction is reserved at its start, because its summaries carry it;
//! numbers in a log are unique but need not ascend.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};

use super::{events::Emit, session::Session};
use crate::{
    compact::Plan,
    drive::{CompactionError, CompactionJob, CompactionSpan, PreparedCompaction},
    log::CompactionRecord,
    message::{CompactionId, CompactionReason, ContentBlock, Delta, Message, Text},
    model::AgentModel,
    strategy::{Brief, CompactionStrategy, Fallback, ModelCall, Proposal, Rejection, Terms, When},
};

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
        let job = self.job(Arc::clone(&self.settings.strategy), reason);
        let (agent, settings) = (self.agent.fork(), self.settings.clone());
        let prepare = async move {
            let conversation = AgentModel(agent.as_ref());
            job.run(settings.models(&conversation, None), &mut observe).await
        };
        prepare.boxed()
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
        let job = self.job(strategy, CompactionReason::Manual { instructions: None });
        let agent = self.agent.fork();
        let conversation = AgentModel(agent.as_ref());
        job.run(self.settings.models(&conversation, None), &mut |_, _| {}).await
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
    /// - The thread was rewritten since: [`CompactError::Rewritten`](crate::compact::CompactError)
    ///   names the first message that differs.
    /// - Another compaction has used its id ([`Rejection::NumberTaken`]), for example in a resumed
    ///   session.
    pub async fn adopt(
        &mut self,
        prepared: PreparedCompaction,
    ) -> Result<CompactionRecord, CompactionError> {
        if let Err(error) = prepared.outcome()
            && error.is_nothing_to_compact()
        {
            return Err(error.clone());
        }
        // Drop the target: it predates the messages appended since.
        let mut brief = Brief { now: self.now(), target: None, ..prepared.brief.clone() };
        let thread = self.conversation().view(&brief).await?.thread;
        let mut outcome = prepared.fitted(self.messages(), &thread, &brief);
        if let Some(id) = brief.compaction.filter(|id| self.log().is_ended(*id)) {
            // Summaries and batches hold the id, so it cannot be changed. The failure is
            // recorded under a new one.
            outcome =
                outcome.and_then(|proposal| Err(proposal.failed(Rejection::NumberTaken { id })));
            brief.compaction = Some(self.next_compaction());
        }
        self.carry_out_deferred(&prepared.strategy, &brief, outcome, &prepared.span).await
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
        let snapshot = self.conversation().ruled_snapshot();
        let outcome = Proposal::new(plan).extended(&messages, self.messages());
        let outcome = outcome.and_then(|proposal| proposal.accepted(&snapshot, &brief));
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
            strategy,
            snapshot: self.conversation().ruled_snapshot(),
            // The thread without its facts, which may have to be read from the store first.
            has_facts: false,
            journal: self.journal.clone(),
            brief,
            terms: Terms { fallback: Some(Fallback::IfNeeded), when: When::Always },
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
