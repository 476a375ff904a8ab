//! Compacting a thread of the proxy: its log, the strategy, and the new view.

use std::sync::Arc;

use threadfold::{
    CompactionStrategy, EventLog, Model, Request,
    drive::{self, CompactionError, CompactionErrorKind, Conversation, Models},
    log::Event,
    message::{CompactionReason, ContextWindow, Delta, Message, ThreadId, Timestamp},
    retention::RetentionPolicy,
    store::{Journal, ThreadStore},
    strategy::{Brief, Fallback, ModelCall},
};

use crate::relay::View;

use super::views::Row;

/// The input of a compaction.
pub(super) struct Work<'a> {
    pub(super) request: &'a Request,
    /// The messages of the request that are compacted: all, or the first ones.
    pub(super) messages: &'a [Message],
    /// The current view of the request.
    pub(super) found: Option<&'a Row>,
    pub(super) reason: CompactionReason,
    pub(super) now: Timestamp,
    pub(super) target: Option<u64>,
    pub(super) limit: Option<u64>,
    pub(super) window: Option<ContextWindow>,
    pub(super) strategy: &'a dyn CompactionStrategy,
    pub(super) model: Option<&'a dyn Model>,
    pub(super) store: &'a Arc<dyn ThreadStore>,
    /// For a refused request: the log of its earlier compaction, if there was one. Nothing is
    /// stored until the provider accepts the request.
    pub(super) for_refusal: Option<Option<&'a EventLog>>,
}

/// The result of a compaction.
pub(super) struct Compacted {
    pub(super) view: View,
    pub(super) thread: ThreadId,
    pub(super) events: u64,
    pub(super) at: Timestamp,
    pub(super) before: u64,
    pub(super) after: u64,
    /// Why the log could not be stored; `None` if it was.
    pub(super) unstored: Option<CompactionError>,
    /// The log, which is not stored; `None` if it was to be stored.
    pub(super) log: Option<EventLog>,
}

impl Work<'_> {
    /// Compacts the thread, and stores its log.
    pub(super) async fn run(self) -> Result<Compacted, CompactionError> {
        let now = self.now;
        let mut journal = self.journal(now).await?;
        let done = self.compact(&mut journal, now).await;
        let (report, unstored) = match done {
            Ok(report) => (Some(report), None),
            Err(error) if is_unstored(&error) => (None, Some(error)),
            Err(error) => return Err(error),
        };
        let standing = journal.log().standing().next_back().map(|record| record.report.clone());
        let report = report.or(standing).unwrap_or_default();
        Ok(Compacted {
            view: View::between(self.messages, journal.thread().messages()),
            thread: journal.log().thread_id().clone(),
            events: journal.log().len(),
            at: now,
            before: report.before.tokens,
            after: report.after.tokens,
            unstored,
            log: self.for_refusal.map(|_| journal.log().clone()),
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
        let models = Models { conversation: self.model, ..Models::default() };
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

    /// Returns the log of the thread with the messages of the request. If the log continues with
    /// other messages, it stays unchanged, and this thread is a branch with its own log.
    async fn journal(&self, now: Timestamp) -> Result<Journal, CompactionError> {
        let Some(row) = self.found else {
            let journal = self.journal_of(EventLog::new(ThreadId::random()));
            return appended(journal, self.messages, now);
        };
        let mut journal = match self.for_refusal {
            Some(Some(log)) => Journal::new(log.clone()),
            Some(None) | None => self.continued(row, now).await?,
        };
        let rest = self.messages.get(row.view.covers..).unwrap_or_default();
        let live = journal.log().replay()?;
        let tail = live.get(row.view.messages.len()..).unwrap_or_default();
        let same = tail.iter().zip(rest).take_while(|(one, other)| one == other).count();
        if same < tail.len() {
            let len = row.view.messages.len().saturating_add(same);
            journal.read_whole().await?;
            journal.append(now, Event::Truncated { from: live.len(), len })?;
        }
        appended(journal, rest.get(same..).unwrap_or_default(), now)
    }

    async fn continued(&self, row: &Row, now: Timestamp) -> Result<Journal, CompactionError> {
        let thread = row.about.thread.clone();
        let stored = Journal::open(Arc::clone(self.store), thread).await;
        Ok(match stored {
            Ok(journal)
                if journal.log().len() == row.about.events && self.for_refusal.is_none() =>
            {
                journal
            }
            Ok(journal) if journal.log().len() >= row.about.events => {
                let mut branch = EventLog::new(ThreadId::random());
                let whole = journal.whole().await?;
                for event in whole.iter().take_while(|event| event.seq < row.about.events) {
                    branch.append_logged(event.clone())?;
                }
                self.journal_of(branch)
            }
            // The log is gone or was never stored. Only its view is known.
            Ok(_) | Err(_) => {
                let journal = self.journal_of(EventLog::new(ThreadId::random()));
                appended(journal, &row.view.messages, now)?
            }
        })
    }

    /// The journal of a new log. For a refused request it has no store.
    fn journal_of(&self, log: EventLog) -> Journal {
        let journal = Journal::new(log);
        match self.for_refusal {
            Some(_) => journal,
            None => journal.kept_by(Arc::clone(self.store)),
        }
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

/// Whether the compaction succeeded but could not be stored.
fn is_unstored(error: &CompactionError) -> bool {
    matches!(error.kind, CompactionErrorKind::Store(_))
}
