//! A store in memory.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;

use super::{
    lease::{Lease, lease_end},
    lease_store::LeaseStore,
    store_error::{Result, StoreError},
    thread_store::{Expected, ThreadStore, check_order},
};
use crate::{
    log::{EventLog, Loaded, LogId, LoggedEvent},
    message::{ThreadId, Timestamp},
    sync::{Lock, MutexGuard},
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
/// block_on(store.append(log.thread_id(), None, 0, log.events()))?;
/// assert_eq!(block_on(store.load(log.thread_id()))?.log, log);
/// let again = block_on(store.append(log.thread_id(), None, 0, log.events()));
/// assert!(again.is_err(), "it is longer by now");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryStore {
    stored: Lock<Stored>,
}

#[derive(Debug, Default)]
struct Stored {
    /// Logs that are not empty.
    logs: BTreeMap<ThreadId, StoredLog>,
    leases: BTreeMap<ThreadId, Lease>,
    /// The fence of the latest lease. All threads share the counter, so that the fences of a
    /// deleted thread do not start again.
    last_fence: u64,
}

#[derive(Debug)]
struct StoredLog {
    id: Option<LogId>,
    events: Vec<LoggedEvent>,
    /// The number of events before the base, the text of the base, and the text of its facts.
    base: Option<(u64, [String; 2])>,
}

impl MemoryStore {
    fn stored(&self) -> MutexGuard<'_, Stored> {
        // Every change is a single call of a collection, so a panic leaves consistent data.
        self.stored.lock()
    }
}

impl Stored {
    /// Appends to the expected log.
    fn write(
        &mut self,
        thread: &ThreadId,
        expected: Expected,
        events: &[LoggedEvent],
    ) -> Result<()> {
        let found = self.logs.get(thread);
        let (found, len) = found.map_or((None, 0), |log| (log.id, log.events.len() as u64));
        expected.check(thread, found, len)?;
        if !events.is_empty() {
            let (id, log) = (expected.id, self.logs.entry(thread.clone()));
            let log = log.or_insert_with(|| StoredLog { id, events: Vec::new(), base: None });
            log.events.extend_from_slice(events);
        }
        Ok(())
    }

    /// Checks that no worker has the lease of the thread.
    fn check_free(&self, thread: &ThreadId) -> Result<()> {
        match self.leases.get(thread) {
            Some(lease) => Err(StoreError::Held { lease: lease.clone() }),
            None => Ok(()),
        }
    }

    /// Returns the stored form of this lease, if it is still the current one.
    fn current(&mut self, lease: &Lease) -> Result<&mut Lease> {
        let Lease { thread, fence, .. } = lease;
        let lost = StoreError::LeaseLost { thread: thread.clone(), fence: *fence };
        self.leases.get_mut(thread).filter(|found| found.fence == *fence).ok_or(lost)
    }
}

#[async_trait]
impl ThreadStore for MemoryStore {
    async fn append(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<()> {
        check_order(expected_len, events)?;
        let mut stored = self.stored();
        stored.check_free(thread)?;
        stored.write(thread, Expected { id: log, len: expected_len }, events)
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded> {
        let (id, events) = {
            let stored = self.stored();
            let found = stored.logs.get(thread);
            found.map_or((None, Vec::new()), |log| (log.id, log.events.clone()))
        };
        let mut log = EventLog::new(thread.clone());
        for event in events {
            log.append_logged(event).map_err(|error| StoreError::medium(thread.as_str(), error))?;
        }
        Ok(Loaded { id, ..Loaded::new(log) })
    }

    async fn load_from(&self, thread: &ThreadId, seq: u64) -> Result<Vec<LoggedEvent>> {
        let stored = self.stored();
        let events = stored.logs.get(thread).map(|log| log.events.as_slice()).unwrap_or_default();
        let from = usize::try_from(seq).ok();
        Ok(from.and_then(|from| events.get(from..)).unwrap_or_default().to_vec())
    }

    async fn save_base(
        &self,
        thread: &ThreadId,
        log: LogId,
        seq: u64,
        base: &str,
        facts: &str,
    ) -> Result<()> {
        if let Some(stored) = self.stored().logs.get_mut(thread)
            && stored.id == Some(log)
            && seq <= stored.events.len() as u64
            && stored.base.as_ref().is_none_or(|(kept, _)| *kept < seq)
        {
            stored.base = Some((seq, [base.to_owned(), facts.to_owned()]));
        }
        Ok(())
    }

    async fn load_base(&self, thread: &ThreadId) -> Result<Option<String>> {
        Ok(self
            .stored()
            .logs
            .get(thread)
            .and_then(|log| log.base.as_ref().map(|(_, [base, _])| base.clone())))
    }

    async fn load_facts(&self, thread: &ThreadId, log: LogId, seq: u64) -> Result<Option<String>> {
        let stored = self.stored();
        let stored = stored.logs.get(thread).filter(|stored| stored.id == Some(log));
        let base = stored.and_then(|stored| stored.base.as_ref()).filter(|base| base.0 == seq);
        Ok(base.map(|(_, [_, facts])| facts.clone()))
    }

    async fn list(&self) -> Result<Vec<ThreadId>> {
        Ok(self.stored().logs.keys().cloned().collect())
    }

    async fn delete(&self, thread: &ThreadId) -> Result<()> {
        let mut stored = self.stored();
        stored.leases.remove(thread);
        stored.logs.remove(thread);
        Ok(())
    }
}

#[async_trait]
impl LeaseStore for MemoryStore {
    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        worker: &str,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Lease> {
        let mut stored = self.stored();
        if let Some(lease) = stored.leases.get(thread).filter(|lease| now < lease.expires) {
            return Err(StoreError::Held { lease: lease.clone() });
        }
        stored.last_fence = stored.last_fence.saturating_add(1);
        let (thread, fence) = (thread.clone(), stored.last_fence);
        let lease =
            Lease { thread, worker: worker.into(), fence, expires: lease_end(now, lifetime) };
        stored.leases.insert(lease.thread.clone(), lease.clone());
        Ok(lease)
    }

    async fn renew_lease(
        &self,
        lease: &Lease,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Lease> {
        let mut stored = self.stored();
        let current = stored.current(lease)?;
        current.expires = current.expires.max(lease_end(now, lifetime));
        Ok(current.clone())
    }

    async fn release_lease(&self, lease: &Lease) -> Result<()> {
        let mut stored = self.stored();
        if stored.current(lease).is_ok() {
            stored.leases.remove(&lease.thread);
        }
        Ok(())
    }

    async fn append_leased(
        &self,
        lease: &Lease,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<()> {
        check_order(expected_len, events)?;
        let mut stored = self.stored();
        stored.current(lease)?;
        stored.write(&lease.thread, Expected { id: log, len: expected_len }, events)
    }
}
