//! `SqliteArchive`: the archive in the same database.

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::{Transaction, params, params_from_iter};
use threadfold::{
    async_trait,
    message::{CompactionId, Text, ThreadId},
    store::{
        Archive, Lease, StoreError, check_entries, list_entries, search_entries, search_text,
        search_words,
    },
    strategy::ArchiveEntry,
};

use crate::{
    database::{Database, Failed},
    lease_rows,
    store::SqliteStore,
};

/// An archive in a SQLite database, from [`SqliteStore::archive`](crate::SqliteStore::archive).
///
/// A search reads the entries of the thread and ranks them by [`search_entries`], like an archive
/// in memory.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::message::{Batch, BatchId, CompactionId};
/// use threadfold::{store::{Archive}, strategy::ArchiveEntry};
/// use threadfold_sqlite::SqliteStore;
///
/// let folder = std::env::temp_dir().join(format!("threadfold-sqlite-s-{}", std::process::id()));
/// let archive = SqliteStore::open(folder.join("threads.db"))?.archive();
/// let (thread, id) = ("t1".parse()?, CompactionId(1));
/// let entry = ArchiveEntry::new(Batch::new(BatchId { compaction: id, index: 0 }, "We read a.txt."));
/// block_on(archive.write(&thread, id, &[entry]))?;
/// let hits = block_on(archive.search(&thread, "A.TXT", 10, &[id].into()))?;
/// assert_eq!(hits.len(), 1);
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SqliteArchive {
    database: Arc<Database>,
    lease: Option<Lease>,
}

impl SqliteStore {
    /// Returns an archive in the same database.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::store::{Archive};
    /// use threadfold_sqlite::SqliteStore;
    ///
    /// let folder = std::env::temp_dir().join(format!("threadfold-sqlite-a-{}", std::process::id()));
    /// let archive = SqliteStore::open(folder.join("threads.db"))?.archive();
    /// assert_eq!(block_on(archive.list(&"t1".parse()?, &[].into()))?, []);
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn archive(&self) -> SqliteArchive {
        SqliteArchive::new(Arc::clone(&self.database))
    }
}

impl SqliteArchive {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        Self { database, lease: None }
    }

    /// Returns the archive of a worker that has this lease. After the lease is lost,
    /// [`write`](Archive::write) and [`delete`](Archive::delete) return [`StoreError::LeaseLost`]
    /// and change nothing. Without a lease, a worker that was suspended could replace the entries
    /// of its successor, whose compaction has the same number.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::time::Duration;
    /// use threadfold::message::{CompactionId, ThreadId, Timestamp};
    /// use threadfold::store::{Archive, LeaseStore, StoreError};
    /// use threadfold_sqlite::SqliteStore;
    ///
    /// let folder = std::env::temp_dir().join(format!("threadfold-sqlite-l-{}", std::process::id()));
    /// let (store, thread): (_, ThreadId) = (SqliteStore::open(folder.join("threads.db"))?, "t1".parse()?);
    /// let ten = Duration::from_secs(10);
    /// let lease = block_on(store.acquire_lease(&thread, "worker-1", Timestamp(0), ten))?;
    /// let archive = store.archive().leased(lease);
    /// block_on(archive.write(&thread, CompactionId(1), &[]))?;
    ///
    /// block_on(store.acquire_lease(&thread, "worker-2", Timestamp(10_000), ten))?;
    /// let late = block_on(archive.write(&thread, CompactionId(1), &[]));
    /// assert!(matches!(late, Err(StoreError::LeaseLost { .. })));
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn leased(self, lease: Lease) -> Self {
        Self { lease: Some(lease), ..self }
    }
}

#[async_trait]
impl Archive for SqliteArchive {
    async fn write(
        &self,
        thread: &ThreadId,
        compaction: CompactionId,
        entries: &[ArchiveEntry],
    ) -> Result<(), StoreError> {
        check_entries(compaction, entries)?;
        let place = self.database.place();
        let line = |entry| serde_json::to_string(entry);
        let lines: Result<Vec<String>, _> = entries.iter().map(line).collect();
        let lines = lines.map_err(|error| StoreError::medium(place.clone(), error))?;
        let texts: Vec<Option<String>> = entries.iter().map(search_text).collect();
        let (thread, lease) = (thread.clone(), self.lease.clone());
        let written = self.database.write(move |writing| {
            lease_rows::check_archive(writing, lease.as_ref(), &thread)?;
            delete(writing, &thread, compaction)?;
            let insert = "INSERT INTO entries (thread, compaction, number, entry, text) \
                          VALUES (?1, ?2, ?3, ?4, ?5)";
            let mut insert = writing.prepare_cached(insert)?;
            for (number, (line, text)) in (0_i64..).zip(lines.iter().zip(&texts)) {
                insert.execute(params![thread.as_str(), key(compaction), number, line, text])?;
            }
            Ok(())
        });
        written.await
    }

    async fn list(
        &self,
        thread: &ThreadId,
        visible: &BTreeSet<CompactionId>,
    ) -> Result<Vec<ArchiveEntry>, StoreError> {
        let (thread, visible) = (thread.clone(), visible.clone());
        let place = self.database.place().clone();
        let listed = self.database.read(move |reading| {
            Ok(list_entries(&entries(reading, &place, &thread, None)?, &visible))
        });
        listed.await
    }

    async fn search(
        &self,
        thread: &ThreadId,
        query: &str,
        limit: usize,
        visible: &BTreeSet<CompactionId>,
    ) -> Result<Vec<ArchiveEntry>, StoreError> {
        let (thread, query, visible) = (thread.clone(), query.to_owned(), visible.clone());
        let place = self.database.place().clone();
        let found = self.database.read(move |reading| {
            let words = search_words(&query);
            Ok(search_entries(
                &entries(reading, &place, &thread, Some(&words))?,
                &query,
                limit,
                &visible,
            ))
        });
        found.await
    }

    async fn delete(&self, thread: &ThreadId, compaction: CompactionId) -> Result<(), StoreError> {
        let (thread, lease) = (thread.clone(), self.lease.clone());
        let deleted = self.database.write(move |writing| {
            lease_rows::check_archive(writing, lease.as_ref(), &thread)?;
            delete(writing, &thread, compaction)
        });
        deleted.await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        let thread = thread.clone();
        self.database.write(move |writing| delete_thread(writing, &thread)).await
    }
}

/// Removes the entries of a thread.
pub(crate) fn delete_thread(writing: &Transaction<'_>, thread: &ThreadId) -> Result<(), Failed> {
    writing.execute("DELETE FROM entries WHERE thread = ?1", [thread.as_str()])?;
    Ok(())
}

fn delete(
    writing: &Transaction<'_>,
    thread: &ThreadId,
    compaction: CompactionId,
) -> Result<(), Failed> {
    let delete = "DELETE FROM entries WHERE thread = ?1 AND compaction = ?2";
    writing.prepare_cached(delete)?.execute(params![thread.as_str(), key(compaction)])?;
    Ok(())
}

/// Returns the entries of a thread: all, or those that may be found by any of these words.
fn entries(
    reading: &Transaction<'_>,
    place: &Text,
    thread: &ThreadId,
    words: Option<&[String]>,
) -> Result<Vec<ArchiveEntry>, Failed> {
    let found = words.map_or(String::new(), |words| {
        let found = (2..words.len() + 2).map(|word| format!(" OR instr(text, ?{word})"));
        format!(" AND (text IS NULL{})", found.collect::<String>())
    });
    let stored = "SELECT entry FROM entries WHERE thread = ?1";
    let stored = format!("{stored}{found} ORDER BY compaction, number");
    let mut stored = reading.prepare_cached(&stored)?;
    let words = words.into_iter().flatten().map(String::as_str);
    let mut rows = stored.query(params_from_iter([thread.as_str()].into_iter().chain(words)))?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let entry = serde_json::from_str(row.get_ref(0)?.as_str()?);
        entries.push(entry.map_err(|error| StoreError::medium(place.clone(), error))?);
    }
    Ok(entries)
}

/// Returns the number of a compaction as SQLite stores it: an integer with a sign.
fn key(compaction: CompactionId) -> i64 {
    compaction.0.cast_signed()
}
