//! A log and the store that keeps it.

use std::sync::Arc;

use super::thread_store::{Loaded, StoreError, ThreadStore};
use crate::{
    compact::Plan,
    ledger::Ledger,
    log::{Event, EventLog, LogError, LogId, LoggedEvent, LoggedFacts, LoggedRules},
    message::{CompactionId, ThreadId, Timestamp},
    retention::{AuditOptions, Facts},
};

/// A log, the store that keeps it, and how much of it the store has.
///
/// The store is always a prefix of the log: events go to the log at once and to the store with the
/// next [`flush`](Self::flush), in order. Without a store the log is all there is.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use threadfold::{Message, log::Event, message::Timestamp, store::{Journal, MemoryStore}};
///
/// let store = Arc::new(MemoryStore::default());
/// let thread = "thread-1".parse()?;
/// let mut journal = block_on(Journal::open(store.clone(), thread))?;
/// journal.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
/// assert_eq!(journal.unstored().len(), 1);
/// block_on(journal.flush())?;
/// assert_eq!(journal.unstored().len(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Journal {
    log: EventLog,
    store: Option<Arc<dyn ThreadStore>>,
    stored: u64,
    /// The stored log, where the store tells logs from each other.
    id: Option<LogId>,
    /// Whether a write was begun of which nobody knows how much came to the store.
    in_doubt: bool,
    /// What compactions had to know of the log so far.
    rules: LoggedRules,
    facts: LoggedFacts,
}

impl Journal {
    /// Returns the journal of a log that no store keeps.
    ///
    /// ```
    /// use threadfold::{EventLog, Message, log::Event, message::Timestamp, store::Journal};
    ///
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// journal.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
    /// assert_eq!(journal.unstored(), [], "nobody keeps it");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new(log: EventLog) -> Self {
        let (rules, facts) = Default::default();
        Self { log, store: None, stored: 0, id: None, in_doubt: false, rules, facts }
    }

    /// Returns the journal with a store that knows nothing of its thread yet. The next
    /// [`flush`](Self::flush) writes all of it there.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{log::EventLog, message::ThreadId, store::{Journal, MemoryStore, ThreadStore}};
    ///
    /// let (store, thread): (_, ThreadId) = (Arc::new(MemoryStore::default()), "main".parse()?);
    /// let mut journal = Journal::new(EventLog::new(thread.clone())).kept_by(store.clone());
    /// block_on(journal.flush())?;
    /// assert_eq!(block_on(store.load(&thread))?.log, *journal.log());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn kept_by(self, store: Arc<dyn ThreadStore>) -> Self {
        let id = Some(LogId::random());
        Self { store: Some(store), stored: 0, id, in_doubt: false, ..self }
    }

    /// Loads the log of a thread from a store that keeps it from now on. A thread that the store
    /// does not know has an empty log.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{Message, log::Event, message::Timestamp, store::{Journal, MemoryStore}};
    ///
    /// let store = Arc::new(MemoryStore::default());
    /// let mut journal = block_on(Journal::open(store.clone(), "main".parse()?))?;
    /// assert!(journal.log().is_empty(), "the store does not know it");
    /// journal.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
    /// block_on(journal.flush())?;
    /// let again = block_on(Journal::open(store, "main".parse()?))?;
    /// assert_eq!(again.log(), journal.log());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the log cannot be loaded.
    pub async fn open(store: Arc<dyn ThreadStore>, thread: ThreadId) -> Result<Self, StoreError> {
        let Loaded { log, id, .. } = store.load(&thread).await?;
        let stored = log.len();
        let id = if log.is_empty() { Some(LogId::random()) } else { id };
        Ok(Self { store: Some(store), stored, id, ..Self::new(log) })
    }

    /// Returns the journal with this id for its log, in place of one by chance: for hosts whose runs
    /// must be the same every time. A log that the store has already keeps its own.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{Message, log::{Event, LogId}, message::{ThreadId, Timestamp}};
    /// use threadfold::store::{Journal, MemoryStore, ThreadStore};
    ///
    /// let (store, thread): (_, ThreadId) = (Arc::new(MemoryStore::default()), "main".parse()?);
    /// let journal = block_on(Journal::open(store.clone(), thread.clone()))?;
    /// let mut journal = journal.with_log_id(LogId(7));
    /// journal.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
    /// block_on(journal.flush())?;
    /// assert_eq!(block_on(store.load(&thread))?.id, Some(LogId(7)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_log_id(self, id: LogId) -> Self {
        if self.stored > 0 { self } else { Self { id: Some(id), ..self } }
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &EventLog {
        &self.log
    }

    /// The standing rules, read from what came into the log since they were asked for last.
    pub(crate) fn rules(&mut self) -> &Ledger {
        self.rules.read(&self.log, None);
        self.rules.ledger()
    }

    /// The facts of everything that was said, read as the rules are.
    pub(crate) fn facts(&mut self, options: &AuditOptions) -> Arc<Facts> {
        self.facts.of(&self.log, options, None)
    }

    /// The events that the store does not have yet; none where there is no store.
    #[must_use]
    pub fn unstored(&self) -> &[LoggedEvent] {
        if self.store.is_some() { self.log.since(self.stored) } else { &[] }
    }

    /// Appends an event to the log. [`flush`](Self::flush) brings it to the store.
    ///
    /// ```
    /// use threadfold::{EventLog, Message, log::Event, message::Timestamp, store::Journal};
    ///
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// let logged = journal.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?;
    /// assert_eq!((logged.seq, logged.at), (0, Timestamp(7)));
    /// assert_eq!(journal.log().replay()?, [Message::user("hi")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`EventLog::append`]. The log is as it was then.
    pub fn append(&mut self, at: Timestamp, event: Event) -> Result<&LoggedEvent, LogError> {
        self.log.append(at, event)
    }

    /// Takes a compaction back in the log, and returns the plan that takes it back in the thread.
    ///
    /// ```
    /// use threadfold::log::{CompactionRecord, Event};
    /// use threadfold::{EventLog, Message, Plan, Replacement, compact::CompactOptions, message::*};
    /// use threadfold::store::Journal;
    ///
    /// let (mut thread, at) = (vec![Message::user("Hi."), Message::assistant("Hello!")], Timestamp(1));
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// for message in &thread {
    ///     journal.append(at, Event::MessageAppended(message.clone()))?;
    /// }
    /// let plan = Plan::new(&thread, &[Replacement::new("A greeting.")], &CompactOptions::default())?;
    /// let _ = plan.apply(&mut thread)?;
    /// let record = CompactionRecord::new(CompactionId(0), CompactionReason::Threshold, "by-hand", plan);
    /// journal.append(at, Event::Compacted(Box::new(record)))?;
    ///
    /// let back = journal.undo(Timestamp(2), CompactionId(0))?;
    /// let _ = back.apply(&mut thread)?;
    /// assert_eq!(thread, [Message::user("Hi."), Message::assistant("Hello!")]);
    /// assert_eq!(journal.log().replay()?, thread);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`EventLog::undo`]. The log is as it was then.
    pub fn undo(&mut self, at: Timestamp, id: CompactionId) -> Result<Plan, LogError> {
        self.log.undo(at, id)
    }

    /// Writes to the store what it does not have yet.
    ///
    /// The future may be dropped, and the store may fail midway: the next flush finds out how much
    /// was written, and goes on from there. That needs no trust: what the store has is compared with
    /// the log, event by event. Where no write of this journal is in doubt, what stands in its place
    /// is another writer's, even if it is the same word for word.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{Message, log::Event, message::Timestamp, store::{Journal, MemoryStore}};
    ///
    /// let store = Arc::new(MemoryStore::default());
    /// let mut ours = block_on(Journal::open(store.clone(), "main".parse()?))?;
    /// let mut theirs = ours.clone();
    /// ours.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
    /// block_on(ours.flush())?;
    /// theirs.append(Timestamp(1), Event::MessageAppended(Message::user("ho")))?;
    /// let error = block_on(theirs.flush()).unwrap_err();
    /// assert!(matches!(error, threadfold::store::StoreError::Conflict { expected: 0, found: 1 }));
    /// assert_eq!(theirs.unstored().len(), 1, "the log keeps it");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The log in memory keeps everything in each case.
    ///
    /// - [`StoreError::Conflict`] if another writer appended to the thread, or what was stored is
    ///   not all there any more.
    /// - [`StoreError::Deleted`] if the thread was deleted in the store.
    /// - [`StoreError::OtherLog`] if it was deleted and begun anew.
    /// - Any other [`StoreError`] of the store.
    pub async fn flush(&mut self) -> Result<(), StoreError> {
        let Some(store) = self.store.clone().filter(|_| !self.unstored().is_empty()) else {
            return Ok(());
        };
        let in_doubt = std::mem::replace(&mut self.in_doubt, true);
        let thread = self.log.thread_id().clone();
        let mut written = store.append_to(&thread, self.id, self.stored, self.unstored()).await;
        if let Err(StoreError::Conflict { expected, found }) = written {
            written = match (expected, found) {
                (1.., 0) => Err(StoreError::Deleted { events: expected }),
                _ if in_doubt => self.go_on(store.as_ref(), found).await,
                _ => Err(StoreError::Conflict { expected, found }),
            };
        }
        match &written {
            Ok(()) => (self.in_doubt, self.stored) = (false, self.log.len()),
            Err(error) => self.in_doubt = in_doubt || error.is_in_doubt(),
        }
        written
    }

    /// Writes what an earlier write, which was dropped or failed, did not bring to the store.
    async fn go_on(&self, store: &dyn ThreadStore, found: u64) -> Result<(), StoreError> {
        let (thread, expected) = (self.log.thread_id(), self.stored);
        let there = store.load(thread).await?;
        let ours = there.id.is_none_or(|id| self.id == Some(id))
            && begins_with(self.unstored(), there.log.since(expected));
        let known = there.log.len();
        if !ours || known < expected {
            return Err(StoreError::Conflict { expected, found });
        }
        let rest = self.log.since(known);
        if rest.is_empty() {
            return Ok(());
        }
        store.append_to(thread, self.id, known, rest).await
    }
}

/// Whether events begin with these, told by how they are stored: what a store reads back may be in
/// a form that is not the one that was written, such as a known word in place of the same text.
fn begins_with(events: &[LoggedEvent], these: &[LoggedEvent]) -> bool {
    let line = |event: &LoggedEvent| serde_json::to_string(event).ok();
    let same = |(one, other): (&LoggedEvent, &LoggedEvent)| {
        one == other || line(one).is_some_and(|one| line(other) == Some(one))
    };
    these.len() <= events.len() && events.iter().zip(these).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{log::Truncated, message::Message};

    #[test]
    fn what_is_known_of_a_log_is_what_a_fresh_look_at_it_says() {
        let mut journal = Journal::new(EventLog::new("main".parse().unwrap()));
        let user = |text: &str| Event::MessageAppended(Message::user(text));
        let events = [
            user("Never touch src/lexer.rs."),
            user("Always run the tests."),
            Event::Truncated(Truncated { from: 2, len: 1 }),
            user("You may touch src/lexer.rs now."),
            user("Always use tabs in src/parser.rs."),
        ];
        for event in events {
            journal.append(Timestamp(1), event).unwrap();
            let log = journal.log().clone();
            assert_eq!(*journal.rules(), log.rules(None));
            let narrow = AuditOptions { max_facts: 2, ..AuditOptions::default() };
            for options in [AuditOptions::default(), narrow] {
                let fresh = LoggedFacts::default().of(&log, &options, None);
                assert_eq!(journal.facts(&options).audit(&[]), fresh.audit(&[]));
            }
        }
    }
}
