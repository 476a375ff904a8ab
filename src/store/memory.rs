//! A store that lives as long as the process.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::thread_store::{Loaded, StoreError, ThreadStore, check_places};
use crate::{
    log::{EventLog, LoggedEvent},
    message::ThreadId,
};

/// A store in memory, for tests and for threads that need not outlive the process.
///
/// Its futures are done when they are first asked. Messages are shared with whoever appended them.
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
    threads: Mutex<BTreeMap<ThreadId, Vec<LoggedEvent>>>,
}

impl MemoryStore {
    fn threads(&self) -> MutexGuard<'_, BTreeMap<ThreadId, Vec<LoggedEvent>>> {
        // Nothing is left half done when a holder panics: every change is one call of a collection.
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut threads = self.threads();
        let found = threads.get(thread).map_or(0, |stored| stored.len() as u64);
        if found != expected_len {
            return Err(StoreError::Conflict { expected: expected_len, found });
        }
        if !events.is_empty() {
            threads.entry(thread.clone()).or_default().extend_from_slice(events);
        }
        Ok(())
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        let events = self.load_from(thread, 0).await?;
        let mut log = EventLog::new(thread.clone());
        for event in events {
            log.append_logged(event).map_err(|error| StoreError::medium(thread.as_str(), error))?;
        }
        Ok(Loaded::new(log))
    }

    async fn load_from(&self, thread: &ThreadId, seq: u64) -> Result<Vec<LoggedEvent>, StoreError> {
        let threads = self.threads();
        let stored = threads.get(thread).map(Vec::as_slice).unwrap_or_default();
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
