//! A log together with its store.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use super::{
    rules_cache::RulesCache,
    store_error::{Result, StoreError},
    thread_store::{Expected, ThreadStore, begins_with},
};
use crate::{
    compact::Plan,
    compaction,
    log::{
        Event, EventLog, Loaded, LogBase, LogError, LogId, LoggedEvent, LoggedFacts, Next, Thread,
    },
    message::{CompactionId, Message, Redactor, Text, ThreadId, Timestamp},
    strategy::Brief,
    tokens::{ByteEstimate, TokenCounter},
};

/// A log with its live thread and its store.
///
/// The store always holds a prefix of the log: an event is appended to the log immediately, and to
/// the store by the next [`flush`](Self::flush). The store is optional.
///
/// With a store, memory holds the thread and the latest events. When the events that a compaction
/// removed from the thread take more than 32 KB, a flush writes a base to the store and drops the
/// stored events from memory ([`EventLog::base`]). [`whole`](Self::whole) and
/// [`read_whole`](Self::read_whole) read them again.
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
#[must_use]
pub struct Journal {
    pub(super) log: EventLog,
    /// The live thread of the log, from its first use on.
    thread: OnceLock<Thread>,
    counter: Arc<dyn TokenCounter>,
    pub(super) store: Option<Arc<dyn ThreadStore>>,
    /// The number of stored events.
    stored: u64,
    /// The id of the stored log, if the store keeps ids.
    pub(super) id: Option<LogId>,
    /// Whether an earlier write was dropped or failed and may have stored some of its events.
    in_doubt: bool,
    pub(super) redactor: Option<Arc<dyn Redactor>>,
    /// The standing rules, redacted.
    pub(super) rules: RulesCache,
    /// The facts of the thread, redacted. They are read when they are needed.
    pub(super) facts: LoggedFacts,
    /// Whether the facts stay in memory between writes. Set if the store keeps no facts with the
    /// base, because they could then be read again only from the whole log.
    pub(super) holds_facts: bool,
}

/// A change of the live thread.
enum Change {
    None,
    /// A message with its tokens.
    Append(Message, u64),
    Truncate(usize),
    Rewrite(Next),
}

impl Change {
    fn apply(self, thread: &mut Thread) {
        match self {
            Self::None => {}
            Self::Append(message, tokens) => thread.push_counted(message, tokens),
            Self::Truncate(len) => thread.truncate(len),
            Self::Rewrite(next) => drop(thread.take_on(next)),
        }
    }
}

impl Journal {
    /// Returns a journal without a store.
    ///
    /// ```
    /// use threadfold::{EventLog, Message, log::Event, message::Timestamp, store::Journal};
    ///
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// journal.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
    /// assert_eq!(journal.unstored(), [], "there is no store");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(log: EventLog) -> Self {
        Self {
            log,
            thread: OnceLock::new(),
            counter: Arc::new(ByteEstimate::TRIGGER),
            store: None,
            stored: 0,
            id: None,
            in_doubt: false,
            redactor: None,
            rules: RulesCache::default(),
            facts: LoggedFacts::default(),
            holds_facts: false,
        }
    }

    /// Returns the journal with a store that holds no event of this thread. The next
    /// [`flush`](Self::flush) stores the whole log; a log with a [`base`](EventLog::base) must be
    /// [read whole](Self::read_whole) first.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// use threadfold::{log::EventLog, message::ThreadId, store::{Journal, MemoryStore, ThreadStore}};
    ///
    /// let (store, thread): (_, ThreadId) = (Arc::new(MemoryStore::default()), "main".parse()?);
    /// let mut journal = Journal::new(EventLog::new(thread.clone())).kept_by(store.clone());
    /// block_on(journal.flush())?;
    /// assert_eq!(block_on(store.load(&thread))?.log, *journal.log());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn kept_by(self, store: Arc<dyn ThreadStore>) -> Self {
        let id = Some(LogId::random());
        Self { store: Some(store), stored: 0, id, in_doubt: false, ..self }
    }

    /// Loads the log of a thread from a store, to which later events are written. The log of an
    /// unknown thread is empty. If the store keeps a [base](ThreadStore::save_base) of the thread,
    /// only the events after it are loaded.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
    /// use threadfold::{Message, log::Event, message::Timestamp, store::{Journal, MemoryStore}};
    ///
    /// let store = Arc::new(MemoryStore::default());
    /// let mut journal = block_on(Journal::open(store.clone(), "main".parse()?))?;
    /// assert!(journal.log().is_empty(), "the thread is new");
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
    pub async fn open(store: Arc<dyn ThreadStore>, thread: ThreadId) -> Result<Self> {
        let base = store.load_base(&thread).await?.and_then(|text| LogBase::read(&text, &thread));
        if let Some(base) = base {
            let events = store.load_from(&thread, base.seq()).await?;
            if let Some(log) = base.log(events) {
                let (stored, id) = (log.len(), base.log);
                return Ok(Self { store: Some(store), stored, id, ..Self::new(log) });
            }
        }
        let Loaded { log, id, .. } = store.load(&thread).await?;
        let stored = log.len();
        let id = if log.is_empty() { Some(LogId::random()) } else { id };
        Ok(Self { store: Some(store), stored, id, ..Self::new(log) })
    }

    /// Returns the log with all its events, from the store if memory does not hold them.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{EventLog, Message, log::Event, message::Timestamp, store::Journal};
    ///
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// journal.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
    /// assert_eq!(block_on(journal.whole())?.events().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`StoreError::OtherLog`], [`StoreError::Deleted`] or [`StoreError::Conflict`] if the
    ///   stored log is not the one that this journal wrote.
    /// - [`StoreError::Unreadable`] if there is no store to read from.
    /// - Any other [`StoreError`] of the store.
    pub async fn whole(&self) -> Result<Cow<'_, EventLog>> {
        let (thread, base) = (self.log.thread_id(), self.log.base());
        if base == 0 {
            return Ok(Cow::Borrowed(&self.log));
        }
        let Some(store) = &self.store else {
            return Err(StoreError::unreadable(thread.as_str(), LogError::NotHeld { base }));
        };
        let loaded = store.load(thread).await?;
        let found = loaded.log.len();
        if found == 0 {
            return Err(StoreError::Deleted { events: self.stored });
        }
        // A store that keeps no ids returns none; then do not compare ids.
        let id = loaded.id.and(self.id);
        Expected { id, len: base }.check(thread, loaded.id, found.min(base))?;
        let mut log = loaded.log;
        if !begins_with(self.log.events(), log.since(base)) {
            // Another writer appended since.
            log = log.before(base);
        }
        for logged in self.log.since(log.len()) {
            let appended = log.append_logged(logged.clone());
            appended.map_err(|error| StoreError::unreadable(thread.as_str(), error))?;
        }
        log.share(&self.log);
        Ok(Cow::Owned(log))
    }

    /// Reads all events of the log into memory, for a truncation or the undo of a compaction before
    /// the [base](EventLog::base). A later flush drops them again.
    ///
    /// # Errors
    ///
    /// As [`whole`](Self::whole). The log in memory is then unchanged.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{EventLog, store::Journal};
    ///
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// block_on(journal.read_whole())?;
    /// assert_eq!(journal.log().base(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn read_whole(&mut self) -> Result<()> {
        if let Cow::Owned(log) = self.whole().await? {
            self.log = log;
        }
        Ok(())
    }

    /// Reads all events into memory, unless the log already holds those that the undo of this
    /// compaction needs.
    pub(crate) async fn hold(&mut self, id: CompactionId) -> Result<()> {
        if self.log.holds(id) || !self.log.is_ended(id) {
            return Ok(());
        }
        self.read_whole().await
    }

    /// Sets the id of a new log, instead of a random one, for hosts whose runs must be
    /// reproducible. A log that is already stored keeps its id.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
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
    pub fn with_log_id(self, id: LogId) -> Self {
        if self.stored > 0 { self } else { Self { id: Some(id), ..self } }
    }

    /// Returns the journal with another counter for the tokens of its thread.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::{EventLog, Message, log::Event, message::Timestamp, store::Journal};
    /// use threadfold::tokens::ByteEstimate;
    ///
    /// let log = EventLog::new("main".parse()?);
    /// let mut journal = Journal::new(log).with_counter(Arc::new(ByteEstimate::new(2)));
    /// journal.append(Timestamp(1), Event::MessageAppended(Message::user("hello!")))?;
    /// assert_eq!(journal.thread().size().tokens, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_counter(self, counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, thread: OnceLock::new(), ..self }
    }

    /// Returns the live thread. It changes with each event that is appended, and in no other way. It
    /// is empty if the log cannot be replayed.
    ///
    /// ```
    /// use threadfold::{EventLog, Message, log::Event, message::Timestamp, store::Journal};
    ///
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// assert_eq!(journal.thread().size().messages, 0);
    /// journal.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
    /// assert_eq!(journal.thread().messages()[..], [Message::user("hi")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn thread(&self) -> &Thread {
        self.thread.get_or_init(|| {
            let messages = self.log.replay();
            Thread::restored(messages, &self.log, Arc::clone(&self.counter))
        })
    }

    /// Returns the log.
    #[must_use]
    pub fn log(&self) -> &EventLog {
        &self.log
    }

    /// Sets a redactor. Strategies and reports of a [compaction](crate::drive::compact)
    /// get redacted texts, and rules and facts are extracted from redacted texts; log and thread
    /// keep the originals.
    ///
    /// ```
    /// use std::{borrow::Cow, sync::Arc};
    /// use threadfold::{EventLog, Message, log::Event, message::Timestamp};
    /// use threadfold::{drive::Conversation, message::Redactor, store::Journal};
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
    /// let mut journal = Journal::new(EventLog::new("main".parse()?)).with_redactor(Arc::new(Keys));
    /// let secret = Message::user("The key is sk-123.");
    /// journal.append(Timestamp(1), Event::MessageAppended(secret))?;
    /// let conversation = Conversation::new(&mut journal);
    /// assert_eq!(conversation.snapshot().messages()[0], Message::user("The key is [key]."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_redactor(self, redactor: Arc<dyn Redactor>) -> Self {
        // Both were extracted from texts that were not redacted.
        let (rules, facts) = (RulesCache::default(), LoggedFacts::default());
        Self { redactor: Some(redactor), rules, facts, ..self }
    }

    pub(crate) fn redactor(&self) -> Option<&Arc<dyn Redactor>> {
        self.redactor.as_ref()
    }

    /// Returns the text, redacted if there is a redactor.
    pub(crate) fn redacted_text(&self, text: impl Into<Text>) -> Text {
        compaction::redacted_by(text.into(), self.redactor.as_deref())
    }

    /// Returns the brief as strategies see it.
    pub(crate) fn redacted(&self, brief: &Brief) -> Brief {
        self.redactor.as_ref().map_or_else(|| brief.clone(), |one| brief.redacted(one.as_ref()))
    }

    /// Returns the events that are not stored yet; none if there is no store.
    #[must_use]
    pub fn unstored(&self) -> &[LoggedEvent] {
        if self.store.is_some() { self.log.since(self.stored) } else { &[] }
    }

    /// Appends an event to the log. [`flush`](Self::flush) stores it.
    ///
    /// ```
    /// use threadfold::{EventLog, Message, log::Event, message::Timestamp, store::Journal};
    ///
    /// let mut journal = Journal::new(EventLog::new("main".parse()?));
    /// let logged = journal.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?;
    /// assert_eq!((logged.seq, logged.at), (0, Timestamp(7)));
    /// assert_eq!(journal.log().replay(), [Message::user("hi")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`EventLog::append`]. The log is then unchanged.
    ///
    /// # Panics
    ///
    /// If the counter does. Log and thread are then unchanged.
    pub fn append(&mut self, at: Timestamp, event: Event) -> Result<&LoggedEvent, LogError> {
        // Plan the change first: it counts tokens, and a counter that panics must leave both
        // unchanged.
        let change = self.change(&event)?;
        self.rules.invalidate();
        let appended = self.log.append(at, event)?;
        if let Some(thread) = self.thread.get_mut() {
            change.apply(thread);
        }
        Ok(appended)
    }

    /// What an event changes in the thread.
    fn change(&self, event: &Event) -> Result<Change, LogError> {
        let Some(thread) = self.thread.get() else { return Ok(Change::None) };
        Ok(match event {
            Event::MessageAppended(message) => {
                Change::Append(message.clone(), thread.counter().message(message))
            }
            Event::Truncated { len, .. } => Change::Truncate(*len),
            Event::Compacted(record) => {
                self.log.check(event)?;
                Change::Rewrite(thread.checked(&record.plan)?)
            }
            Event::CompactionUndone { id } => {
                Change::Rewrite(thread.checked(&self.log.undo_plan(*id)?)?)
            }
            Event::LocalNotice { .. }
            | Event::RuleAdded { .. }
            | Event::RuleRevoked { .. }
            | Event::NoteWritten { .. }
            | Event::Host { .. }
            | Event::ResultCut(_)
            | Event::Spent { .. }
            | Event::SystemPromptSet { .. }
            | Event::CompactionFailed(_)
            | Event::Malformed { .. } => Change::None,
        })
    }

    /// Records the undo of a compaction, and returns the plan that undoes it in the thread.
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
    /// let (id, reason) = (CompactionId(0), CompactionReason::Threshold);
    /// let record = CompactionRecord::new(id, reason, "by-hand", plan);
    /// journal.append(at, Event::Compacted(Box::new(record)))?;
    ///
    /// let back = journal.undo(Timestamp(2), CompactionId(0))?;
    /// let _ = back.apply(&mut thread)?;
    /// assert_eq!(thread, [Message::user("Hi."), Message::assistant("Hello!")]);
    /// assert_eq!(journal.log().replay(), thread);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`EventLog::undo`]. The log is then unchanged.
    pub fn undo(&mut self, at: Timestamp, id: CompactionId) -> Result<Plan, LogError> {
        let plan = self.log.undo_plan(id)?;
        self.append(at, Event::CompactionUndone { id })?;
        Ok(plan)
    }

    /// Stores the events that are not stored yet.
    ///
    /// The future may be dropped, and the store may fail midway. The next flush then compares the
    /// stored events with the log to find how many were stored, and continues from there. If no
    /// earlier flush was dropped or failed, additional stored events were written by another
    /// writer, even if they equal those of this log.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc};
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
    /// The log in memory is unchanged in every case.
    ///
    /// - [`StoreError::Conflict`] if another writer appended to the thread, or some of the stored
    ///   events are missing.
    /// - [`StoreError::Deleted`] if the thread was deleted in the store.
    /// - [`StoreError::OtherLog`] if it was deleted and created again.
    /// - Any other [`StoreError`] of the store.
    pub async fn flush(&mut self) -> Result<()> {
        let Some(store) = self.store.clone().filter(|_| !self.unstored().is_empty()) else {
            return Ok(());
        };
        let in_doubt = std::mem::replace(&mut self.in_doubt, true);
        let thread = self.log.thread_id().clone();
        let mut written = store.append(&thread, self.id, self.stored, self.unstored()).await;
        if let Err(StoreError::Conflict { expected, found }) = written {
            written = match (expected, found) {
                (1.., 0) => Err(StoreError::Deleted { events: expected }),
                _ if in_doubt => self.continue_write(store.as_ref()).await,
                _ => Err(StoreError::Conflict { expected, found }),
            };
        }
        if let Err(error) = written {
            self.in_doubt = in_doubt || error.is_in_doubt();
            return Err(error);
        }
        self.in_doubt = false;
        self.stored = self.log.len();
        if self.is_bulky() {
            // Boxed: inlined, this rare path would enlarge every turn's future.
            Box::pin(self.drop_events(store.as_ref())).await;
        }
        self.rules.forget();
        if !self.holds_facts {
            self.facts.forget();
        }
        Ok(())
    }

    /// Stores the events that an earlier write, which was dropped or failed, did not store.
    async fn continue_write(&self, store: &dyn ThreadStore) -> Result<()> {
        let (thread, expected) = (self.log.thread_id(), self.stored);
        let loaded = store.load(thread).await?;
        let is_ours = loaded.id.is_none_or(|id| self.id == Some(id))
            && begins_with(self.unstored(), loaded.log.since(expected));
        let stored = loaded.log.len();
        if !is_ours || stored < expected {
            // The store says why: between its refusal and this load, a lease may have been lost.
            return store.append(thread, self.id, expected, self.unstored()).await;
        }
        let rest = self.log.since(stored);
        if rest.is_empty() {
            return Ok(());
        }
        store.append(thread, self.id, stored, rest).await
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;
    use crate::{
        compact::Splice,
        log::CompactionRecord,
        message::{CompactionReason, Message},
        retention::{AuditOptions, Facts},
        store::MemoryStore,
    };

    #[test]
    fn rules_and_facts_equal_those_read_from_the_whole_log() {
        let mut journal = Journal::new(EventLog::new("main".parse().unwrap()));
        let user = |text: &str| Event::MessageAppended(Message::user(text));
        let events = [
            user("Never touch src/lexer.rs."),
            user("Always run the tests."),
            Event::Truncated { from: 2, len: 1 },
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
                assert_eq!(facts(&mut journal, &options).audit(&[]), fresh.audit(&[]));
            }
        }
    }

    fn facts(journal: &mut Journal, options: &AuditOptions) -> Arc<Facts> {
        block_on(journal.facts(options)).unwrap()
    }

    #[derive(Debug)]
    struct Keys;

    impl Redactor for Keys {
        fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
            text.replace("sk-12345", "[key]").into()
        }
    }

    fn open(store: &Arc<MemoryStore>) -> Journal {
        block_on(Journal::open(store.clone(), "main".parse().unwrap())).unwrap()
    }

    #[test]
    fn rules_and_facts_of_a_log_with_a_base_equal_those_of_the_whole_log() {
        let store = Arc::new(MemoryStore::default());
        let (mut journal, options) = (open(&store), AuditOptions::default());
        for number in 0..20 {
            let text = "It reads on. ".repeat(300);
            let text = format!("Never send src/{number}.rs. The key is sk-12345-{number}. {text}");
            journal.append(Timestamp(1), Event::MessageAppended(Message::user(text))).unwrap();
            if number % 6 == 5 {
                let (len, id) = (journal.log.replay().len(), CompactionId(number));
                let plan = Plan::from_splices(len, vec![Splice { at: 0..len - 1, insert: vec![] }]);
                let record = CompactionRecord::new(id, CompactionReason::Threshold, "test", plan);
                journal.append(Timestamp(1), Event::Compacted(Box::new(record))).unwrap();
            }
            block_on(journal.flush()).unwrap();
            if number % 4 > 0 {
                continue;
            }
            let whole = block_on(journal.whole()).unwrap().into_owned();
            for journal in [&mut journal, &mut open(&store)] {
                assert_eq!(*journal.rules(), whole.rules(None));
                let fresh = LoggedFacts::default().of(&whole, &options, None);
                assert_eq!(facts(journal, &options).audit(&[]), fresh.audit(&[]));
            }
            let (mut redacted, keys) = (open(&store).with_redactor(Arc::new(Keys)), &Keys);
            let fresh = LoggedFacts::default().of(&whole, &options, Some(keys));
            assert_eq!(redacted.rules().to_string(), whole.rules(Some(keys)).to_string());
            let texts = |facts: Arc<Facts>| -> Vec<Text> {
                facts.audit(&[]).missing.iter().map(|fact| fact.text.clone()).collect()
            };
            assert_eq!(texts(facts(&mut redacted, &options)), texts(fresh));
        }
        assert!(journal.log.base() > 0 && open(&store).log.base() > 0);
        let all = facts(&mut journal, &options).audit(&[]);
        let narrow = AuditOptions { max_facts: 2, ..options.clone() };
        assert_eq!(facts(&mut journal, &narrow).audit(&[]).overall.facts, 2);
        assert_eq!(facts(&mut journal, &options).audit(&[]), all, "earlier facts stay");
    }

    #[test]
    fn the_whole_log_has_the_events_of_this_journal_after_another_writer_appended() {
        let store = Arc::new(MemoryStore::default());
        let mut ours = open(&store);
        let user = |text: String| Event::MessageAppended(Message::user(text));
        for number in 0..4 {
            ours.append(Timestamp(1), user(format!("{number} {}", "on ".repeat(9_000)))).unwrap();
        }
        let plan = Plan::from_splices(4, vec![Splice { at: 0..3, insert: vec![] }]);
        let (id, reason) = (CompactionId(0), CompactionReason::Threshold);
        let record = CompactionRecord::new(id, reason, "test", plan);
        ours.append(Timestamp(1), Event::Compacted(Box::new(record))).unwrap();
        block_on(ours.flush()).unwrap();
        assert_eq!(ours.log.base(), 5);
        let mut theirs = open(&store);
        for (journal, texts) in [(&mut ours, &["a", "b"][..]), (&mut theirs, &["c", "d", "e"])] {
            for text in texts {
                journal.append(Timestamp(1), user((*text).to_owned())).unwrap();
            }
        }
        block_on(theirs.flush()).unwrap();
        let whole = block_on(ours.whole()).unwrap();
        assert_eq!((whole.since(5), whole.replay()), (ours.log.events(), ours.log.replay()));
        let stored = block_on(store.load(ours.log.thread_id())).unwrap().log;
        assert_eq!(whole.before(5).events(), stored.before(5).events());
    }
}
