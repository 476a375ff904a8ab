//! The lease of a thread that other servers may write too.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use threadfold::{
    message::ThreadId,
    model::{Clock, std_clock},
    session::SessionHandle,
    store::{Lease, LeaseStore, StoreError, ThreadStore, leased},
};
use tokio::{runtime::Handle, task::JoinHandle, time};

/// After this time the thread of a killed server is free.
const LIFETIME: Duration = Duration::from_secs(6);

/// The maximum time that a request waits for the turn of another server.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time between two attempts of a waiting request.
const AGAIN: Duration = Duration::from_millis(25);

/// A lease that is renewed while this value exists, and released when it is dropped.
pub(crate) struct HeldLease {
    store: Arc<dyn LeaseStore>,
    lease: Lease,
    renewal: Option<JoinHandle<()>>,
}

impl HeldLease {
    /// Acquires the lease of a thread, and waits while another server has it.
    pub(crate) async fn acquire(
        store: &Arc<dyn LeaseStore>,
        worker: &str,
        thread: &ThreadId,
    ) -> Result<Self, StoreError> {
        let since = Instant::now();
        loop {
            match store.acquire_lease(thread, worker, std_clock().now(), LIFETIME).await {
                Err(StoreError::Held { .. }) if since.elapsed() < PATIENCE => {
                    time::sleep(AGAIN).await;
                }
                acquired => {
                    let (store, lease) = (Arc::clone(store), acquired?);
                    return Ok(Self { store, lease, renewal: None });
                }
            }
        }
    }

    /// Returns a store with this lease, for a session.
    pub(crate) fn store(&self) -> Arc<dyn ThreadStore> {
        leased(Arc::clone(&self.store), self.lease.clone())
    }

    /// Renews the lease in a task. If the lease is lost, the turn of the session is aborted,
    /// because none of its further events could be stored.
    pub(crate) fn renew_for(&mut self, session: SessionHandle) {
        let (store, lease) = (Arc::clone(&self.store), self.lease.clone());
        self.renewal = Some(tokio::spawn(async move {
            loop {
                time::sleep(LIFETIME / 3).await;
                let renewed = store.renew_lease(&lease, std_clock().now(), LIFETIME).await;
                if let Err(StoreError::LeaseLost { .. }) = renewed {
                    session.abort();
                    return;
                }
            }
        }));
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        if let Some(renewal) = &self.renewal {
            renewal.abort();
        }
        let (store, lease) = (Arc::clone(&self.store), self.lease.clone());
        // Without a runtime the server is ending, and the lease expires.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { store.release_lease(&lease).await });
        }
    }
}
