//! Storing what compactions made. A request waits for it a short while at most: what is not stored by
//! then, because another process locks the database or the disk is full, is used from memory and
//! stored later, in order.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use threadfold::{
    log::{Loaded, LogId, LoggedEvent},
    message::ThreadId,
    store::{StoreError, ThreadStore},
};
use tokio::{task, time::timeout};

use super::{state::Proxy, trouble::Trouble, unstored::Made, views::Limits};
use crate::relay::compaction;

/// How long a request waits until its compaction is stored, and for the log of its thread.
const WAIT: Duration = Duration::from_secs(1);

impl Proxy {
    /// Keeps what a compaction made: at once in memory, and stored as soon as possible.
    pub(super) async fn keep(self: &Arc<Self>, made: Made) {
        self.views.hold(Arc::clone(&made.row));
        if let Some(Made { row, .. }) = self.unstored.push(made) {
            self.views.release(&row);
            let thread = &row.about.thread;
            self.note(&format!(
                "a compaction of thread {thread} is dropped: too many wait to be stored"
            ));
        }
        self.store_soon().await;
    }

    /// Stores what waits, and returns when it is stored, or after a short while.
    pub(crate) async fn store_soon(self: &Arc<Self>) {
        let is_stalled = self.unstored.is_stalled.load(Ordering::Relaxed);
        if is_stalled && self.unstored.storing.try_lock().is_err() {
            // The task that stores now takes this too, or the next one does.
            return;
        }
        let (proxy, runtime) = (Arc::clone(self), tokio::runtime::Handle::current());
        // SQLite blocks its thread.
        let stored = task::spawn_blocking(move || runtime.block_on(proxy.store_waiting()));
        if !is_stalled && timeout(WAIT, stored).await.is_err() {
            self.note_stalled("the database does not answer");
        }
    }

    /// Says once that somebody deleted the database, which takes what is written all the same.
    pub(super) fn look_for_database(&self) {
        if self.views.is_gone() && !self.unstored.noted_gone.swap(true, Ordering::Relaxed) {
            self.note(
                "the database of the folder is gone: threads are compacted, and kept only until \
                 this proxy ends; start it again",
            );
        }
    }

    /// Stores what waits, the oldest first, until one cannot be stored now.
    async fn store_waiting(&self) {
        let _one_at_a_time = self.unstored.storing.lock().await;
        while let Some(mut made) = self.unstored.first() {
            let thread = made.row.about.thread.clone();
            match self.store(&mut made).await {
                Ok(()) => self.unstored.is_stalled.store(false, Ordering::Relaxed),
                Err(words) => {
                    self.unstored.put_back(made);
                    return self.note_stalled(&words);
                }
            }
            self.unstored.done(&made);
            self.limit_folder(&thread).await;
        }
        self.views.write_learnt();
    }

    /// Stores the log and then the view. An error says why that is not possible now.
    async fn store(&self, made: &mut Made) -> Result<(), String> {
        let Made { row, journal, parent } = made;
        let thread = &row.about.thread;
        self.views.knows_log(thread, self.clock.now())?;
        if let Err(error) = compaction::store(journal).await {
            let words = Trouble::from(&error);
            if matches!(error, StoreError::Medium { .. }) {
                return Err(words.to_string());
            }
            // It never will be. Its view is stored all the same.
            self.note(&format!("the log of thread {thread} is not stored: {words}"));
        }
        self.views.insert(Arc::clone(row), *parent)
    }

    /// Says once that nothing can be stored now.
    fn note_stalled(&self, words: &str) {
        if !self.unstored.is_stalled.swap(true, Ordering::Relaxed) {
            self.note(&format!(
                "what is compacted is in memory only, and stored as soon as it can be: {words}"
            ));
        }
    }

    /// Deletes the logs that no view needs, and the oldest threads until the folder is within its
    /// limits. The thread that was compacted now stays.
    async fn limit_folder(&self, kept: &ThreadId) {
        let limits = Limits {
            threads: self.options.max_threads,
            bytes: self.options.max_stored,
            now: self.clock.now(),
        };
        loop {
            let (thread, is_needed) = match self.views.excess(limits, kept) {
                Ok(Some(excess)) => excess,
                Ok(None) => return,
                Err(error) => return self.note(&format!("the folder is not limited: {error}")),
            };
            let deleted = self.store.delete(&thread).await.map_err(|error| error.to_string());
            if let Err(error) = deleted.and_then(|()| self.views.forget(&thread)) {
                return self.note(&format!("thread {thread} is not deleted: {error}"));
            }
            if is_needed {
                self.note(&format!("thread {thread} is deleted: the folder is over its limits"));
            }
        }
    }
}

/// A store of which no read takes longer than a request may wait.
#[derive(Debug)]
pub(super) struct Impatient(pub(super) Arc<dyn ThreadStore>);

async fn soon<T>(read: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let late = |late| StoreError::medium("the stored threads", late);
    timeout(WAIT, read).await.map_err(late)?
}

#[threadfold::async_trait]
impl ThreadStore for Impatient {
    async fn append(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        self.0.append(thread, log, expected_len, events).await
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        soon(self.0.load(thread)).await
    }

    async fn load_from(&self, thread: &ThreadId, seq: u64) -> Result<Vec<LoggedEvent>, StoreError> {
        soon(self.0.load_from(thread, seq)).await
    }

    async fn load_base(&self, thread: &ThreadId) -> Result<Option<String>, StoreError> {
        soon(self.0.load_base(thread)).await
    }

    async fn load_facts(
        &self,
        thread: &ThreadId,
        log: LogId,
        seq: u64,
    ) -> Result<Option<String>, StoreError> {
        soon(self.0.load_facts(thread, log, seq)).await
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

#[cfg(test)]
mod tests {
    use threadfold::{
        EventLog,
        log::Event,
        message::{Message, Timestamp},
        store::{Journal, MemoryStore},
        strategy::Digest,
    };

    use super::*;
    use crate::{
        proxy::{Notes, ProxyOptions, Views, WhenQuiet, policy, unstored::MAX_WAITING, views::Row},
        relay::{Link, View},
    };

    #[tokio::test(flavor = "multi_thread")]
    async fn what_waits_to_be_stored_is_all_that_is_in_memory() {
        let folder = std::env::temp_dir().join(format!("threadfold-held-{}", std::process::id()));
        let database = folder.join("threads.db");
        let views = Views::open(&database).unwrap();
        let store: Arc<dyn ThreadStore> = Arc::new(MemoryStore::default());
        let notes = Arc::new(Notes::in_file(&folder.join("lines.log")).unwrap());
        let proxy = Proxy::new(options(), store, views).unwrap().noted_in(notes);
        let proxy = Arc::new(proxy);
        let other = rusqlite::Connection::open(&database).unwrap();
        other.execute_batch("ALTER TABLE proxy_views RENAME TO away").unwrap();
        for number in 0..MAX_WAITING + 50 {
            let thread: ThreadId = format!("thread-{number}").parse().unwrap();
            let journal = Journal::new(EventLog::new(thread.clone()));
            let row = Row::for_tests(7, View::new(1, Vec::new()), thread);
            let row = Row { link: Link::of_names("a", &number.to_string()), ..row };
            proxy.keep(Made { row: Arc::new(row), journal, parent: None }).await;
        }
        assert_eq!(proxy.views.held(), MAX_WAITING);
        drop(proxy);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    fn options() -> ProxyOptions {
        let server = || "http://127.0.0.1:1".to_owned();
        ProxyOptions {
            anthropic: server(),
            openai: server(),
            gemini: server(),
            window: None,
            policy: policy(0.8),
            when_quiet: WhenQuiet::Nothing,
            strategy: Arc::new(Digest::default()),
            model: None,
            shadow: false,
            max_body: 1_000,
            patience: WAIT,
            max_threads: 1_000,
            max_stored: u64::MAX,
            stall: WAIT,
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_log_whose_view_is_stored_only_later_is_stored_once() {
        let folder = std::env::temp_dir().join(format!("threadfold-keep-{}", std::process::id()));
        let database = folder.join("threads.db");
        let views = Views::open(&database).unwrap();
        let store: Arc<dyn ThreadStore> = Arc::new(MemoryStore::default());
        let lines = folder.join("lines.log");
        let notes = Arc::new(Notes::in_file(&lines).unwrap());
        let proxy = Proxy::new(options(), Arc::clone(&store), views).unwrap().noted_in(notes);
        let proxy = Arc::new(proxy);
        let thread: ThreadId = "main".parse().unwrap();
        let mut journal = Journal::new(EventLog::new(thread.clone())).kept_by(Arc::clone(&store));
        journal.append(Timestamp(1), Event::MessageAppended(Message::user("Hi."))).unwrap();
        let row = Row::for_tests(7, View::new(1, vec![Message::user("Hi.")]), thread.clone());
        let other = rusqlite::Connection::open(&database).unwrap();
        other.execute_batch("ALTER TABLE proxy_views RENAME TO away").unwrap();
        proxy.keep(Made { row: Arc::new(row), journal, parent: None }).await;
        assert_eq!(store.load(&thread).await.unwrap().log.len(), 1);
        other.execute_batch("ALTER TABLE away RENAME TO proxy_views").unwrap();
        proxy.store_waiting().await;
        assert!(proxy.unstored.is_empty());
        let lines = std::fs::read_to_string(&lines).unwrap();
        assert!(lines.contains("in memory only") && !lines.contains("is not stored"), "{lines}");
        drop(proxy);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
