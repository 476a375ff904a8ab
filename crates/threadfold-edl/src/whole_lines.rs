//! Whole lines as a pattern: the meaning of a heredoc in a selection.
//!
//! Line endings are ignored when lines are compared. So the pattern and the text are both copied
//! with a line feed before each line and after the last, and without carriage returns at the ends
//! of lines. A substring search in the copy then finds whole lines only, in linear time.

use std::{fmt, ops::Range};

use super::text::shorten;

/// One or more whole lines to look for.
#[derive(Clone, Debug)]
pub(crate) struct LinesPattern {
    plain: String,
}

/// A copy of a text in which whole lines can be found by a substring search.
#[derive(Clone, Debug)]
pub(crate) struct PlainLines {
    /// The lines, with a line feed before each and after the last.
    plain: String,
    /// The start of each line in the text, and the offset in `plain` of the line feed before it.
    /// The last entry is the end of the text.
    lines: Vec<(usize, usize)>,
}

impl LinesPattern {
    /// Returns the pattern of lines that are joined by line feeds.
    pub(crate) fn new(lines: &str) -> Self {
        Self { plain: PlainLines::new(lines).plain }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.plain == "\n\n"
    }
}

impl PlainLines {
    pub(crate) fn new(text: &str) -> Self {
        let mut plain = String::with_capacity(text.len() + 2);
        let (mut lines, mut start) = (Vec::new(), 0);
        for line in text.split('\n') {
            lines.push((start, plain.len()));
            start += line.len() + 1;
            plain.push('\n');
            plain.push_str(line.strip_suffix('\r').unwrap_or(line));
        }
        lines.push((text.len(), plain.len()));
        plain.push('\n');
        Self { plain, lines }
    }

    /// Returns the first lines within a span of the text that equal the pattern.
    ///
    /// The result includes the line ending after the last line, even if it lies beyond the span.
    pub(crate) fn find(&self, pattern: &LinesPattern, span: Range<usize>) -> Option<Range<usize>> {
        let first = self.lines.partition_point(|(start, _)| *start < span.start);
        let (_, from) = self.lines.get(first)?;
        let found = from + self.plain.get(*from..)?.find(&pattern.plain)?;
        // The line feed that ends the match is the one before the next line, or the last of all.
        let next = found + pattern.plain.len() - 1;
        let [first, next] =
            [found, next].map(|feed| self.lines.binary_search_by_key(&feed, |(_, it)| *it).ok());
        let (first, next) = (first?, next?);
        let (start, _) = self.lines.get(first)?;
        let (end, next_feed) = self.lines.get(next)?;
        let (last_start, last_feed) = self.lines.get(next.checked_sub(1)?)?;
        let content_end = last_start + (next_feed - last_feed - 1);
        (content_end <= span.end).then_some(*start..*end)
    }
}

impl fmt::Display for LinesPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.plain.strip_prefix('\n').and_then(|it| it.strip_suffix('\n'));
        write!(formatter, "<<`{}`", shorten(text.unwrap_or(&self.plain)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(lines: &str, text: &str, from: usize) -> Option<Range<usize>> {
        PlainLines::new(text).find(&LinesPattern::new(lines), from..text.len())
    }

    #[test]
    fn only_whole_lines_match() {
        assert_eq!(find("a", "aa\nba\na\n", 0), Some(6..8));
        assert_eq!(find("a", "a", 0), Some(0..1));
        assert_eq!(find("a", "b\na", 0), Some(2..3));
        assert_eq!(find("a", "a\na", 1), Some(2..3));
        assert_eq!(find("a", "ab", 0), None);
    }

    #[test]
    fn a_match_may_overlap_a_rejected_text() {
        assert_eq!(find("a\na", "ba\na\na\n", 0), Some(3..7));
    }

    #[test]
    fn the_empty_line_after_the_last_line_end_is_a_line() {
        assert_eq!(find("a\n", "b\na\n", 0), Some(2..4));
        assert_eq!(find("a\n", "b\na", 0), None);
    }

    #[test]
    fn carriage_returns_of_the_pattern_are_ignored() {
        let lines = LinesPattern::new("a\r\nb\r");
        assert_eq!((lines.plain.as_str(), format!("{lines}").as_str()), ("\na\nb\n", "<<`a⏎b`"));
    }

    #[test]
    fn carriage_returns_of_the_text_are_ignored_but_selected() {
        let text = "a\r\n\r\nb\r\na\r\n\r\nb\r";
        assert_eq!(
            [0, 8, 12].map(|from| find("\nb", text, from)),
            [Some(3..8), Some(11..15), None]
        );
        // A position between carriage return and line feed does not start a line.
        assert_eq!(find("", "a\r\n\r\nb", 4), None);
    }

    #[test]
    fn only_the_line_ending_of_a_match_may_be_outside_the_span() {
        let find = |text: &str, span| PlainLines::new(text).find(&LinesPattern::new("b"), span);
        assert_eq!(find("xa\nb\n", 0..4), Some(3..5));
        assert_eq!(find("xa\nb\r\n", 0..4), Some(3..6));
        assert_eq!(find("xa\nb\n", 0..3), None);
        assert_eq!(find("a\nb", 0..3), Some(2..3));
    }
}
