//! Looking for a pattern in a text, and counting what that reads.

use std::ops::Range;

use regex_automata::meta::Cache;

use super::{
    command::Pattern,
    lines_pattern::{LinesPattern, PlainLines},
    regex::{Reach, Regex},
};

/// The matches of a pattern within a span, from left to right.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    text: &'a str,
    finder: Finder<'a>,
    /// Where the next match may begin, or `None` if there is no more.
    next: Option<usize>,
    until: usize,
    searched: u64,
}

/// A text that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// It is whole lines. The line end after them belongs to it, even where the span ends before.
    pub(crate) is_lines: bool,
}

/// What a search looks for, with what it needs for that.
#[derive(Debug)]
enum Finder<'a> {
    Regex(&'a Regex, Box<Cache>),
    Lines(&'a LinesPattern, PlainLines),
}

impl<'a> Search<'a> {
    /// Prepares a search, unless the pattern is a position. It finds nothing before [`Self::within`].
    pub(crate) fn new(text: &'a str, pattern: &'a Pattern) -> Option<Self> {
        let (finder, searched) = match pattern {
            Pattern::Regex(regex) => (Finder::Regex(regex, Box::new(regex.cache())), 0),
            // The text is copied without its carriage returns.
            Pattern::Lines(lines) => {
                (Finder::Lines(lines, PlainLines::new(text)), text.len() as u64)
            }
            Pattern::Position(_) | Pattern::Range(..) => return None,
        };
        Some(Self { text, finder, next: None, until: 0, searched })
    }

    /// Looks within a span from here on.
    pub(crate) fn within(&mut self, span: Range<usize>) {
        (self.next, self.until) = (Some(span.start), span.end);
    }

    /// How many bytes may have been read or copied so far.
    pub(crate) fn searched(&self) -> u64 {
        self.searched
    }

    fn find(&mut self, from: usize) -> Option<Match> {
        let (found, is_lines) = match &mut self.finder {
            Finder::Regex(regex, cache) => (regex.find(cache, self.text, from..self.until), false),
            Finder::Lines(pattern, lines) => (lines.find(pattern, from..self.until), true),
        };
        let found = found.map(|it| Match { start: it.start, end: it.end, is_lines });
        self.searched += self.cost(from, found);
        found
    }

    /// Returns how many bytes a look may have read.
    ///
    /// A short match can be known as one only after what follows it was read: `a` for `/a[^]*z|a/`
    /// only where no `z` follows. So what could have decided it counts, and not only its own length.
    fn cost(&self, from: usize, found: Option<Match>) -> u64 {
        let end = found.map_or(self.until, |found| {
            let decided = match &self.finder {
                // Whole lines are known by their last byte.
                Finder::Lines(..) => found.end,
                Finder::Regex(regex, _) => match regex.reach_beyond() {
                    Reach::Bytes(bytes) => found.end.saturating_add(bytes),
                    Reach::Line => line_end(self.text, found.end),
                    Reach::Text => self.until,
                },
            };
            decided.min(self.until).max(found.end)
        });
        end.saturating_sub(from) as u64
    }
}

impl Iterator for Search<'_> {
    type Item = Match;

    fn next(&mut self) -> Option<Match> {
        let found = self.next.filter(|from| *from <= self.until).and_then(|from| self.find(from));
        self.next = found.and_then(|found| {
            if found.end > found.start {
                return Some(found.end);
            }
            // The search goes on one character after an empty match.
            let character = self.text.get(found.end..)?.chars().next()?;
            Some(found.end + character.len_utf8())
        });
        found
    }
}

/// Returns where the line that holds a place ends, its line feed included.
fn line_end(text: &str, place: usize) -> usize {
    let feed = text.get(place..).and_then(|rest| rest.find('\n'));
    feed.map_or(text.len(), |feed| place + feed + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(source: &str, flags: &str) -> Pattern {
        let regex = Regex::new(source, flags, 1 << 20).expect("a pattern that compiles");
        Pattern::Regex(regex.into())
    }

    fn lines(text: &str) -> Pattern {
        Pattern::Lines(Box::new(LinesPattern::new(text)))
    }

    fn search<'a>(text: &'a str, pattern: &'a Pattern) -> Search<'a> {
        let mut search = Search::new(text, pattern).expect("a pattern to search for");
        search.within(0..text.len());
        search
    }

    #[test]
    fn what_may_have_been_read_after_a_match_counts() {
        let text = format!("{}\n{}", "a".repeat(100), "b".repeat(100));
        let searched = |pattern| {
            let pattern = regex(pattern, "");
            let mut search = search(&text, &pattern);
            assert_eq!(search.next().map(|found| found.end), Some(1));
            search.searched()
        };
        assert_eq!(searched("a[^]*z|a"), 201);
        assert_eq!(searched("a.*z|a"), 101);
        assert_eq!(searched("az?"), 7);
        assert_eq!(searched("az*"), 7);
    }

    #[test]
    fn whole_lines_are_looked_for_in_a_copy_which_is_read_twice() {
        let wanted = "a".repeat(10_000);
        let text = format!("x\r\n{wanted}\r\nb\n");
        let pattern = lines(&wanted);
        let mut search = search(&text, &pattern);
        assert_eq!(search.searched(), text.len() as u64);
        let found = Match { start: 3, end: text.len() - 2, is_lines: true };
        assert_eq!(search.next(), Some(found));
        assert_eq!(search.searched(), (text.len() + found.end) as u64);
    }

    #[test]
    fn a_text_without_a_match_is_read_once() {
        let text = "some words\n".repeat(10_000);
        for source in ["z", "z.*", "z[^]*", "z[a-y]{100}"] {
            let pattern = regex(source, "");
            let mut search = search(&text, &pattern);
            assert_eq!(search.next(), None);
            assert_eq!(search.searched(), text.len() as u64, "{source}");
        }
    }

    #[test]
    fn matches_within_a_span_follow_each_other_past_whole_characters() {
        let pattern = regex("x*", "");
        let mut search = Search::new("éxxé", &pattern).expect("a pattern to search for");
        search.within(0..4);
        let found: Vec<_> = search.map(|found| (found.start, found.end)).collect();
        assert_eq!(found, [(0, 0), (2, 4), (4, 4)]);
    }
}
