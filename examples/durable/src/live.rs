//! The journal: the log with its live thread.
//!
//! Between two turns the log is stored in the engine, as the text of a log file under one key of
//! the object's state. During a turn the engine's journal replaces it: the appended events follow
//! from the journaled steps, so nothing must be stored before the turn ends.

use std::{io, string::FromUtf8Error};

use threadfold::{
    EventLog, Message, Thread,
    drive::Conversation,
    log::{Event, LogError},
    message::{ThreadId, Timestamp},
    store::Journal,
};

/// A log with its live thread, between two turns and during one.
#[derive(Debug)]
pub struct Live {
    journal: Journal,
}

impl Live {
    /// Returns the thread of a stored log; without a log, an empty thread.
    ///
    /// # Errors
    ///
    /// [`LogError`] if the text is not a log.
    pub fn read(id: ThreadId, stored: Option<&str>) -> Result<Self, LogError> {
        let log = match stored {
            Some(text) => EventLog::read(text.as_bytes())?.log,
            None => EventLog::new(id),
        };
        Ok(Self { journal: Journal::new(log) })
    }

    /// Returns the log as text.
    ///
    /// # Errors
    ///
    /// None for a log of this program.
    pub fn text(&self) -> io::Result<String> {
        let mut text = Vec::new();
        self.journal.log().write(&mut text)?;
        String::from_utf8(text).map_err(|error: FromUtf8Error| io::Error::other(error))
    }

    /// The thread.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        self.journal.thread()
    }

    /// The number of events so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.journal.log().len()
    }

    /// Appends a message to thread and log, repaired so that providers accept it.
    ///
    /// # Errors
    ///
    /// [`LogError`] for a message that no log accepts.
    pub fn append(&mut self, now: Timestamp, message: Message) -> Result<(), LogError> {
        let message = self.thread().repaired(message);
        if !message.content.is_empty() {
            self.journal.append(now, Event::MessageAppended(message))?;
        }
        Ok(())
    }

    /// The conversation, for a compaction.
    pub fn conversation(&mut self) -> Conversation<'_> {
        Conversation::new(&mut self.journal)
    }
}
