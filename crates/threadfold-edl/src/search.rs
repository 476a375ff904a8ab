//! Searching a text for a pattern, and counting the bytes that the search reads.

use std::ops::Range;

use super::{
    document::Selected,
    error::EditError,
    limits::Meter,
    lookahead::Lookahead,
    regex::{Cache, Regex},
    whole_lines::{LinesPattern, PlainLines},
};

/// A search for one pattern in one text.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    text: &'a str,
    finder: Finder<'a>,
}

/// A pattern with the data for its search.
#[derive(Debug)]
enum Finder<'a> {
    Regex(&'a Regex, Box<Cache>),
    Lines(&'a LinesPattern, PlainLines),
}

impl<'a> Search<'a> {
    pub(crate) fn for_regex(text: &'a str, regex: &'a Regex) -> Self {
        Self { text, finder: Finder::Regex(regex, Box::new(regex.cache())) }
    }

    /// Prepares a search for whole lines, which copies the text.
    pub(crate) fn for_lines(
        text: &'a str,
        lines: &'a LinesPattern,
        meter: &mut Meter<'_>,
    ) -> Result<Self, EditError> {
        meter.spend(text.len())?;
        Ok(Self { text, finder: Finder::Lines(lines, PlainLines::new(text)) })
    }

    /// Returns the first match within a span. Only the line ending of whole lines may lie beyond
    /// it.
    pub(crate) fn find(
        &mut self,
        span: Range<usize>,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Selected>, EditError> {
        let (found, is_lines) = match &mut self.finder {
            Finder::Regex(regex, cache) => (regex.find(cache, self.text, span.clone()), false),
            Finder::Lines(pattern, lines) => (lines.find(pattern, span.clone()), true),
        };
        let read_to = found.as_ref().map_or(span.end, |found| self.read_to(found, span.end));
        meter.spend(read_to.saturating_sub(span.start))?;
        Ok(found.map(|Range { start, end }| Selected { start, end, is_lines }))
    }

    /// Returns the offset up to which a search may have read to decide a match.
    ///
    /// That can be far after the match: `/a[^]*z|a/` matches `a` only where no `z` follows.
    fn read_to(&self, found: &Range<usize>, limit: usize) -> usize {
        let read_to = match &self.finder {
            Finder::Lines(..) => found.end,
            Finder::Regex(regex, _) => match regex.lookahead() {
                Lookahead::Bytes(bytes) => found.end.saturating_add(bytes),
                Lookahead::RestOfLine => line_end(self.text, found.end),
                Lookahead::RestOfText => limit,
            },
        };
        read_to.min(limit).max(found.end)
    }

    /// Returns where the next match may begin: one character later if the last match was empty.
    pub(crate) fn after(&self, found: Selected) -> Option<usize> {
        if found.end > found.start {
            return Some(found.end);
        }
        let character = self.text.get(found.end..)?.chars().next()?;
        Some(found.end + character.len_utf8())
    }
}

/// Returns the end of the line that holds a position, with its line feed.
fn line_end(text: &str, position: usize) -> usize {
    let feed = text.get(position..).and_then(|rest| rest.find('\n'));
    feed.map_or(text.len(), |feed| position + feed + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn regex(source: &str) -> Regex {
        Regex::new(source, "", 1 << 20).expect("a pattern that compiles")
    }

    /// The end of the first match, and the bytes that the search for it counts.
    fn first(text: &str, source: &str) -> (Option<usize>, u64) {
        let (regex, limits) = (regex(source), Limits::default());
        let mut meter = Meter::new(&limits);
        let found = Search::for_regex(text, &regex).find(0..text.len(), &mut meter);
        (found.expect("within the limits").map(|found| found.end), meter.searched_bytes)
    }

    #[test]
    fn text_that_may_have_been_read_after_a_match_counts() {
        let text = format!("{}\n{}", "a".repeat(100), "b".repeat(100));
        assert_eq!(first(&text, "a[^]*z|a"), (Some(1), 201));
        assert_eq!(first(&text, "a.*z|a"), (Some(1), 101));
        assert_eq!(first(&text, "az?"), (Some(1), 7));
        assert_eq!(first(&text, "az*"), (Some(1), 7));
    }

    #[test]
    fn whole_lines_are_looked_for_in_a_copy_which_is_read_twice() {
        let wanted = "a".repeat(10_000);
        let text = format!("x\r\n{wanted}\r\nb\n");
        let (pattern, limits) = (LinesPattern::new(&wanted), Limits::default());
        let mut meter = Meter::new(&limits);
        let mut search = Search::for_lines(&text, &pattern, &mut meter).expect("a copy");
        assert_eq!(meter.searched_bytes, text.len() as u64);
        let found = Selected { start: 3, end: text.len() - 2, is_lines: true };
        assert_eq!(search.find(0..text.len(), &mut meter), Ok(Some(found)));
        assert_eq!(meter.searched_bytes, (text.len() + found.end) as u64);
    }

    #[test]
    fn a_text_without_a_match_is_read_once() {
        let text = "some words\n".repeat(10_000);
        for source in ["z", "z.*", "z[^]*", "z[a-y]{100}"] {
            assert_eq!(first(&text, source), (None, text.len() as u64), "{source}");
        }
    }
}
