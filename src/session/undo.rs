//! Taking a compaction back.

use super::session::Session;
use crate::{compact::StalePlan, log::UndoError, message::CompactionId, model, store::StoreError};

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
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, strategy::KeepRecent, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["In src/parse.rs.", "A hundred lines."]));
    /// let keep = KeepRecent { messages: 2, ..KeepRecent::default() };
    /// let builder = Session::builder(ModelAgent::new(model)).strategy(Arc::new(keep));
    /// let mut session = builder.build()?;
    /// block_on(async { session.send("Where is the parser?").await })?;
    /// block_on(async { session.send("How long is it?").await })?;
    /// let before = session.messages().clone();
    /// block_on(async { session.compact(None).await })?;
    /// assert_eq!(session.messages().len(), 2);
    ///
    /// let id = session.log().standing().last().ok_or("it was compacted")?.id;
    /// block_on(session.undo_compaction(id))?;
    /// assert_eq!(*session.messages(), before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UndoCompactionError`], such as when another compaction stands on this one.
    pub async fn undo_compaction(&mut self, id: CompactionId) -> Result<(), UndoCompactionError> {
        let plan = self.journal.log().undo_plan(id)?;
        let now = self.now();
        let rewrite = model::rewrite(self.agent.as_mut(), &plan)?;
        let _ = self.journal.undo(now, id)?;
        let _removed = rewrite.apply();
        Ok(self.journal.flush().await?)
    }
}
