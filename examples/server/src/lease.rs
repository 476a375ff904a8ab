//! The lease of a thread that other servers may want too.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use threadfold::{
    message::ThreadId,
    model::{Clock, StdClock},
    session::SessionHandle,
    store::{Lease, LeaseStore, Leased, StoreError},
};
use tokio::{runtime::Handle, task::JoinHandle, time};

/// The thread of a server that was killed is free after this time.
const LIFETIME: Duration = Duration::from_secs(6);

/// How long a request waits for the turn of another server.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a request that waits asks again.
const AGAIN: Duration = Duration::from_millis(25);

/// A lease that is renewed as long as this exists, and released when it is dropped.
pub(crate) struct HeldLease {
    store: Arc<dyn LeaseStore>,
    lease: Lease,
    renewal: Option<JoinHandle<()>>,
}

impl HeldLease {
    /// Acquires the lease of a thread. While another server has it, this waits.
    pub(crate) async fn acquire(
        store: &Arc<dyn LeaseStore>,
        worker: &str,
        thread: &ThreadId,
    ) -> Result<Self, StoreError> {
        let since = Instant::now();
        loop {
            match store.acquire_lease(thread, worker, StdClock.now(), LIFETIME).await {
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

    /// Returns the store of a session that has the lease.
    pub(crate) fn store(&self) -> Leased {
        Leased::new(Arc::clone(&self.store), self.lease.clone())
    }

    /// Renews the lease in a task. If it is lost, the turn of the session is aborted: no event of
    /// it could be stored any more.
    pub(crate) fn renew_for(&mut self, session: SessionHandle) {
        let (store, lease) = (Arc::clone(&self.store), self.lease.clone());
        self.renewal = Some(tokio::spawn(async move {
            loop {
                time::sleep(LIFETIME / 3).await;
                let renewed = store.renew_lease(&lease, StdClock.now(), LIFETIME).await;
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
        // Without a runtime the server ends, and the lease expires.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { store.release_lease(&lease).await });
        }
    }
}
