//! The thread that results from a log. The [module](super) says how a replay works.

use super::{
    error::LogError,
    event::Event,
    event_log::EventLog,
    state::{Entry, EntrySource},
};
use crate::message::{CompactionId, Message, Timestamp};

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

    /// Returns the time of the event of each message of the thread, as [`Snapshot::with_times`] takes
    /// them.
    ///
    /// [`Snapshot::with_times`]: crate::strategy::Snapshot::with_times
    pub fn times(&self) -> impl Iterator<Item = Timestamp> {
        self.state().thread.iter().map(|entry| entry.at)
    }

    /// The events since the log's base that [`replay`](Self::replay) leaves out, because they do not
    /// fit the events before them: the number of each, and the reason.
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
    /// assert_eq!(log.replay()?, [Message::user("hi")]);
    /// assert_eq!(log.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LogError::Unreadable`] for a message that cannot be read.
    pub fn replay(&self) -> Result<Vec<Message>, LogError> {
        match self.state().unreadable {
            Some(seq) => Err(LogError::Unreadable { seq }),
            None => Ok(self.state().thread.iter().map(|entry| entry.message.clone()).collect()),
        }
    }

    /// Whether every message of the log can be read.
    pub(crate) fn is_readable(&self) -> bool {
        self.state().unreadable.is_none()
    }

    /// Returns the number of each message of the thread among all messages ever appended; `None` for
    /// those that a compaction inserted.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = Option<u64>> {
        self.state().thread.iter().map(|entry| entry.arrival().map(|number| number as u64))
    }

    /// Returns a message by its number among all messages ever appended, if the log holds its event.
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
