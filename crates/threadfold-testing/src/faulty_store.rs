//! A store whose appends fail on request.

use std::{
    collections::VecDeque,
    io,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use threadfold::{
    log::{LogId, LoggedEvent},
    message::ThreadId,
    store::{Loaded, StoreError, ThreadStore},
};

/// Returns a store whose appends fail on request: before anything is stored, between two events, or
/// after all of them are stored.
///
/// `faults` has one entry for each append, in order: the number of events to store before it fails,
/// or `None` for an append that does not fail. Later appends do not fail. Errors of the inner store
/// are returned unchanged.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, log::{Event, EventLog}, message::Timestamp};
/// use threadfold::store::{MemoryStore, ThreadStore};
/// use threadfold_testing::faulty_store;
///
/// let mut log = EventLog::new("t1".parse()?);
/// log.append(Timestamp(1), Event::MessageAppended(Message::user("one")))?;
/// log.append(Timestamp(2), Event::MessageAppended(Message::user("two")))?;
///
/// let store = faulty_store(MemoryStore::default(), &[Some(1)]);
/// assert!(block_on(store.append(log.thread_id(), None, 0, log.events())).is_err());
/// assert_eq!(block_on(store.load(log.thread_id()))?.log.len(), 1);
/// assert!(block_on(store.append(log.thread_id(), None, 1, log.since(1))).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn faulty_store<S: ThreadStore>(
    inner: S,
    faults: &[Option<usize>],
) -> impl ThreadStore + use<S> {
    FaultyStore { inner, faults: Mutex::new(faults.iter().copied().collect()) }
}

#[derive(Debug)]
struct FaultyStore<S> {
    inner: S,
    faults: Mutex<VecDeque<Option<usize>>>,
}

#[async_trait]
impl<S: ThreadStore> ThreadStore for FaultyStore<S> {
    async fn append(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        let fault = self.faults.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(count) = fault.flatten() else {
            return self.inner.append(thread, log, expected_len, events).await;
        };
        let stored = events.get(..count).unwrap_or(events);
        self.inner.append(thread, log, expected_len, stored).await?;
        let error = io::Error::other(format!("failed after {} events on request", stored.len()));
        Err(StoreError::medium("a failing store", error))
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        self.inner.load(thread).await
    }

    fn inner(&self) -> Option<&dyn ThreadStore> {
        Some(&self.inner)
    }

    async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
        self.inner.list().await
    }

    async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.inner.delete(thread).await
    }
}
