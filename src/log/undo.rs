//! Taking a compaction back.
//!
//! The log holds everything, so what went can be put back: the thread is then what it was before
//! the compaction, followed by what came since. Compactions are undone in the reverse of their
//! order, because a plan holds positions of the thread that it was made for.
//!
//! Reasoning that a model signed since the compaction was signed for what the compaction left.
//! Messages with such reasoning are marked ([`prefix_rewritten`]), as they are by any edit of what
//! stands before them.
//!
//! [`prefix_rewritten`]: field@crate::message::Message::prefix_rewritten

use super::{
    error::LogError,
    event::{CompactionUndone, Event, LoggedEvent},
    event_log::EventLog,
};
use crate::{
    compact::{Insert, Plan, Splice},
    message::{CompactionId, Timestamp},
};

impl EventLog {
    /// Notes that a compaction is taken back, and returns the plan that takes the live thread
    /// back. The plan is applied and never stored; a replay of the log comes to the same thread.
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
    /// [`LogError`] for a compaction that is unknown, failed or is undone already, on which another
    /// stands, or of which messages were dropped from the end since. Nothing is noted then.
    pub fn undo(&mut self, at: Timestamp, id: CompactionId) -> Result<Plan, LogError> {
        let plan = self.undo_plan(id)?;
        let event = Event::CompactionUndone(CompactionUndone { id });
        self.push(LoggedEvent { seq: self.len(), at, event });
        Ok(plan)
    }

    /// Returns the plan that would take the live thread back, and notes nothing.
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
            let back = swap.comes.iter().map(|entry| entry.message.clone());
            let insert = back.map(|message| Insert::Message { message }).collect();
            Splice { at: swap.at.clone(), insert }
        });
        Ok(Plan::from_splices(self.state().thread.len(), splices.collect()))
    }
}
