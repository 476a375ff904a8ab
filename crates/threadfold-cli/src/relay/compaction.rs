//! Compacting a thread of the relay: its log, the strategy, and the new view.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use futures::{TryStreamExt, stream::BoxStream};
use threadfold::{
    CompactionStrategy, EventLog, Model, Request,
    drive::{self, CompactionError, CompactionErrorKind, Conversation, Models},
    log::{CompactionRecord, Event, Loaded, LogId, LoggedEvent},
    message::{
        Answer, CompactionReason, ContextWindow, Delta, Message, ModelError, ModelErrorKind, Text,
        ThreadId, Timestamp,
    },
    retention::RetentionPolicy,
    store::{Journal, StoreError, ThreadStore},
    strategy::{Brief, Fallback, ModelCall},
};

use super::{chain::all_unmarked, view::View};

/// The view of a request, and the log from which it was made.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The view.
    pub view: &'a View,
    /// The thread of the log.
    pub thread: &'a ThreadId,
    /// The number of events in the log when the view was made.
    pub events: u64,
}

/// The input of a compaction.
#[derive(Debug)]
pub struct Work<'a> {
    /// The original request.
    pub request: &'a Request,
    /// How many messages of the request are compacted: all, or the first ones.
    pub messages: usize,
    /// The current view of the request.
    pub found: Option<Found<'a>>,
    /// The reason.
    pub reason: CompactionReason,
    /// The time of the events.
    pub now: Timestamp,
    /// The maximum tokens of the messages after the compaction.
    pub target: Option<u64>,
    /// The tokens of the messages up to which the compaction helps.
    pub limit: Option<u64>,
    /// The window of the model.
    pub window: Option<ContextWindow>,
    /// The strategy.
    pub strategy: &'a dyn CompactionStrategy,
    /// The model for summaries, and the clock that waits before it is asked again.
    pub models: Models<'a>,
    /// The id of the log, if the compaction begins a new one.
    pub id: ThreadId,
    /// The store of the logs.
    pub store: &'a Arc<dyn ThreadStore>,
    /// The log of the view, if it is not stored yet.
    pub unstored: Option<Journal>,
}

/// The result of a compaction.
#[derive(Debug)]
pub struct Compacted {
    /// The new view.
    pub view: View,
    /// The thread of the log.
    pub thread: ThreadId,
    /// The number of events in the log.
    pub events: u64,
    /// The time of the compaction.
    pub at: Timestamp,
    /// The tokens of the thread before it.
    pub before: u64,
    /// The tokens of the thread after it.
    pub after: u64,
    /// The strategy that asked a model in vain, so that another one took over.
    pub failed: Option<FailedModel>,
    /// Why the log begins anew with the view, if it does not continue the log of the view.
    pub left: Option<Left>,
    /// The log, for [`store`].
    pub journal: Journal,
}

/// A strategy that asked a model in vain, and the one that took over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedModel {
    /// The first strategy that failed.
    pub strategy: Text,
    /// The kind of the model's last error, without its words, which may quote the thread; `None` if
    /// the model answered and the answer was not accepted.
    pub error: Option<ModelErrorKind>,
    /// The strategy that took over.
    pub instead: Text,
}

/// Why the log of a view is left behind. What it holds is not in the log that begins with the view.
#[derive(Debug)]
pub enum Left {
    /// The store has no such log, or only its first events.
    Gone,
    /// The log has other messages than the view, because another writer was faster.
    Other,
    /// The log cannot be read.
    Unread(CompactionError),
}

tokio::task_local! {
    /// Set while a log is stored.
    static STORES: ();
}

/// Stores the log of a compaction. If this fails, it can be called again.
///
/// # Errors
///
/// As [`Journal::flush`].
pub async fn store(journal: &mut Journal) -> Result<(), StoreError> {
    STORES.scope((), journal.flush()).await
}

/// A store to which only [`store`] writes, because no request waits for its log.
#[derive(Debug)]
struct Later(Arc<dyn ThreadStore>);

#[threadfold::async_trait]
impl ThreadStore for Later {
    async fn append(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        if STORES.try_with(|()| ()).is_err() {
            return Err(StoreError::medium("a log", io::Error::other("it is stored later")));
        }
        self.0.append(thread, log, expected_len, events).await
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        self.0.load(thread).await
    }

    async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
        self.0.list().await
    }

    async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.0.delete(thread).await
    }

    fn inner(&self) -> Option<&dyn ThreadStore> {
        Some(&*self.0)
    }
}

impl Work<'_> {
    /// Compacts the thread. Its log is not stored.
    ///
    /// # Errors
    ///
    /// As [`drive::compact`].
    pub async fn run(self) -> Result<Compacted, CompactionError> {
        let now = self.now;
        // A client moves its cache marks, so neither the log nor the view has them.
        let thread = all_unmarked(&self.request.messages);
        let (messages, passing) = thread.split_at_checked(self.messages).unwrap_or((&thread, &[]));
        let (mut journal, left) = self.journal(messages, now).await?;
        let heard = self.models.conversation.map(Heard::new);
        let conversation = heard.as_ref().map(|model| model as &dyn Model);
        let models = Models { conversation, ..self.models };
        let done = self.compact(&mut journal, models, now).await;
        let report = match done {
            Ok(report) => Some(report),
            Err(error) if is_unstored(&error) => None,
            Err(error) => return Err(error),
        };
        let standing = journal.log().standing().next_back();
        let error = heard.and_then(Heard::into_error);
        let failed = standing.and_then(|record| failed_model(record, error));
        let report = report.or(standing.map(|record| record.report.clone())).unwrap_or_default();
        Ok(Compacted {
            view: View::between(&thread, &[journal.thread().messages(), passing].concat()),
            thread: journal.log().thread_id().clone(),
            events: journal.log().len(),
            at: now,
            before: report.before.tokens,
            after: report.after.tokens,
            failed,
            left,
            journal,
        })
    }

    /// Runs the strategy with a fallback, because a thread that does not fit must get smaller. That
    /// of a quiet thread fits.
    async fn compact(
        &self,
        journal: &mut Journal,
        models: Models<'_>,
        now: Timestamp,
    ) -> Result<threadfold::CompactReport, CompactionError> {
        let brief = Brief {
            reason: self.reason.clone(),
            target: self.target,
            limit: self.limit,
            retention: Some(RetentionPolicy::default()),
            now,
            ..Brief::default()
        };
        let is_idle = self.reason == CompactionReason::Idle;
        let fallback = if is_idle { Fallback::IfNeeded } else { Fallback::Always };
        let mut conversation = Conversation::new(journal)
            .with_context(self.request.system.clone(), self.request.tools.clone())
            .with_window(self.window)
            .with_fallback(fallback);
        let watch = &mut |_: &ModelCall, _: Option<&Delta>| {};
        let done = drive::compact(&mut conversation, self.strategy, &brief, models, watch);
        Ok(done.await?.report)
    }

    /// Returns the log of the thread with the messages of the request, and why it is not that of the
    /// view, if there is one. A log that cannot be read now is an error as long as the request fits:
    /// a later one continues it. A request that does not fit must get smaller, so its log begins anew.
    async fn journal(
        &self,
        messages: &[Message],
        now: Timestamp,
    ) -> Result<(Journal, Option<Left>), CompactionError> {
        let store: Arc<dyn ThreadStore> = Arc::new(Later(Arc::clone(self.store)));
        let Some(found) = self.found else {
            return Ok((appended(self.new_journal(&store), messages, now)?, None));
        };
        let rest = messages.get(found.view.covers..).unwrap_or_default();
        let left = match self.continued(found, rest, &store, now).await {
            Ok(Ok(journal)) => return Ok((journal, None)),
            Ok(Err(left)) => left,
            Err(error) if self.fits() && is_passing(&error) => return Err(error),
            Err(error) => Left::Unread(error),
        };
        let journal = appended(self.new_journal(&store), &found.view.messages, now)?;
        Ok((appended(journal, rest, now)?, Some(left)))
    }

    /// Returns the log of the view with the messages that follow the view. If the log continues with
    /// other messages, it stays unchanged, and this thread is a branch with its own log.
    async fn continued(
        &self,
        found: Found<'_>,
        rest: &[Message],
        store: &Arc<dyn ThreadStore>,
        now: Timestamp,
    ) -> Result<Result<Journal, Left>, CompactionError> {
        let mut journal = match &self.unstored {
            Some(journal) => journal.clone(),
            None => Journal::open(Arc::clone(store), found.thread.clone()).await?,
        };
        if journal.log().len() < found.events {
            return Ok(Err(Left::Gone));
        }
        if journal.log().len() > found.events {
            let mut branch = EventLog::new(self.id.clone());
            let whole = journal.whole().await?;
            for event in whole.events().iter().take_while(|event| event.seq < found.events) {
                branch.append_logged(event.clone())?;
            }
            journal = Journal::new(branch).kept_by(Arc::clone(store));
        }
        let live = journal.log().replay();
        let Some(tail) = live.strip_prefix(&*found.view.messages) else {
            return Ok(Err(Left::Other));
        };
        let same = tail.iter().zip(rest).take_while(|(one, other)| one == other).count();
        if same < tail.len() {
            let len = found.view.messages.len().saturating_add(same);
            journal.read_whole().await?;
            journal.append(now, Event::Truncated { from: live.len(), len })?;
        }
        appended(journal, rest.get(same..).unwrap_or_default(), now).map(Ok)
    }

    /// Whether the request fits its window without this compaction.
    fn fits(&self) -> bool {
        match self.reason {
            CompactionReason::Threshold | CompactionReason::Background | CompactionReason::Idle => {
                true
            }
            CompactionReason::Overflow
            | CompactionReason::ModelSwitch
            | CompactionReason::Manual { .. }
            | CompactionReason::AgentTool => false,
        }
    }

    fn new_journal(&self, store: &Arc<dyn ThreadStore>) -> Journal {
        Journal::new(EventLog::new(self.id.clone())).kept_by(Arc::clone(store))
    }
}

fn appended(
    mut journal: Journal,
    messages: &[Message],
    now: Timestamp,
) -> Result<Journal, CompactionError> {
    for message in messages {
        journal.append(now, Event::MessageAppended(message.clone()))?;
    }
    Ok(journal)
}

/// The first strategy that asked a model in vain.
fn failed_model(record: &CompactionRecord, error: Option<ModelErrorKind>) -> Option<FailedModel> {
    let failed = record.rungs.iter().find(|rung| rung.calls > 0 && rung.failure.is_some())?;
    let accepted = record.rungs.iter().find(|rung| rung.failure.is_none());
    let instead = accepted.map_or(&record.strategy, |rung| &rung.strategy).clone();
    Some(FailedModel { strategy: failed.strategy.clone(), error, instead })
}

/// A model, and the kind of its last error.
#[derive(Debug)]
struct Heard<'a> {
    model: &'a dyn Model,
    error: Mutex<Option<ModelErrorKind>>,
}

impl<'a> Heard<'a> {
    fn new(model: &'a dyn Model) -> Self {
        Self { model, error: Mutex::default() }
    }

    fn hear(&self, error: &ModelError) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.kind.clone());
    }

    fn into_error(self) -> Option<ModelErrorKind> {
        self.error.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

#[threadfold::async_trait]
impl Model for Heard<'_> {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        self.model.complete(request).await.inspect_err(|error| self.hear(error))
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        Box::pin(self.model.stream(request).inspect_err(|error| self.hear(error)))
    }

    async fn compact_natively(
        &self,
        request: Request,
        instructions: Option<Text>,
    ) -> Result<Option<Answer>, ModelError> {
        let answer = self.model.compact_natively(request, instructions).await;
        answer.inspect_err(|error| self.hear(error))
    }

    fn binds_reasoning(&self) -> bool {
        self.model.binds_reasoning()
    }

    fn context_window(&self) -> Option<ContextWindow> {
        self.model.context_window()
    }
}

/// Whether the same read may succeed later.
fn is_passing(error: &CompactionError) -> bool {
    let CompactionErrorKind::Store(error) = &error.kind else { return false };
    matches!(error.downcast_ref(), Some(StoreError::Medium { .. }))
}

/// Whether the compaction succeeded and is not stored.
fn is_unstored(error: &CompactionError) -> bool {
    matches!(error.kind, CompactionErrorKind::Store(_))
}

#[cfg(test)]
mod tests {
    use threadfold::{store::MemoryStore, strategy::Summarize};

    use super::*;

    /// A model that refuses the key, and quotes it.
    #[derive(Debug)]
    struct Refuses;

    #[threadfold::async_trait]
    impl Model for Refuses {
        async fn complete(&self, _: Request) -> Result<Answer, ModelError> {
            Err(ModelError::new(ModelErrorKind::Authentication, "no such key: hunter42"))
        }
    }

    #[tokio::test]
    async fn why_a_summary_failed_is_said_without_the_words_of_the_provider() {
        let mut messages = vec![Message::user("Go through the parts.")];
        for part in 0..30 {
            let text = format!("Part {part} is done. {}", "It was read. ".repeat(40));
            messages.push(Message::assistant(text));
            messages.push(Message::user("Go on."));
        }
        let store: Arc<dyn ThreadStore> = Arc::new(MemoryStore::default());
        let strategy = Summarize { as_text: true, ..Summarize::default() };
        let work = Work {
            request: &Request::new(messages),
            messages: 61,
            found: None,
            reason: CompactionReason::Threshold,
            now: Timestamp(1),
            target: Some(2_000),
            limit: None,
            window: Some(ContextWindow::new(20_000)),
            strategy: &strategy,
            models: Models { conversation: Some(&Refuses), ..Models::default() },
            id: "one".parse().unwrap(),
            store: &store,
            unstored: None,
        };
        let expected = FailedModel {
            strategy: "summarize".into(),
            error: Some(ModelErrorKind::Authentication),
            instead: "digest".into(),
        };
        assert_eq!(work.run().await.unwrap().failed, Some(expected));
    }
}
