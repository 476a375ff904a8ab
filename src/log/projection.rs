//! The thread that a log comes to.
//!
//! Only what happened counts, in the order of the log; times do not. A compaction that cannot be
//! read, or does not fit, is left out, and the thread is what it was before: complete, and only
//! too long. What follows and was meant for the compacted thread does no harm then: plans that
//! do not fit are left out too, and a cut from the end drops as many messages as it did. A message
//! that cannot be read is an error: nothing is silently missing.

use super::{
    error::{LogError, Skipped},
    event::Event,
    event_log::EventLog,
    state::Maker,
};
use crate::message::{CompactionId, Message, Timestamp};

/// The thread that a log comes to, and where its messages come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Projection {
    /// The messages.
    pub messages: Vec<Message>,
    /// The source of each.
    pub sources: Vec<Source>,
    /// The events that were left out, in order.
    pub skipped: Vec<Skipped>,
}

/// Where a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// It came as an event of its own; it may be a part of what came then.
    Message {
        /// The place of the event.
        seq: u64,
    },
    /// A compaction put it in.
    Compaction {
        /// The place of the event.
        seq: u64,
        /// The number of the compaction.
        id: CompactionId,
    },
}

impl Source {
    /// The place in the log of the event.
    #[must_use]
    pub fn seq(self) -> u64 {
        match self {
            Self::Message { seq } | Self::Compaction { seq, .. } => seq,
        }
    }
}

impl Projection {
    /// When each message came, as [`Snapshot::with_times`] takes it: the time of the event that it
    /// comes from.
    ///
    /// ```
    /// use threadfold::{Message, log::{Event, EventLog}, message::Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// log.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?;
    /// assert_eq!(log.projection()?.times(&log), [Timestamp(7)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`Snapshot::with_times`]: crate::strategy::Snapshot::with_times
    #[must_use]
    pub fn times(&self, log: &EventLog) -> Vec<Timestamp> {
        let time = |source: &Source| log.event(source.seq()).map(|event| event.at);
        self.sources.iter().map(|source| time(source).unwrap_or_default()).collect()
    }
}

impl EventLog {
    /// Returns the thread that the log comes to, with the sources of its messages and the events
    /// that were left out.
    ///
    /// ```
    /// use threadfold::{Message, log::{Event, EventLog, Source}, message::Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// log.append(Timestamp(7), Event::MessageAppended(Message::user("hi")))?;
    /// let projection = log.projection()?;
    /// assert_eq!(projection.messages, [Message::user("hi")]);
    /// assert_eq!(projection.sources, [Source::Message { seq: 0 }]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LogError::Unreadable`] for a message that cannot be read.
    pub fn projection(&self) -> Result<Projection, LogError> {
        let messages = self.replay()?;
        let sources = self.state().thread.iter().filter_map(|entry| self.source(entry.source));
        Ok(Projection {
            messages,
            sources: sources.collect(),
            skipped: self.state().skipped.clone(),
        })
    }

    /// Returns the thread that the log comes to. No text is copied.
    ///
    /// ```
    /// use threadfold::{EventLog, Message, log::{Event, Truncated}, message::Timestamp};
    ///
    /// let mut log = EventLog::new("main".parse()?);
    /// log.append(Timestamp(1), Event::MessageAppended(Message::user("hi")))?;
    /// log.append(Timestamp(2), Event::MessageAppended(Message::assistant("hello")))?;
    /// log.append(Timestamp(3), Event::Truncated(Truncated { from: 2, len: 1 }))?;
    /// assert_eq!(log.replay()?, [Message::user("hi")]);
    /// assert_eq!(log.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`projection`](Self::projection).
    pub fn replay(&self) -> Result<Vec<Message>, LogError> {
        match self.state().unreadable {
            Some(seq) => Err(LogError::Unreadable { seq }),
            None => Ok(self.state().thread.iter().map(|entry| entry.message.clone()).collect()),
        }
    }

    /// A message by its number among all that were ever appended.
    pub(crate) fn arrival(&self, number: usize) -> Option<&Message> {
        let event = self.event(*self.state().arrivals.get(number)?)?;
        if let Event::MessageAppended(message) = &event.event { Some(message) } else { None }
    }

    fn source(&self, maker: Maker) -> Option<Source> {
        Some(match maker {
            Maker::Arrival(number) => Source::Message { seq: *self.state().arrivals.get(number)? },
            Maker::Compaction { standing, .. } => {
                let standing = self.state().standing.get(standing)?;
                Source::Compaction { seq: standing.seq, id: standing.id }
            }
        })
    }
}
