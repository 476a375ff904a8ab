//! Undoing a compaction.

use super::session::Session;
use crate::{compact::StalePlan, log::UndoError, message::CompactionId, model, store::StoreError};

/// Why a compaction cannot be undone. Nothing has changed, except with `Store`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UndoCompactionError {
    /// The log has no such compaction to undo, or another one builds on it.
    #[error(transparent)]
    Log(#[from] UndoError),
    /// The plan of the undo does not fit the thread.
    #[error(transparent)]
    Stale(#[from] StalePlan),
    /// The undo is in thread and log but not in the store yet; the next turn writes it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Session {
    /// Undoes the latest compaction: the messages that it removed return, followed by those
    /// appended since.
    ///
    /// The future may be dropped; the compaction is undone even so, and the next turn writes the
    /// store.
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
    /// - [`UndoCompactionError::Log`] if another compaction builds on this one, or none has this
    ///   id.
    /// - [`UndoCompactionError::Stale`] if the thread does not match the log.
    /// - [`UndoCompactionError::Store`] if the store could not be written; the compaction is
    ///   undone.
    pub async fn undo_compaction(&mut self, id: CompactionId) -> Result<(), UndoCompactionError> {
        let plan = self.journal.log().undo_plan(id)?;
        let now = self.now();
        let rewrite = model::rewrite(self.agent.as_mut(), &plan)?;
        let _ = self.journal.undo(now, id)?;
        let _removed = rewrite.apply();
        Ok(self.journal.flush().await?)
    }
}
