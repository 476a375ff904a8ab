//! Stores whose leases break one law each, for the suite to catch.

use std::time::Duration;

use threadfold::{
    async_trait,
    log::{LogId, LoggedEvent},
    message::{ThreadId, Timestamp},
    store::{Lease, LeaseStore, Loaded, MemoryStore, StoreError, ThreadStore},
};
use threadfold_testing::conformance::Law;

/// A store that breaks this law, if it knows how.
#[derive(Debug)]
pub(crate) struct BrokenLeases {
    law: Law,
    inner: MemoryStore,
}

impl BrokenLeases {
    pub(crate) fn new(law: Law) -> Self {
        Self { law, inner: MemoryStore::default() }
    }

    /// Converts a lease to that of the inner store and back. To break the law, it makes fences
    /// fall.
    fn turned(&self, lease: Lease) -> Lease {
        let falls = self.law == Law::FencesRise;
        Lease { fence: if falls { u64::MAX - lease.fence } else { lease.fence }, ..lease }
    }

    fn turned_error(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Held { lease } => StoreError::Held { lease: self.turned(lease) },
            StoreError::LeaseLost { thread, fence } if self.law == Law::FencesRise => {
                StoreError::LeaseLost { thread, fence: u64::MAX - fence }
            }
            other => other,
        }
    }
}

#[async_trait]
impl ThreadStore for BrokenLeases {
    async fn append(
        &self,
        thread: &ThreadId,
        _: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        let appended = self.inner.append(thread, None, expected_len, events).await;
        appended.map_err(|error| self.turned_error(error))
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        self.inner.load(thread).await
    }

    async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
        self.inner.list().await
    }

    async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.inner.delete(thread).await
    }
}

#[async_trait]
impl LeaseStore for BrokenLeases {
    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        worker: &str,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Lease, StoreError> {
        let mut acquired = self.inner.acquire_lease(thread, worker, now, lifetime).await;
        if let (Law::OneWorkerHolds, Err(StoreError::Held { lease })) = (self.law, &acquired) {
            self.inner.release_lease(lease).await?;
            acquired = self.inner.acquire_lease(thread, worker, now, lifetime).await;
        }
        acquired.map(|lease| self.turned(lease)).map_err(|error| self.turned_error(error))
    }

    async fn renew_lease(
        &self,
        lease: &Lease,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Lease, StoreError> {
        let lease = self.turned(lease.clone());
        match self.inner.renew_lease(&lease, now, lifetime).await {
            Err(_) if self.law == Law::RenewalExtends => Ok(lease),
            renewed => {
                renewed.map(|lease| self.turned(lease)).map_err(|error| self.turned_error(error))
            }
        }
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        if self.law == Law::ExpiredIsFree {
            return Ok(());
        }
        self.inner.release_lease(&self.turned(lease.clone())).await
    }

    async fn append_leased(
        &self,
        lease: &Lease,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        let lease = &self.turned(lease.clone());
        let appended = match self.inner.append_leased(lease, log, expected_len, events).await {
            Err(StoreError::LeaseLost { .. }) if self.law == Law::LateWriteIsRefused => {
                match self.inner.append(&lease.thread, None, expected_len, events).await {
                    Err(StoreError::Held { lease }) => {
                        self.inner.append_leased(&lease, log, expected_len, events).await
                    }
                    appended => appended,
                }
            }
            appended => appended,
        };
        appended.map_err(|error| self.turned_error(error))
    }
}
