//! A whole compaction: propose, archive, commit, store.

use std::sync::Arc;

use super::{
    attempt::{self, DriveError, DriveEvent, Driven, Models},
    span::{self, CompactionSpan},
};
use crate::{
    compact::{CompactReport, StalePlan},
    log::{
        AppendError, CompactionFailure, CompactionRecord, Event, EventLog, LoggedFacts,
        ReplayError, Thread,
    },
    message::{CompactionId, ContextWindow, Messages, Redactor, SharedVec, ToolSpec, Usage},
    model::ProviderThread,
    store::{Archive, ArchiveError, Journal, StoreError},
    strategy::{Brief, CompactionStrategy, Rung, Snapshot, StrategyError},
};

/// What a compaction changes, together: a thread, its journal, and its archive.
#[derive(Debug)]
pub struct Conversation<'a> {
    thread: &'a mut dyn ProviderThread,
    journal: &'a mut Journal,
    archive: Option<&'a dyn Archive>,
    system: Messages,
    tools: SharedVec<ToolSpec>,
    window: Option<ContextWindow>,
    redactor: Option<&'a dyn Redactor>,
}

/// Why a compaction came to nothing, or could not be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompactionError {
    /// The strategy gave up, or its proposal was refused. The log has one event more, which says
    /// so; everything else is as it was. Where there was nothing to compact the log is, too.
    #[error(transparent)]
    Strategy(#[from] DriveError),
    /// The archive could not be written. The log has one event more, which says so; everything else
    /// is as it was, and what the archive may have got is invisible.
    #[error("nothing was compacted, because the archive could not be written: {0}")]
    Archive(#[source] ArchiveError),
    /// The thread is not the one that the log tells of: it was changed beside it. Both are as they
    /// were, and no model was asked.
    #[error("thread and log differ from message {message} on")]
    Diverged {
        /// The first message that differs, or that only one of the two has.
        message: usize,
    },
    /// The plan does not fit the thread. Thread and log are as they were.
    #[error("the plan does not fit the thread: {0}")]
    Stale(#[from] StalePlan),
    /// The log refused the event, because a message in it cannot be read or another event has the
    /// number of the compaction. Thread and log are as they were.
    #[error(transparent)]
    Log(#[from] AppendError),
    /// What happened is in thread and log, but not yet in the store; the next write brings it there.
    #[error("what happened could not be stored yet: {0}")]
    Store(#[from] StoreError),
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

impl<'a> Conversation<'a> {
    /// Returns the conversation of a thread and its journal, which tell of the same messages.
    ///
    /// ```
    /// # use {std::sync::Arc, threadfold::testing::ScriptedModel};
    /// use futures::executor::block_on;
    /// use threadfold::{EventLog, Message, ModelAgent, ProviderThread, store::Journal};
    /// use threadfold::drive::{self, Conversation, Models};
    /// use threadfold::strategy::{Brief, KeepRecent};
    ///
    /// let mut agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// agent.push(Message::user("hi"));
    ///
    /// // Whoever changes the thread changes the log with it.
    /// let mut conversation = Conversation::new(&mut agent, &mut journal);
    /// let (keep, brief) = (KeepRecent::default(), Brief::default());
    /// let models = Models::default();
    /// let done = block_on(drive::compact(&mut conversation, &keep, &brief, models, &mut |_| {}));
    /// let error = done.unwrap_err();
    /// assert_eq!(error.to_string(), "thread and log differ from message 0 on");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new(thread: &'a mut dyn ProviderThread, journal: &'a mut Journal) -> Self {
        Self {
            thread,
            journal,
            archive: None,
            system: Messages::default(),
            tools: SharedVec::default(),
            window: None,
            redactor: None,
        }
    }

    /// Returns the conversation with an archive. Without one, batches are kept in the log alone.
    #[must_use]
    pub fn with_archive(self, archive: &'a dyn Archive) -> Self {
        Self { archive: Some(archive), ..self }
    }

    /// Returns the conversation with this system prompt and these tools.
    #[must_use]
    pub fn with_context(self, system: Messages, tools: SharedVec<ToolSpec>) -> Self {
        Self { system, tools, ..self }
    }

    /// Returns the conversation with this window.
    #[must_use]
    pub fn with_window(self, window: Option<ContextWindow>) -> Self {
        Self { window, ..self }
    }

    /// Returns the conversation with what takes out of its texts what must not leave it.
    ///
    /// ```
    /// use std::borrow::Cow;
    /// use threadfold::{drive::Conversation, message::Redactor};
    /// # use {std::sync::Arc, threadfold::{store::Journal, testing::ScriptedModel}};
    /// # use threadfold::{EventLog, Message, ModelAgent, ProviderThread};
    /// # let mut agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// # let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// # agent.push(Message::user("The key is sk-123."));
    ///
    /// #[derive(Debug)]
    /// struct Keys;
    ///
    /// impl Redactor for Keys {
    ///     fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
    ///         text.replace("sk-123", "[key]").into()
    ///     }
    /// }
    ///
    /// // The thread holds a key. No strategy sees it.
    /// let conversation = Conversation::new(&mut agent, &mut journal).with_redactor(&Keys);
    /// assert_eq!(conversation.snapshot().messages()[0], Message::user("The key is [key]."));
    /// # Ok::<(), threadfold::message::ThreadIdError>(())
    /// ```
    #[must_use]
    pub fn with_redactor(self, redactor: &'a dyn Redactor) -> Self {
        Self { redactor: Some(redactor), ..self }
    }

    /// What a strategy sees of it now.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{ContextWindow, ModelAgent, drive::Conversation, log::EventLog, store::Journal};
    /// use threadfold::testing::ScriptedModel;
    ///
    /// let mut agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// let window = Some(ContextWindow::new(8_000));
    /// let conversation = Conversation::new(&mut agent, &mut journal).with_window(window);
    /// assert_eq!(conversation.snapshot().window(), window);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let snapshot = logged_snapshot(self.thread.thread(), self.journal.log())
            .with_context(self.system.clone(), self.tools.clone())
            .with_window(self.window);
        match self.redactor {
            Some(redactor) => snapshot.redacted(redactor),
            None => snapshot,
        }
    }
}

/// Compacts a conversation: runs the strategy, writes what goes to the archive, commits plan and
/// record to thread and log at once, and stores the record.
///
/// `brief.now` is the time of the record, and `brief.compaction` is set to the number that the log
/// gives. The future may be dropped at any point: before the commit nothing has changed, and after
/// it the next write of the journal stores what is missing.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use threadfold::{Message, ModelAgent, ProviderThread, drive::{self, Conversation, Models}};
/// use threadfold::{log::{Event, EventLog}, message::Timestamp, store::Journal};
/// use threadfold::strategy::{Brief, KeepRecent};
/// use threadfold::testing::ScriptedModel;
///
/// let mut agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
/// let mut journal = Journal::new(EventLog::new("thread-1".parse()?));
/// for text in ["An old question.", "An old answer.", "A new question."] {
///     let message = Message::user(text);
///     journal.append(Timestamp(1), Event::MessageAppended(message.clone()))?;
///     agent.push(message);
/// }
///
/// let mut conversation = Conversation::new(&mut agent, &mut journal);
/// let strategy = KeepRecent { messages: 1, ..KeepRecent::default() };
/// let brief = Brief { now: Timestamp(2), ..Brief::default() };
/// let models = Models::default();
/// let done = block_on(drive::compact(&mut conversation, &strategy, &brief, models, &mut |_| {}))?;
/// assert_eq!(done.report.after.messages, 1);
/// assert_eq!(journal.log().replay()?, agent.messages()[..]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`CompactionError`]. Each says what is left as it was.
pub async fn compact(
    conversation: &mut Conversation<'_>,
    strategy: &dyn CompactionStrategy,
    brief: &Brief,
    models: Models<'_>,
    observe: &mut (dyn FnMut(DriveEvent<'_>) + Send),
) -> Result<Done, CompactionError> {
    conversation.check()?;
    let brief = Brief { compaction: Some(conversation.next_compaction()), ..brief.clone() };
    let snapshot = conversation.snapshot_for(&brief);
    let told = conversation.redactor.map_or(brief.clone(), |redactor| brief.redacted(redactor));
    let mut attempt = strategy.begin(&snapshot, &told);
    let (thread, id) = (conversation.thread.thread(), conversation.journal.log().thread_id());
    let span = CompactionSpan::of_attempt(attempt.as_ref(), thread, id, strategy.name(), &brief);
    let work = async {
        let driven = attempt::drive(attempt.as_mut(), models, observe).await;
        let outcome = driven.and_then(|driven| driven.accepted(&snapshot, &brief));
        conversation.finish_in(&span, strategy.name(), &brief, outcome).await
    };
    span.run(work).await
}

impl Conversation<'_> {
    /// The snapshot with the standing rules, and with the facts of everything that was said if the
    /// brief asks for retention.
    fn snapshot_for(&mut self, brief: &Brief) -> Snapshot {
        // Behind a redactor nothing is kept for the next time, which may come with another one.
        let rules = match self.redactor {
            None => self.journal.rules().clone(),
            redactor => self.journal.log().rules(redactor),
        };
        let snapshot = self.snapshot().with_rules(Arc::new(rules));
        let Some(policy) = &brief.retention else { return snapshot };
        snapshot.with_facts(match self.redactor {
            None => self.journal.facts(&policy.audit),
            redactor => LoggedFacts::default().of(self.journal.log(), &policy.audit, redactor),
        })
    }

    /// The number that the next compaction has.
    #[must_use]
    pub fn next_compaction(&self) -> CompactionId {
        self.journal.log().next_compaction()
    }

    /// Ends a compaction that was proposed with this brief for the [`snapshot`](Self::snapshot) of
    /// this conversation: archives, commits and stores, or notes why it came to nothing.
    /// [`compact`] is this behind [`propose`](super::propose), for hosts that do something of their own
    /// in between.
    ///
    /// The future may be dropped at any point, as that of [`compact`].
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::drive::{self, Conversation, Models};
    /// use threadfold::strategy::{Brief, CompactionStrategy, KeepRecent};
    /// # use std::sync::Arc;
    /// # use threadfold::{EventLog, Message, ModelAgent, ProviderThread, log::Event, message::Timestamp};
    /// # use threadfold::{store::Journal, testing::ScriptedModel};
    /// # let mut agent = ModelAgent::new(Arc::new(ScriptedModel::default()));
    /// # let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// # for text in ["An old question.", "A new question."] {
    /// #     journal.append(Timestamp(1), Event::MessageAppended(Message::user(text)))?;
    /// #     agent.push(Message::user(text));
    /// # }
    ///
    /// let mut conversation = Conversation::new(&mut agent, &mut journal);
    /// let (keep, brief) = (KeepRecent { messages: 1, ..KeepRecent::default() }, Brief::default());
    /// let thread = conversation.snapshot();
    /// let driven = block_on(drive::propose(&keep, &thread, &brief, Models::default(), &mut |_| {}));
    /// // Here a host may ask whether it should be.
    /// let done = block_on(conversation.finish(keep.name(), &brief, driven))?;
    /// assert_eq!(done.report.after.messages, 1);
    /// assert_eq!(journal.log().standing().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionError`]. Each says what is left as it was.
    pub async fn finish(
        &mut self,
        strategy: &str,
        brief: &Brief,
        outcome: Result<Driven, DriveError>,
    ) -> Result<Done, CompactionError> {
        self.finish_in(&CompactionSpan::none(), strategy, brief, outcome).await
    }

    /// As [`finish`](Self::finish), and tells the span how it ended as soon as that is sure.
    pub(crate) async fn finish_in(
        &mut self,
        span: &CompactionSpan,
        strategy: &str,
        brief: &Brief,
        outcome: Result<Driven, DriveError>,
    ) -> Result<Done, CompactionError> {
        let id = brief.compaction.unwrap_or_else(|| self.next_compaction());
        let driven = match outcome {
            Ok(driven) => driven,
            Err(failed) => {
                span.fail(span::kind(&failed.error), failed.usage, failed.calls);
                // What does nothing is no event.
                if !(failed.error.is_nothing_to_compact() && failed.calls == 0) {
                    self.note(brief, failure(id, strategy, brief, &failed)).await?;
                }
                return Err(failed.into());
            }
        };
        // What another compaction archived under the number must not be written over.
        if self.journal.log().is_ended(id) {
            span.fail("commit", driven.usage, driven.calls);
            return Err(AppendError::IdUsed { id }.into());
        }
        if let Err(error) = self.archive(id, &driven).await {
            let usage = driven.usage;
            span.fail("archive", usage, driven.calls);
            let words = error.to_string();
            let mut record = CompactionFailure::new(id, brief.reason.clone(), strategy, words);
            record.usage = usage;
            record.rungs = driven.proposal.rungs.iter().map(Rung::report).collect();
            self.note(brief, record).await?;
            return Err(CompactionError::Archive(error));
        }
        let done = self.commit(span, id, strategy, brief, driven)?;
        self.journal.flush().await.inspect_err(|_| span.error("store"))?;
        Ok(done)
    }

    /// Returns whether thread and log tell of the same messages. They share them, so this compares
    /// handles; what is asked of a model for another thread would be paid for nothing.
    fn check(&self) -> Result<(), CompactionError> {
        let replayed = self.journal.log().replay();
        let log =
            replayed.map_err(|ReplayError::Unreadable { seq }| AppendError::Unreadable { seq })?;
        let thread = self.thread.messages();
        let same = log.iter().zip(thread.iter()).take_while(|(one, other)| one == other).count();
        if same == log.len().max(thread.len()) {
            return Ok(());
        }
        Err(CompactionError::Diverged { message: same })
    }

    async fn archive(&self, id: CompactionId, driven: &Driven) -> Result<(), ArchiveError> {
        let Some(archive) = self.archive else { return Ok(()) };
        // Without entries too: a crash may have left some under this number.
        archive.write(self.journal.log().thread_id(), id, &driven.proposal.archive).await
    }

    /// Carries the plan out, in thread and log or in neither, and stores nothing yet.
    pub(crate) fn commit(
        &mut self,
        span: &CompactionSpan,
        id: CompactionId,
        strategy: &str,
        brief: &Brief,
        driven: Driven,
    ) -> Result<Done, CompactionError> {
        let (usage, calls) = (driven.usage, driven.calls);
        let done = self.carry_out(id, strategy, brief, driven);
        match &done {
            Ok(done) => span.complete(&done.report, usage, calls),
            Err(_) => span.fail("commit", usage, calls),
        }
        done
    }

    fn carry_out(
        &mut self,
        id: CompactionId,
        strategy: &str,
        brief: &Brief,
        driven: Driven,
    ) -> Result<Done, CompactionError> {
        let Driven { proposal, usage, calls } = driven;
        let mut after = self.thread.messages().to_vec();
        proposal.plan.apply(&mut after)?;
        let thread = self.thread.thread();
        let mut report =
            CompactReport::new(thread.size(), &after, &proposal.plan, thread.counter().as_ref());
        report.retention = proposal.retention.map(Box::new);
        let mut record =
            CompactionRecord::new(id, brief.reason.clone(), strategy, proposal.plan.clone());
        record.report = report.clone();
        record.usage = usage;
        record.rungs = proposal.rungs.iter().map(Rung::report).collect();
        record.archived = if self.archive.is_some() { proposal.archive.len() } else { 0 };
        self.journal.append(brief.now, Event::Compacted(Box::new(record)))?;
        // It was carried out on a copy above, so it fits.
        self.thread.apply(&proposal.plan)?;
        Ok(Done { id, report, usage, calls })
    }

    /// Notes that a compaction came to nothing.
    async fn note(&mut self, brief: &Brief, failure: CompactionFailure) -> Result<(), AppendError> {
        self.journal.append(brief.now, Event::CompactionFailed(Box::new(failure)))?;
        // The caller is told why nothing was compacted, which matters more than a store that fails:
        // the log keeps the note, and the next flush tries again and says what is wrong.
        let _ = self.journal.flush().await;
        Ok(())
    }
}

/// Returns a snapshot of a thread, with the times at which its messages came as its log has them.
pub(crate) fn logged_snapshot(thread: &Thread, log: &EventLog) -> Snapshot {
    let snapshot = Snapshot::of(thread);
    match log.projection() {
        Ok(projection) => snapshot.with_times(projection.times(log)),
        Err(_) => snapshot,
    }
}

fn failure(
    id: CompactionId,
    strategy: &str,
    brief: &Brief,
    failed: &DriveError,
) -> CompactionFailure {
    let words = failed.error.to_string();
    let mut record = CompactionFailure::new(id, brief.reason.clone(), strategy, words);
    record.usage = failed.usage;
    if let StrategyError::NoRung { rungs } = &failed.error {
        record.rungs = rungs.iter().map(Rung::report).collect();
    }
    record
}
