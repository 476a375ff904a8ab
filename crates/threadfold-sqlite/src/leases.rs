//! Leases: `LeaseStore` for `SqliteStore`.

use std::time::Duration;

use rusqlite::params;
use threadfold::{
    async_trait,
    log::{LogId, LoggedEvent},
    message::{ThreadId, Timestamp},
    store::{Expected, Lease, LeaseStore, StoreError, event_lines, lease_end},
};

use crate::{
    lease_rows::{check, current, end},
    store::SqliteStore,
    threads,
};

#[async_trait]
impl LeaseStore for SqliteStore {
    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        worker: &str,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Lease, StoreError> {
        let (thread, worker) = (thread.clone(), worker.to_owned());
        let expires = end_of(now, lifetime);
        let acquired = self.database.write(move |writing| {
            if let Some(lease) = current(writing, &thread)?.filter(|lease| now < lease.expires) {
                return Err(StoreError::Held { lease }.into());
            }
            end(writing, &thread)?;
            let insert = "INSERT INTO leases (thread, worker, expires) VALUES (?1, ?2, ?3)";
            let mut insert = writing.prepare_cached(insert)?;
            let fence = insert.insert(params![thread.as_str(), worker, expires.0])?;
            let fence = fence.unsigned_abs();
            Ok(Lease { thread, worker: worker.into(), fence, expires })
        });
        acquired.await
    }

    async fn renew_lease(
        &self,
        lease: &Lease,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Lease, StoreError> {
        let (lease, expires) = (lease.clone(), end_of(now, lifetime));
        let renewed = self.database.write(move |writing| {
            let current = check(writing, &lease)?;
            let expires = current.expires.max(expires);
            let update = "UPDATE leases SET expires = ?2 WHERE fence = ?1";
            writing.prepare_cached(update)?.execute(params![lease.fence, expires.0])?;
            Ok(Lease { expires, ..current })
        });
        renewed.await
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        let lease = lease.clone();
        let released = self.database.write(move |writing| {
            let delete = "DELETE FROM leases WHERE fence = ?1 AND thread = ?2";
            let mut delete = writing.prepare_cached(delete)?;
            delete.execute(params![lease.fence, lease.thread.as_str()])?;
            Ok(())
        });
        released.await
    }

    async fn append_leased(
        &self,
        lease: &Lease,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        let expected = Expected { id: log, len: expected_len };
        let (lease, place) = (lease.clone(), self.database.place().clone());
        let lines = event_lines(expected_len, events)?;
        let appended = self.database.write(move |writing| {
            check(writing, &lease)?;
            threads::append(writing, &place, &lease.thread, expected, &lines)
        });
        appended.await
    }
}

/// Returns the end of a lease, limited to the greatest integer of SQLite.
fn end_of(now: Timestamp, lifetime: Duration) -> Timestamp {
    lease_end(now, lifetime).min(Timestamp(i64::MAX.unsigned_abs()))
}
