//! Undoing a compaction.
//!
//! The log holds all messages, so removed ones can be restored: the thread is then as before the
//! compaction, followed by the messages appended since. Compactions are undone in reverse order,
//! because a plan holds positions of the thread that it was made for.
//!
//! Reasoning that a model signed since the compaction was signed for the compacted thread. Messages
//! with such reasoning are marked ([`prefix_rewritten`]), as by any edit of the messages before
//! them.
//!
//! [`prefix_rewritten`]: field@crate::message::Message::prefix_rewritten

use super::{
    error::LogError,
    event::{CompactionRecord, Event, LoggedEvent},
    event_log::EventLog,
    state::Outcome,
};
use crate::{
    compact::{Insert, Plan, Splice},
    message::{CompactionId, Message, Timestamp},
};

impl EventLog {
    /// Records the undo of a compaction, and returns the plan that undoes it in the live thread.
    /// Apply the plan, but do not store it: a replay of the log gives the same thread.
    ///
    /// ```
    /// use threadfold::{Message, Plan, Replacement, Thread, compact::CompactOptions};
    /// use threadfold::log::{CompactionRecord, Event, EventLog};
    /// use threadfold::message::{CompactionReason, Timestamp};
    ///
    /// let (mut log, mut thread) = (EventLog::new("main".parse()?), Thread::default());
    /// thread.push(Message::user("hi"));
    /// log.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
    ///
    /// let plan = thread.plan(&[Replacement::new("A greeting.")], &CompactOptions::default())?;
    /// thread.apply(&plan)?;
    /// let id = log.next_compaction();
    /// let record = CompactionRecord::new(id, CompactionReason::default(), "mine", plan);
    /// log.append(Timestamp(2), Event::Compacted(Box::new(record)))?;
    ///
    /// thread.apply(&log.undo(Timestamp(3), id)?)?;
    /// assert_eq!(thread.messages()[..], [Message::user("hi")]);
    /// assert_eq!(log.replay()?, thread.messages()[..]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LogError`] for a compaction that is unknown, failed or undone already, that is before the
    /// log's [`base`](Self::base), that a later standing compaction follows, or some of whose
    /// messages were truncated since. The log is then unchanged.
    pub fn undo(&mut self, at: Timestamp, id: CompactionId) -> Result<Plan, LogError> {
        let plan = self.undo_plan(id)?;
        let event = Event::CompactionUndone { id };
        self.push(LoggedEvent { seq: self.len(), at, event });
        Ok(plan)
    }

    /// Returns the plan that would undo a compaction in the live thread, and records nothing.
    ///
    /// ```
    /// use threadfold::{log::{EventLog, LogError}, message::CompactionId};
    ///
    /// let (log, id) = (EventLog::new("main".parse()?), CompactionId(7));
    /// assert_eq!(log.undo_plan(id), Err(LogError::UnknownCompaction { id }));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`undo`](Self::undo).
    pub fn undo_plan(&self, id: CompactionId) -> Result<Plan, LogError> {
        let standing = self.state().check_undo(id)?;
        let marked = self.state().marked(standing);
        let splices = standing.swaps.iter().chain(&marked).map(|swap| {
            let restored = swap.inserted.iter().map(|entry| entry.message.clone());
            let insert = restored.map(|message| Insert::Message { message }).collect();
            Splice { at: swap.at.clone(), insert }
        });
        Ok(Plan::from_splices(self.state().thread.len(), splices.collect()))
    }

    /// Returns this compaction and those after it, in the order in which they are undone: the
    /// latest first.
    ///
    /// ```
    /// use threadfold::{log::{EventLog, LogError}, message::CompactionId};
    ///
    /// let (log, id) = (EventLog::new("main".parse()?), CompactionId(7));
    /// assert_eq!(log.to_undo(id), Err(LogError::UnknownCompaction { id }));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LogError`] if the compaction is unknown, failed or already undone, or if one of those to
    /// undo was cut by a truncation.
    pub fn to_undo(&self, id: CompactionId) -> Result<Vec<CompactionId>, LogError> {
        let standing = &self.state().standing;
        let Some(first) = standing.iter().position(|standing| standing.id == id) else {
            // The compaction is not standing, and the check returns the reason.
            return self.state().check_undo(id).map(|_| Vec::new());
        };
        let later = standing.iter().skip(first);
        if let Some(cut) = later.clone().find(|standing| standing.cut.is_some()) {
            return Err(LogError::TruncatedCompaction { id: cut.id });
        }
        Ok(later.rev().map(|standing| standing.id).collect())
    }

    /// Returns a compaction that was undone, and the thread that it was made for.
    pub(crate) fn undone(
        &self,
        id: CompactionId,
    ) -> Result<(CompactionRecord, Vec<Message>), LogError> {
        self.state().check_whole()?;
        let record = self.compaction(id).ok_or(LogError::UnknownCompaction { id })?;
        let seq = self.undone_at(id)?;
        let mut before = Self::new(self.thread_id().clone());
        for logged in self.events().iter().take_while(|logged| logged.seq < seq) {
            before.push(logged.clone());
        }
        Ok((record.clone(), before.replay()?))
    }

    /// The event of a compaction that was undone.
    fn undone_at(&self, id: CompactionId) -> Result<u64, LogError> {
        match self.state().compactions.get(&id) {
            Some((seq, Outcome::Undone)) => Ok(*seq),
            Some((_, Outcome::Stands)) => Err(LogError::StandingCompaction { id }),
            Some((_, Outcome::Failed)) => Err(LogError::FailedCompaction { id }),
            Some((_, Outcome::Skipped)) => Err(LogError::SkippedCompaction { id }),
            None => Err(LogError::UnknownCompaction { id }),
        }
    }
}
