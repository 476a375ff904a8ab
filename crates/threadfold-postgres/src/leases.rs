//! Leases: `LeaseStore` for `PostgresStore`.

use std::time::Duration;

use threadfold::{
    async_trait,
    log::{LogId, LoggedEvent},
    message::{ThreadId, Timestamp},
    store::{Lease, LeaseStore, StoreError, lease_end},
};

use crate::{
    store::{PostgresStore, integer},
    threads::{self, Expected, lease, refused},
};

#[async_trait]
impl LeaseStore for PostgresStore {
    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        worker: &str,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Lease, StoreError> {
        let acquire = "SELECT * FROM threadfold.acquire_lease($1, $2, $3, $4)";
        let (name, expires) = (thread.as_str(), integer(lease_end(now, lifetime).0));
        let acquired = self.row(acquire, &[&name, &worker, &integer(now.0), &expires]).await?;
        match self.column::<Option<&str>>(&acquired, 0)? {
            None => lease(self, thread, &acquired, 1),
            Some(_) => Err(refused(self, thread, None, &acquired, 1)?),
        }
    }

    async fn renew_lease(
        &self,
        current: &Lease,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Lease, StoreError> {
        let renew = "SELECT * FROM threadfold.renew_lease($1, $2, $3)";
        let Lease { thread, fence, .. } = current;
        let expires = integer(lease_end(now, lifetime).0);
        let renewed = self.row(renew, &[&thread.as_str(), &integer(*fence), &expires]).await?;
        match self.column::<Option<&str>>(&renewed, 0)? {
            None => lease(self, thread, &renewed, 1),
            Some(_) => Err(refused(self, thread, Some(*fence), &renewed, 1)?),
        }
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        let release = "SELECT threadfold.release_lease($1, $2)";
        self.row(release, &[&lease.thread.as_str(), &integer(lease.fence)]).await?;
        Ok(())
    }

    async fn append_leased(
        &self,
        lease: &Lease,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        let expected = Expected { fence: Some(lease.fence), log, len: expected_len };
        threads::append(self, &lease.thread, &expected, events).await
    }
}
