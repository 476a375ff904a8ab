//! `PostgresStore`: threads and leases in one database.

use std::io;

use deadpool_postgres::{Client, Pool};
use threadfold::{message::Text, store::StoreError};
use tokio_postgres::{Row, types::ToSql};

use crate::open::{self, OpenError, reason};

/// A store of threads and leases in a Postgres database, for any number of machines.
///
/// - An append is one statement, and is on the server's disk when its future is ready. After a
///   crash either all of its events are stored or none.
/// - Event lines are stored as text, byte for byte.
/// - A clone uses the same pool of connections.
/// - The futures need a tokio runtime. The work of a future that is dropped after its first poll
///   may still be done.
///
/// ```
/// use threadfold::{EventLog, Message, log::Event, message::Timestamp, store::ThreadStore};
/// use threadfold_postgres::PostgresStore;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let Ok(address) = std::env::var("THREADFOLD_POSTGRES") else { return Ok(()) };
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// // let address = "postgres://me:secret@localhost/agents";
/// let (store, mut log) = (PostgresStore::open(&address).await?, EventLog::new("doc-store".parse()?));
/// # store.delete(log.thread_id()).await?;
/// log.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?;
/// store.append(log.thread_id(), None, 0, log.events()).await?;
///
/// let elsewhere = PostgresStore::open(&address).await?;
/// assert_eq!(elsewhere.load(log.thread_id()).await?.log, log);
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PostgresStore {
    pool: Pool,
    /// The host and the name of the database, for errors.
    place: Text,
}

impl PostgresStore {
    /// Opens the database at this address, and creates or migrates the schema `threadfold` in it.
    /// If several processes do this at the same time, they wait for each other. The address has the
    /// form `postgres://user:password@host:port/database?parameters` or is a list of libpq's
    /// keywords.
    ///
    /// With `sslmode=require` the connections are encrypted; this needs the feature `tls`. The
    /// server's certificate must be trusted by the system or by the file that `SSL_CERT_FILE`
    /// names. With any other `sslmode` they are not encrypted.
    ///
    /// If the future is dropped, the database is either migrated or unchanged.
    ///
    /// ```
    /// use threadfold_postgres::{OpenError, PostgresStore};
    ///
    /// let opened = PostgresStore::open("mysql://localhost");
    /// let opened = tokio::runtime::Runtime::new()?.block_on(opened);
    /// assert!(matches!(opened, Err(OpenError::Address { .. })));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    pub async fn open(address: &str) -> Result<Self, OpenError> {
        let (pool, place) = open::open(address).await?;
        Ok(Self { pool, place })
    }

    /// Returns the host and the name of the database, for errors.
    pub(crate) fn place(&self) -> &Text {
        &self.place
    }

    /// Carries out a statement that returns one row.
    pub(crate) async fn row(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, StoreError> {
        let client = self.client().await?;
        let prepared =
            client.prepare_cached(statement).await.map_err(|error| self.failed(error))?;
        client.query_one(&prepared, parameters).await.map_err(|error| self.failed(error))
    }

    /// Carries out a statement that returns any number of rows.
    pub(crate) async fn rows(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        let client = self.client().await?;
        let prepared =
            client.prepare_cached(statement).await.map_err(|error| self.failed(error))?;
        client.query(&prepared, parameters).await.map_err(|error| self.failed(error))
    }

    /// Returns a column of a row.
    pub(crate) fn column<'a, T: tokio_postgres::types::FromSql<'a>>(
        &self,
        row: &'a Row,
        index: usize,
    ) -> Result<T, StoreError> {
        row.try_get(index).map_err(|error| self.failed(error))
    }

    /// Takes a connection of the pool.
    pub(crate) async fn client(&self) -> Result<Client, StoreError> {
        self.pool.get().await.map_err(|error| self.medium(reason(&error)))
    }

    pub(crate) fn failed(&self, error: tokio_postgres::Error) -> StoreError {
        self.medium(reason(&error))
    }

    fn medium(&self, reason: String) -> StoreError {
        StoreError::medium(self.place.clone(), io::Error::other(reason))
    }
}

/// Returns a number as Postgres stores it: a signed integer. A number beyond its range becomes the
/// greatest one, which no log and no clock reaches.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
