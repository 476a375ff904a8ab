//! `SqliteStore`: threads and leases in one database.

use std::{path::Path, sync::Arc};

use rusqlite::Connection;

use crate::{database::Database, open, open::OpenError};

/// A store of threads and leases in a SQLite database, for any number of processes on one machine.
///
/// - An append is one transaction, and is on the disk when its future is ready (WAL with
///   `synchronous=FULL`). After a crash either all of its events are stored or none.
/// - Event lines are stored as text, byte for byte.
/// - SQLite runs on a thread of the store and never on the executor's, so any executor can be used.
///   The work of a future that is dropped after its first poll is still done.
/// - On Unix, a new file has mode 600 and a new folder has mode 700. Existing ones keep their
///   permissions. The content is not encrypted. A database that is a symbolic link is refused.
///
/// Dropping the store waits until all requested work is done.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{EventLog, Message, log::Event, message::Timestamp, store::ThreadStore};
/// use threadfold_sqlite::SqliteStore;
///
/// let folder = std::env::temp_dir().join(format!("threadfold-sqlite-{}", std::process::id()));
/// let (store, mut log) = (SqliteStore::open(folder.join("threads.db"))?, EventLog::new("t1".parse()?));
/// log.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?;
/// block_on(store.append(log.thread_id(), None, 0, log.events()))?;
///
/// let elsewhere = SqliteStore::open(folder.join("threads.db"))?;
/// assert_eq!(block_on(elsewhere.load(log.thread_id()))?.log, log);
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SqliteStore {
    pub(crate) database: Arc<Database>,
}

impl SqliteStore {
    /// Opens the database in this file. The file is created if it is missing, and migrated if an
    /// older build wrote it. If several processes do this at the same time, they wait for each
    /// other. The call blocks its thread.
    ///
    /// ```
    /// use threadfold_sqlite::{OpenError, SqliteStore};
    ///
    /// let folder = std::env::temp_dir().join(format!("threadfold-sqlite-o-{}", std::process::id()));
    /// let store = SqliteStore::open(folder.join("threads.db"))?;
    /// std::fs::write(folder.join("notes.txt"), "Buy milk, and then go on to the next shop.")?;
    /// let other = SqliteStore::open(folder.join("notes.txt"));
    /// assert!(matches!(other, Err(OpenError::Foreign { .. })));
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        Self::start(path, open::open(path)?)
    }

    /// Opens an existing database only to read it, while other processes may write in it. Writes of
    /// this store fail, and the file stays unchanged. The call blocks its thread.
    ///
    /// ```
    /// use threadfold_sqlite::{OpenError, SqliteStore};
    ///
    /// let folder = std::env::temp_dir().join(format!("threadfold-sqlite-r-{}", std::process::id()));
    /// let path = folder.join("threads.db");
    /// assert!(matches!(SqliteStore::open_read_only(&path), Err(OpenError::Io { .. })));
    /// SqliteStore::open(&path)?;
    /// SqliteStore::open_read_only(&path)?;
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`OpenError`]; [`OpenError::Older`] if the database is empty or must be migrated first.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        Self::start(path, open::open_read_only(path)?)
    }

    fn start(path: &Path, connection: Connection) -> Result<Self, OpenError> {
        let database = Database::start(connection, path.to_string_lossy().as_ref().into());
        let database =
            database.map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
        Ok(Self { database: Arc::new(database) })
    }
}
