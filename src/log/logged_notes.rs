//! The notes of a log, with what takes them back when messages are truncated.

use crate::notes::{Change, Notes};

/// The notes of a log, updated as the log grows.
#[derive(Clone, Debug, Default)]
pub(super) struct LoggedNotes {
    notes: Notes,
    /// The changes since the log's base, in order, each with the number of messages appended before
    /// it, the last of which called for it.
    changes: Vec<(usize, Change)>,
}

impl LoggedNotes {
    /// Returns the notes of a log that begins at a base.
    pub(super) fn begin(notes: Notes) -> Self {
        Self { notes, changes: Vec::new() }
    }

    pub(super) fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Writes a note that the message of this number made. A note that cannot be written is ignored,
    /// as it was when it was logged.
    pub(super) fn write(&mut self, messages: usize, name: &str, text: &str) {
        if let Ok(change) = self.notes.change(name, text) {
            self.changes.push((messages, change));
        }
    }

    /// Takes back the notes of the messages from this number on.
    pub(super) fn truncate(&mut self, first: usize) {
        while let Some((_, change)) = self.changes.pop_if(|(messages, _)| *messages > first) {
            self.notes.undo(change);
        }
    }
}
