//! A log and the store that keeps it.

use std::sync::Arc;

use super::thread_store::{StoreError, ThreadStore};
use crate::{
    compact::Plan,
    ledger::Ledger,
    log::{AppendError, Event, EventLog, LoggedEvent, LoggedFacts, LoggedRules, UndoError},
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
        Self { log, store: None, stored: 0, rules, facts }
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
        Self { store: Some(store), stored: 0, ..self }
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
        let log = store.load(&thread).await?.log;
        let stored = log.len();
        Ok(Self { store: Some(store), stored, ..Self::new(log) })
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
    pub fn append(&mut self, at: Timestamp, event: Event) -> Result<&LoggedEvent, AppendError> {
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
    pub fn undo(&mut self, at: Timestamp, id: CompactionId) -> Result<Plan, UndoError> {
        self.log.undo(at, id)
    }

    /// Writes to the store what it does not have yet.
    ///
    /// The future may be dropped: the next flush finds out how much was written, and goes on from
    /// there. That needs no trust: what the store has is compared with the log, event by event.
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
    /// [`StoreError::Conflict`] if another writer appended to the thread, or what was stored is not
    /// all there any more; any other [`StoreError`] of the store. The log keeps what is not stored.
    pub async fn flush(&mut self) -> Result<(), StoreError> {
        let Some(store) = &self.store else { return Ok(()) };
        let events = self.log.since(self.stored);
        if events.is_empty() {
            return Ok(());
        }
        let thread = self.log.thread_id().clone();
        match store.append(&thread, self.stored, events).await {
            Ok(()) => {}
            Err(StoreError::Conflict { expected, found }) => {
                let there = store.load_from(&thread, self.stored).await?;
                // What an earlier write brought there before it was dropped is ours.
                if !begins_with(events, &there) {
                    return Err(StoreError::Conflict { expected, found });
                }
                let known = self.stored + there.len() as u64;
                let rest = self.log.since(known);
                if !rest.is_empty() {
                    store.append(&thread, known, rest).await?;
                }
            }
            Err(error) => return Err(error),
        }
        self.stored = self.log.len();
        Ok(())
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
