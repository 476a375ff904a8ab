//! Forking a conversation.

use super::{builder::SessionBuilder, error::SessionError, session::Session};
use crate::{
    log::Event,
    message::{CheckpointId, ThreadId},
    store::Journal,
};

impl Session {
    /// Returns the builder of a session that continues from the end of this one as a separate
    /// thread. It inherits the history, compactions included, and all settings. Calls that are open
    /// at that point are answered as cancelled before its first message.
    ///
    /// Nothing of the fork is stored until it has a [store](SessionBuilder::store). It shares the
    /// archive, but entries written by this thread stay under this thread's id.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["Blue.", "Red, then."]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// block_on(async { session.send("Which colour?").await })?;
    /// let mut other = block_on(session.fork_before("another-way".parse()?, 0))?.build()?;
    /// block_on(async { other.send("Which colour, but not blue?").await })?;
    /// assert_eq!((session.messages().len(), other.messages().len()), (2, 2));
    /// assert_ne!(session.messages()[0], other.messages()[0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`SessionError::Log`] if the log cannot be cut there.
    /// - [`SessionError::Store`] if the store cannot be read.
    pub async fn fork(&self, thread: ThreadId) -> Result<SessionBuilder, SessionError> {
        self.fork_before(thread, self.messages().len()).await
    }

    /// Same as [`fork`](Self::fork), from before the message with this index, which is
    /// also the number of messages that the fork keeps.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc, threadfold::{ModelAgent, Session, testing::ScriptedModel}};
    /// # let model = Arc::new(ScriptedModel::new(["Blue.", "Fine."]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// for text in ["Which colour?", "How are you?"] {
    ///     block_on(async { session.send(text).await })?;
    /// }
    /// let other = block_on(session.fork_before("another-way".parse()?, 2))?.build()?;
    /// assert_eq!(other.messages()[..], session.messages()[..2]);
    /// assert!(block_on(session.fork_before("nowhere".parse()?, 5)).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`fork`](Self::fork), and [`SessionError::NoMessage`] if the thread has fewer messages.
    pub async fn fork_before(
        &self,
        thread: ThreadId,
        message: usize,
    ) -> Result<SessionBuilder, SessionError> {
        let found = self.messages().len();
        if message > found {
            return Err(SessionError::NoMessage { message, found });
        }
        let mut journal = Journal::new(self.whole_log().await?.forked(thread));
        if message < found {
            journal.append(self.now(), Event::Truncated { from: found, len: message })?;
        }
        Ok(SessionBuilder {
            tools: self.tools.host().to_vec(),
            own_tools: self.tools.own(),
            settings: self.settings.clone(),
            policy: *self.auto.policy(),
            redactor: self.journal.redactor().cloned(),
            ..SessionBuilder::of(self.agent.fork(), journal)
        })
    }

    /// Same as [`fork`](Self::fork), from after the message that holds this checkpoint.
    ///
    /// ```
    /// # use {futures::executor::block_on, std::sync::Arc, threadfold::{ModelAgent, Session, testing::ScriptedModel}};
    /// use threadfold::ContentBlock;
    ///
    /// # let model = Arc::new(ScriptedModel::new(["Blue."]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// block_on(async { session.send("Which colour?").await })?;
    /// let last = session.messages()[0].content.last();
    /// let Some(ContentBlock::Checkpoint(mark)) = last else { panic!("user messages end with one") };
    /// let other = block_on(session.fork_after("another-way".parse()?, mark.id))?.build()?;
    /// assert_eq!(other.messages().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`fork`](Self::fork), and [`SessionError::NoCheckpoint`] if the checkpoint is not in the
    /// thread, or there more than once.
    pub async fn fork_after(
        &self,
        thread: ThreadId,
        checkpoint: CheckpointId,
    ) -> Result<SessionBuilder, SessionError> {
        let position = self.agent.thread().checkpoint(checkpoint);
        let position = position.ok_or(SessionError::NoCheckpoint { id: checkpoint })?;
        self.fork_before(thread, position.message + 1).await
    }
}
