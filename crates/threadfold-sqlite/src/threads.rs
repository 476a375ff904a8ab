//! Logs: `ThreadStore` for `SqliteStore`.

use rusqlite::{OptionalExtension, Transaction, params};
use threadfold::{
    EventLog, ThreadStore, async_trait,
    log::{LogError, LogId, LoggedEvent},
    message::{Text, ThreadId},
    store::{Expected, Loaded, StoreError, event_lines, stored_event},
};

use crate::{
    database::{Database, Failed},
    lease_rows,
    store::SqliteStore,
};

#[async_trait]
impl ThreadStore for SqliteStore {
    async fn append(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        expected_len: u64,
        events: &[LoggedEvent],
    ) -> Result<(), StoreError> {
        append_free(&self.database, thread, Expected { id: log, len: expected_len }, events).await
    }

    async fn load(&self, thread: &ThreadId) -> Result<Loaded, StoreError> {
        let (thread, place) = (thread.clone(), self.database.place().clone());
        let loaded = self.database.read(move |reading| {
            let mut log = EventLog::new(thread.clone());
            for event in events(reading, &place, &thread, 0)? {
                let appended = log.append_logged(event);
                appended.map_err(|source| unreadable(&place, source))?;
            }
            let mut loaded = Loaded::new(log);
            loaded.id = log_id(reading, &place, &thread)?;
            Ok(loaded)
        });
        loaded.await
    }

    async fn load_from(&self, thread: &ThreadId, seq: u64) -> Result<Vec<LoggedEvent>, StoreError> {
        let (thread, place) = (thread.clone(), self.database.place().clone());
        self.database.read(move |reading| events(reading, &place, &thread, seq)).await
    }

    async fn save_base(
        &self,
        thread: &ThreadId,
        log: LogId,
        seq: u64,
        base: &str,
        facts: &str,
    ) -> Result<(), StoreError> {
        let (thread, base, facts) = (thread.clone(), base.to_owned(), facts.to_owned());
        let saved = self.database.write(move |writing| {
            let insert = "INSERT INTO bases SELECT thread, ?3, ?4, ?5 FROM logs \
                          WHERE thread = ?1 AND log = ?2 AND EXISTS \
                          (SELECT 1 FROM events WHERE events.thread = ?1 AND seq = ?3 - 1) \
                          ON CONFLICT (thread) DO UPDATE SET \
                          seq = excluded.seq, base = excluded.base, facts = excluded.facts \
                          WHERE seq < excluded.seq";
            let values = params![thread.as_str(), log.to_string(), seq, base, facts];
            writing.prepare_cached(insert)?.execute(values)?;
            Ok(())
        });
        saved.await
    }

    async fn load_base(&self, thread: &ThreadId) -> Result<Option<String>, StoreError> {
        let thread = thread.clone();
        let loaded = self.database.read(move |reading| {
            let mut base = reading.prepare_cached("SELECT base FROM bases WHERE thread = ?1")?;
            let base = base.query_row([thread.as_str()], |row| row.get::<_, String>(0));
            Ok(base.optional()?)
        });
        loaded.await
    }

    async fn load_facts(
        &self,
        thread: &ThreadId,
        log: LogId,
        seq: u64,
    ) -> Result<Option<String>, StoreError> {
        let thread = thread.clone();
        let loaded = self.database.read(move |reading| {
            let facts = "SELECT facts FROM bases JOIN logs USING (thread) \
                         WHERE thread = ?1 AND log = ?2 AND seq = ?3";
            let mut facts = reading.prepare_cached(facts)?;
            let values = params![thread.as_str(), log.to_string(), seq];
            Ok(facts.query_row(values, |row| row.get(0)).optional()?)
        });
        loaded.await
    }

    async fn list(&self) -> Result<Vec<ThreadId>, StoreError> {
        let place = self.database.place().clone();
        let listed = self.database.read(move |reading| {
            let mut names = reading.prepare_cached("SELECT thread FROM logs ORDER BY thread")?;
            let names = names.query_map([], |row| row.get::<_, String>(0))?;
            let mut threads = Vec::new();
            for name in names {
                let thread = name?.parse();
                threads.push(thread.map_err(|error| StoreError::medium(place.clone(), error))?);
            }
            Ok(threads)
        });
        listed.await
    }

    async fn delete(&self, thread: &ThreadId) -> Result<(), StoreError> {
        let thread = thread.clone();
        let deleted = self.database.write(move |writing| {
            lease_rows::end(writing, &thread)?;
            for table in ["events", "logs"] {
                writing.execute(
                    &format!("DELETE FROM {table} WHERE thread = ?1"),
                    [thread.as_str()],
                )?;
            }
            Ok(())
        });
        deleted.await
    }
}

/// Appends to a thread that no worker has leased.
async fn append_free(
    database: &Database,
    thread: &ThreadId,
    expected: Expected,
    events: &[LoggedEvent],
) -> Result<(), StoreError> {
    let (thread, lines) = (thread.clone(), event_lines(expected.len, events)?);
    let place = database.place().clone();
    let appended = database.write(move |writing| {
        lease_rows::check_free(writing, &thread)?;
        append(writing, &place, &thread, expected, &lines)
    });
    appended.await
}

/// Appends lines, if the stored log is the expected one.
pub(crate) fn append(
    writing: &Transaction<'_>,
    place: &Text,
    thread: &ThreadId,
    expected: Expected,
    lines: &[String],
) -> Result<(), Failed> {
    let found = length(writing, thread)?;
    expected.check(thread, log_id(writing, place, thread)?, found)?;
    if found == 0 && !lines.is_empty() {
        let id = expected.id.map(|id| id.to_string());
        let mut insert =
            writing.prepare_cached("INSERT INTO logs (thread, log) VALUES (?1, ?2)")?;
        insert.execute(params![thread.as_str(), id])?;
    }
    let insert = "INSERT INTO events (thread, seq, event) VALUES (?1, ?2, ?3)";
    let mut insert = writing.prepare_cached(insert)?;
    for (seq, line) in (found..).zip(lines) {
        insert.execute(params![thread.as_str(), seq, line])?;
    }
    Ok(())
}

/// Returns the number of stored events.
fn length(reading: &Transaction<'_>, thread: &ThreadId) -> Result<u64, Failed> {
    // Events are numbered from 0 without a gap, and the primary key finds the last one without a
    // scan.
    let last = "SELECT max(seq) FROM events WHERE thread = ?1";
    let mut last = reading.prepare_cached(last)?;
    let last: Option<u64> = last.query_row([thread.as_str()], |row| row.get(0))?;
    Ok(last.map_or(0, |seq| seq.saturating_add(1)))
}

fn log_id(
    reading: &Transaction<'_>,
    place: &Text,
    thread: &ThreadId,
) -> Result<Option<LogId>, Failed> {
    let mut id = reading.prepare_cached("SELECT log FROM logs WHERE thread = ?1")?;
    let id = id.query_row([thread.as_str()], |row| row.get::<_, Option<String>>(0)).optional()?;
    let Some(id) = id.flatten() else { return Ok(None) };
    Ok(Some(id.parse().map_err(|error| StoreError::medium(place.clone(), error))?))
}

/// Returns the events from this `seq` on.
fn events(
    reading: &Transaction<'_>,
    place: &Text,
    thread: &ThreadId,
    from: u64,
) -> Result<Vec<LoggedEvent>, Failed> {
    // A number beyond the integers of SQLite is after every stored event.
    let Ok(from) = i64::try_from(from) else { return Ok(Vec::new()) };
    let stored = "SELECT seq, event FROM events WHERE thread = ?1 AND seq >= ?2 ORDER BY seq";
    let mut stored = reading.prepare_cached(stored)?;
    let mut rows = stored.query(params![thread.as_str(), from])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let (seq, line) = (row.get::<_, u64>(0)?, row.get_ref(1)?.as_str()?);
        events.push(stored_event(place, seq, line)?);
    }
    Ok(events)
}

fn unreadable(place: &Text, source: LogError) -> StoreError {
    StoreError::Unreadable { place: place.clone(), source }
}
