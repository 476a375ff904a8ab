//! Whole lines as a pattern: the literal that a heredoc stands for.
//!
//! A line equals another whatever line ending either has. So pattern and text are both copied
//! without carriage returns, each line between two line feeds, and one is looked for in the other:
//! a hit is never a part of a line, and the search stays linear whatever the lines are.

use std::{fmt, ops::Range};

use super::words::{QUOTE_CHARACTERS, abridge};

/// One or more whole lines to look for.
#[derive(Clone)]
pub(crate) struct LinesPattern {
    /// The lines, a line feed before each and after the last.
    fenced: String,
}

/// The lines of a text without the carriage returns that end them.
#[derive(Clone, Debug)]
pub(crate) struct PlainLines {
    /// The lines, a line feed before each and after the last.
    fenced: String,
    /// Where each line begins in the text, and where the line feed before it is in `fenced`. The
    /// last entry stands for the end.
    lines: Vec<(usize, usize)>,
}

impl LinesPattern {
    /// Makes a pattern of lines joined by line feeds.
    pub(crate) fn new(lines: &str) -> Self {
        Self { fenced: PlainLines::new(lines).fenced }
    }

    /// Whether there is nothing to look for.
    pub(crate) fn is_empty(&self) -> bool {
        self.fenced == "\n\n"
    }
}

impl PlainLines {
    pub(crate) fn new(text: &str) -> Self {
        let mut fenced = String::with_capacity(text.len() + 2);
        let (mut lines, mut start) = (Vec::new(), 0);
        for line in text.split('\n') {
            lines.push((start, fenced.len()));
            start += line.len() + 1;
            fenced.push('\n');
            fenced.push_str(line.strip_suffix('\r').unwrap_or(line));
        }
        lines.push((text.len(), fenced.len()));
        fenced.push('\n');
        Self { fenced, lines }
    }

    /// Returns the first place within a span of the text where the lines stand whole, with the line
    /// end after them, which may lie beyond the span.
    pub(crate) fn find(&self, pattern: &LinesPattern, span: Range<usize>) -> Option<Range<usize>> {
        let first = self.lines.partition_point(|(start, _)| *start < span.start);
        let (_, fence) = self.lines.get(first)?;
        let found = fence + self.fenced.get(*fence..)?.find(&pattern.fenced)?;
        // The line feed after the found lines stands before the next line, or at the end.
        let next = found + pattern.fenced.len() - 1;
        let line_at = |fence: usize| self.lines.binary_search_by_key(&fence, |(_, it)| *it).ok();
        let (first, next) = (line_at(found)?, line_at(next)?);
        let (start, _) = self.lines.get(first)?;
        let (end, next_fence) = self.lines.get(next)?;
        let (last_start, last_fence) = self.lines.get(next.checked_sub(1)?)?;
        let content_end = last_start + (next_fence - last_fence - 1);
        (content_end <= span.end).then_some(*start..*end)
    }
}

impl fmt::Display for LinesPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.fenced.strip_prefix('\n').and_then(|it| it.strip_suffix('\n'));
        write!(formatter, "<<`{}`", abridge(text.unwrap_or(""), QUOTE_CHARACTERS))
    }
}

impl fmt::Debug for LinesPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
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
    fn a_match_may_overlap_a_place_that_is_none() {
        assert_eq!(find("a\na", "ba\na\na\n", 0), Some(3..7));
    }

    #[test]
    fn the_empty_line_after_the_last_line_end_is_a_line() {
        assert_eq!(find("a\n", "b\na\n", 0), Some(2..4));
        assert_eq!(find("a\n", "b\na", 0), None);
    }

    #[test]
    fn carriage_returns_are_no_part_of_the_lines() {
        let lines = LinesPattern::new("a\r\nb\r");
        assert_eq!((lines.fenced.as_str(), format!("{lines:?}").as_str()), ("\na\nb\n", "<<`a⏎b`"));
    }

    #[test]
    fn carriage_returns_are_passed_over_and_belong_to_what_is_found() {
        let text = "a\r\n\r\nb\r\na\r\n\r\nb\r";
        assert_eq!(
            [0, 8, 12].map(|from| find("\nb", text, from)),
            [Some(3..8), Some(11..15), None]
        );
        // A place between the two parts of a line end is no start of a line.
        assert_eq!(find("", "a\r\n\r\nb", 4), None);
    }

    #[test]
    fn a_match_ends_within_the_span_but_for_its_line_end() {
        let find = |text: &str, span| PlainLines::new(text).find(&LinesPattern::new("b"), span);
        assert_eq!(find("xa\nb\n", 0..4), Some(3..5));
        assert_eq!(find("xa\nb\r\n", 0..4), Some(3..6));
        assert_eq!(find("xa\nb\n", 0..3), None);
        assert_eq!(find("a\nb", 0..3), Some(2..3));
    }
}
