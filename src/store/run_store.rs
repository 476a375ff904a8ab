//! `RunStore`: storage for chunked runs between two model calls.

use std::fmt;

use async_trait::async_trait;

use super::store_error::StoreError;
use crate::{message::ThreadId, strategy::CompactionRun};

/// Stores the [`CompactionRun`] of a thread, so that another process can continue it. A thread has
/// at most one.
///
/// Save the run after each answer, and delete it when its summary is in the log.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::message::{Message, ThreadId};
/// use threadfold::store::{MemoryStore, RunStore};
/// use threadfold::strategy::{CompactionRun, Chunked};
///
/// let (store, thread): (_, ThreadId) = (MemoryStore::default(), "t1".parse()?);
/// let run = CompactionRun::new(&[Message::user("Fix the parser.")], None, Chunked::default())?;
/// block_on(store.save_run(&thread, &run))?;
/// assert_eq!(block_on(store.load_run(&thread))?, Some(run));
/// block_on(store.delete_run(&thread))?;
/// assert_eq!(block_on(store.load_run(&thread))?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[async_trait]
pub trait RunStore: fmt::Debug + Send + Sync {
    /// Stores the run of a thread, in place of an earlier one. When the future is ready, it is
    /// stored durably.
    ///
    /// The future may be dropped. Then this run is stored, or the earlier one still is.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`].
    async fn save_run(&self, thread: &ThreadId, run: &CompactionRun) -> Result<(), StoreError>;

    /// Returns the run of a thread, if one is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`] if it cannot be read.
    async fn load_run(&self, thread: &ThreadId) -> Result<Option<CompactionRun>, StoreError>;

    /// Removes the run of a thread, if one is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`].
    async fn delete_run(&self, thread: &ThreadId) -> Result<(), StoreError>;
}
