//! A file while a script works on it.

use std::ops::Range;

use serde::Serialize;

use super::{
    command::Position,
    limits::Limits,
    original::{LineEnding, Original, count_lines},
    run_error::RunError,
    shifts::{Edit, Shifts},
};

/// A file's text under edit, and what is known about the text that it was loaded with.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    original: Original<'a>,
    text: String,
    shifts: Shifts,
    pub(crate) line_ending: LineEnding,
    pub(crate) is_new: bool,
    pub(crate) counts: EditCounts,
}

/// How often and how much a script has changed a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EditCounts {
    /// Ranges that were replaced.
    pub replacements: usize,
    /// Places where something was inserted.
    pub insertions: usize,
    /// Ranges that were deleted or cut.
    pub deletions: usize,
    /// Lines that were put in. A line that changes counts here and in `lines_removed`.
    pub lines_added: usize,
    /// Lines that were taken out.
    pub lines_removed: usize,
}

impl EditCounts {
    /// Whether the file was edited at all.
    #[must_use]
    pub fn is_edited(&self) -> bool {
        self.replacements + self.insertions + self.deletions > 0
    }
}

/// A selected range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selected {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The range was found as whole lines, and what is inserted after it begins on a new line.
    pub(crate) is_lines: bool,
}

/// What a run has used up.
#[derive(Debug)]
pub(crate) struct Meter<'l> {
    pub(crate) limits: &'l Limits,
    pub(crate) searched_bytes: u64,
    pub(crate) open_bytes: usize,
}

impl<'a> Document<'a> {
    pub(crate) fn load(text: &'a str) -> Self {
        Self {
            original: Original::new(text),
            text: text.to_owned(),
            shifts: Shifts::new(text.len()),
            line_ending: LineEnding::of(text),
            is_new: false,
            counts: EditCounts::default(),
        }
    }

    pub(crate) fn new() -> Self {
        Self { is_new: true, ..Self::load("") }
    }

    /// The text as it is now.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// The text of a range, which stands on character boundaries.
    pub(crate) fn slice(&self, range: Range<usize>) -> &str {
        slice(&self.text, range)
    }

    /// Selects the whole text.
    pub(crate) fn whole(&self) -> Vec<Selected> {
        vec![Selected { start: 0, end: self.text.len(), is_lines: false }]
    }

    /// Returns the range of a position in the current text.
    pub(crate) fn locate(
        &self,
        position: Position,
        meter: &mut Meter<'_>,
    ) -> Result<Range<usize>, RunError> {
        let range = match position {
            Position::Start => return Ok(0..0),
            Position::End => return Ok(self.text.len()..self.text.len()),
            Position::Line(line) => self.loaded_line(line)?,
            Position::Column { line, column } => {
                let range = self.loaded_line(line)?;
                let found = self.original.column(&range, column);
                let at = found.map_err(|columns| RunError::ColumnOutOfRange {
                    line,
                    column,
                    columns,
                })?;
                meter.spend(at - range.start)?;
                at..at
            }
        };
        let now = self.shifts.now(range.start).zip(self.shifts.now(range.end));
        now.map(|(start, end)| start..end)
            .ok_or_else(|| RunError::PositionReplaced { position: position.to_string() })
    }

    fn loaded_line(&self, line: usize) -> Result<Range<usize>, RunError> {
        let lines = self.original.lines();
        self.original.line(line).ok_or(RunError::LineOutOfRange { line, lines })
    }

    /// Carries out edits, which are in order and do not overlap, or none of them.
    ///
    /// The text from the first of them on is copied.
    pub(crate) fn edit(
        &mut self,
        edits: &[Edit<'_>],
        meter: &mut Meter<'_>,
    ) -> Result<(), RunError> {
        let Some(first) = edits.first().map(|edit| edit.start) else { return Ok(()) };
        let removed: usize = edits.iter().map(|edit| edit.end - edit.start).sum();
        let added = edits.iter().fold(0_usize, |sum, edit| sum.saturating_add(edit.text.len()));
        let found = meter.open_bytes.saturating_sub(removed).saturating_add(added);
        let limit = meter.limits.output_bytes;
        if added > removed && found > limit {
            return Err(RunError::OutputTooLarge { found, limit });
        }
        meter.spend(self.text.len() - first)?;
        meter.open_bytes = found;
        for edit in edits {
            self.counts.lines_added += count_lines(edit.text);
            self.counts.lines_removed += count_lines(self.slice(edit.start..edit.end));
        }
        let tail = self.text.split_off(first);
        let mut kept = first;
        for edit in edits {
            self.text.push_str(slice(&tail, kept - first..edit.start - first));
            self.text.push_str(edit.text);
            kept = edit.end;
        }
        self.text.push_str(slice(&tail, kept - first..tail.len()));
        self.shifts.edit(edits);
        Ok(())
    }
}

impl Meter<'_> {
    /// Uses up bytes that a run may read and copy.
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<(), RunError> {
        let spent = self.searched_bytes.saturating_add(bytes as u64);
        let limit = self.limits.searched_bytes;
        if spent > limit {
            return Err(RunError::SearchTooLong { limit });
        }
        self.searched_bytes = spent;
        Ok(())
    }
}

fn slice(text: &str, range: Range<usize>) -> &str {
    let slice = text.get(range.clone());
    debug_assert!(slice.is_some(), "{range:?} is no range of {} bytes", text.len());
    slice.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_mean_the_loaded_lines_wherever_they_are_now() {
        let limits = Limits::default();
        let mut meter = Meter { limits: &limits, searched_bytes: 0, open_bytes: 8 };
        let mut document = Document::load("ab\ncd\nef");
        let edited = document.edit(&[Edit { start: 0, end: 2, text: "x\ny\n" }], &mut meter);
        assert_eq!(edited, Ok(()));
        assert_eq!(document.locate(Position::Line(2), &mut meter), Ok(5..7));
        assert_eq!(document.locate(Position::Column { line: 3, column: 1 }, &mut meter), Ok(9..9));
        assert_eq!(document.locate(Position::Line(1), &mut meter), Ok(0..4));
        let position = "1:1".to_owned();
        let gone = RunError::PositionReplaced { position };
        let place = Position::Column { line: 1, column: 1 };
        assert_eq!(document.locate(place, &mut meter), Err(gone));
    }

    #[test]
    fn an_edit_over_the_limit_changes_nothing() {
        let limits = Limits { output_bytes: 5, ..Limits::default() };
        let mut meter = Meter { limits: &limits, searched_bytes: 0, open_bytes: 4 };
        let mut document = Document::load("abcd");
        let edited = document.edit(&[Edit { start: 0, end: 1, text: "xyz" }], &mut meter);
        assert_eq!(edited, Err(RunError::OutputTooLarge { found: 6, limit: 5 }));
        assert_eq!((document.into_text().as_str(), meter.open_bytes), ("abcd", 4));
    }

    #[test]
    fn an_edit_may_reach_the_limit_and_need_not_shrink_what_is_over_it() {
        for (text, edit, expected) in [
            ("abcd", Edit { start: 0, end: 1, text: "xy" }, "xybcd"),
            ("abcdef", Edit { start: 0, end: 1, text: "x" }, "xbcdef"),
            ("abcdefgh", Edit { start: 0, end: 2, text: "x" }, "xcdefgh"),
        ] {
            let limits = Limits { output_bytes: 5, ..Limits::default() };
            let mut meter = Meter { limits: &limits, searched_bytes: 0, open_bytes: text.len() };
            let mut document = Document::load(text);
            assert_eq!(document.edit(&[edit], &mut meter), Ok(()), "{text}");
            assert_eq!(meter.open_bytes, expected.len());
            assert_eq!(document.into_text(), expected);
        }
    }

    #[test]
    fn what_an_edit_copies_and_a_column_counts_is_used_up() {
        let limits = Limits { searched_bytes: 7, ..Limits::default() };
        let mut meter = Meter { limits: &limits, searched_bytes: 0, open_bytes: 6 };
        let mut document = Document::load("abcdef");
        let insert = |start| [Edit { start, end: start, text: "x" }];
        assert_eq!(document.edit(&insert(6), &mut meter), Ok(()));
        assert_eq!(document.edit(&insert(3), &mut meter), Ok(()));
        assert_eq!((document.text(), meter.searched_bytes), ("abcxdefx", 4));
        let column = |column| Position::Column { line: 1, column };
        assert_eq!(document.locate(column(3), &mut meter), Ok(3..3));
        let over = RunError::SearchTooLong { limit: 7 };
        assert_eq!(document.locate(column(1), &mut meter), Err(over.clone()));
        assert_eq!(document.edit(&insert(7), &mut meter), Err(over));
        assert_eq!(document.text(), "abcxdefx");
    }
}
