//! The words of messages: `WordIndex` for `SqliteStore`, on FTS5.

use std::ops::Range;

use rusqlite::{OptionalExtension, Transaction, params};
use threadfold::{
    async_trait,
    log::{LogId, LoggedEvent},
    message::ThreadId,
    store::{StoreError, WordIndex, stored_event},
};

use crate::{database::Failed, store::SqliteStore};

#[async_trait]
impl WordIndex for SqliteStore {
    async fn indexed(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
    ) -> Result<Option<(u64, u64)>, StoreError> {
        let thread = thread.clone();
        self.database.read(move |reading| indexed(reading, &thread, log)).await
    }

    async fn add(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        events: Range<u64>,
        number: u64,
        messages: &[(u64, Vec<String>)],
    ) -> Result<bool, StoreError> {
        let (thread, messages) = (thread.clone(), messages.to_vec());
        let added = self.database.write(move |writing| {
            if indexed(writing, &thread, log)? != Some((events.start, number)) {
                return Ok(false);
            }
            let update = "INSERT INTO indexed (thread, events, messages) VALUES (?1, ?2, ?3) \
                          ON CONFLICT (thread) DO UPDATE \
                          SET events = excluded.events, messages = excluded.messages RETURNING key";
            let mut update = writing.prepare_cached(update)?;
            let values = params![thread.as_str(), events.end, number + messages.len() as u64];
            let key: i64 = update.query_row(values, |row| row.get(0))?;
            let insert = "INSERT INTO messages (key, number, seq) VALUES (?1, ?2, ?3)";
            let mut insert = writing.prepare_cached(insert)?;
            let words = "INSERT INTO words (rowid, of_message) VALUES (?1, ?2)";
            let mut insert_words = writing.prepare_cached(words)?;
            for (number, (seq, words)) in (number..).zip(&messages) {
                let id = insert.insert(params![key, number, seq])?;
                insert_words.execute(params![id, terms(key, words, "", " ")])?;
            }
            Ok(true)
        });
        added.await
    }

    async fn find(&self, thread: &ThreadId, words: &[String]) -> Result<Vec<u64>, StoreError> {
        let (thread, words) = (thread.clone(), words.to_vec());
        let found = self.database.read(move |reading| {
            let Some(key) = key(reading, &thread)? else { return Ok(Vec::new()) };
            if words.is_empty() {
                return Ok(Vec::new());
            }
            let find = "SELECT number FROM messages \
                        WHERE id IN (SELECT rowid FROM words WHERE words MATCH ?1) ORDER BY number";
            let mut find = reading.prepare_cached(find)?;
            let numbers = find.query_map([terms(key, &words, "\"", " OR ")], |row| row.get(0))?;
            Ok(numbers.collect::<Result<_, _>>()?)
        });
        found.await
    }

    async fn read(
        &self,
        thread: &ThreadId,
        numbers: &[u64],
    ) -> Result<Vec<(u64, LoggedEvent)>, StoreError> {
        let (thread, numbers) = (thread.clone(), numbers.to_vec());
        let place = self.database.place().clone();
        let read = self.database.read(move |reading| {
            let Some(key) = key(reading, &thread)? else { return Ok(Vec::new()) };
            let stored = "SELECT seq, event FROM events WHERE thread = ?1 AND seq = \
                          (SELECT seq FROM messages WHERE key = ?2 AND number = ?3)";
            let mut stored = reading.prepare_cached(stored)?;
            let mut events = Vec::new();
            for number in numbers {
                let mut rows = stored.query(params![thread.as_str(), key, number])?;
                if let Some(row) = rows.next()? {
                    let (seq, line) = (row.get(0)?, row.get_ref(1)?.as_str()?);
                    events.push((number, stored_event(&place, seq, line)?));
                }
            }
            Ok(events)
        });
        read.await
    }
}

/// Removes the words of a thread. FTS5 only marks a row as deleted. Its words are removed when the
/// index is merged, which [`purge`] does immediately.
pub(crate) fn delete(writing: &Transaction<'_>, thread: &ThreadId) -> Result<(), Failed> {
    let Some(key) = key(writing, thread)? else { return Ok(()) };
    let words = "DELETE FROM words WHERE rowid IN (SELECT id FROM messages WHERE key = ?1)";
    for delete in
        [words, "DELETE FROM messages WHERE key = ?1", "DELETE FROM indexed WHERE key = ?1"]
    {
        writing.prepare_cached(delete)?.execute([key])?;
    }
    Ok(())
}

/// Merges the index, so that no word of a deleted row is left. If anything changed, the time is
/// linear in the size of the index.
pub(crate) fn purge(writing: &Transaction<'_>) -> Result<(), Failed> {
    writing.execute("INSERT INTO words (words) VALUES ('optimize')", [])?;
    Ok(())
}

fn indexed(
    reading: &Transaction<'_>,
    thread: &ThreadId,
    log: Option<LogId>,
) -> Result<Option<(u64, u64)>, Failed> {
    let stored = "SELECT coalesce(events, 0), coalesce(messages, 0) FROM logs \
                  LEFT JOIN indexed ON indexed.thread = logs.thread \
                  WHERE logs.thread = ?1 AND log IS ?2";
    let log = log.map(|log| log.to_string());
    let found = reading
        .prepare_cached(stored)?
        .query_row(params![thread.as_str(), log], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(found.optional()?)
}

/// Returns the number that stands for a thread in the index.
fn key(reading: &Transaction<'_>, thread: &ThreadId) -> Result<Option<i64>, Failed> {
    let mut key = reading.prepare_cached("SELECT key FROM indexed WHERE thread = ?1")?;
    Ok(key.query_row([thread.as_str()], |row| row.get(0)).optional()?)
}

/// Returns words in the form of the index. Each begins with the key of its thread, so a search
/// reads only entries of this thread.
fn terms(key: i64, words: &[String], quote: &str, between: &str) -> String {
    let terms = words.iter().map(|word| format!("{quote}{key}.{word}{quote}"));
    terms.collect::<Vec<_>>().join(between)
}
