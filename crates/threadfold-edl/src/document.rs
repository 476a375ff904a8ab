//! A file while a script edits it.

use std::ops::Range;

use super::{
    command::{Position, Side},
    error::EditError,
    limits::Meter,
    position_map::{Edit, PositionMap},
    report::FileChange,
    text::{count_lines, line_ending, slice},
};

/// The text of a file while a script edits it, and the lines of the text that was loaded.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    loaded: &'a str,
    /// Where the lines of `loaded` begin.
    line_starts: Vec<usize>,
    /// Where the positions of `loaded` are in `text`.
    positions: PositionMap,
    pub(crate) text: String,
    pub(crate) line_ending: &'static str,
    /// The changes so far.
    pub(crate) change: FileChange,
}

/// A selected range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selected {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether the range was found as whole lines, so that text inserted after it begins on a new
    /// line.
    pub(crate) is_lines: bool,
}

impl<'a> Document<'a> {
    /// Opens a file. `None` makes a new one.
    pub(crate) fn open(path: &str, loaded: Option<&'a str>) -> Self {
        let (created, loaded) = (loaded.is_none(), loaded.unwrap_or(""));
        let after_feeds = loaded.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            loaded,
            line_starts: std::iter::once(0).chain(after_feeds).collect(),
            positions: PositionMap::new(loaded.len()),
            text: loaded.to_owned(),
            line_ending: line_ending(loaded),
            change: FileChange { path: path.to_owned(), created, ..FileChange::default() },
        }
    }

    /// Selects the whole text.
    pub(crate) fn whole(&self) -> Vec<Selected> {
        vec![Selected { start: 0, end: self.text.len(), is_lines: false }]
    }

    /// Returns the text of a selected range.
    pub(crate) fn selected(&self, range: &Selected) -> &str {
        slice(&self.text, range.start..range.end)
    }

    /// Returns the range of a position in the current text.
    pub(crate) fn locate(
        &self,
        position: Position,
        meter: &mut Meter<'_>,
    ) -> Result<Range<usize>, EditError> {
        let range = match position {
            Position::Start => return Ok(0..0),
            Position::End => return Ok(self.text.len()..self.text.len()),
            Position::Line(line) => self.loaded_line(line)?,
            Position::Column { line, column } => {
                let range = self.loaded_line(line)?;
                let text = slice(self.loaded, range.clone());
                let mut borders = text.char_indices().map(|(at, _)| at).chain([text.len()]);
                let within = borders.nth(column).ok_or_else(|| {
                    let columns = text.chars().count();
                    invalid_position(format!(
                        "there is no column {column} in line {line}, which has columns 0 to {columns}"
                    ))
                })?;
                meter.spend(within)?;
                range.start + within..range.start + within
            }
        };
        let now = self.positions.now(range.start).zip(self.positions.now(range.end));
        now.map(|(start, end)| start..end).ok_or_else(|| {
            invalid_position(format!(
                "position {position} lies inside text that this script has replaced"
            ))
        })
    }

    /// Returns the range of a loaded line, counted from 1, without its line ending. The text after
    /// the last line feed is a line too.
    fn loaded_line(&self, line: usize) -> Result<Range<usize>, EditError> {
        let lines = self.line_starts.len();
        let start = line.checked_sub(1).and_then(|index| self.line_starts.get(index)).copied();
        let start = start.ok_or_else(|| {
            invalid_position(format!(
                "there is no line {line}: the file was loaded with lines 1 to {lines}"
            ))
        })?;
        let Some(next) = self.line_starts.get(line) else { return Ok(start..self.loaded.len()) };
        let text = slice(self.loaded, start..next - 1);
        Ok(start..start + text.strip_suffix('\r').unwrap_or(text).len())
    }

    /// Inserts a text at every selected range, and returns the new selection: after a replacement
    /// the new texts, otherwise the same text as before.
    pub(crate) fn put(
        &mut self,
        side: Side,
        text: &str,
        selected: &[Selected],
        meter: &mut Meter<'_>,
    ) -> Result<Vec<Selected>, EditError> {
        let on_new_line = format!("{}{text}", self.line_ending);
        let edits = selected.iter().map(|range| match side {
            Side::Instead => Edit { start: range.start, end: range.end, text },
            Side::Before => Edit { start: range.start, end: range.start, text },
            Side::After => {
                // The last line of a file may lack its line feed.
                let is_open = range.is_lines && !self.selected(range).ends_with('\n');
                let text = if is_open { &on_new_line } else { text };
                Edit { start: range.end, end: range.end, text }
            }
        });
        let edits: Vec<Edit<'_>> = edits.collect();
        self.edit(&edits, meter)?;
        match side {
            Side::Instead => self.change.replacements += edits.len(),
            Side::Before | Side::After => self.change.insertions += edits.len(),
        }
        let (mut added, mut removed) = (0, 0);
        let moved = selected.iter().zip(&edits).map(|(range, edit)| {
            let before = range.start + added - removed;
            added += edit.text.len();
            removed += edit.end - edit.start;
            let length = range.end - range.start;
            let (start, length, is_lines) = match side {
                Side::Instead => (before, edit.text.len(), false),
                Side::Before => (before + edit.text.len(), length, range.is_lines),
                Side::After => (before, length, range.is_lines),
            };
            Selected { start, end: start + length, is_lines }
        });
        Ok(moved.collect())
    }

    /// Removes every selected range, and selects the position of the first.
    pub(crate) fn delete(
        &mut self,
        selected: &[Selected],
        meter: &mut Meter<'_>,
    ) -> Result<Vec<Selected>, EditError> {
        let edits = selected.iter().map(|it| Edit { start: it.start, end: it.end, text: "" });
        self.edit(&edits.collect::<Vec<_>>(), meter)?;
        self.change.deletions += selected.len();
        let first = selected.iter().take(1);
        Ok(first.map(|it| Selected { start: it.start, end: it.start, is_lines: false }).collect())
    }

    /// Carries out edits in order and without overlaps. On an error nothing is changed.
    ///
    /// The text from the first edit on is copied once, however many edits there are.
    fn edit(&mut self, edits: &[Edit<'_>], meter: &mut Meter<'_>) -> Result<(), EditError> {
        let Some(first) = edits.first().map(|edit| edit.start) else { return Ok(()) };
        let removed: usize = edits.iter().map(|edit| edit.end - edit.start).sum();
        let added = edits.iter().fold(0_usize, |sum, edit| sum.saturating_add(edit.text.len()));
        let found = meter.open_bytes.saturating_sub(removed).saturating_add(added);
        let limit = meter.limits.output_bytes;
        if added > removed && found > limit {
            return Err(EditError::OutputTooLarge { found, limit });
        }
        meter.spend(self.text.len() - first)?;
        meter.open_bytes = found;
        let tail = self.text.split_off(first);
        let mut kept = 0;
        for edit in edits {
            let (start, end) = (edit.start - first, edit.end - first);
            self.text.push_str(slice(&tail, kept..start));
            self.text.push_str(edit.text);
            self.change.lines_added += count_lines(edit.text);
            self.change.lines_removed += count_lines(slice(&tail, start..end));
            kept = end;
        }
        self.text.push_str(slice(&tail, kept..tail.len()));
        self.positions.edit(edits);
        Ok(())
    }
}

pub(crate) fn invalid_position(message: String) -> EditError {
    EditError::InvalidPosition { message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn open(text: &str) -> Document<'_> {
        Document::open("a", Some(text))
    }

    fn at(start: usize, end: usize) -> Selected {
        Selected { start, end, is_lines: true }
    }

    #[test]
    fn insertions_leave_the_same_text_selected() {
        let limits = Limits::default();
        let mut meter = Meter { limits: &limits, searched_bytes: 0, open_bytes: 5 };
        let mut document = open("x\ny\nx");
        let selected = document.put(Side::After, "z\n", &[at(0, 2), at(4, 5)], &mut meter);
        assert_eq!(selected, Ok(vec![at(0, 2), at(6, 7)]));
        let selected = document.put(Side::Before, ">", &[at(0, 2), at(6, 7)], &mut meter);
        assert_eq!(selected, Ok(vec![at(1, 3), at(8, 9)]));
        assert_eq!(document.text, ">x\nz\ny\n>x\nz\n");
    }

    #[test]
    fn a_line_is_without_its_ending() {
        let document = open("ab\r\nc\n\r");
        let lines: Vec<_> = (0..=4).map(|number| document.loaded_line(number).ok()).collect();
        assert_eq!(lines, [None, Some(0..2), Some(4..5), Some(6..7), None]);
    }

    #[test]
    fn columns_count_characters_up_to_the_end_of_the_line() {
        let limits = Limits::default();
        for (text, end, columns) in [("né!\nx", 4, 3), ("nee!\nx", 4, 4)] {
            let locate = |column| {
                let position = Position::Column { line: 1, column };
                open(text).locate(position, &mut Meter::new(&limits))
            };
            assert_eq!(locate(columns), Ok(end..end));
            let column = columns + 1;
            let message =
                format!("there is no column {column} in line 1, which has columns 0 to {columns}");
            assert_eq!(locate(column), Err(invalid_position(message)));
        }
    }

    #[test]
    fn line_numbers_refer_to_the_loaded_file() {
        let limits = Limits::default();
        let mut meter = Meter { limits: &limits, searched_bytes: 0, open_bytes: 8 };
        let mut document = open("ab\ncd\nef");
        let edited = document.edit(&[Edit { start: 0, end: 2, text: "x\ny\n" }], &mut meter);
        assert_eq!(edited, Ok(()));
        assert_eq!(document.locate(Position::Line(2), &mut meter), Ok(5..7));
        assert_eq!(document.locate(Position::Column { line: 3, column: 1 }, &mut meter), Ok(9..9));
        assert_eq!(document.locate(Position::Line(1), &mut meter), Ok(0..4));
        let message = "position 1:1 lies inside text that this script has replaced".to_owned();
        let position = Position::Column { line: 1, column: 1 };
        assert_eq!(document.locate(position, &mut meter), Err(invalid_position(message)));
    }

    #[test]
    fn an_edit_over_the_limit_changes_nothing() {
        let limits = Limits { output_bytes: 5, ..Limits::default() };
        let mut meter = Meter { limits: &limits, searched_bytes: 0, open_bytes: 4 };
        let mut document = open("abcd");
        let edited = document.edit(&[Edit { start: 0, end: 1, text: "xyz" }], &mut meter);
        assert_eq!(edited, Err(EditError::OutputTooLarge { found: 6, limit: 5 }));
        assert_eq!((document.text.as_str(), meter.open_bytes), ("abcd", 4));
    }

    #[test]
    fn an_edit_may_reach_the_limit_and_one_over_it_may_shrink() {
        for (text, edit, expected) in [
            ("abcd", Edit { start: 0, end: 1, text: "xy" }, "xybcd"),
            ("abcdef", Edit { start: 0, end: 1, text: "x" }, "xbcdef"),
            ("abcdefgh", Edit { start: 0, end: 2, text: "x" }, "xcdefgh"),
        ] {
            let limits = Limits { output_bytes: 5, ..Limits::default() };
            let mut meter = Meter { limits: &limits, searched_bytes: 0, open_bytes: text.len() };
            let mut document = open(text);
            assert_eq!(document.edit(&[edit], &mut meter), Ok(()), "{text}");
            assert_eq!(meter.open_bytes, expected.len());
            assert_eq!(document.text, expected);
        }
    }

    #[test]
    fn copied_and_counted_bytes_are_used_up() {
        let limits = Limits { searched_bytes: 7, ..Limits::default() };
        let mut meter = Meter { limits: &limits, searched_bytes: 0, open_bytes: 6 };
        let mut document = open("abcdef");
        let insert = |start| [Edit { start, end: start, text: "x" }];
        assert_eq!(document.edit(&insert(6), &mut meter), Ok(()));
        assert_eq!(document.edit(&insert(3), &mut meter), Ok(()));
        assert_eq!((document.text.as_str(), meter.searched_bytes), ("abcxdefx", 4));
        let column = |column| Position::Column { line: 1, column };
        assert_eq!(document.locate(column(3), &mut meter), Ok(3..3));
        let over = EditError::SearchTooLong { limit: 7 };
        assert_eq!(document.locate(column(1), &mut meter), Err(over.clone()));
        assert_eq!(document.edit(&insert(7), &mut meter), Err(over));
        assert_eq!(document.text, "abcxdefx");
    }
}
