//! The text of a file as it was loaded: its lines, and the line ending that it uses.

use std::ops::Range;

/// A loaded text and where its lines begin.
#[derive(Clone, Debug)]
pub(crate) struct Original<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
}

/// What ends a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEnding {
    LineFeed,
    CarriageReturnLineFeed,
}

impl<'a> Original<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let after_feeds = text.match_indices('\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(after_feeds).collect();
        Self { text, line_starts }
    }

    /// How many lines there are. What follows the last line feed is a line, if an empty one.
    pub(crate) fn lines(&self) -> usize {
        self.line_starts.len()
    }

    /// Returns the range of a line, counted from 1, without its line ending.
    pub(crate) fn line(&self, number: usize) -> Option<Range<usize>> {
        let start = *self.line_starts.get(number.checked_sub(1)?)?;
        let end = self.line_starts.get(number).map_or(self.text.len(), |next| next - 1);
        let is_ended = number < self.lines();
        let returns = is_ended && self.text.get(start..end)?.ends_with('\r');
        Some(start..end - usize::from(returns))
    }

    /// Returns the offset of a column, counted in characters from 0, within a line's range. The
    /// error is how many columns the line has.
    pub(crate) fn column(&self, line: &Range<usize>, column: usize) -> Result<usize, usize> {
        let text = self.text.get(line.clone());
        debug_assert!(text.is_some(), "{line:?} is no line of the text");
        let text = text.unwrap_or_default();
        let mut borders = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        borders.nth(column).map(|at| line.start + at).ok_or_else(|| text.chars().count())
    }
}

impl LineEnding {
    /// Returns the line ending of a text: CRLF if every line has it.
    pub(crate) fn of(text: &str) -> Self {
        let mut feeds = text.match_indices('\n').peekable();
        let has_lines = feeds.peek().is_some();
        let returns = |at: usize| text.get(..at).is_some_and(|before| before.ends_with('\r'));
        if has_lines && feeds.all(|(at, _)| returns(at)) {
            Self::CarriageReturnLineFeed
        } else {
            Self::LineFeed
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::LineFeed => "\n",
            Self::CarriageReturnLineFeed => "\r\n",
        }
    }
}

/// Counts the lines of a text. A last line counts with and without its line feed.
pub(crate) fn count_lines(text: &str) -> usize {
    let feeds = text.bytes().filter(|byte| *byte == b'\n').count();
    feeds + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_without_its_ending() {
        let original = Original::new("ab\r\nc\n\r");
        let lines: Vec<_> = (0..=4).map(|number| original.line(number)).collect();
        assert_eq!(lines, [None, Some(0..2), Some(4..5), Some(6..7), None]);
    }

    #[test]
    fn columns_count_characters_up_to_the_end_of_the_line() {
        for (text, end) in [("né!\nx", 4), ("nee!\nx", 4)] {
            let original = Original::new(text);
            let line = original.line(1).expect("a first line");
            let columns = text.lines().next().map_or(0, |line| line.chars().count());
            assert_eq!(original.column(&line, columns), Ok(end));
            assert_eq!(original.column(&line, columns + 1), Err(columns));
        }
    }

    #[test]
    fn a_text_ends_its_lines_with_crlf_if_all_do() {
        assert_eq!(LineEnding::of("a\r\nb\r\n").as_str(), "\r\n");
        for text in ["", "a", "a\r\nb\n", "\n"] {
            assert_eq!(LineEnding::of(text).as_str(), "\n", "{text:?}");
        }
    }

    #[test]
    fn a_last_line_counts_once() {
        assert_eq!(["", "a", "a\n", "a\nb", "\n"].map(count_lines), [0, 1, 1, 2, 1]);
    }
}
