//! Removing all data of a thread.

use threadfold::{ThreadStore, message::ThreadId, store::StoreError};

use crate::store::SqliteStore;

impl SqliteStore {
    /// Removes a thread like [`delete`](ThreadStore::delete), and empties the write-ahead log, so
    /// that no file has its bytes any more. If another process is reading, the last copies are
    /// overwritten at the next checkpoint.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{EventLog, Message, log::Event, message::Timestamp, store::ThreadStore};
    /// use threadfold_sqlite::SqliteStore;
    ///
    /// let folder = std::env::temp_dir().join(format!("threadfold-sqlite-e-{}", std::process::id()));
    /// let (store, mut log) = (SqliteStore::open(folder.join("threads.db"))?, EventLog::new("t1".parse()?));
    /// log.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?;
    /// block_on(store.append(log.thread_id(), None, 0, log.events()))?;
    /// block_on(store.erase(log.thread_id()))?;
    /// assert_eq!(block_on(store.list())?, []);
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError::Medium`] and [`StoreError::Unreadable`].
    pub async fn erase(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.delete(thread).await?;
        // If there are readers, the checkpoint ends early and returns a row that says so. The row
        // is ignored.
        let emptied = self.database.run(|connection| {
            Ok(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
        });
        emptied.await
    }
}
