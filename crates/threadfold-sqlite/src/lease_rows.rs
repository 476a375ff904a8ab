//! The rows of leases, within a transaction.

use rusqlite::{OptionalExtension, Row, Transaction};
use threadfold::{
    message::{ThreadId, Timestamp},
    store::{Lease, StoreError},
};

use crate::database::Failed;

/// Checks that no worker has a lease of the thread.
pub(crate) fn check_free(reading: &Transaction<'_>, thread: &ThreadId) -> Result<(), Failed> {
    match current(reading, thread)? {
        Some(lease) => Err(StoreError::Held { lease }.into()),
        None => Ok(()),
    }
}

/// Ends the lease of a thread, if there is one.
pub(crate) fn end(writing: &Transaction<'_>, thread: &ThreadId) -> Result<(), Failed> {
    let mut delete = writing.prepare_cached("DELETE FROM leases WHERE thread = ?1")?;
    delete.execute([thread.as_str()])?;
    Ok(())
}

/// Checks that a lease is the current one of its thread, and returns it with its current end.
pub(crate) fn check(reading: &Transaction<'_>, lease: &Lease) -> Result<Lease, Failed> {
    let Lease { thread, fence, .. } = lease;
    let found = current(reading, thread)?.filter(|found| found.fence == *fence);
    let lost = || StoreError::LeaseLost { thread: thread.clone(), fence: *fence };
    found.ok_or_else(|| lost().into())
}

pub(crate) fn current(
    reading: &Transaction<'_>,
    thread: &ThreadId,
) -> Result<Option<Lease>, Failed> {
    let lease = "SELECT fence, worker, expires FROM leases WHERE thread = ?1";
    let mut lease = reading.prepare_cached(lease)?;
    let read = |row: &Row<'_>| {
        let (worker, expires) = (row.get::<_, String>(1)?.into(), Timestamp(row.get(2)?));
        Ok(Lease { thread: thread.clone(), worker, fence: row.get(0)?, expires })
    };
    Ok(lease.query_row([thread.as_str()], read).optional()?)
}
