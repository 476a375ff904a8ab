//! `LeaseStore`: at most one worker at a time may write a thread. `leased`: a store whose appends
//! carry a lease.
//!
//! An append carries the fence of its lease, and the store compares it in the transaction that
//! stores the events. So a worker that was suspended cannot write, even if the clocks of the
//! workers differ. All threads of a store take their fences from one counter, so deleting a thread
//! removes its lease completely and no fence is used twice. A session has no code for leases:
//! [`leased`] returns a store.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{
    lease::Lease,
    store_error::{Result, StoreError},
    thread_store::ThreadStore,
};
use crate::{
    log::{Loaded, LogId, LoggedEvent},
    message::{ThreadId, Timestamp},
};

/// A store for several workers, of which at most one at a time may write a thread.
///
/// A worker acquires the lease of a thread, then loads the log, and renews the lease before it
/// expires. If the lease expires, another worker may acquire it, and every later append of the
/// first worker is refused with [`StoreError::LeaseLost`]. [`leased`] appends with a lease, so a
/// [`Session`](crate::Session) works with it like with any store.
///
/// Times are from the caller's clock. If the clocks of two workers differ, a lease may be taken
/// over too early or too late, but the log still has one writer: an append compares fences and
/// never times. For the same reason an expired lease remains valid until it is taken over.
///
/// An append without a lease ([`ThreadStore::append`]) is refused while a worker has one
/// ([`StoreError::Held`]), even an expired one. [`ThreadStore::delete`] needs no lease, and ends
/// it: the worker that has it cannot write the thread again.
///
/// ```
/// use futures::executor::block_on;
/// use std::time::Duration;
/// use threadfold::message::{ThreadId, Timestamp};
/// use threadfold::store::{LeaseStore, MemoryStore, StoreError};
///
/// let (store, thread): (_, ThreadId) = (MemoryStore::default(), "t1".parse()?);
/// let ten = Duration::from_secs(10);
/// let first = block_on(store.acquire_lease(&thread, "worker-1", Timestamp(0), ten))?;
/// let early = block_on(store.acquire_lease(&thread, "worker-2", Timestamp(9_999), ten));
/// assert!(matches!(early, Err(StoreError::Held { lease }) if lease == first));
///
/// let second = block_on(store.acquire_lease(&thread, "worker-2", Timestamp(10_000), ten))?;
/// assert!(second.fence > first.fence);
/// let late = block_on(store.append_leased(&first, None, 0, &[]));
/// assert!(matches!(late, Err(StoreError::LeaseLost { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[async_trait]
pub trait LeaseStore: ThreadStore {
    /// Acquires the lease of a thread until `lifetime` after `now`, in whole milliseconds, if no
    /// worker has the lease or it has expired. The thread need not have events.
    ///
    /// The future may be dropped. The lease may then have been acquired, and expires unused.
    ///
    /// # Errors
    ///
    /// [`StoreError::Held`] with the lease of the other worker, and [`StoreError::Medium`].
    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        worker: &str,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Lease>;

    /// Extends a lease until `lifetime` after `now`, and returns it with its new time. The fence
    /// stays. A renewal never shortens a lease, so renewals may arrive late or twice. An expired
    /// lease can be renewed until another worker takes it over.
    ///
    /// The future may be dropped; the lease is then extended or not.
    ///
    /// # Errors
    ///
    /// [`StoreError::LeaseLost`] and [`StoreError::Medium`].
    async fn renew_lease(&self, lease: &Lease, now: Timestamp, lifetime: Duration)
    -> Result<Lease>;

    /// Ends a lease, so that another worker can acquire the thread at once. For a lease that was
    /// lost or released before, nothing happens.
    ///
    /// The future may be dropped; the lease is then released or expires.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`].
    async fn release_lease(&self, lease: &Lease) -> Result<()>;

    /// Same as [`append`](ThreadStore::append) for the thread of the lease, if the worker still has
    /// the lease. Comparing fence, id and length and storing the events is one atomic step.
    ///
    /// # Errors
    ///
    /// [`StoreError::LeaseLost`], and as [`append`](ThreadStore::append). No event is stored if the
    /// lease was lost.
    async fn append_leased(
        &self,
        lease: &Lease,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<()>;
}

/// Returns a store whose appends carry this lease. It writes only the thread of the lease, and
/// reads every thread. A renewed lease has the same fence, so the store remains valid.
///
/// ```
/// use futures::executor::block_on;
/// use std::{sync::Arc, time::Duration};
/// use threadfold::message::{ThreadId, Timestamp};
/// use threadfold::session::SessionError;
/// use threadfold::store::{LeaseStore, MemoryStore, StoreError, leased};
/// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
///
/// let (store, thread): (_, ThreadId) = (Arc::new(MemoryStore::default()), "t1".parse()?);
/// let ten = Duration::from_secs(10);
/// let lease = block_on(store.acquire_lease(&thread, "worker-1", Timestamp(0), ten))?;
/// let agent = ModelAgent::new(Arc::new(ScriptedModel::new(["Hello!"])));
/// let builder = Session::builder(agent).thread(thread.clone());
/// let mut session = block_on(builder.store(leased(store.clone(), lease)).open())?;
/// block_on(async { session.send("Hi.").await })?;
///
/// block_on(store.acquire_lease(&thread, "worker-2", Timestamp(10_000), ten))?;
/// let late = block_on(async { session.send("Are you there?").await });
/// assert!(matches!(late, Err(SessionError::Store(StoreError::LeaseLost { .. }))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn leased(store: Arc<dyn LeaseStore>, lease: Lease) -> Arc<dyn ThreadStore> {
    Arc::new(Leased { store, lease })
}

#[derive(Debug)]
struct Leased {
    store: Arc<dyn LeaseStore>,
    lease: Lease,
}

impl Leased {
    /// Checks that the lease is for this thread.
    fn check_thread(&self, thread: &ThreadId) -> Result<()> {
        if self.lease.thread == *thread {
            return Ok(());
        }
        Err(StoreError::LeaseLost { thread: thread.clone(), fence: self.lease.fence })
    }
}

#[async_trait]
impl ThreadStore for Leased {
    async fn append(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<()> {
        self.check_thread(thread)?;
        self.store.append_leased(&self.lease, log, expected_len, events).await
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded> {
        self.store.load(thread).await
    }

    /// A base repeats the stored events, so it needs no fence.
    fn inner(&self) -> Option<&dyn ThreadStore> {
        Some(self.store.as_ref())
    }

    async fn list(&self) -> Result<Vec<ThreadId>> {
        self.store.list().await
    }

    async fn delete(&self, thread: &ThreadId) -> Result<()> {
        self.store.delete(thread).await
    }
}
