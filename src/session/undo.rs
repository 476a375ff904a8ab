//! Taking a compaction back.

use super::session::Session;
use crate::{compact::StalePlan, log::UndoError, message::CompactionId, store::StoreError};

/// Why a compaction cannot be taken back. Nothing has changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UndoCompactionError {
    /// The log says so.
    #[error(transparent)]
    Log(#[from] UndoError),
    /// The thread is not the one of the log.
    #[error(transparent)]
    Stale(#[from] StalePlan),
    /// It is taken back, but not stored yet; the next turn stores it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Session {
    /// Takes the latest compaction back: what it took out is in the thread again, and what came
    /// since stands behind it.
    ///
    /// The future may be dropped; the compaction is taken back then, and the next turn stores it.
    ///
    /// # Errors
    ///
    /// [`UndoCompactionError`], such as when another compaction stands on this one.
    pub async fn undo_compaction(&mut self, id: CompactionId) -> Result<(), UndoCompactionError> {
        let plan = self.journal.log().undo_plan(id)?;
        plan.check(self.agent.messages())?;
        let _ = self.journal.undo(self.clock.now(), id)?;
        self.agent.apply(&plan)?;
        Ok(self.journal.flush().await?)
    }
}
