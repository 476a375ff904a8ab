//! Runs: `RunStore` for `PostgresStore`.

use threadfold::{
    async_trait,
    message::ThreadId,
    store::{RunStore, StoreError},
    strategy::CompactionRun,
};

use crate::store::PostgresStore;

#[async_trait]
impl RunStore for PostgresStore {
    async fn save_run(&self, thread: &ThreadId, run: &CompactionRun) -> Result<(), StoreError> {
        let run = serde_json::to_string(run);
        let run = run.map_err(|error| StoreError::medium(self.place().clone(), error))?;
        let save = "INSERT INTO threadfold.runs VALUES ($1, $2) \
                    ON CONFLICT (thread) DO UPDATE SET run = excluded.run RETURNING 1";
        self.row(save, &[&thread.as_str(), &run]).await?;
        Ok(())
    }

    async fn load_run(&self, thread: &ThreadId) -> Result<Option<CompactionRun>, StoreError> {
        let load = "SELECT (SELECT run FROM threadfold.runs WHERE thread = $1)";
        let loaded = self.row(load, &[&thread.as_str()]).await?;
        let Some(run) = self.column::<Option<&str>>(&loaded, 0)? else { return Ok(None) };
        let run = serde_json::from_str(run);
        Ok(Some(run.map_err(|error| StoreError::medium(self.place().clone(), error))?))
    }

    async fn delete_run(&self, thread: &ThreadId) -> Result<(), StoreError> {
        let delete = "WITH gone AS (DELETE FROM threadfold.runs WHERE thread = $1) SELECT 1";
        self.row(delete, &[&thread.as_str()]).await?;
        Ok(())
    }
}
