//! The log: everything that happened to a thread, in order, for ever.

use super::event::{Event, LoggedEvent};
use crate::message::{ThreadId, Timestamp};

/// Everything that happened to a thread. It only grows.
#[derive(Clone, Debug)]
pub struct EventLog {
    thread: ThreadId,
    events: Vec<LoggedEvent>,
}

/// Why an event cannot be appended. The log is untouched in every case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The event stands in another place of the log that it comes from.
    #[error("event {expected} is next in the log, not event {found}")]
    Seq {
        /// The place in the log that is next.
        expected: u64,
        /// The place that the event names.
        found: u64,
    },
}

impl EventLog {
    /// Returns the empty log of a thread.
    #[must_use]
    pub fn new(thread: ThreadId) -> Self {
        Self { thread, events: Vec::new() }
    }

    /// The thread.
    #[must_use]
    pub fn thread_id(&self) -> &ThreadId {
        &self.thread
    }

    /// How many events there are; the place of the next one.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.events.len() as u64
    }

    /// Whether nothing happened yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The events, in order.
    #[must_use]
    pub fn events(&self) -> &[LoggedEvent] {
        &self.events
    }

    /// The events, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, LoggedEvent> {
        self.events.iter()
    }

    /// The events from this place on; none if there are not as many.
    #[must_use]
    pub fn since(&self, seq: u64) -> &[LoggedEvent] {
        usize::try_from(seq).ok().and_then(|seq| self.events.get(seq..)).unwrap_or_default()
    }

    /// Appends what happened and returns it with its place.
    ///
    /// # Errors
    ///
    /// [`AppendError`].
    pub fn append(&mut self, at: Timestamp, event: Event) -> Result<&LoggedEvent, AppendError> {
        self.append_logged(LoggedEvent { seq: self.len(), at, event })
    }

    /// Appends an event that another writer has logged already.
    ///
    /// # Errors
    ///
    /// [`AppendError::Seq`] if it is not the next one.
    pub fn append_logged(&mut self, event: LoggedEvent) -> Result<&LoggedEvent, AppendError> {
        let (expected, found) = (self.len(), event.seq);
        if found != expected {
            return Err(AppendError::Seq { expected, found });
        }
        self.events.push(event);
        self.events.last().ok_or(AppendError::Seq { expected, found })
    }
}

impl PartialEq for EventLog {
    /// Whether the same happened to the same thread.
    fn eq(&self, other: &Self) -> bool {
        self.thread == other.thread && self.events == other.events
    }
}

impl Eq for EventLog {}

impl<'a> IntoIterator for &'a EventLog {
    type Item = &'a LoggedEvent;
    type IntoIter = std::slice::Iter<'a, LoggedEvent>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
