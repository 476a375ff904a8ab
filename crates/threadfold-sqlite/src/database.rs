//! The database and its own thread. Work is sent there over a channel, and a future receives the
//! result.

use std::{
    fmt, io,
    sync::mpsc,
    thread::{self, JoinHandle},
};

use futures::channel::oneshot;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, types::FromSqlError};
use threadfold::{log::LogError, message::Text, store::StoreError};

/// A connection on a thread of its own, because SQLite blocks the calling thread and an executor's
/// threads must not be blocked. Work is done in the order of the requests, so a load sees every
/// earlier append, even one whose future was dropped.
pub(crate) struct Database {
    /// The path, for errors.
    place: Text,
    /// `None` only during the drop.
    work: Option<mpsc::Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

type Work = Box<dyn FnOnce(&mut Connection) + Send>;

/// Why a piece of work failed.
pub(crate) enum Failed {
    /// The store refuses it.
    Refused(StoreError),
    /// The database failed.
    Sqlite(rusqlite::Error),
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<FromSqlError> for Failed {
    fn from(error: FromSqlError) -> Self {
        Self::Sqlite(error.into())
    }
}

impl Database {
    /// Starts the thread of an open connection.
    pub(crate) fn start(mut connection: Connection, place: Text) -> io::Result<Self> {
        let (work, waiting) = mpsc::channel::<Work>();
        let thread = thread::Builder::new().name("threadfold-sqlite".to_owned());
        let thread = thread.spawn(move || {
            for work in waiting {
                work(&mut connection);
            }
        })?;
        Ok(Self { place, work: Some(work), thread: Some(thread) })
    }

    /// Returns the path, for errors.
    pub(crate) fn place(&self) -> &Text {
        &self.place
    }

    /// Does work that reads, in one transaction, so that all reads see the same state.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.transact(TransactionBehavior::Deferred, work).await
    }

    /// Does work that writes, in one transaction. The write lock is taken at the start: if two
    /// processes read first and wrote later, one of them would fail.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.transact(TransactionBehavior::Immediate, work).await
    }

    async fn transact<T: Send + 'static>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, StoreError> {
        let done = self.run(move |connection| {
            let transaction = connection.transaction_with_behavior(behavior)?;
            let result = work(&transaction)?;
            transaction.commit()?;
            Ok(result)
        });
        done.await
    }

    /// Does work without a transaction.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let work: Work = Box::new(move |connection| {
            // The send fails if the future was dropped. Then nobody needs the result.
            let _ = answer.send(work(connection));
        });
        let ended = || StoreError::medium(self.place.clone(), io::Error::other("its thread ended"));
        let requested = self.work.as_ref().is_some_and(|sender| sender.send(work).is_ok());
        if !requested {
            return Err(ended());
        }
        let done = answered.await.map_err(|_| ended())?;
        done.map_err(|failed| match failed {
            Failed::Refused(error) => error,
            Failed::Sqlite(error) => store_error(&self.place, error),
        })
    }
}

/// Converts an error of SQLite to a store error: damaged data or a failed medium.
fn store_error(place: &Text, error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            let source = LogError::from(io::Error::new(io::ErrorKind::InvalidData, error));
            StoreError::Unreadable { place: place.clone(), source }
        }
        _ => StoreError::medium(place.clone(), error),
    }
}

impl Drop for Database {
    /// Waits until all requested work is done, so that another process finds it.
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("place", &self.place).finish_non_exhaustive()
    }
}
