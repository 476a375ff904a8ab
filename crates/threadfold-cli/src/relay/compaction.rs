//! Compacting a thread of the relay: its log, the strategy, and the new view.

use std::{io, sync::Arc};

use threadfold::{
    CompactionStrategy, EventLog, Request,
    drive::{self, CompactionError, CompactionErrorKind, Conversation, Models},
    log::{CompactionRecord, Event, Loaded, LogId, LoggedEvent},
    message::{CompactionReason, ContextWindow, Delta, Message, ThreadId, Timestamp},
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
    /// Why a strategy that asked a model failed, so that another one took over: a line.
    pub failed: Option<String>,
    /// The log, for [`store`].
    pub journal: Journal,
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
        let mut journal = self.journal(messages, now).await?;
        let done = self.compact(&mut journal, now).await;
        let report = match done {
            Ok(report) => Some(report),
            Err(error) if is_unstored(&error) => None,
            Err(error) => return Err(error),
        };
        let standing = journal.log().standing().next_back();
        let failed = standing.and_then(failed_model);
        let report = report.or(standing.map(|record| record.report.clone())).unwrap_or_default();
        Ok(Compacted {
            view: View::between(&thread, &[journal.thread().messages(), passing].concat()),
            thread: journal.log().thread_id().clone(),
            events: journal.log().len(),
            at: now,
            before: report.before.tokens,
            after: report.after.tokens,
            failed,
            journal,
        })
    }

    /// Runs the strategy with a fallback, because a thread that does not fit must get smaller. That
    /// of a quiet thread fits.
    async fn compact(
        &self,
        journal: &mut Journal,
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
        let done = drive::compact(&mut conversation, self.strategy, &brief, self.models, watch);
        Ok(done.await?.report)
    }

    /// Returns the log of the thread with the messages of the request. If the log continues with
    /// other messages, it stays unchanged, and this thread is a branch with its own log.
    async fn journal(
        &self,
        messages: &[Message],
        now: Timestamp,
    ) -> Result<Journal, CompactionError> {
        let store: Arc<dyn ThreadStore> = Arc::new(Later(Arc::clone(self.store)));
        let Some(found) = self.found else {
            let journal = self.new_journal(&store);
            return appended(journal, messages, now);
        };
        let mut journal = match &self.unstored {
            Some(journal) => journal.clone(),
            None => self.continued(found, &store, now).await?,
        };
        let rest = messages.get(found.view.covers..).unwrap_or_default();
        let live = journal.log().replay();
        let tail = live.get(found.view.messages.len()..).unwrap_or_default();
        let same = tail.iter().zip(rest).take_while(|(one, other)| one == other).count();
        if same < tail.len() {
            let len = found.view.messages.len().saturating_add(same);
            journal.read_whole().await?;
            journal.append(now, Event::Truncated { from: live.len(), len })?;
        }
        appended(journal, rest.get(same..).unwrap_or_default(), now)
    }

    async fn continued(
        &self,
        found: Found<'_>,
        store: &Arc<dyn ThreadStore>,
        now: Timestamp,
    ) -> Result<Journal, CompactionError> {
        let thread = found.thread.clone();
        let stored = Journal::open(Arc::clone(store), thread).await;
        Ok(match stored {
            Ok(journal) if journal.log().len() == found.events => journal,
            Ok(journal) if journal.log().len() >= found.events => {
                let mut branch = EventLog::new(self.id.clone());
                let whole = journal.whole().await?;
                for event in whole.events().iter().take_while(|event| event.seq < found.events) {
                    branch.append_logged(event.clone())?;
                }
                Journal::new(branch).kept_by(Arc::clone(store))
            }
            // The log is gone or was never stored. Only its view is known.
            Ok(_) | Err(_) => appended(self.new_journal(store), &found.view.messages, now)?,
        })
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

/// The first strategy that asked a model in vain, and why it failed.
fn failed_model(record: &CompactionRecord) -> Option<String> {
    let rung = record.rungs.iter().find(|rung| rung.calls > 0 && rung.failure.is_some())?;
    Some(format!(
        "{} failed ({}): {} instead",
        rung.strategy,
        rung.failure.as_ref()?,
        record.strategy
    ))
}

/// Whether the compaction succeeded and is not stored.
fn is_unstored(error: &CompactionError) -> bool {
    matches!(error.kind, CompactionErrorKind::Store(_))
}
