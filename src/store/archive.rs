//! `Archive`: storage for the batches of summaries, to be listed and searched.

use std::{collections::BTreeSet, fmt};

use async_trait::async_trait;

use super::store_error::StoreError;
use crate::{
    message::{BatchId, CompactionId, ThreadId},
    model::for_pointers,
    strategy::ArchiveEntry,
};

/// Stores what compactions archive: in memory, files or a database.
///
/// Entries are written before their compaction is in the log, and are visible only while that
/// compaction is standing ([`EventLog::archived`]). A compaction that failed or was undone leaves
/// invisible entries.
///
/// [`EventLog::archived`]: crate::log::EventLog::archived
///
/// Call [`write`](Self::write) for every compaction, even without entries. After a crash its id may
/// be used again, and the entries of the first compaction with that id must be removed.
///
/// Futures may be dropped at any point. Their effect is then unknown but harmless, because entries
/// of a compaction that is not in the log are invisible.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::message::{Batch, BatchId, CompactionId};
/// use threadfold::store::{Archive, memory_archive};
/// use threadfold::strategy::ArchiveEntry;
///
/// let (archive, thread, id) = (memory_archive(), "t1".parse()?, CompactionId(1));
/// let batch = Batch::new(BatchId { compaction: id, index: 0 }, "We read a.txt.");
/// let entry = ArchiveEntry::new(batch);
/// block_on(archive.write(&thread, id, &[entry.clone()]))?;
///
/// let committed = [id].into();
/// assert_eq!(block_on(archive.list(&thread, &[].into()))?, []);
/// assert_eq!(block_on(archive.list(&thread, &committed))?, [entry.clone()]);
/// assert_eq!(block_on(archive.search(&thread, "A.TXT", 10, &committed))?, [entry]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[async_trait]
pub trait Archive: fmt::Debug + Send + Sync {
    /// Replaces all entries of this compaction of this thread. Implementations call
    /// [`check_entries`] first.
    ///
    /// # Errors
    ///
    /// - [`StoreError::OtherCompaction`] if the id of an entry names another compaction.
    /// - [`StoreError::Repeated`] if two entries have the same id.
    /// - [`StoreError::Medium`] if they could not be stored.
    async fn write(
        &self,
        thread: &ThreadId,
        compaction: CompactionId,
        entries: &[ArchiveEntry],
    ) -> Result<(), StoreError>;

    /// Returns the visible entries of a thread without those that a visible one replaces, ordered
    /// by start time and then by id: the result of [`list_entries`](super::list_entries) for all
    /// entries of the thread.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`] if they could not be read.
    async fn list(
        &self,
        thread: &ThreadId,
        visible: &BTreeSet<CompactionId>,
    ) -> Result<Vec<ArchiveEntry>, StoreError>;

    /// Returns at most `limit` visible entries of a thread that contain words of the query, best
    /// first. Entries that [`list`](Self::list) omits because others replace them are included. It
    /// is the result of [`search_entries`](super::search_entries) for all entries of the thread; an
    /// archive with a search of its own may rank differently.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`] if they could not be read.
    async fn search(
        &self,
        thread: &ThreadId,
        query: &str,
        limit: usize,
        visible: &BTreeSet<CompactionId>,
    ) -> Result<Vec<ArchiveEntry>, StoreError>;

    /// Removes all entries of this compaction of this thread.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`] if it could not be removed.
    async fn delete(&self, thread: &ThreadId, compaction: CompactionId) -> Result<(), StoreError>;

    /// Removes all entries of this thread.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`] if it could not be removed.
    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError>;
}

/// Checks entries before they are written: each id names this compaction, and no two are equal.
///
/// ```
/// use threadfold::message::{Batch, BatchId, CompactionId};
/// use threadfold::{store::check_entries, strategy::ArchiveEntry};
///
/// let entry = ArchiveEntry::new(Batch::new(BatchId::default(), "We read a.txt."));
/// let error = check_entries(CompactionId(7), &[entry]).unwrap_err();
/// assert_eq!(error.to_string(), "batch 0.0 is written under compaction 7");
/// ```
///
/// # Errors
///
/// [`StoreError::OtherCompaction`] and [`StoreError::Repeated`].
pub fn check_entries(compaction: CompactionId, entries: &[ArchiveEntry]) -> Result<(), StoreError> {
    let mut ids: Vec<BatchId> = entries.iter().map(|entry| entry.batch.id).collect();
    if let Some(batch) = ids.iter().copied().find(|id| id.compaction != compaction) {
        return Err(StoreError::OtherCompaction { batch, compaction });
    }
    ids.sort_unstable();
    let mut neighbours = ids.iter().zip(ids.iter().skip(1));
    match neighbours.find(|(one, next)| one == next) {
        Some((&batch, _)) => Err(StoreError::Repeated { batch }),
        None => Ok(()),
    }
}

for_pointers! { Archive {
    async fn write(&self, thread: &ThreadId, compaction: CompactionId, entries: &[ArchiveEntry])
        -> Result<(), StoreError>;
    async fn list(&self, thread: &ThreadId, visible: &BTreeSet<CompactionId>)
        -> Result<Vec<ArchiveEntry>, StoreError>;
    async fn search(&self, thread: &ThreadId, query: &str, limit: usize, visible: &BTreeSet<CompactionId>)
        -> Result<Vec<ArchiveEntry>, StoreError>;
    async fn delete(&self, thread: &ThreadId, compaction: CompactionId) -> Result<(), StoreError>;
    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError>;
} }
