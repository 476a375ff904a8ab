//! Runs: `RunStore` for `SqliteStore`.

use rusqlite::{OptionalExtension, Transaction, params};
use threadfold::{
    async_trait,
    message::ThreadId,
    store::{RunStore, StoreError},
    strategy::CompactionRun,
};

use crate::{database::Failed, store::SqliteStore};

#[async_trait]
impl RunStore for SqliteStore {
    async fn save_run(&self, thread: &ThreadId, run: &CompactionRun) -> Result<(), StoreError> {
        let place = self.database.place().clone();
        let run = serde_json::to_string(run).map_err(|error| StoreError::medium(place, error))?;
        let thread = thread.clone();
        let saved = self.database.write(move |writing| {
            let insert = "INSERT OR REPLACE INTO runs (thread, run) VALUES (?1, ?2)";
            writing.prepare_cached(insert)?.execute(params![thread.as_str(), run])?;
            Ok(())
        });
        saved.await
    }

    async fn load_run(&self, thread: &ThreadId) -> Result<Option<CompactionRun>, StoreError> {
        let (thread, place) = (thread.clone(), self.database.place().clone());
        let loaded = self.database.read(move |reading| {
            let mut run = reading.prepare_cached("SELECT run FROM runs WHERE thread = ?1")?;
            let run = run.query_row([thread.as_str()], |row| row.get::<_, String>(0)).optional()?;
            let Some(run) = run else { return Ok(None) };
            let run = serde_json::from_str(&run);
            Ok(Some(run.map_err(|error| StoreError::medium(place, error))?))
        });
        loaded.await
    }

    async fn delete_run(&self, thread: &ThreadId) -> Result<(), StoreError> {
        let thread = thread.clone();
        self.database.write(move |writing| delete(writing, &thread)).await
    }
}

/// Removes the run of a thread, if there is one.
pub(crate) fn delete(writing: &Transaction<'_>, thread: &ThreadId) -> Result<(), Failed> {
    writing.execute("DELETE FROM runs WHERE thread = ?1", [thread.as_str()])?;
    Ok(())
}
