//! `Archive`: where the batches of summaries are kept, to be listed and searched.

use super::thread_store::StoreError;
use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::visible::{Hit, Visible};
use crate::{
    message::{BatchId, CompactionId, ThreadId},
    strategy::ArchiveEntry,
};

/// Somewhere to keep what compactions archive: memory, files, a database.
///
/// Entries are written before their compaction is committed to the log, and are seen only while
/// the log holds that compaction: [`Visible`] says so. A compaction that never came to be, or was
/// undone, leaves entries that nobody sees.
///
/// Write for every compaction, without entries too: after a crash a number may be given again, and
/// what the first one left under it must go.
///
/// Futures may be dropped at any point. Whether what was asked is done is not known then, and
/// harmless: what is written under a number that is not in the log is not seen.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::message::{Batch, BatchId, CompactionId};
/// use threadfold::store::{Archive, MemoryArchive, Visible};
/// use threadfold::strategy::ArchiveEntry;
///
/// let (archive, thread, id) = (MemoryArchive::default(), "t1".parse()?, CompactionId(1));
/// let batch = Batch::new(BatchId { compaction: id, index: 0 }, "We read a.txt.");
/// let entry = ArchiveEntry::new(batch);
/// block_on(archive.write(&thread, id, &[entry.clone()]))?;
///
/// let committed = Visible::from_iter([id]);
/// assert_eq!(block_on(archive.list(&thread, &Visible::default()))?, []);
/// assert_eq!(block_on(archive.list(&thread, &committed))?, [entry]);
/// let hits = block_on(archive.search(&thread, "A.TXT", 10, &committed))?;
/// assert_eq!(hits.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[async_trait]
pub trait Archive: fmt::Debug + Send + Sync {
    /// Puts these entries in the place of all that is there for this compaction of this thread.
    /// [`check_entries`] is the check that comes first.
    ///
    /// # Errors
    ///
    /// - [`StoreError::OtherCompaction`] if an entry is named for another compaction.
    /// - [`StoreError::Repeated`] if two entries have one name.
    /// - [`StoreError::Medium`] if they could not be kept.
    async fn write(
        &self,
        thread: &ThreadId,
        compaction: CompactionId,
        entries: &[ArchiveEntry],
    ) -> Result<(), StoreError>;

    /// Returns the entries of a thread that are visible, without those that a visible one stands
    /// for, by the time of their start and then by name. What [`Visible::list`] makes of all
    /// entries of the thread.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`] if they could not be read.
    async fn list(
        &self,
        thread: &ThreadId,
        visible: &Visible,
    ) -> Result<Vec<ArchiveEntry>, StoreError>;

    /// Returns at most so many visible entries of a thread in which words of the query are found,
    /// the best first. Those that another stands for are among them, and marked. What
    /// [`Visible::search`] makes of all entries of the thread; an archive with a search of its own
    /// may rank otherwise.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`] if they could not be read.
    async fn search(
        &self,
        thread: &ThreadId,
        query: &str,
        limit: usize,
        visible: &Visible,
    ) -> Result<Vec<Hit>, StoreError>;

    /// Removes what is there for this compaction of this thread, if anything is.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`] if it could not be removed.
    async fn delete(&self, thread: &ThreadId, compaction: CompactionId) -> Result<(), StoreError>;

    /// Removes all that is there of this thread, if anything is.
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`] if it could not be removed.
    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError>;
}

/// Checks what is to be written before anything is: every entry is named for this compaction, and
/// no two have one name.
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
    let mut names: Vec<BatchId> = entries.iter().map(|entry| entry.batch.id).collect();
    if let Some(batch) = names.iter().copied().find(|name| name.compaction != compaction) {
        return Err(StoreError::OtherCompaction { batch, compaction });
    }
    names.sort_unstable();
    let mut neighbours = names.iter().zip(names.iter().skip(1));
    match neighbours.find(|(one, next)| one == next) {
        Some((&batch, _)) => Err(StoreError::Repeated { batch }),
        None => Ok(()),
    }
}

macro_rules! forward {
    ($($pointer:ty),+) => {$(
        #[async_trait]
        impl<A: Archive + ?Sized> Archive for $pointer {
            async fn write(
                &self,
                thread: &ThreadId,
                compaction: CompactionId,
                entries: &[ArchiveEntry],
            ) -> Result<(), StoreError> {
                (**self).write(thread, compaction, entries).await
            }

            async fn list(
                &self,
                thread: &ThreadId,
                visible: &Visible,
            ) -> Result<Vec<ArchiveEntry>, StoreError> {
                (**self).list(thread, visible).await
            }

            async fn search(
                &self,
                thread: &ThreadId,
                query: &str,
                limit: usize,
                visible: &Visible,
            ) -> Result<Vec<Hit>, StoreError> {
                (**self).search(thread, query, limit, visible).await
            }

            async fn delete(
                &self,
                thread: &ThreadId,
                compaction: CompactionId,
            ) -> Result<(), StoreError> {
                (**self).delete(thread, compaction).await
            }

            async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
                (**self).delete_thread(thread).await
            }
        }
    )+};
}

forward!(&A, Box<A>, Arc<A>);

const _: Option<Box<dyn Archive>> = None;
