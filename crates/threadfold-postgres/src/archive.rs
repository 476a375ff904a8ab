//! `PostgresArchive`: the archive in the same database.

use std::collections::BTreeSet;
use threadfold::{
    async_trait,
    message::{CompactionId, ThreadId},
    store::{
        Archive, Lease, StoreError, check_entries, list_entries, search_entries, search_text,
        search_words,
    },
    strategy::ArchiveEntry,
};
use tokio_postgres::Row;

use crate::store::{PostgresStore, integer};

/// An archive in a Postgres database, from [`PostgresStore::archive`].
///
/// For a search the server looks for the words; the entries that it finds are read and ranked by
/// [`search_entries`]. So the results are the same as those of an archive in memory.
///
/// ```
/// use threadfold::message::{Batch, BatchId, CompactionId, ThreadId};
/// use threadfold::{store::{Archive}, strategy::ArchiveEntry};
/// use threadfold_postgres::PostgresStore;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let Ok(address) = std::env::var("THREADFOLD_POSTGRES") else { return Ok(()) };
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let archive = PostgresStore::open(&address).await?.archive();
/// let (thread, id): (ThreadId, _) = ("doc-archive".parse()?, CompactionId(1));
/// let entry = ArchiveEntry::new(Batch::new(BatchId { compaction: id, index: 0 }, "We read a.txt."));
/// archive.write(&thread, id, &[entry]).await?;
/// let hits = archive.search(&thread, "A.TXT", 10, &[id].into()).await?;
/// assert_eq!(hits.len(), 1);
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PostgresArchive {
    store: PostgresStore,
    lease: Option<Lease>,
}

impl PostgresStore {
    /// Returns an archive in the same database.
    ///
    /// ```
    /// use threadfold::store::{Archive};
    /// use threadfold_postgres::PostgresStore;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Ok(address) = std::env::var("THREADFOLD_POSTGRES") else { return Ok(()) };
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let archive = PostgresStore::open(&address).await?.archive();
    /// assert_eq!(archive.list(&"doc-new".parse()?, &[].into()).await?, []);
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    #[must_use]
    pub fn archive(&self) -> PostgresArchive {
        PostgresArchive::new(self.clone())
    }
}

impl PostgresArchive {
    pub(crate) fn new(store: PostgresStore) -> Self {
        Self { store, lease: None }
    }

    /// Returns the archive of a worker that has this lease. After the lease is lost,
    /// [`write`](Archive::write) and [`delete`](Archive::delete) return [`StoreError::LeaseLost`]
    /// and change nothing. Without a lease, a worker that was suspended could replace the entries
    /// of its successor, whose compaction has the same number.
    ///
    /// ```
    /// use std::time::Duration;
    /// use threadfold::message::{CompactionId, ThreadId, Timestamp};
    /// use threadfold::store::{Archive, LeaseStore, StoreError};
    /// use threadfold_postgres::PostgresStore;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Ok(address) = std::env::var("THREADFOLD_POSTGRES") else { return Ok(()) };
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let store = PostgresStore::open(&address).await?;
    /// let (thread, ten): (ThreadId, _) = ("doc-leased".parse()?, Duration::from_secs(10));
    /// # store.erase(&thread).await?;
    /// let lease = store.acquire_lease(&thread, "worker-1", Timestamp(0), ten).await?;
    /// let archive = store.archive().leased(lease);
    /// archive.write(&thread, CompactionId(1), &[]).await?;
    ///
    /// store.acquire_lease(&thread, "worker-2", Timestamp(10_000), ten).await?;
    /// let late = archive.write(&thread, CompactionId(1), &[]).await;
    /// assert!(matches!(late, Err(StoreError::LeaseLost { .. })));
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    #[must_use]
    pub fn leased(self, lease: Lease) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// Replaces the entries of a compaction by these lines, each with the text for searches.
    async fn replace(
        &self,
        thread: &ThreadId,
        compaction: CompactionId,
        lines: &[String],
        texts: &[Option<String>],
    ) -> Result<(), StoreError> {
        // A lease of another thread has another fence, so it counts as lost.
        let fence = self.lease.as_ref().map(|lease| lease.fence);
        let write = "SELECT threadfold.write_entries($1, $2, $3, $4, $5, $6)";
        let (name, held) = (thread.as_str(), fence.map(integer));
        let written = self
            .store
            .row(write, &[&name, &fence.is_some(), &held, &key(compaction), &lines, &texts])
            .await?;
        match (self.store.column::<Option<&str>>(&written, 0)?, fence) {
            (Some(_), Some(fence)) => Err(StoreError::LeaseLost { thread: thread.clone(), fence }),
            (None, _) | (_, None) => Ok(()),
        }
    }

    /// Returns the entries whose text matches any of these patterns, and the entries that every
    /// search must read.
    async fn entries(
        &self,
        thread: &ThreadId,
        patterns: &[String],
    ) -> Result<Vec<ArchiveEntry>, StoreError> {
        let stored = "SELECT entry FROM threadfold.entries WHERE thread = $1 \
                      AND (text IS NULL OR text LIKE ANY ($2)) ORDER BY compaction, number";
        let rows = self.store.rows(stored, &[&thread.as_str(), &patterns]).await?;
        rows.iter().map(|row| self.entry(row)).collect()
    }

    fn entry(&self, row: &Row) -> Result<ArchiveEntry, StoreError> {
        let entry = serde_json::from_str(self.store.column(row, 0)?);
        entry.map_err(|error| StoreError::medium(self.store.place().clone(), error))
    }
}

#[async_trait]
impl Archive for PostgresArchive {
    async fn write(
        &self,
        thread: &ThreadId,
        compaction: CompactionId,
        entries: &[ArchiveEntry],
    ) -> Result<(), StoreError> {
        check_entries(compaction, entries)?;
        let lines: Result<Vec<String>, _> = entries.iter().map(serde_json::to_string).collect();
        let place = self.store.place();
        let lines = lines.map_err(|error| StoreError::medium(place.clone(), error))?;
        let texts: Vec<Option<String>> = entries.iter().map(search_text).collect();
        self.replace(thread, compaction, &lines, &texts).await
    }

    async fn list(
        &self,
        thread: &ThreadId,
        visible: &BTreeSet<CompactionId>,
    ) -> Result<Vec<ArchiveEntry>, StoreError> {
        Ok(list_entries(&self.entries(thread, &["%".to_owned()]).await?, visible))
    }

    async fn search(
        &self,
        thread: &ThreadId,
        query: &str,
        limit: usize,
        visible: &BTreeSet<CompactionId>,
    ) -> Result<Vec<ArchiveEntry>, StoreError> {
        let patterns: Vec<String> =
            search_words(query).iter().filter_map(|word| pattern(word)).collect();
        Ok(search_entries(&self.entries(thread, &patterns).await?, query, limit, visible))
    }

    async fn delete(&self, thread: &ThreadId, compaction: CompactionId) -> Result<(), StoreError> {
        self.replace(thread, compaction, &[], &[]).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        let delete = "WITH gone AS (DELETE FROM threadfold.entries WHERE thread = $1) SELECT 1";
        self.store.row(delete, &[&thread.as_str()]).await?;
        Ok(())
    }
}

/// Returns the pattern of the texts that contain a word; `None` if Postgres cannot hold such a
/// text.
fn pattern(word: &str) -> Option<String> {
    // A `%` or `_` in a word matches other characters too; the ranking checks the words again.
    (!word.contains('\0')).then(|| format!("%{}%", word.replace('\\', r"\\")))
}

/// Returns the number of a compaction as Postgres stores it: an integer with a sign.
fn key(compaction: CompactionId) -> i64 {
    compaction.0.cast_signed()
}
