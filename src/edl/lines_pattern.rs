//! Whole lines as a pattern: the literal that a heredoc stands for.
//!
//! A line equals another whatever line ending either has, so the pattern keeps its lines without
//! carriage returns and is searched for in text that has none.

use std::{fmt, ops::Range};

use regex_automata::{MatchKind, Span, util::prefilter::Prefilter};

use super::{
    line_filter::LineHash,
    words::{QUOTE_CHARACTERS, abridge},
};

/// One or more whole lines to look for.
#[derive(Clone)]
pub(crate) struct LinesPattern {
    /// The lines between two line feeds, so that a hit is never a part of a line.
    fenced: String,
    finder: Option<Prefilter>,
    first_line: LineHash,
    /// As many carriage returns may stand within a match.
    line_ends: usize,
}

impl LinesPattern {
    /// Makes a pattern of lines joined by line feeds.
    pub(crate) fn new(lines: &str) -> Self {
        let fenced = format!("\n{}\n", without_carriage_returns(lines));
        let finder = Prefilter::new(MatchKind::LeftmostFirst, &[fenced.as_bytes()]);
        let first_line = fenced.split('\n').nth(1).unwrap_or_default();
        let first_line = LineHash::of(first_line);
        let line_ends = fenced.matches('\n').count();
        Self { fenced, finder, first_line, line_ends }
    }

    /// The hash of the first line.
    pub(crate) fn first_line(&self) -> LineHash {
        self.first_line
    }

    /// The lines, joined by line feeds, without the last one's.
    pub(crate) fn text(&self) -> &str {
        self.fenced.get(1..self.fenced.len() - 1).unwrap_or_default()
    }

    /// The bytes that decide a match: the lines and a line end on either side.
    pub(crate) fn reach(&self) -> usize {
        self.fenced.len() + self.line_ends
    }

    /// Returns the first place at or after `from` where the lines stand whole, without the line
    /// feed after them.
    ///
    /// `text` may be a part of a document; then the ends of the text are ends of a line only if
    /// they are those of the document.
    pub(crate) fn find(&self, text: &str, from: usize, ends: Ends) -> Option<Range<usize>> {
        let lines = self.text();
        let match_at = |start: usize| start..start + lines.len();
        if ends.start && from == 0 {
            let rest = text.strip_prefix(lines);
            if rest.is_some_and(|rest| rest.starts_with('\n') || (rest.is_empty() && ends.end)) {
                return Some(match_at(0));
            }
        }
        if let Some(fence) = self.find_fenced(text, from.saturating_sub(1)) {
            return Some(match_at(fence + 1));
        }
        let open_fence = self.fenced.get(..self.fenced.len() - 1)?;
        let start = text.len().checked_sub(lines.len()).filter(|start| *start >= from)?;
        (ends.end && text.ends_with(open_fence)).then(|| match_at(start))
    }

    fn find_fenced(&self, text: &str, from: usize) -> Option<usize> {
        match &self.finder {
            Some(finder) => {
                let span = Span { start: from, end: text.len() };
                finder.find(text.as_bytes(), span).map(|found| found.start)
            }
            None => text.get(from..)?.find(&self.fenced).map(|found| from + found),
        }
    }
}

/// Which ends of a text are those of its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) start: bool,
    pub(crate) end: bool,
}

impl fmt::Display for LinesPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "<<`{}`", abridge(self.text(), QUOTE_CHARACTERS))
    }
}

impl fmt::Debug for LinesPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Removes the carriage return at the end of every line.
pub(crate) fn without_carriage_returns(text: &str) -> String {
    let plain = text.replace("\r\n", "\n");
    match plain.strip_suffix('\r') {
        Some(rest) => rest.to_owned(),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Ends = Ends { start: true, end: true };

    fn find(lines: &str, text: &str, from: usize) -> Option<Range<usize>> {
        LinesPattern::new(lines).find(text, from, WHOLE)
    }

    #[test]
    fn only_whole_lines_match() {
        assert_eq!(find("a", "aa\nba\na\n", 0), Some(6..7));
        assert_eq!(find("a", "a", 0), Some(0..1));
        assert_eq!(find("a", "b\na", 0), Some(2..3));
        assert_eq!(find("a", "a\na", 1), Some(2..3));
        assert_eq!(find("a", "ab", 0), None);
    }

    #[test]
    fn a_match_may_overlap_a_place_that_is_none() {
        assert_eq!(find("a\na", "ba\na\na\n", 0), Some(3..6));
    }

    #[test]
    fn the_end_of_a_part_is_no_end_of_a_line() {
        let lines = LinesPattern::new("a");
        assert_eq!(lines.find("x\na", 0, Ends { start: true, end: false }), None);
        assert_eq!(lines.find("a\nx", 0, Ends { start: false, end: true }), None);
    }

    #[test]
    fn carriage_returns_are_no_part_of_the_lines() {
        let lines = LinesPattern::new("a\r\nb\r");
        assert_eq!((lines.text(), format!("{lines:?}").as_str()), ("a\nb", "<<`a⏎b`"));
    }

    #[test]
    fn as_many_bytes_decide_a_match_as_lines_and_line_ends_have() {
        assert_eq!(LinesPattern::new("ab\nc").reach(), "\r\nab\r\nc\r\n".len());
    }

    #[test]
    fn lines_are_found_without_a_prefilter() {
        let lines = LinesPattern { finder: None, ..LinesPattern::new("a") };
        let found = [0, 1, 3, 7, 8].map(|from| lines.find("x\na\nb\na\nx", from, WHOLE));
        assert_eq!(found, [Some(2..3), Some(2..3), Some(6..7), None, None]);
    }
}
