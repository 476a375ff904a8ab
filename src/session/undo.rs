//! Undoing a compaction.

use super::{error::SessionError, session::Session};
use crate::{message::CompactionId, model};

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
    /// - [`SessionError::Log`] if another compaction builds on this one, or none has this
    ///   id.
    /// - [`SessionError::Stale`] if the thread does not match the log.
    /// - [`SessionError::Store`] if the store could not be written; the compaction is
    ///   undone.
    pub async fn undo_compaction(&mut self, id: CompactionId) -> Result<(), SessionError> {
        let plan = self.journal.log().undo_plan(id)?;
        let now = self.now();
        let rewrite = model::rewrite(self.agent.as_mut(), &plan)?;
        let _ = self.journal.undo(now, id)?;
        let _removed = rewrite.apply();
        Ok(self.journal.flush().await?)
    }
}
