//! The thread that results from a log. The [module](super) documents how a replay works.
//!
//! The log holds all messages, so an undo restores those that a compaction removed: the thread is
//! then the one before the compaction, followed by the messages appended since. Compactions are
//! undone in reverse order, because a plan holds positions of the thread that it was made for.
//!
//! Reasoning that a model signed since the compaction was signed for the compacted thread. Messages
//! with such reasoning are marked ([`prefix_rewritten`]), as by any edit of the messages before
//! them.
//!
//! [`prefix_rewritten`]: field@crate::message::Message::prefix_rewritten

use std::ops::Range;

use super::{
    error::{LogError, Result},
    event::{CompactionRecord, Event, LoggedEvent},
    event_log::EventLog,
    removed::to_ranges,
    state::{Entry, EntrySource, Outcome},
};
use crate::{
    compact::{Insert, Plan, Splice},
    message::{CompactionId, Message, Role, Timestamp},
};

impl EventLog {
    /// Returns the event that each message of the thread comes from: its index in the log, and the
    /// id of the compaction that inserted the message, or `None` if the message was appended. A
    /// compaction may have kept only a part of an appended message.
    ///
    /// ```
    /// use threadfold::{Message, log::{Event, EventLog}, message::Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// log.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?;
    /// assert!(log.sources().eq([(0, None)]));
    /// assert!(log.times().eq([Timestamp(7)]));
    /// assert_eq!(log.skipped(), []);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sources(&self) -> impl Iterator<Item = (u64, Option<CompactionId>)> {
        self.state().thread.iter().filter_map(|entry| self.source(entry))
    }

    /// Returns the time of the event of each message of the thread, in the form for
    /// [`Snapshot::with_times`].
    ///
    /// [`Snapshot::with_times`]: crate::strategy::Snapshot::with_times
    pub fn times(&self) -> impl Iterator<Item = Timestamp> {
        self.state().thread.iter().map(|entry| entry.at)
    }

    /// The events since the log's base that [`replay`](Self::replay) leaves out, because they do
    /// not fit the events before them: the number of each, and the reason.
    #[must_use]
    pub fn skipped(&self) -> &[(u64, LogError)] {
        &self.state().skipped
    }

    /// Returns the thread that results from the log. It copies handles of messages, no text.
    ///
    /// ```
    /// use threadfold::{EventLog, Message, log::Event, message::Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// log.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
    /// log.append(Timestamp(2), Event::MessageAppended(Message::assistant("hello")))?;
    /// log.append(Timestamp(3), Event::Truncated { from: 2, len: 1 })?;
    /// assert_eq!(log.replay(), [Message::user("hi")]);
    /// assert_eq!(log.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn replay(&self) -> Vec<Message> {
        self.state().thread.iter().map(|entry| entry.message.clone()).collect()
    }

    /// Returns the number of each message of the thread among all messages ever appended; `None`
    /// for those that a compaction inserted.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = Option<u64>> {
        self.state().thread.iter().map(|entry| entry.arrival().map(|number| number as u64))
    }

    /// Returns a message by its number among all messages ever appended, if the log holds its
    /// event.
    pub(crate) fn arrival(&self, number: usize) -> Option<&Message> {
        let event = self.event(self.state().arrival(number)?)?;
        if let Event::MessageAppended(message) = &event.event { Some(message) } else { None }
    }

    fn source(&self, entry: &Entry) -> Option<(u64, Option<CompactionId>)> {
        let compaction = match entry.source {
            EntrySource::Arrival(_) => None,
            EntrySource::Compaction { standing, .. } => {
                Some(self.state().standing.get(standing)?.id)
            }
            EntrySource::Dropped(id) => Some(id),
        };
        Some((entry.seq, compaction))
    }
}

impl EventLog {
    /// Returns the appended messages in order, each with its number among all messages ever
    /// appended: those in the thread, and those that compactions removed. Truncated messages and
    /// summaries are not among them, nor those before the log's [`base`](Self::base).
    ///
    /// ```
    /// use threadfold::{Message, Plan, compact::{Insert, Splice}};
    /// use threadfold::log::{CompactionRecord, Event, EventLog};
    /// use threadfold::message::{CompactionReason, Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// for text in ["one", "two", "three"] {
    ///     log.append(Timestamp(1), Event::MessageAppended(Message::user(text)))?;
    /// }
    /// let insert = vec![Insert::Message { message: Message::user("one and two") }];
    /// let plan = Plan::from_splices(3, vec![Splice { at: 0..2, insert }]);
    /// let id = log.next_compaction();
    /// let record = CompactionRecord::new(id, CompactionReason::default(), "mine", plan);
    /// log.append(Timestamp(2), Event::Compacted(Box::new(record)))?;
    /// let said: Vec<Message> = log.originals().map(|(_, message)| message.clone()).collect();
    /// assert_eq!(said, ["one", "two", "three"].map(Message::user));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn originals(&self) -> impl Iterator<Item = (usize, &Message)> {
        let numbers = self.original_numbers().into_iter().flatten();
        numbers.filter_map(|number| Some((number, self.arrival(number)?)))
    }

    /// Returns the answers in which the provider compacted the thread itself, each with its number
    /// as in [`originals`](Self::originals). The messages before such an answer stay: the provider
    /// ignores them, and another provider reads them.
    ///
    /// ```
    /// use threadfold::{EventLog, Message, Role, log::Event};
    /// use threadfold::message::{Json, Opaque, Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// let block = Json::parse(r#"{"type":"compaction","content":"They talked."}"#)?;
    /// let block = Opaque::new("anthropic-messages", block);
    /// let answer = Message::new(Role::Assistant, vec![block.into()]);
    /// for message in [Message::user("hi"), answer] {
    ///     log.append(Timestamp(1), Event::MessageAppended(message))?;
    /// }
    /// assert_eq!(log.provider_compactions().map(|(number, _)| number).collect::<Vec<_>>(), [1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn provider_compactions(&self) -> impl Iterator<Item = (usize, &Message)> {
        let answers = self.originals().filter(|(_, message)| message.role == Role::Assistant);
        answers.filter(|(_, message)| message.holds_compaction())
    }

    /// Returns the numbers of these messages as ascending ranges with gaps between them.
    pub(crate) fn original_numbers(&self) -> Vec<Range<usize>> {
        let dropped = &self.state().dropped;
        let live = self.state().thread.iter().filter_map(Entry::arrival);
        let numbers = live.chain(self.removed_numbers());
        // Messages before a base can no longer be truncated.
        let held = to_ranges(numbers.filter(|number| *number >= dropped.messages).collect());
        let mut all = dropped.originals.clone();
        for range in held {
            match all.last_mut().filter(|last| last.end == range.start) {
                Some(last) => last.end = range.end,
                None => all.push(range),
            }
        }
        all
    }
}

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
    /// assert_eq!(log.replay(), thread.messages()[..]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LogError`] for a compaction that is unknown, failed or undone already, that is before the
    /// log's [`base`](Self::base), that a later standing compaction follows, or some of whose
    /// messages were truncated since. The log is then unchanged.
    pub fn undo(&mut self, at: Timestamp, id: CompactionId) -> Result<Plan> {
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
    pub fn undo_plan(&self, id: CompactionId) -> Result<Plan> {
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
    /// [`LogError`] if the compaction is unknown, failed or already undone, or if a truncation cut
    /// the messages that one of those to undo left.
    pub fn to_undo(&self, id: CompactionId) -> Result<Vec<CompactionId>> {
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
    pub(crate) fn undone(&self, id: CompactionId) -> Result<(CompactionRecord, Vec<Message>)> {
        self.state().check_whole()?;
        let record = self.compaction(id).ok_or(LogError::UnknownCompaction { id })?;
        let seq = self.undone_at(id)?;
        Ok((record.clone(), self.before(seq).replay()))
    }

    /// Returns the log of the events in memory before this `seq`.
    pub(crate) fn before(&self, seq: u64) -> Self {
        let mut before = Self::new(self.thread_id().clone());
        for logged in self.events().iter().take_while(|logged| logged.seq < seq) {
            before.push(logged.clone());
        }
        before
    }

    /// The event of a compaction that was undone.
    fn undone_at(&self, id: CompactionId) -> Result<u64> {
        match self.state().compactions.get(&id) {
            Some((seq, Outcome::Undone)) => Ok(*seq),
            Some((_, Outcome::Stands)) => Err(LogError::StandingCompaction { id }),
            Some((_, Outcome::Failed)) => Err(LogError::FailedCompaction { id }),
            Some((_, Outcome::Skipped)) => Err(LogError::SkippedCompaction { id }),
            None => Err(LogError::UnknownCompaction { id }),
        }
    }
}
