//! A store in memory.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::thread_store::{Loaded, StoreError, ThreadStore, check_length, check_log, check_places};
use crate::{
    log::{EventLog, LogId, LoggedEvent},
    message::ThreadId,
};

/// A store in memory, for tests and for threads that need not outlive the process.
///
/// Its futures are ready at the first poll. Messages are shared with the caller.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{EventLog, Message, log::Event, message::Timestamp};
/// use threadfold::store::{MemoryStore, ThreadStore};
///
/// let (store, mut log) = (MemoryStore::default(), EventLog::new("main".parse()?));
/// log.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?;
/// block_on(store.append(log.thread_id(), 0, log.events()))?;
/// assert_eq!(block_on(store.load(log.thread_id()))?.log, log);
/// assert!(block_on(store.append(log.thread_id(), 0, log.events())).is_err(), "it is longer by now");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryStore {
    threads: Mutex<BTreeMap<ThreadId, Stored>>,
}

/// A log that is not empty.
#[derive(Debug)]
struct Stored {
    id: Option<LogId>,
    events: Vec<LoggedEvent>,
}

impl MemoryStore {
    fn threads(&self) -> MutexGuard<'_, BTreeMap<ThreadId, Stored>> {
        // Every change is a single call of a collection, so a panic leaves consistent data.
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends if the stored log, given as id and length, passes the check.
    fn write(
        &self,
        thread: &ThreadId,
        id: Option<LogId>,
        events: &[LoggedEvent],
        check: impl FnOnce((Option<LogId>, u64)) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut threads = self.threads();
        let found = threads.get(thread);
        check(found.map_or((None, 0), |stored| (stored.id, stored.events.len() as u64)))?;
        if !events.is_empty() {
            let new = || Stored { id, events: Vec::new() };
            let stored = threads.entry(thread.clone()).or_insert_with(new);
            stored.events.extend_from_slice(events);
        }
        Ok(())
    }
}

#[async_trait]
impl ThreadStore for MemoryStore {
    async fn append(
        &self,
        thread: &ThreadId,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        check_places(expected_len, events)?;
        self.write(thread, None, events, |(_, found)| check_length(expected_len, found))
    }

    async fn append_to(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        check_places(expected_len, events)?;
        self.write(thread, log, events, |found| check_log(thread, (log, expected_len), found))
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        let (id, events) = {
            let threads = self.threads();
            let stored = threads.get(thread);
            stored.map_or((None, Vec::new()), |stored| (stored.id, stored.events.clone()))
        };
        let mut log = EventLog::new(thread.clone());
        for event in events {
            log.append_logged(event).map_err(|error| StoreError::medium(thread.as_str(), error))?;
        }
        Ok(Loaded { id, ..Loaded::new(log) })
    }

    async fn load_from(&self, thread: &ThreadId, seq: u64) -> Result<Vec<LoggedEvent>, StoreError> {
        let threads = self.threads();
        let stored = threads.get(thread).map(|stored| stored.events.as_slice()).unwrap_or_default();
        let from = usize::try_from(seq).ok();
        Ok(from.and_then(|from| stored.get(from..)).unwrap_or_default().to_vec())
    }

    async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
        Ok(self.threads().keys().cloned().collect())
    }

    async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.threads().remove(thread);
        Ok(())
    }
}
