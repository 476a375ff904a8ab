//! The disk of a simulated world: logs with leases, and files. It fails now and then.
//!
//! It only wraps a store of the library, which must itself refuse a late writer.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures::FutureExt;
use threadfold::{
    log::{LogId, LoggedEvent},
    message::{ThreadId, Timestamp},
    store::{Lease, LeaseStore, Loaded, MemoryStore, StoreError, ThreadStore},
};

use super::core::Core;

type Result<T> = std::result::Result<T, StoreError>;

/// One in this many writes fails.
const FAILS: u64 = 60;

/// Logs and files, which outlive every process.
#[derive(Debug)]
pub(super) struct Disk {
    core: Arc<Core>,
    logs: MemoryStore,
    files: Mutex<BTreeMap<String, Arc<str>>>,
}

impl Disk {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core, logs: MemoryStore::default(), files: Mutex::default() }
    }

    /// A log as it is stored.
    pub(super) fn held(&self, thread: &ThreadId) -> Option<Loaded> {
        self.logs.load(thread).now_or_never()?.ok()
    }

    /// A file as it was written last.
    pub(super) fn read(&self, name: &str) -> Option<Arc<str>> {
        self.files().get(name).cloned()
    }

    /// Writes a file whole, or fails: then the file is the old one or the new one.
    pub(super) async fn write(&self, name: &str, text: String) -> Result<()> {
        self.core.numbers.nap().await;
        let fails = self.core.numbers.once_in(FAILS);
        if !fails || self.core.numbers.once_in(2) {
            self.core.bytes(text.as_bytes());
            self.files().insert(name.to_owned(), text.into());
        }
        self.core.numbers.nap().await;
        if fails { Err(self.failed(name)) } else { Ok(()) }
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Arc<str>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, what: &str) -> StoreError {
        self.core.count(|tally| tally.store_failures += 1);
        self.core.note(format_args!("the disk fails: {what}"));
        StoreError::medium("the simulated disk", io::Error::other("it is full now and then"))
    }

    /// Writes events with or without a lease; sometimes not all of them, or with an error after all.
    async fn put(
        &self,
        (thread, lease): (&ThreadId, Option<&Lease>),
        log: Option<LogId>,
        expected: u64,
        events: &[LoggedEvent],
    ) -> Result<()> {
        let numbers = &self.core.numbers;
        numbers.nap().await;
        let most = numbers.once_in(FAILS).then(|| numbers.below(events.len() as u64 + 1) as usize);
        let stored = most.and_then(|most| events.get(..most)).unwrap_or(events);
        let written = match lease {
            Some(lease) => self.logs.append_leased(lease, log, expected, stored).await,
            None => self.logs.append(thread, log, expected, stored).await,
        };
        if let Err(error) = written {
            let lost = matches!(error, StoreError::LeaseLost { .. });
            self.core.count(|tally| tally.too_late += u64::from(lost));
            self.core.note(format_args!("a write is refused: {error}"));
            return Err(error);
        }
        self.look(thread, lease, stored);
        numbers.nap().await;
        if most.is_some() { Err(self.failed("a write of events")) } else { Ok(()) }
    }

    /// Shows the judge what was stored.
    fn look(&self, thread: &ThreadId, lease: Option<&Lease>, events: &[LoggedEvent]) {
        let judged = self.core.judge().stored(thread, lease, events);
        match judged {
            Ok(number) => {
                self.core.count(|tally| tally.events += events.len() as u64);
                for event in events {
                    let text = serde_json::to_string(event).unwrap_or_default();
                    self.core.bytes(text.as_bytes());
                    self.core.note(format_args!("log {number} <- {text:.100}"));
                }
            }
            Err(fault) => self.core.broke(fault),
        }
    }
}

#[async_trait]
impl ThreadStore for Disk {
    async fn append(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        expected: u64,
        events: &[LoggedEvent],
    ) -> Result<()> {
        self.put((thread, None), log, expected, events).await
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded> {
        self.core.numbers.nap().await;
        if self.core.numbers.once_in(FAILS) {
            return Err(self.failed("a load"));
        }
        self.logs.load(thread).await
    }

    fn inner(&self) -> Option<&dyn ThreadStore> {
        Some(&self.logs)
    }

    async fn list(&self) -> Result<Vec<ThreadId>> {
        self.logs.list().await
    }

    async fn delete(&self, thread: &ThreadId) -> Result<()> {
        self.logs.delete(thread).await
    }
}

#[async_trait]
impl LeaseStore for Disk {
    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        worker: &str,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Lease> {
        self.core.numbers.nap().await;
        let lease = self.logs.acquire_lease(thread, worker, now, lifetime).await?;
        let judged = self.core.judge().acquired(&lease);
        match judged {
            Ok(is_taken_over) => {
                self.core.count(|tally| tally.taken_over += u64::from(is_taken_over));
                let Lease { fence, expires, .. } = &lease;
                self.core
                    .note(format_args!("{worker} has lease {fence} of {thread} until {expires}"));
            }
            Err(fault) => self.core.broke(fault),
        }
        self.core.numbers.nap().await;
        Ok(lease)
    }

    async fn renew_lease(&self, lease: &Lease, now: Timestamp, life: Duration) -> Result<Lease> {
        self.core.numbers.nap().await;
        self.logs.renew_lease(lease, now, life).await
    }

    async fn release_lease(&self, lease: &Lease) -> Result<()> {
        self.core.numbers.nap().await;
        self.logs.release_lease(lease).await
    }

    async fn append_leased(
        &self,
        lease: &Lease,
        log: Option<LogId>,
        expected: u64,
        events: &[LoggedEvent],
    ) -> Result<()> {
        self.put((&lease.thread, Some(lease)), log, expected, events).await
    }
}
