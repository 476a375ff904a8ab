//! The words of messages: `WordIndex` for `PostgresStore`, on an inverted index.

use std::ops::Range;

use threadfold::{
    async_trait,
    log::{LogId, LoggedEvent},
    message::ThreadId,
    store::{StoreError, WordIndex, stored_event},
};

use crate::store::{PostgresStore, integer};

#[async_trait]
impl WordIndex for PostgresStore {
    async fn indexed(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
    ) -> Result<Option<(u64, u64)>, StoreError> {
        let stored = "SELECT coalesce(events, 0), coalesce(messages, 0) FROM threadfold.logs \
                      LEFT JOIN threadfold.indexed USING (thread) \
                      WHERE thread = $1 AND log IS NOT DISTINCT FROM $2";
        let log = log.map(|log| log.to_string());
        let rows = self.rows(stored, &[&thread.as_str(), &log]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let count = |column| Ok(self.column::<i64>(row, column)?.unsigned_abs());
        Ok(Some((count(0)?, count(1)?)))
    }

    async fn add(
        &self,
        thread: &ThreadId,
        log: Option<LogId>,
        events: Range<u64>,
        number: u64,
        messages: &[(u64, Vec<String>)],
    ) -> Result<bool, StoreError> {
        let end = number + messages.len() as u64;
        let numbers: Vec<i64> = (number..end).map(integer).collect();
        let seqs: Vec<i64> = messages.iter().map(|(seq, _)| integer(*seq)).collect();
        // No word contains a space, so the words of a message are sent as one text.
        let words: Vec<String> = messages.iter().map(|(_, words)| words.join(" ")).collect();
        let log = log.map(|log| log.to_string());
        let [from_events, to_events, to_messages] = [events.start, events.end, end].map(integer);
        let add = "SELECT threadfold.add_words($1, $2, $3, $4, $5, $6, $7, $8)";
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 8] = [
            &thread.as_str(),
            &log,
            &from_events,
            &to_events,
            &to_messages,
            &numbers,
            &seqs,
            &words,
        ];
        let added = self.row(add, &parameters).await?;
        self.column(&added, 0)
    }

    async fn find(&self, thread: &ThreadId, words: &[String]) -> Result<Vec<u64>, StoreError> {
        // Each word already includes its thread. A condition on `key` would let the planner choose
        // another index and read all messages of the thread.
        let find = "SELECT number FROM threadfold.messages, threadfold.indexed \
                    WHERE indexed.thread = $1 \
                    AND words && threadfold.terms(indexed.key, $2) ORDER BY number";
        let rows = self.rows(find, &[&thread.as_str(), &words]).await?;
        rows.iter().map(|row| Ok(self.column::<i64>(row, 0)?.unsigned_abs())).collect()
    }

    async fn read(
        &self,
        thread: &ThreadId,
        numbers: &[u64],
    ) -> Result<Vec<(u64, LoggedEvent)>, StoreError> {
        let stored = "SELECT number, events.seq, event FROM threadfold.indexed \
                      JOIN threadfold.messages USING (key) \
                      JOIN threadfold.events ON events.thread = indexed.thread \
                      AND events.seq = messages.seq \
                      WHERE indexed.thread = $1 AND number = ANY ($2) ORDER BY number";
        let numbers: Vec<i64> = numbers.iter().copied().map(integer).collect();
        let rows = self.rows(stored, &[&thread.as_str(), &numbers]).await?;
        let event = |row| {
            let seq = self.column::<i64>(row, 1)?.unsigned_abs();
            let event = stored_event(self.place(), seq, self.column(row, 2)?)?;
            Ok((self.column::<i64>(row, 0)?.unsigned_abs(), event))
        };
        rows.iter().map(event).collect()
    }
}
