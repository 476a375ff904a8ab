//! A complete compaction: propose, commit, store.

use std::sync::Arc;

use super::{
    models::{Calls, Models},
    span::CompactionSpan,
};
use crate::{
    compact::Prices,
    compaction::{Compaction, CompactionError, CompactionErrorKind, Result, Stage, redacted},
    log::{CompactionRecord, Counted, Event, LogError},
    message::{CompactionId, ContextWindow, Delta, Message, ToolSpec},
    model::{self, ProviderThread, Tools},
    store::Journal,
    strategy::{
        self, Brief, CompactionStrategy, ConversationFacts, Fallback, ModelCall, Proposal,
        Snapshot, StrategyError, Terms, View,
    },
};

/// A journal with its thread, and what a strategy sees beside it.
#[derive(Debug)]
#[must_use]
pub struct Conversation<'a> {
    journal: &'a mut Journal,
    /// The adapter to which changes of the thread are reported.
    provider: Option<&'a mut dyn ProviderThread>,
    pub(crate) system: Arc<Vec<Message>>,
    pub(crate) tools: Tools,
    window: Option<ContextWindow>,
    /// A message that is appended to thread and log together with the commit, or not at all.
    pub(crate) arriving: Option<Message>,
    /// Rules and facts of the whole conversation, if the log is not whole.
    pub(crate) known: Option<ConversationFacts>,
    prices: Option<Prices>,
    pub(crate) terms: Terms,
}

impl<'a> Conversation<'a> {
    /// Returns the conversation of a journal, which holds the thread.
    ///
    /// ```
    /// use threadfold::{EventLog, Message, drive::Conversation, log::Event};
    /// use threadfold::{message::Timestamp, store::Journal};
    ///
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// journal.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
    /// let conversation = Conversation::new(&mut journal);
    /// assert_eq!(conversation.snapshot().messages().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(journal: &'a mut Journal) -> Self {
        Self {
            journal,
            provider: None,
            system: Arc::default(),
            tools: Tools::default(),
            window: None,
            arriving: None,
            known: None,
            prices: None,
            terms: Terms::default(),
        }
    }

    /// Returns the conversation with an adapter to which every change of the thread is reported.
    pub fn with_provider(self, provider: &'a mut dyn ProviderThread) -> Self {
        Self { provider: Some(provider), ..self }
    }

    /// Returns the conversation with this system prompt and these tools.
    pub fn with_context(self, system: Arc<Vec<Message>>, tools: Arc<Vec<ToolSpec>>) -> Self {
        Self { system, tools: Tools::of(tools), ..self }
    }

    /// Returns the conversation with this context window.
    pub fn with_window(self, window: Option<ContextWindow>) -> Self {
        Self { window, ..self }
    }

    /// Returns the conversation with a fallback for strategies that fail or miss the target, as a
    /// [`Session`](crate::Session) has one. Without it a failure is final.
    pub fn with_fallback(mut self, fallback: Fallback) -> Self {
        self.terms.fallback = Some(fallback);
        self
    }

    /// Returns the conversation with the prices of its model, so that the report of a compaction
    /// states its [cost](crate::CompactReport::cost). Tokens are counted by the thread's counter,
    /// including system prompt and tools.
    pub fn with_prices(self, prices: Option<Prices>) -> Self {
        Self { prices, ..self }
    }

    /// Returns the snapshot for a strategy: the current thread, redacted if there is a redactor.
    ///
    /// ```
    /// use threadfold::{ContextWindow, drive::Conversation, log::EventLog, store::Journal};
    ///
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// let window = Some(ContextWindow::new(8_000));
    /// let conversation = Conversation::new(&mut journal).with_window(window);
    /// assert_eq!(conversation.snapshot().window(), window);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        let snapshot = Snapshot::logged(self.journal.thread(), self.journal.log())
            .with_subjects(&|call| self.tools.subject(call))
            .with_context(self.system.clone(), self.tools.specs.clone())
            .with_window(self.window);
        match self.journal.redactor() {
            Some(redactor) => snapshot.redacted(redactor.as_ref()),
            None => snapshot,
        }
    }
}

/// Compacts a conversation: runs the strategy, appends the record to the log and applies its plan to
/// the thread in one step, and stores the record.
///
/// `brief.now` is the time of the record; `brief.compaction` is replaced by the next id of the log.
/// The future may be dropped at any point: before the commit nothing has changed, and after it the
/// next write of the journal stores the record.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, drive::{self, Conversation, Models}};
/// use threadfold::{log::{Event, EventLog}, message::Timestamp, store::Journal};
/// use threadfold::strategy::{Brief, KeepRecent};
///
/// let mut journal = Journal::new(EventLog::new("thread-1".parse()?));
/// let (old, answer) = (Message::user("An old question."), Message::assistant("An old answer."));
/// for message in [old, answer, Message::user("A new question.")] {
///     journal.append(Timestamp(1), Event::MessageAppended(message))?;
/// }
///
/// let mut conversation = Conversation::new(&mut journal);
/// let strategy = KeepRecent { messages: 1, ..KeepRecent::default() };
/// let brief = Brief { now: Timestamp(2), ..Brief::default() };
/// let models = Models::default();
/// let done = block_on(drive::compact(
///     &mut conversation, &strategy, &brief, models, &mut |_, _| {},
/// ))?;
/// assert_eq!(done.report.after.messages, 1);
/// assert_eq!(journal.thread().messages().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`CompactionError`]; each variant documents what is unchanged.
pub async fn compact(
    conversation: &mut Conversation<'_>,
    strategy: &dyn CompactionStrategy,
    brief: &Brief,
    models: Models<'_>,
    mut observe: &mut (dyn FnMut(&ModelCall, Option<&Delta>) + Send),
) -> Result<CompactionRecord> {
    let brief = Brief { compaction: Some(conversation.next_compaction()), ..brief.clone() };
    let view = conversation.view(&brief).await?;
    let span = conversation.span(strategy.name(), &brief);
    let redactor = conversation.journal.redactor().cloned();
    let models = Models { redactor: redactor.as_deref().or(models.redactor), ..models };
    let mut calls = Calls { models, span: &span, listener: &mut observe };
    let outcome = strategy::propose(strategy, &view, &mut calls, conversation.terms).await;
    let outcome = outcome.map_err(CompactionError::from);
    if let Err(error) = &outcome
        && error.is_nothing_to_compact()
    {
        return Err(error.clone());
    }
    let id = conversation.next_compaction();
    let thread = conversation.journal.log().thread_id().clone();
    let mut compaction = Compaction::begin(id, thread, strategy.name(), &view.brief);
    span.run(conversation.conclude(&mut compaction, &span, outcome)).await
}

/// Returns the snapshot with the facts of the whole log, if the brief sets a retention policy.
pub(super) async fn with_facts(
    snapshot: Snapshot,
    journal: &mut Journal,
    brief: &Brief,
) -> Result<Snapshot> {
    let Some(policy) = &brief.retention else { return Ok(snapshot) };
    let window = snapshot.window().map(ContextWindow::tokens);
    match journal.facts(&policy.audit_options().within(window)).await {
        Ok(facts) => Ok(snapshot.with_facts(facts)),
        Err(error) => Err(CompactionError::of_store(CompactionErrorKind::Facts, error)),
    }
}

impl Conversation<'_> {
    /// The span of a compaction of this conversation. It opens with the first call of a model, or
    /// with the outcome.
    pub(crate) fn span(&self, strategy: &str, brief: &Brief) -> CompactionSpan {
        let thread = self.journal.log().thread_id();
        CompactionSpan::begin(self.journal.thread(), thread, strategy, brief)
            .previous(|| self.journal.log().latest_gain(&self.prices?))
    }

    /// Returns the view that [`compact`] passes to a strategy: a [`snapshot`](Self::snapshot) with
    /// the standing rules, the notes of the agent and, if the brief sets a retention policy, with the
    /// facts of the whole log; and the brief. Both are without what the redactor of the journal
    /// removes. It is for hosts that run the strategy themselves and then [`finish`](Self::finish)
    /// the compaction. The future may be dropped at any point.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::drive::Conversation;
    /// use threadfold::log::{Event, EventLog};
    /// use threadfold::{Message, message::Timestamp, store::Journal, strategy::Brief};
    ///
    /// let message = Message::user("Fix the parser.");
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// journal.append(Timestamp(1), Event::MessageAppended(message))?;
    /// journal.append(Timestamp(2), Event::RuleAdded { text: "Never touch the lexer.".into() })?;
    /// let mut conversation = Conversation::new(&mut journal);
    /// let view = block_on(conversation.view(&Brief::default()))?;
    /// assert_eq!(view.thread.rules().to_string(), "- Never touch the lexer.\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionErrorKind::Facts`](super::CompactionErrorKind::Facts) if the store cannot be
    /// read.
    pub async fn view(&mut self, brief: &Brief) -> Result<View> {
        let snapshot = self.ruled_snapshot();
        let snapshot = match &self.known {
            Some(_) => snapshot,
            None => with_facts(snapshot, self.journal, brief).await?,
        };
        Ok(View::new(snapshot, self.journal.redacted(brief)))
    }

    /// Returns the [`snapshot`](Self::snapshot) with the standing rules and the notes of the agent.
    pub(crate) fn ruled_snapshot(&mut self) -> Snapshot {
        if let Some(known) = &self.known {
            return known.added_to(self.snapshot());
        }
        self.journal.read_rules();
        let rules = Arc::new(self.journal.rules().clone());
        self.snapshot().with_rules(rules).with_notes(self.journal.notes())
    }

    /// The id of the next compaction.
    #[must_use]
    pub fn next_compaction(&self) -> CompactionId {
        match &self.known {
            Some(known) => known.next_compaction,
            None => self.journal.log().next_compaction(),
        }
    }

    /// Finishes a compaction: commits and stores its proposal, or logs its failure. The proposal must be
    /// for the [`view`](Self::view) of this conversation and this brief. [`compact`] is
    /// [`propose`](super::propose) followed by this; call them separately to do something in between.
    ///
    /// The future may be dropped at any point, like that of [`compact`].
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::drive::{self, Conversation, Models};
    /// use threadfold::strategy::{Brief, CompactionStrategy, KeepRecent};
    /// # use threadfold::{EventLog, Message, log::Event};
    /// # use threadfold::{message::Timestamp, store::Journal};
    /// # let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// # for message in [Message::assistant("An old answer."), Message::user("A new question.")] {
    /// #     journal.append(Timestamp(1), Event::MessageAppended(message))?;
    /// # }
    ///
    /// let mut conversation = Conversation::new(&mut journal);
    /// let (keep, brief) = (KeepRecent { messages: 1, ..KeepRecent::default() }, Brief::default());
    /// let view = block_on(conversation.view(&brief))?;
    /// let proposal = block_on(drive::propose(
    ///     &keep, &view.thread, &view.brief, Models::default(), &mut |_, _| {},
    /// ));
    /// // A host may ask the user for confirmation here.
    /// let done = block_on(conversation.finish(keep.name(), &brief, proposal))?;
    /// assert_eq!(done.report.after.messages, 1);
    /// assert_eq!(journal.log().standing().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionError`]; each variant documents what is unchanged.
    pub async fn finish(
        &mut self,
        strategy: &str,
        brief: &Brief,
        outcome: Result<Proposal>,
    ) -> Result<CompactionRecord> {
        let id = brief.compaction.unwrap_or_else(|| self.next_compaction());
        // A log has one record or failure of each id.
        if self.journal.log().is_ended(id) {
            return Err(LogError::IdUsed { id }.into());
        }
        let thread = self.journal.log().thread_id().clone();
        let brief = self.journal.redacted(brief);
        let mut compaction = Compaction::begin(id, thread, strategy, &brief);
        self.conclude(&mut compaction, &CompactionSpan::none(), outcome).await
    }

    /// Takes the outcome of the strategy and runs the compaction to its end.
    pub(crate) async fn conclude(
        &mut self,
        compaction: &mut Compaction,
        span: &CompactionSpan,
        outcome: Result<Proposal>,
    ) -> Result<CompactionRecord> {
        let redactor = self.journal.redactor().map(AsRef::as_ref);
        let outcome = redacted(outcome, redactor);
        let failed = outcome.as_ref().err().cloned();
        compaction.proposed(outcome, redactor)?;
        if let Some(failed) = &failed {
            let kind = failed.strategy().map_or("facts", StrategyError::kind);
            span.fail(kind, failed.usage, failed.calls);
        }
        match (self.end(compaction, span).await, failed) {
            (_, Some(failed)) => Err(failed),
            (Err(error), None) => Err(error),
            (Ok(()), None) => Ok(compaction.record().cloned().ok_or(compaction.unexpected())?),
        }
    }

    /// Runs a compaction from its current stage until it needs a proposal or has ended. Returns the
    /// first error.
    pub(crate) async fn end(
        &mut self,
        compaction: &mut Compaction,
        span: &CompactionSpan,
    ) -> Result<()> {
        let mut first = Ok(());
        loop {
            let done = match compaction.stage() {
                Stage::Accepted(proposal) => {
                    let (usage, calls) = (proposal.usage, proposal.calls);
                    let applied = self.apply(compaction, proposal);
                    match &applied {
                        Ok(record) => span.complete(&record.report, usage, calls),
                        Err(_) => span.fail("commit", usage, calls),
                    }
                    self.committed(compaction, applied)
                }
                Stage::Committed => self.store(compaction, span).await,
                Stage::Failing(failure, _) => {
                    let event = Event::CompactionFailed(failure.clone());
                    self.log_failure(compaction, event).await
                }
                Stage::Proposing | Stage::Ended(_) => return first,
            };
            // Later errors follow from the first one, so keep the first.
            first = first.and(done);
        }
    }

    /// Applies the plan to log and thread, or to neither. Stores nothing yet.
    fn apply(&mut self, compaction: &Compaction, proposal: &Proposal) -> Result<CompactionRecord> {
        let at = compaction.now;
        let counter = Arc::clone(self.journal.thread().counter());
        let live = self.journal.thread().messages();
        let before: Vec<Message> = live.iter().chain(&self.arriving).cloned().collect();
        let mut report = proposal.report(&before, counter.as_ref(), compaction.binds_reasoning)?;
        let request = (&self.system[..], &self.tools.specs[..], &before[..]);
        let is_warm = self.journal.log().is_warm(at, self.prices.as_ref());
        report.cost = proposal.cost(self.prices, request, &report, counter.as_ref(), is_warm);
        let mut record = compaction.new_record(report)?;
        record.counted = self.counted();
        if let Some(message) = self.arriving.take() {
            self.journal.append(at, Event::MessageAppended(message.clone()))?;
            if let Some(provider) = &mut self.provider {
                provider.appended(&message);
            }
        }
        self.journal.append(at, Event::Compacted(Box::new(record.clone())))?;
        if let Some(provider) = &mut self.provider {
            model::announce(*provider, &proposal.plan, self.journal.thread());
        }
        Ok(record)
    }

    /// What the provider counted last, if the log is whole.
    fn counted(&self) -> Option<Counted> {
        let (tokens, since) = self.journal.thread().counted();
        let counter = self.journal.thread().counter();
        let arriving = self.arriving.as_ref().map_or(0, |message| counter.message(message));
        let counted = Counted { tokens: tokens?, since: since.saturating_add(arriving) };
        self.known.is_none().then_some(counted)
    }

    /// Takes the record of the applied plan, or the error. Error texts are redacted.
    fn committed(
        &self,
        compaction: &mut Compaction,
        applied: Result<CompactionRecord>,
    ) -> Result<()> {
        match applied {
            Ok(record) => Ok(compaction.committed(Ok(record))?),
            Err(error) => {
                compaction.committed(Err(self.journal.redacted_text(error.to_string())))?;
                Err(error)
            }
        }
    }

    /// Writes the log to the store. A failure does not undo the compaction.
    async fn store(&mut self, compaction: &mut Compaction, span: &CompactionSpan) -> Result<()> {
        let stored = self.journal.flush().await.inspect_err(|_| span.error("store"));
        compaction.stored()?;
        Ok(stored?)
    }

    /// Appends the failure of the compaction to the log and stores it.
    async fn log_failure(&mut self, compaction: &mut Compaction, event: Event) -> Result<()> {
        let logged = self.journal.append(compaction.now, event).map(|_| ());
        compaction.failure_logged()?;
        logged?;
        // Ignore an error of the store, so that the caller gets the failure of the compaction. The
        // log keeps the event, and the next flush retries.
        let _ = self.journal.flush().await;
        Ok(())
    }
}
