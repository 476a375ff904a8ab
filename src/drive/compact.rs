//! A complete compaction: propose, commit, store.

use std::sync::Arc;

use super::{
    attempt::{self, Models},
    span::CompactionSpan,
};
use crate::{
    compact::Prices,
    compaction::{
        Compaction, CompactionError, CompactionErrorKind, CompactionStep, Result, redacted,
    },
    log::{CompactionRecord, Event, LogError, Thread},
    message::{CompactionId, ContextWindow, Delta, Message, ToolSpec},
    model::{self, ProviderThread, Tools},
    store::Journal,
    strategy::{
        Attempt, Brief, CompactionStrategy, Known, Proposal, Snapshot, Step, StrategyError, begin,
    },
};

/// A thread and its journal, which a compaction changes together.
#[derive(Debug)]
#[must_use]
pub struct Conversation<'a> {
    thread: &'a mut Thread,
    journal: &'a mut Journal,
    /// The adapter to which changes of the thread are reported.
    provider: Option<&'a mut dyn ProviderThread>,
    pub(crate) system: Arc<Vec<Message>>,
    pub(crate) tools: Tools,
    window: Option<ContextWindow>,
    /// A message that is appended to thread and log together with the commit, or not at all.
    pub(crate) arriving: Option<Message>,
    /// Rules and facts of the whole conversation, if the log is not whole.
    pub(crate) known: Option<Known>,
    prices: Option<Prices>,
}

impl<'a> Conversation<'a> {
    /// Returns the conversation of a thread and its journal, which must hold the same messages.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{EventLog, Message, Thread, store::Journal};
    /// use threadfold::drive::{self, Conversation, Models};
    /// use threadfold::strategy::{Brief, KeepRecent};
    ///
    /// let mut thread = Thread::default();
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// thread.push(Message::user("hi"));
    ///
    /// // The message was not appended to the journal.
    /// let mut conversation = Conversation::new(&mut thread, &mut journal);
    /// let (keep, brief) = (KeepRecent::default(), Brief::default());
    /// let models = Models::default();
    /// let done = block_on(drive::compact(&mut conversation, &keep, &brief, models, &mut |_, _| {}));
    /// let error = done.unwrap_err();
    /// assert_eq!(error.to_string(), "thread and log differ from message 0 on");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(thread: &'a mut Thread, journal: &'a mut Journal) -> Self {
        Self {
            thread,
            journal,
            provider: None,
            system: Arc::default(),
            tools: Tools::default(),
            window: None,
            arriving: None,
            known: None,
            prices: None,
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

    /// Returns the conversation with the prices of its model, so that the report of a compaction
    /// states its [cost](crate::CompactReport::cost). Tokens are counted by the thread's counter,
    /// including system prompt and tools.
    pub fn with_prices(self, prices: Option<Prices>) -> Self {
        Self { prices, ..self }
    }

    /// Returns the snapshot for a strategy: the current thread, redacted if there is a redactor.
    ///
    /// ```
    /// use threadfold::{ContextWindow, Thread, drive::Conversation, log::EventLog, store::Journal};
    ///
    /// let mut thread = Thread::default();
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// let window = Some(ContextWindow::new(8_000));
    /// let conversation = Conversation::new(&mut thread, &mut journal).with_window(window);
    /// assert_eq!(conversation.snapshot().window(), window);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        let snapshot = Snapshot::logged(self.thread, self.journal.log())
            .with_subjects(&|call| self.tools.subject(call))
            .with_context(self.system.clone(), self.tools.specs.clone())
            .with_window(self.window);
        match self.journal.redactor() {
            Some(redactor) => snapshot.redacted(redactor.as_ref()),
            None => snapshot,
        }
    }
}

/// Compacts a conversation: runs the strategy, applies the plan to the thread and appends the
/// record to the log in one step, and stores the record.
///
/// `brief.now` is the time of the record; `brief.compaction` is replaced by the next id of the log.
/// The future may be dropped at any point: before the commit nothing has changed, and after it the
/// next write of the journal stores the record.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, Thread, drive::{self, Conversation, Models}};
/// use threadfold::{log::{Event, EventLog}, message::Timestamp, store::Journal};
/// use threadfold::strategy::{Brief, KeepRecent};
///
/// let mut thread = Thread::default();
/// let mut journal = Journal::new(EventLog::new("thread-1".parse()?));
/// let (old, answer) = (Message::user("An old question."), Message::assistant("An old answer."));
/// for message in [old, answer, Message::user("A new question.")] {
///     journal.append(Timestamp(1), Event::MessageAppended(message.clone()))?;
///     thread.push(message);
/// }
///
/// let mut conversation = Conversation::new(&mut thread, &mut journal);
/// let strategy = KeepRecent { messages: 1, ..KeepRecent::default() };
/// let brief = Brief { now: Timestamp(2), ..Brief::default() };
/// let models = Models::default();
/// let done = block_on(drive::compact(
///     &mut conversation, &strategy, &brief, models, &mut |_, _| {},
/// ))?;
/// assert_eq!(done.report.after.messages, 1);
/// assert_eq!(journal.log().replay()?, thread.messages()[..]);
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
    observe: &mut (dyn FnMut(Step<'_>, Option<&Delta>) + Send),
) -> Result<CompactionRecord> {
    run(conversation, strategy, brief, models, observe, Proposal::accepted).await
}

/// Like [`compact`], with another check of the proposal.
pub(crate) async fn run(
    conversation: &mut Conversation<'_>,
    strategy: &dyn CompactionStrategy,
    brief: &Brief,
    models: Models<'_>,
    observe: &mut (dyn FnMut(Step<'_>, Option<&Delta>) + Send),
    accept: fn(Proposal, &Snapshot, &Brief) -> Result<Proposal>,
) -> Result<CompactionRecord> {
    conversation.check()?;
    let brief = Brief { compaction: Some(conversation.next_compaction()), ..brief.clone() };
    let begun = conversation.begin(strategy, &brief).await?;
    let Begun { snapshot, mut attempt, mut compaction, span } = begun;
    let redactor = conversation.journal.redactor().cloned();
    let models = Models { redactor: redactor.as_deref().or(models.redactor), ..models };
    let work = async {
        let driven = attempt::drive(attempt.as_mut(), models, observe).await;
        let outcome = driven.and_then(|driven| accept(driven, &snapshot, &brief));
        conversation.conclude(&mut compaction, &span, outcome).await
    };
    span.run(work).await
}

/// Returns the error of an attempt that found nothing to compact without a model call. This does
/// not count as a compaction: it gets no id and no events.
pub(crate) fn nothing_to_do(attempt: &dyn Attempt) -> Option<CompactionError> {
    if let Step::Failed(error) = attempt.step()
        && error.is_nothing_to_compact()
    {
        return Some(CompactionError::new(error.clone()));
    }
    None
}

/// Returns the snapshot with the facts of the whole log, if the brief sets a retention policy.
pub(crate) async fn with_facts(
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

/// A compaction that has begun.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) snapshot: Snapshot,
    pub(crate) attempt: Box<dyn Attempt>,
    pub(crate) compaction: Compaction,
    pub(crate) span: CompactionSpan,
}

impl Conversation<'_> {
    /// Begins an attempt on the snapshot of this conversation. The error is that there is nothing
    /// to compact, or that the facts could not be read.
    pub(crate) async fn begin(
        &mut self,
        strategy: &dyn CompactionStrategy,
        brief: &Brief,
    ) -> Result<Begun> {
        let (snapshot, redacted) = (self.snapshot_for(brief).await?, self.journal.redacted(brief));
        let attempt = begin(strategy, &snapshot, &redacted);
        if let Some(error) = nothing_to_do(attempt.as_ref()) {
            return Err(error);
        }
        let id = brief.compaction.unwrap_or_else(|| self.next_compaction());
        let thread = self.journal.log().thread_id();
        let span = CompactionSpan::begin(self.thread, thread, strategy.name(), brief)
            .previous(|| self.journal.log().latest_gain(&self.prices?));
        let compaction = Compaction::begin(id, thread.clone(), strategy.name(), &redacted);
        Ok(Begun { snapshot, attempt, compaction, span })
    }

    /// Returns the snapshot that [`compact`] passes to a strategy: a [`snapshot`](Self::snapshot)
    /// with the standing rules and, if the brief sets a retention policy, with the facts of the
    /// whole log. It is for hosts that drive the attempt themselves and then
    /// [`finish`](Self::finish) it. The future may be dropped at any point.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::drive::Conversation;
    /// use threadfold::log::{Event, EventLog};
    /// use threadfold::{Message, Thread, message::Timestamp, store::Journal, strategy::Brief};
    ///
    /// let message = Message::user("Fix the parser.");
    /// let mut thread: Thread = [message.clone()].into_iter().collect();
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// journal.append(Timestamp(1), Event::MessageAppended(message))?;
    /// journal.append(Timestamp(2), Event::RuleAdded { text: "Never touch the lexer.".into() })?;
    /// let mut conversation = Conversation::new(&mut thread, &mut journal);
    /// let snapshot = block_on(conversation.snapshot_for(&Brief::default()))?;
    /// assert_eq!(snapshot.rules().to_string(), "- Never touch the lexer.\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionErrorKind::Facts`](super::CompactionErrorKind::Facts) if the store cannot be
    /// read.
    pub async fn snapshot_for(&mut self, brief: &Brief) -> Result<Snapshot> {
        let snapshot = self.ruled_snapshot();
        match &self.known {
            Some(_) => Ok(snapshot),
            None => with_facts(snapshot, self.journal, brief).await,
        }
    }

    /// Returns the [`snapshot`](Self::snapshot) with the standing rules.
    pub(crate) fn ruled_snapshot(&mut self) -> Snapshot {
        if let Some(known) = &self.known {
            return known.added_to(self.snapshot());
        }
        self.journal.read_rules();
        self.snapshot().with_rules(Arc::new(self.journal.rules().clone()))
    }

    /// The id of the next compaction.
    #[must_use]
    pub fn next_compaction(&self) -> CompactionId {
        match &self.known {
            Some(known) => known.next_compaction,
            None => self.journal.log().next_compaction(),
        }
    }

    /// Finishes a compaction: commits and stores its proposal, or logs its failure. The proposal must be for the [`snapshot_for`](Self::snapshot_for) this conversation and this
    /// brief. [`compact`] is [`propose`](super::propose) followed by this; call them separately to
    /// do something in between.
    ///
    /// The future may be dropped at any point, like that of [`compact`].
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::drive::{self, Conversation, Models};
    /// use threadfold::strategy::{Brief, CompactionStrategy, KeepRecent};
    /// # use threadfold::{EventLog, Message, Thread, log::Event};
    /// # use threadfold::{message::Timestamp, store::Journal};
    /// # let mut thread = Thread::default();
    /// # let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// # for message in [Message::assistant("An old answer."), Message::user("A new question.")] {
    /// #     journal.append(Timestamp(1), Event::MessageAppended(message.clone()))?;
    /// #     thread.push(message);
    /// # }
    ///
    /// let mut conversation = Conversation::new(&mut thread, &mut journal);
    /// let (keep, brief) = (KeepRecent { messages: 1, ..KeepRecent::default() }, Brief::default());
    /// let snapshot = conversation.snapshot();
    /// let driven = block_on(drive::propose(
    ///     &keep, &snapshot, &brief, Models::default(), &mut |_, _| {},
    /// ));
    /// // A host may ask the user for confirmation here.
    /// let done = block_on(conversation.finish(keep.name(), &brief, driven))?;
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
        // Batches hold the id, so that of another compaction must not be used.
        if self.journal.log().is_ended(id) {
            return Err(LogError::IdUsed { id }.into());
        }
        let thread = self.journal.log().thread_id().clone();
        let mut compaction = Compaction::begin(id, thread, strategy, brief);
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
            (Ok(()), None) => Ok(compaction.done().cloned().ok_or(compaction.unexpected())?),
        }
    }

    /// Runs a compaction from its current step until it needs a proposal or has ended. Returns the
    /// first error.
    pub(crate) async fn end(
        &mut self,
        compaction: &mut Compaction,
        span: &CompactionSpan,
    ) -> Result<()> {
        let mut first = Ok(());
        loop {
            let done = match compaction.step() {
                CompactionStep::Commit(_) => self.commit(compaction, span),
                CompactionStep::Store => self.store(compaction, span).await,
                CompactionStep::Note(_) => self.note(compaction).await,
                CompactionStep::Propose | CompactionStep::Ended => return first,
            };
            // Later errors follow from the first one, so keep the first.
            first = first.and(done);
        }
    }

    /// Checks that thread and log hold the same messages before a model call is paid for. The check
    /// is cheap, because they share their messages: it only compares handles.
    fn check(&self) -> Result<()> {
        let log = self.journal.log().replay()?;
        let thread = self.thread.messages();
        let same = log.iter().zip(thread.iter()).take_while(|(one, other)| one == other).count();
        if same == log.len().max(thread.len()) {
            return Ok(());
        }
        Err(CompactionErrorKind::Diverged { message: same }.into())
    }

    /// Applies the plan to thread and log, or to neither. Stores nothing yet.
    fn commit(&mut self, compaction: &mut Compaction, span: &CompactionSpan) -> Result<()> {
        let CompactionStep::Commit(proposal) = compaction.step() else { return Ok(()) };
        let (usage, calls) = (proposal.usage, proposal.calls);
        let error = match self.apply(compaction, proposal) {
            Ok(record) => {
                span.complete(&record.report, usage, calls);
                return Ok(compaction.committed(Ok(record))?);
            }
            Err(error) => error,
        };
        span.fail("commit", usage, calls);
        compaction.committed(Err(self.journal.redacted_text(error.to_string())))?;
        Err(error)
    }

    fn apply(&mut self, compaction: &Compaction, proposal: &Proposal) -> Result<CompactionRecord> {
        let at = compaction.now;
        let counter = Arc::clone(self.thread.counter());
        let before: Vec<Message> =
            self.thread.messages().iter().chain(&self.arriving).cloned().collect();
        let mut report = proposal.report(&before, counter.as_ref())?;
        let request = (&self.system[..], &self.tools.specs[..], &before[..]);
        let is_warm = self.journal.log().is_warm(at, self.prices.as_ref());
        report.cost = proposal.cost(self.prices, request, &report, counter.as_ref(), is_warm);
        let record = compaction.record(report)?;
        if let Some(message) = self.arriving.take() {
            let event = Event::MessageAppended(message.clone());
            self.journal.log().check(&event)?;
            // Change the thread first: it counts tokens, and a counter that panics must leave both
            // unchanged.
            self.thread.push(message.clone());
            self.journal.append(at, event)?;
            if let Some(provider) = &mut self.provider {
                provider.appended(&message);
            }
        }
        let next = self.thread.checked(&proposal.plan)?;
        self.journal.append(at, Event::Compacted(Box::new(record.clone())))?;
        let _removed = match &mut self.provider {
            Some(provider) => model::take_on(self.thread, *provider, &proposal.plan, next),
            None => self.thread.take_on(next),
        };
        Ok(record)
    }

    /// Writes the log to the store. A failure does not undo the compaction.
    async fn store(&mut self, compaction: &mut Compaction, span: &CompactionSpan) -> Result<()> {
        let stored = self.journal.flush().await.inspect_err(|_| span.error("store"));
        compaction.stored()?;
        Ok(stored?)
    }

    /// Appends the failure of the compaction to the log and stores it.
    async fn note(&mut self, compaction: &mut Compaction) -> Result<()> {
        let CompactionStep::Note(failure) = compaction.step() else { return Ok(()) };
        let event = Event::CompactionFailed(Box::new(failure.clone()));
        let noted = self.journal.append(compaction.now, event).map(|_| ());
        compaction.noted()?;
        noted?;
        // Ignore an error of the store, so that the caller gets the failure of the compaction. The
        // log keeps the event, and the next flush retries.
        let _ = self.journal.flush().await;
        Ok(())
    }
}
