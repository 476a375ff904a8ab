//! Forking a conversation.

use super::{builder::SessionBuilder, error::SessionError, session::Session};
use crate::{
    log::Event,
    message::{CheckpointId, ThreadId},
    store::Journal,
};

/// Where a conversation forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForkPoint {
    /// After its last message.
    End,
    /// Before the message with this index: this many messages are kept.
    Message(usize),
    /// After the message that holds this checkpoint.
    Checkpoint(CheckpointId),
}

impl From<usize> for ForkPoint {
    fn from(message: usize) -> Self {
        Self::Message(message)
    }
}

impl From<CheckpointId> for ForkPoint {
    fn from(id: CheckpointId) -> Self {
        Self::Checkpoint(id)
    }
}

impl Session {
    /// Returns the builder of a session that continues from a point of this one as a separate
    /// thread. It inherits the history, compactions included, and all settings. Calls that are open
    /// at that point are answered as cancelled before its first message.
    ///
    /// Nothing of it is stored until it has a [store](SessionBuilder::store). The archive is
    /// shared, but entries written by this thread stay under this thread's id.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::sync::Arc;
    /// use threadfold::{ModelAgent, Session, testing::ScriptedModel};
    ///
    /// let model = Arc::new(ScriptedModel::new(["Blue.", "Red, then."]));
    /// let mut session = Session::builder(ModelAgent::new(model)).build()?;
    /// block_on(async { session.send("Which colour?").await })?;
    /// let mut other = block_on(session.fork("another-way".parse()?, 0))?.build()?;
    /// block_on(async { other.send("Which colour, but not blue?").await })?;
    /// assert_eq!((session.messages().len(), other.messages().len()), (2, 2));
    /// assert_ne!(session.messages()[0], other.messages()[0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`SessionError::NoMessage`] if the thread has fewer messages.
    /// - [`SessionError::NoCheckpoint`] if the checkpoint is not in the thread, or there more than
    ///   once.
    /// - [`SessionError::Log`] if the log cannot be cut there.
    /// - [`SessionError::Store`] if the store cannot be read.
    pub async fn fork(
        &self,
        thread: ThreadId,
        at: impl Into<ForkPoint>,
    ) -> Result<SessionBuilder, SessionError> {
        let from = self.messages().len();
        let len = self.fork_point(at.into())?;
        let mut journal = Journal::new(self.whole_log().await?.forked(thread));
        if len < from {
            journal.append(self.now(), Event::Truncated { from, len })?;
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

    fn fork_point(&self, at: ForkPoint) -> Result<usize, SessionError> {
        let found = self.messages().len();
        match at {
            ForkPoint::End => Ok(found),
            ForkPoint::Message(message) if message <= found => Ok(message),
            ForkPoint::Message(message) => Err(SessionError::NoMessage { message, found }),
            ForkPoint::Checkpoint(id) => {
                let place = self.agent.thread().checkpoint(id);
                place.map(|place| place.message + 1).ok_or(SessionError::NoCheckpoint { id })
            }
        }
    }
}
