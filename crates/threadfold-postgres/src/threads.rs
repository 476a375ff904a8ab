//! Logs: `ThreadStore` for `PostgresStore`.

use futures::TryStreamExt;
use threadfold::{
    EventLog, ThreadStore, async_trait,
    log::{LogId, LoggedEvent},
    message::{ThreadId, Timestamp},
    store::{Lease, Loaded, StoreError, event_lines, stored_event},
};
use tokio_postgres::{Row, types::ToSql};

use crate::store::{PostgresStore, integer};

/// The state of the stored log that an append expects.
pub(crate) struct Expected {
    /// The fence of the lease; `None` if no worker has a lease of the thread.
    pub(crate) fence: Option<u64>,
    /// The id of the log.
    pub(crate) log: Option<LogId>,
    /// The number of events.
    pub(crate) len: u64,
}

#[async_trait]
impl ThreadStore for PostgresStore {
    async fn append(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        let expected = Expected { fence: None, log, len: expected_len };
        append(self, thread, &expected, events).await
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        let (events, id) = events(self, thread, 0).await?;
        let mut log = EventLog::new(thread.clone());
        for event in events {
            let unreadable =
                |source| StoreError::Unreadable { place: self.place().clone(), source };
            log.append_logged(event).map_err(unreadable)?;
        }
        let mut loaded = Loaded::new(log);
        loaded.id = id;
        Ok(loaded)
    }

    async fn load_from(&self, thread: &ThreadId, seq: u64) -> Result<Vec<LoggedEvent>, StoreError> {
        Ok(events(self, thread, seq).await?.0)
    }

    async fn save_base(
        &self,
        thread: &ThreadId,
        log: LogId,
        seq: u64,
        base: &str,
        facts: &str,
    ) -> Result<(), StoreError> {
        let (name, id, seq) = (thread.as_str(), log.to_string(), integer(seq));
        let save = "SELECT threadfold.save_base($1, $2, $3, $4, $5)";
        self.row(save, &[&name, &id, &seq, &base, &facts]).await?;
        Ok(())
    }

    async fn load_base(&self, thread: &ThreadId) -> Result<Option<String>, StoreError> {
        let base = "SELECT (SELECT base FROM threadfold.logs WHERE thread = $1)";
        let row = self.row(base, &[&thread.as_str()]).await?;
        Ok(self.column::<Option<&str>>(&row, 0)?.map(str::to_owned))
    }

    async fn load_facts(
        &self,
        thread: &ThreadId,
        log: LogId,
        seq: u64,
    ) -> Result<Option<String>, StoreError> {
        let facts = "SELECT (SELECT base_facts FROM threadfold.logs \
                             WHERE thread = $1 AND log = $2 AND base_seq = $3)";
        let values: [&(dyn ToSql + Sync); 3] = [&thread.as_str(), &log.to_string(), &integer(seq)];
        let row = self.row(facts, &values).await?;
        Ok(self.column::<Option<&str>>(&row, 0)?.map(str::to_owned))
    }

    async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
        let names = self.rows("SELECT thread FROM threadfold.logs ORDER BY thread", &[]).await?;
        let name = |row: &Row| {
            let thread = self.column::<&str>(row, 0)?.parse();
            thread.map_err(|error| StoreError::medium(self.place().clone(), error))
        };
        names.iter().map(name).collect()
    }

    async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError> {
        let delete = "SELECT threadfold.delete_thread($1)";
        self.row(delete, &[&thread.as_str()]).await?;
        Ok(())
    }
}

/// Appends events if lease and log are the expected ones. This is one statement, so one transaction
/// and one round trip. If a single event cannot be appended, a second statement finds the reason.
pub(crate) async fn append(
    store: &PostgresStore,
    thread: &ThreadId,
    expected: &Expected,
    events: &[LoggedEvent],
) -> Result<(), StoreError> {
    let lines = event_lines(expected.len, events)?;
    let id = expected.log.map(|id| id.to_string());
    let fence = expected.fence.map(integer);
    let (name, len) = (thread.as_str(), integer(expected.len));
    if let ([line], 1..) = (lines.as_slice(), len) {
        let append = "SELECT threadfold.append_one($1, $2, $3, $4, $5)";
        let row = store.row(append, &[&name, &fence, &id, &len, line]).await?;
        if store.column(&row, 0)? {
            return Ok(());
        }
    }
    let append = "SELECT * FROM threadfold.append($1, $2, $3, $4, $5)";
    let appended = store.row(append, &[&name, &fence, &id, &len, &lines]).await?;
    let (outcome, found) =
        (store.column(&appended, 0)?, store.column::<Option<i64>>(&appended, 1)?);
    match outcome {
        None => Ok(()),
        Some("conflict") => {
            let found = found.unwrap_or_default().unsigned_abs();
            Err(StoreError::Conflict { expected: expected.len, found })
        }
        Some("other log") => {
            let found = log_id(store, &appended, 2)?;
            let (thread, expected) = (thread.clone(), expected.log);
            Err(StoreError::OtherLog { thread, expected, found })
        }
        Some(_) => Err(refused(store, thread, expected.fence, &appended, 3)?),
    }
}

/// Returns the error for a thread that another worker has leased, or for a lost lease. The columns
/// of the other lease begin at `column`.
pub(crate) fn refused(
    store: &PostgresStore,
    thread: &ThreadId,
    fence: Option<u64>,
    row: &Row,
    column: usize,
) -> Result<StoreError, StoreError> {
    match fence {
        Some(fence) => Ok(StoreError::LeaseLost { thread: thread.clone(), fence }),
        None => Ok(StoreError::Held { lease: lease(store, thread, row, column)? }),
    }
}

/// Reads a lease from three columns.
pub(crate) fn lease(
    store: &PostgresStore,
    thread: &ThreadId,
    row: &Row,
    column: usize,
) -> Result<Lease, StoreError> {
    Ok(Lease {
        thread: thread.clone(),
        worker: store.column::<&str>(row, column)?.into(),
        fence: store.column::<i64>(row, column + 1)?.unsigned_abs(),
        expires: Timestamp(store.column::<i64>(row, column + 2)?.unsigned_abs()),
    })
}

/// Returns the events from this `seq` on, and the id of their log, both from the same state of the
/// database.
async fn events(
    store: &PostgresStore,
    thread: &ThreadId,
    from: u64,
) -> Result<(Vec<LoggedEvent>, Option<LogId>), StoreError> {
    let failed = |error| store.failed(error);
    let client = store.client().await?;
    let stored = "SELECT seq, event, (SELECT log FROM threadfold.logs WHERE thread = $1) \
                  FROM threadfold.events WHERE thread = $1 AND seq >= $2 ORDER BY seq";
    let stored = client.prepare_cached(stored).await.map_err(failed)?;
    let (name, from) = (thread.as_str(), integer(from));
    let parameters: [&(dyn ToSql + Sync); 2] = [&name, &from];
    let rows = client.query_raw(&stored, parameters).await.map_err(failed)?;
    let mut rows = std::pin::pin!(rows);
    let (mut events, mut id) = (Vec::new(), None);
    while let Some(row) = rows.try_next().await.map_err(failed)? {
        if events.is_empty() {
            id = log_id(store, &row, 2)?;
        }
        let seq = store.column::<i64>(&row, 0)?.unsigned_abs();
        events.push(stored_event(store.place(), seq, store.column(&row, 1)?)?);
    }
    Ok((events, id))
}

fn log_id(store: &PostgresStore, row: &Row, column: usize) -> Result<Option<LogId>, StoreError> {
    let Some(id) = store.column::<Option<&str>>(row, column)? else { return Ok(None) };
    let id = id.parse().map_err(|error| StoreError::medium(store.place().clone(), error))?;
    Ok(Some(id))
}
