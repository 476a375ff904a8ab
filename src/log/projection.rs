//! The thread that results from a log. The [module](super) says how a replay works.

use super::{
    error::LogError,
    event::Event,
    event_log::EventLog,
    state::{Entry, EntrySource},
};
use crate::message::{CompactionId, Message, Timestamp};

/// The event that a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The message was appended. A compaction may have kept only a part of it.
    Message {
        /// The index of the event in the log.
        seq: u64,
    },
    /// A compaction inserted the message.
    Compaction {
        /// The index of the event in the log.
        seq: u64,
        /// The id of the compaction.
        id: CompactionId,
    },
}

impl Source {
    /// Returns the index of the event in the log.
    #[must_use]
    pub fn seq(self) -> u64 {
        match self {
            Self::Message { seq } | Self::Compaction { seq, .. } => seq,
        }
    }
}

impl EventLog {
    /// Returns the source of each message of the thread.
    ///
    /// ```
    /// use threadfold::{Message, log::{Event, EventLog, Source}, message::Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// log.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?;
    /// assert!(log.sources().eq([Source::Message { seq: 0 }]));
    /// assert!(log.times().eq([Timestamp(7)]));
    /// assert_eq!(log.skipped(), []);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sources(&self) -> impl Iterator<Item = Source> {
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

    fn source(&self, entry: &Entry) -> Option<Source> {
        let seq = entry.seq;
        Some(match entry.source {
            EntrySource::Arrival(_) => Source::Message { seq },
            EntrySource::Compaction { standing, .. } => {
                Source::Compaction { seq, id: self.state().standing.get(standing)?.id }
            }
            EntrySource::Dropped(id) => Source::Compaction { seq, id },
        })
    }
}
