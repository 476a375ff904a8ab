//! The notes of one thread, by their names.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::error::NoteError;
use crate::{
    message::{Redactor, Text, redact::redacted_text},
    prose::one_line,
};

/// A note of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The name, on one line.
    pub name: Text,
    /// The text, without control characters except line breaks and tabs.
    pub text: Text,
}

impl Note {
    /// Returns the note with this name and text; the text is empty if it is blank.
    ///
    /// # Errors
    ///
    /// [`NoteError`] if the name is blank, or name or text are too long.
    pub(super) fn new(name: &str, text: &str) -> Result<Self, NoteError> {
        // Lengths are compared first, so that a huge text is not read.
        if name.len() > Notes::MAX_NAME_BYTES {
            let (found, most) = (name.len(), Notes::MAX_NAME_BYTES);
            return Err(NoteError::NameLength { found, most });
        }
        if text.len() > Notes::MAX_NOTE_BYTES {
            let (found, most) = (text.len(), Notes::MAX_NOTE_BYTES);
            return Err(NoteError::Length { found, most });
        }
        let name = name.replace(char::is_control, " ");
        let name = one_line(&name);
        if name.is_empty() {
            return Err(NoteError::NoName);
        }
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let shown = |c: &char| !c.is_control() || ['\n', '\t'].contains(c);
        let text: String = text.chars().filter(shown).collect();
        let text = text.trim_end().trim_start_matches('\n');
        Ok(Self { name: name.as_ref().into(), text: text.into() })
    }

    fn bytes(&self) -> usize {
        self.name.len().saturating_add(self.text.len())
    }
}

impl fmt::Display for Note {
    /// Writes a line with the name, and the lines of the text, each with a mark of quotation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "- {}", self.name)?;
        self.text.lines().try_for_each(|line| match line {
            "" => f.write_str(">\n"),
            line => writeln!(f, "> {line}"),
        })
    }
}

/// The notes of a thread, in the order in which they were first written. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Note>", into = "Vec<Note>")]
pub struct Notes {
    notes: Vec<Note>,
}

impl Notes {
    /// The maximum number of notes.
    pub const MAX_NOTES: usize = 50;
    /// The maximum bytes of a name.
    pub const MAX_NAME_BYTES: usize = 80;
    /// The maximum bytes of the text of a note.
    pub const MAX_NOTE_BYTES: usize = 2_000;
    /// The maximum bytes of all notes together, names included: about 5,000 tokens.
    pub const MAX_BYTES: usize = 16_000;

    /// Writes a note. A note of the same name is replaced and keeps its place; a blank text removes
    /// it. Control characters are removed, except line breaks and tabs.
    ///
    /// ```
    /// use threadfold::notes::{NoteError, Notes};
    ///
    /// let mut notes = Notes::default();
    /// notes.write("port", "8443")?;
    /// notes.write("port", "")?;
    /// assert_eq!(notes.iter().count(), 0);
    /// let error = notes.write("all", &"x".repeat(10_000)).unwrap_err();
    /// assert_eq!(error, NoteError::Length { found: 10_000, most: 2_000 });
    /// # Ok::<(), NoteError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NoteError`] if the name is blank, if name, text or all notes together are too long, if
    /// there are too many notes, or if there is no note to remove. Nothing changes then.
    pub fn write(&mut self, name: &str, text: &str) -> Result<(), NoteError> {
        self.change(name, text).map(drop)
    }

    /// Returns the notes, in the order in which they were first written.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Note> {
        self.notes.iter()
    }

    /// Whether there is no note.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// The bytes of all notes together, names included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.notes.iter().map(Note::bytes).fold(0, usize::saturating_add)
    }

    /// Writes a note and returns what is needed to take the change back.
    pub(crate) fn change(&mut self, name: &str, text: &str) -> Result<Change, NoteError> {
        let note = Note::new(name, text)?;
        let at = self.notes.iter().position(|other| other.name == note.name);
        let old = at.and_then(|at| self.notes.get(at));
        let others = self.bytes().saturating_sub(old.map_or(0, Note::bytes));
        let found = others.saturating_add(note.bytes());
        match at {
            None if note.text.is_empty() => return Err(NoteError::Unknown),
            None if self.notes.len() >= Self::MAX_NOTES => {
                return Err(NoteError::TooMany { most: Self::MAX_NOTES });
            }
            Some(at) if note.text.is_empty() => {
                return Ok(Change::Removed { at, before: self.notes.remove(at) });
            }
            None | Some(_) if found > Self::MAX_BYTES => {
                return Err(NoteError::Full { found, most: Self::MAX_BYTES });
            }
            None | Some(_) => {}
        }
        if let Some(slot) = at.and_then(|at| self.notes.get_mut(at)) {
            let before = std::mem::replace(slot, note);
            return Ok(Change::Replaced { at: at.unwrap_or_default(), before });
        }
        self.notes.push(note);
        Ok(Change::Added)
    }

    /// Takes the latest change back.
    pub(crate) fn undo(&mut self, change: Change) {
        match change {
            Change::Added => drop(self.notes.pop()),
            Change::Replaced { at, before } => {
                if let Some(slot) = self.notes.get_mut(at) {
                    *slot = before;
                }
            }
            Change::Removed { at, before } => {
                self.notes.insert(at.min(self.notes.len()), before);
            }
        }
    }

    /// Returns the notes without what a redactor removes.
    pub(crate) fn redacted(&self, redactor: &dyn Redactor) -> Self {
        let notes = self.notes.iter().map(|note| {
            let [name, text] = [&note.name, &note.text].map(|text| redacted_text(text, redactor));
            Note { name, text }
        });
        Self { notes: notes.collect() }
    }
}

impl fmt::Display for Notes {
    /// Writes the notes as a list: a line with the name of each, and its text as a quotation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.notes.iter().try_for_each(|note| note.fmt(f))
    }
}

impl From<Vec<Note>> for Notes {
    /// Omits notes that could not be written.
    fn from(stored: Vec<Note>) -> Self {
        let mut notes = Self::default();
        for note in stored {
            let _ = notes.write(&note.name, &note.text);
        }
        notes
    }
}

impl From<Notes> for Vec<Note> {
    fn from(notes: Notes) -> Self {
        notes.notes
    }
}

/// A change of notes, with what takes it back.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A note was added at the end.
    Added,
    /// A note was replaced.
    Replaced { at: usize, before: Note },
    /// A note was removed.
    Removed { at: usize, before: Note },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_taken_back_in_reverse_order() {
        let mut notes = Notes::default();
        let steps =
            [("a", "1"), ("b", "2"), ("a", "3"), ("b", ""), ("c", "4"), ("a", ""), ("b", "5")];
        let mut states = Vec::new();
        for (name, text) in steps {
            states.push((notes.clone(), notes.change(name, text).unwrap()));
        }
        assert_eq!(notes.to_string(), "- c\n> 4\n- b\n> 5\n");
        for (before, change) in states.into_iter().rev() {
            notes.undo(change);
            assert_eq!(notes, before);
        }
    }

    #[test]
    fn notes_are_bounded_and_a_refused_one_changes_nothing() {
        let mut notes = Notes::default();
        let huge = "x".repeat(10 << 20);
        let refused = |found, most| Err(NoteError::Length { found, most });
        assert_eq!(notes.write("a", &huge), refused(10 << 20, Notes::MAX_NOTE_BYTES));
        let refused = |found, most| Err(NoteError::NameLength { found, most });
        assert_eq!(notes.write(&huge, "a"), refused(10 << 20, Notes::MAX_NAME_BYTES));
        assert_eq!(notes.write(" \n\u{7} ", "a"), Err(NoteError::NoName));
        assert_eq!(notes.write("a", " \u{0} "), Err(NoteError::Unknown));
        for number in 0..Notes::MAX_NOTES {
            notes.write(&format!("n{number}"), "x").unwrap();
        }
        assert_eq!(notes.write("more", "x"), Err(NoteError::TooMany { most: Notes::MAX_NOTES }));
        let long = "x".repeat(Notes::MAX_NOTE_BYTES);
        let full = (0..9).find_map(|number| notes.write(&format!("n{number}"), &long).err());
        assert!(matches!(full, Some(NoteError::Full { most: Notes::MAX_BYTES, .. })), "{full:?}");
        assert!(notes.bytes() <= Notes::MAX_BYTES);
        let stored = serde_json::to_string(&notes).unwrap();
        assert_eq!(serde_json::from_str::<Notes>(&stored).unwrap(), notes);
        let hostile = vec![Note { name: "a".into(), text: huge.into() }];
        assert!(Notes::from(hostile).is_empty());
    }
}
