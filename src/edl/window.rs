//! Looking for a pattern in a part of a document that lies in one piece.

use std::{borrow::Cow, ops::Range};

use regex_automata::meta::Cache;

use super::{
    command::Pattern,
    lines_pattern::{Ends, LinesPattern, without_carriage_returns},
    regex::{Reach, Regex},
    rope::Rope,
};

/// What a search looks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Finder<'p> {
    Regex(&'p Regex),
    Lines(&'p LinesPattern),
}

/// A text that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// It is whole lines. The line end after them belongs to it, even where the span ends before.
    pub(crate) is_lines: bool,
}

/// A part of the document in one piece.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) start: usize,
    pub(crate) ends_document: bool,
}

/// What a search keeps from one look to the next.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    cache: Option<Cache>,
    /// The last window that was looked at for whole lines, by start and length, without its
    /// carriage returns if it has any.
    stripped: Option<((usize, usize), Option<Stripped>)>,
}

impl<'a> Window<'a> {
    /// Returns the text from one place to another, with a character or more on either side.
    pub(crate) fn around(rope: &'a Rope<'a>, from: usize, to: usize) -> Self {
        let start = rope.boundary_before(from.saturating_sub(4));
        let end = rope.boundary_after(to.saturating_add(4));
        Self { text: rope.slice(start..end), start, ends_document: end == rope.len() }
    }

    /// Returns where the line that holds a place ends in this window.
    pub(crate) fn line_end(&self, place: usize) -> usize {
        let rest = place.checked_sub(self.start).and_then(|from| self.text.get(from..));
        let feed = rest.and_then(|rest| rest.find('\n'));
        feed.map_or(self.start + self.text.len(), |feed| place + feed + 1)
    }
}

impl<'p> Finder<'p> {
    /// Returns what to search for, unless the pattern is a position.
    pub(crate) fn of(pattern: &'p Pattern) -> Option<Self> {
        match pattern {
            Pattern::Regex(regex) => Some(Self::Regex(regex)),
            Pattern::Lines(lines) => Some(Self::Lines(lines)),
            Pattern::Position(_) | Pattern::Range(..) => None,
        }
    }

    pub(crate) fn reach(self) -> Reach {
        match self {
            Self::Regex(regex) => regex.reach(),
            Self::Lines(lines) => Reach::Bytes(lines.reach()),
        }
    }

    /// How much text beyond a match may be read before it is known as one.
    pub(crate) fn reach_beyond(self) -> Reach {
        match self {
            Self::Regex(regex) => regex.reach_beyond(),
            // A literal is known by its last byte.
            Self::Lines(_) => Reach::Bytes(0),
        }
    }

    /// Whether a match must begin where the search does.
    pub(crate) fn is_sticky(self) -> bool {
        matches!(self, Self::Regex(regex) if regex.is_sticky())
    }

    /// Returns the first match in a window that begins at or after `from` and ends by `until`.
    pub(crate) fn find(
        self,
        memory: &mut Memory,
        window: &Window<'_>,
        from: usize,
        until: usize,
    ) -> Option<Match> {
        let from = from.checked_sub(window.start)?;
        let until = until.checked_sub(window.start)?.min(window.text.len());
        if from > until {
            return None;
        }
        let (found, is_lines) = match self {
            Self::Regex(regex) => {
                let cache = memory.cache.get_or_insert_with(|| regex.cache());
                (regex.find(cache, &window.text, from..until)?, false)
            }
            Self::Lines(lines) => {
                let ends = Ends { start: window.start == 0, end: window.ends_document };
                let found = match memory.stripped(window) {
                    Some(stripped) => stripped.find(lines, from, until, ends)?,
                    None => {
                        let lines = lines.find(&window.text, from, ends)?;
                        let feed = usize::from(lines.end < window.text.len());
                        (lines.end <= until).then_some(lines.start..lines.end + feed)?
                    }
                };
                (found, true)
            }
        };
        Some(Match { start: window.start + found.start, end: window.start + found.end, is_lines })
    }
}

impl Memory {
    /// Returns a window without its carriage returns, or `None` if it has none.
    fn stripped(&mut self, window: &Window<'_>) -> Option<&Stripped> {
        let key = (window.start, window.text.len());
        if self.stripped.as_ref().is_none_or(|(known, _)| *known != key) {
            let has_returns = window.text.contains('\r');
            self.stripped = Some((key, has_returns.then(|| Stripped::new(window))));
        }
        self.stripped.as_ref().and_then(|(_, stripped)| stripped.as_ref())
    }
}

/// A text without the carriage returns that end its lines.
#[derive(Debug)]
struct Stripped {
    text: String,
    /// Where a carriage return is missing, in order, as offsets of `text`.
    missing: Vec<usize>,
}

impl Stripped {
    fn new(window: &Window<'_>) -> Self {
        let mut missing: Vec<usize> = window
            .text
            .match_indices("\r\n")
            .enumerate()
            .map(|(before, (at, _))| at - before)
            .collect();
        if !window.ends_document {
            return Self { text: window.text.replace("\r\n", "\n"), missing };
        }
        let text = without_carriage_returns(&window.text);
        if text.len() + missing.len() < window.text.len() {
            missing.push(text.len());
        }
        Self { text, missing }
    }

    /// Returns the range of whole lines in the text with carriage returns, line end included.
    fn find(
        &self,
        lines: &LinesPattern,
        from: usize,
        until: usize,
        ends: Ends,
    ) -> Option<Range<usize>> {
        let start = self.stripped(from);
        // A place between the two parts of a line end is no start of a line.
        let start = if self.unstripped(start) < from { start + 1 } else { start };
        let found = lines.find(&self.text, start, ends)?;
        if found.end > self.stripped(until) {
            return None;
        }
        let end = if found.end == self.text.len() {
            self.text.len() + self.missing.len()
        } else {
            self.unstripped(found.end + 1)
        };
        Some(self.unstripped(found.start)..end)
    }

    /// Returns where a place is once the carriage returns are gone.
    fn stripped(&self, place: usize) -> usize {
        let (mut low, mut high) = (0, self.missing.len());
        while low < high {
            let middle = low.midpoint(high);
            let original = self.missing.get(middle).map_or(usize::MAX, |at| at + middle);
            if original < place { low = middle + 1 } else { high = middle }
        }
        place - low
    }

    /// Returns where a place was. Where a carriage return is missing, that is before it.
    fn unstripped(&self, place: usize) -> usize {
        place + self.missing.partition_point(|at| *at < place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriage_returns_are_passed_over_and_belong_to_what_is_found() {
        let text = "a\r\n\r\nb\r\na\r\n\r\nb\r";
        let window = Window { text: Cow::Borrowed(text), start: 0, ends_document: true };
        let lines = LinesPattern::new("\nb");
        let mut memory = Memory::default();
        let mut find = |from| Finder::Lines(&lines).find(&mut memory, &window, from, text.len());
        assert_eq!(find(0).map(|it| it.start..it.end), Some(3..8));
        assert_eq!(find(8).map(|it| it.start..it.end), Some(11..15));
        assert_eq!(find(12), None);
    }

    #[test]
    fn a_match_ends_within_the_span_but_for_its_line_end() {
        let window = Window { text: Cow::Borrowed("xa\nb\n"), start: 10, ends_document: false };
        let lines = LinesPattern::new("b");
        let find = |until| Finder::Lines(&lines).find(&mut Memory::default(), &window, 11, until);
        assert_eq!(find(14), Some(Match { start: 13, end: 15, is_lines: true }));
        assert_eq!(find(13), None);
        let end = Window { text: Cow::Borrowed("a\nb"), start: 10, ends_document: true };
        let found = Finder::Lines(&lines).find(&mut Memory::default(), &end, 10, 13);
        assert_eq!(found, Some(Match { start: 12, end: 13, is_lines: true }));
    }
}
