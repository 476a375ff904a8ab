//! Undoing and redoing compactions.

use super::{error::SessionError, session::Session};
use crate::{compaction::Done, message::CompactionId, model};

impl Session {
    /// Undoes a compaction: the messages that it removed return, followed by those appended since.
    /// Compactions after it build on it, so they are undone first, the latest first. Returns the ids
    /// of all that were undone, in this order.
    ///
    /// The future may be dropped; the compactions are undone even so, and the next turn writes
    /// the store.
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
    /// - [`SessionError::Log`] if no standing compaction has this id, or the thread was truncated
    ///   inside what one of them left. Nothing is undone then.
    /// - [`SessionError::Stale`] if the thread does not match the log.
    /// - [`SessionError::Store`] if the store could not be written; the compactions are undone.
    pub async fn undo_compaction(
        &mut self,
        id: CompactionId,
    ) -> Result<Vec<CompactionId>, SessionError> {
        let ids = self.journal.log().to_undo(id)?;
        let now = self.now();
        for id in &ids {
            let plan = self.journal.log().undo_plan(*id)?;
            let rewrite = model::rewrite(self.agent.as_mut(), &plan)?;
            let _ = self.journal.undo(now, *id)?;
            let _removed = rewrite.apply();
        }
        self.show();
        self.journal.flush().await?;
        Ok(ids)
    }

    /// Redoes a compaction that was undone, without asking a model: its summary takes the place of
    /// the same messages again, and messages appended since stay. It gets a new id, which is in the
    /// result. Its start and end are the first events of the next stream.
    ///
    /// The future may be dropped, as that of [`adopt`](Self::adopt).
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
    /// block_on(async { session.compact(None).await })?;
    /// let id = session.log().standing().last().ok_or("it was compacted")?.id;
    ///
    /// block_on(session.undo_compaction(id))?;
    /// let done = block_on(session.redo_compaction(id))?;
    /// assert_eq!(session.messages().len(), 2);
    /// assert_eq!(session.log().standing().last().map(|record| record.id), Some(done.id));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`SessionError::Log`] if no compaction has this id, or it was not undone.
    /// - [`SessionError::Compaction`] if the messages that it removed are no longer in the thread as
    ///   they were, for example because another compaction took them.
    pub async fn redo_compaction(&mut self, id: CompactionId) -> Result<Done, SessionError> {
        let (record, before) = self.journal.log().undone(id)?;
        Ok(self.apply_again(record.strategy, record.plan, before.into()).await?)
    }
}
