//! Looking for a pattern in a document that lies in chunks.
//!
//! Matches come from left to right and do not overlap; a match within a span sees all of the
//! document around it. How a pattern is searched for depends on how much text decides a match
//! ([`Reach`]):
//!
//! - A bounded number of bytes, or the rest of the line: each chunk is searched where it lies, and
//!   the places near its end, whose matches may go on in the next chunk, in a small copy of the
//!   text around that border. Nothing else is copied.
//!   A chunk in which no whole line like the first one of a heredoc begins is passed over unread.
//! - Anything: the span is copied in one piece, unless it is in one piece already.
//! - Whole lines in a text with carriage returns: the span is copied without them.

use std::{borrow::Cow, ops::Range};

use regex_automata::meta::Cache;

use super::{
    command::Pattern,
    lines_pattern::{Ends, LinesPattern, without_carriage_returns},
    regex::{Reach, Regex},
    rope::{CHUNK_BYTES, Chunk, Rope},
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
    /// It is whole lines. The line feed after them belongs to it, even where the span ends before.
    pub(crate) is_lines: bool,
}

/// The matches within a span, from left to right.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    rope: &'a Rope<'a>,
    finder: Finder<'a>,
    cache: Option<Cache>,
    until: usize,
    /// Where the next match may begin, or `None` if there is no more.
    next: Option<usize>,
    ground: Ground<'a>,
    /// The text around the border that was looked at last, and the first place that it does not
    /// settle. A long line may hold many matches; it is copied once for all of them.
    around: Option<(Window<'a>, usize)>,
    searched: u64,
}

/// What is searched.
#[derive(Debug)]
enum Ground<'a> {
    /// The chunks, one after the other. This is the one that holds the place to go on from.
    Chunks(Chunk<'a>),
    Piece(Window<'a>),
    Stripped(Stripped),
}

/// What a look at a chunk led to.
enum Step {
    Done(Option<Match>),
    /// What begins here is decided by the text around a border.
    Border(usize),
}

/// A part of the document in one piece.
#[derive(Debug)]
struct Window<'a> {
    text: Cow<'a, str>,
    start: usize,
    ends_document: bool,
}

/// A part of the document without the carriage returns before line feeds.
#[derive(Debug)]
struct Stripped {
    text: String,
    start: usize,
    ends_document: bool,
    /// Where a carriage return is missing, in order, as offsets of `text`.
    missing: Vec<usize>,
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

    fn reach(self) -> Reach {
        let reach = match self {
            Self::Regex(regex) => regex.reach(),
            Self::Lines(lines) => Reach::Bytes(lines.reach()),
        };
        match reach {
            // Every border of chunks would be copied together with a whole chunk or more.
            Reach::Bytes(bytes) if bytes > CHUNK_BYTES / 2 => Reach::Text,
            Reach::Bytes(_) | Reach::Line | Reach::Text => reach,
        }
    }

    fn is_sticky(self) -> bool {
        matches!(self, Self::Regex(regex) if regex.is_sticky())
    }

    /// Returns the first match in a window that begins at or after `from` and ends by `until`.
    fn find(
        self,
        cache: &mut Option<Cache>,
        window: &Window<'_>,
        from: usize,
        until: usize,
    ) -> Option<Match> {
        let from = from.checked_sub(window.start)?;
        let until = until.checked_sub(window.start)?.min(window.text.len());
        if from > until {
            return None;
        }
        match self {
            Self::Regex(regex) => {
                let cache = cache.get_or_insert_with(|| regex.cache());
                let found = regex.find(cache, &window.text, from..until)?;
                let (start, end) = (window.start + found.start, window.start + found.end);
                Some(Match { start, end, is_lines: false })
            }
            Self::Lines(lines) => {
                let ends = Ends { start: window.start == 0, end: window.ends_document };
                let found = lines.find(&window.text, from, ends).filter(|it| it.end <= until)?;
                let end = window.start + found.end + usize::from(found.end < window.text.len());
                Some(Match { start: window.start + found.start, end, is_lines: true })
            }
        }
    }
}

impl<'a> Search<'a> {
    /// Starts a search within a span of a document.
    pub(crate) fn new(rope: &'a Rope<'a>, finder: Finder<'a>, span: Range<usize>) -> Self {
        let mut searched = 0;
        let ground = match (finder, finder.reach()) {
            (Finder::Lines(_), _) if rope.has_carriage_return() => {
                let window = window(rope, span.start, span.end.saturating_add(2));
                searched += window.text.len() as u64;
                Ground::Stripped(Stripped::new(&window))
            }
            (_, Reach::Text) => Ground::Piece(window(rope, span.start, span.end)),
            (_, Reach::Bytes(_) | Reach::Line) => Ground::Chunks(rope.chunk_at(span.start)),
        };
        Self {
            rope,
            finder,
            cache: None,
            until: span.end,
            next: Some(span.start),
            ground,
            around: None,
            searched,
        }
    }

    /// How many bytes have been searched so far.
    pub(crate) fn searched(&self) -> u64 {
        self.searched
    }

    fn find(&mut self, from: usize) -> Option<Match> {
        match &self.ground {
            Ground::Chunks(_) => self.find_in_chunks(from),
            Ground::Piece(window) => {
                let found = self.finder.find(&mut self.cache, window, from, self.until);
                let end = found.map_or(self.until, |it| it.end);
                self.searched += end.saturating_sub(from) as u64;
                found
            }
            Ground::Stripped(stripped) => stripped.find(self.finder, from, self.until),
        }
    }

    fn find_in_chunks(&mut self, mut from: usize) -> Option<Match> {
        while let Ground::Chunks(chunk) = self.ground
            && from <= self.until
        {
            if let Some((window, settled)) = self.around.take_if(|(_, settled)| from < *settled) {
                let found = self.search(&window, from);
                let is_final = window.ends_document || self.finder.is_sticky();
                let is_settled = found.is_some_and(|it| it.start < settled);
                self.around = Some((window, settled));
                if is_settled || is_final {
                    return found;
                }
                from = settled;
            } else if from >= chunk.end()
                && let Some(after) = self.rope.chunk_after(&chunk)
            {
                self.ground = Ground::Chunks(after);
            } else {
                match self.find_in_chunk(&chunk, from) {
                    Step::Done(found) => return found,
                    Step::Border(border) => from = border,
                }
            }
        }
        None
    }

    /// Looks for what is decided within a chunk. What is not is left to the text around a border.
    fn find_in_chunk(&mut self, chunk: &Chunk<'a>, from: usize) -> Step {
        let is_last = chunk.end() == self.rope.len();
        if !is_last
            && let Finder::Lines(lines) = self.finder
            && !chunk.may_hold_line(lines.first_line())
        {
            return Step::Border(chunk.end());
        }
        // The character before the first one of a chunk lies outside of it, so that place belongs
        // to a border too.
        if from == chunk.start && from > 0 {
            self.around = Some(self.border_window(from, from));
            return Step::Border(from);
        }
        let border = if is_last { chunk.end() + 1 } else { self.border(chunk) };
        if from < border {
            let text = Cow::Borrowed(chunk.text);
            let window = Window { text, start: chunk.start, ends_document: is_last };
            let found = self.search(&window, from);
            let is_settled = found.is_some_and(|it| it.start < border);
            if is_settled {
                return Step::Done(found);
            }
            if is_last || self.finder.is_sticky() {
                return Step::Done(None);
            }
        }
        let from = from.max(border);
        self.around = Some(self.border_window(from, chunk.end()));
        Step::Border(from)
    }

    /// Returns the first place in a chunk whose match may depend on the next chunk.
    fn border(&self, chunk: &Chunk<'_>) -> usize {
        let border = match self.finder.reach() {
            Reach::Bytes(bytes) => chunk.text.len().saturating_sub(bytes),
            Reach::Line | Reach::Text => chunk.text.rfind('\n').map_or(0, |feed| feed + 1),
        };
        let boundary = (0..=border).rev().find(|at| chunk.text.is_char_boundary(*at));
        chunk.start + boundary.unwrap_or(0)
    }

    /// Returns a copy of the text around a border, and the first place that it does not settle.
    fn border_window(&self, from: usize, beyond: usize) -> (Window<'a>, usize) {
        let next = self.rope.boundary_after(beyond + 1);
        let (settled, end) = match self.finder.reach() {
            Reach::Bytes(bytes) => (next, next.saturating_add(bytes)),
            Reach::Line | Reach::Text => {
                let feed = self.rope.chunks_from(next).find_map(|chunk| {
                    let skipped = next.saturating_sub(chunk.start);
                    let feed = chunk.text.get(skipped..)?.find('\n')?;
                    Some(chunk.start + skipped + feed)
                });
                feed.map_or((self.rope.len(), self.rope.len()), |feed| (feed + 1, feed + 1))
            }
        };
        (window(self.rope, from, end), settled)
    }

    fn search(&mut self, window: &Window<'_>, from: usize) -> Option<Match> {
        let found = self.finder.find(&mut self.cache, window, from, self.until);
        let end = found.map_or(window.start + window.text.len(), |it| it.end).min(self.until);
        self.searched += end.saturating_sub(from) as u64;
        found
    }
}

impl Iterator for Search<'_> {
    type Item = Match;

    fn next(&mut self) -> Option<Match> {
        let found = self.next.and_then(|from| self.find(from));
        self.next = found.and_then(|found| {
            if found.end > found.start {
                return Some(found.end);
            }
            let after = self.rope.boundary_after(found.end + 1);
            (after > found.end).then_some(after)
        });
        found
    }
}

/// Returns the text from one place to another in one piece, with a character on either side.
fn window<'a>(rope: &'a Rope<'a>, from: usize, to: usize) -> Window<'a> {
    let start = rope.boundary_before(from.saturating_sub(4));
    let end = rope.boundary_after(to.saturating_add(4));
    Window { text: rope.slice(start..end), start, ends_document: end == rope.len() }
}

impl Stripped {
    fn new(window: &Window<'_>) -> Self {
        let text = if window.ends_document {
            without_carriage_returns(&window.text)
        } else {
            window.text.replace("\r\n", "\n")
        };
        let mut missing: Vec<usize> = window
            .text
            .match_indices("\r\n")
            .enumerate()
            .map(|(before, (at, _))| at - before)
            .collect();
        if text.len() + missing.len() < window.text.len() {
            missing.push(text.len());
        }
        Self { text, start: window.start, ends_document: window.ends_document, missing }
    }

    fn find(&self, finder: Finder<'_>, from: usize, until: usize) -> Option<Match> {
        let text = Cow::Borrowed(self.text.as_str());
        let window = Window { text, start: 0, ends_document: self.ends_document };
        let Finder::Lines(lines) = finder else { return None };
        let ends = Ends { start: self.start == 0, end: self.ends_document };
        let found = lines.find(&window.text, self.stripped(from), ends)?;
        if found.end > self.stripped(until) {
            return None;
        }
        let is_at_end = found.end == self.text.len();
        let start = self.unstripped(found.start);
        let end = match is_at_end {
            true => self.start + self.text.len() + self.missing.len(),
            false => self.unstripped(found.end + 1),
        };
        Some(Match { start, end, is_lines: true })
    }

    /// Returns where a place of the document is in the stripped text.
    fn stripped(&self, place: usize) -> usize {
        let place = place.saturating_sub(self.start);
        let (mut low, mut high) = (0, self.missing.len());
        while low < high {
            let middle = low.midpoint(high);
            let original = self.missing.get(middle).map_or(usize::MAX, |at| at + middle);
            if original < place { low = middle + 1 } else { high = middle }
        }
        place - low
    }

    /// Returns where a place of the stripped text is in the document. Where a carriage return is
    /// missing, that is the place before it.
    fn unstripped(&self, place: usize) -> usize {
        self.start + place + self.missing.partition_point(|at| *at < place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edl::rope::Edit;

    fn regex(source: &str, flags: &str) -> Regex {
        Regex::new(source, flags, 1 << 20).expect("a pattern that compiles")
    }

    /// Two chunks, the second of which begins with `b`.
    fn long() -> String {
        format!("{}bcd\n", "a".repeat(CHUNK_BYTES))
    }

    fn starts(rope: &Rope<'_>, regex: &Regex, from: usize) -> Vec<usize> {
        let search = Search::new(rope, Finder::Regex(regex), from..rope.len());
        search.map(|found| found.start).collect()
    }

    #[test]
    fn the_text_before_a_chunk_is_in_view() {
        let text = long();
        let mut rope = Rope::new(&text);
        rope.edit(&[Edit { start: 0, end: 0, text: "" }]);
        for (pattern, flags) in [(r"\bb", ""), ("^b", "m"), (r"^\w+", "m")] {
            assert_eq!(starts(&rope, &regex(pattern, flags), CHUNK_BYTES), [0; 0], "{pattern}");
        }
        assert_eq!(starts(&rope, &regex("[bd]", ""), CHUNK_BYTES), [CHUNK_BYTES, CHUNK_BYTES + 2]);
    }

    #[test]
    fn a_match_may_lie_across_chunks() {
        let text = long();
        let mut rope = Rope::new(&text);
        rope.edit(&[Edit { start: 0, end: 1, text: "x" }]);
        assert_eq!(starts(&rope, &regex("aab", ""), 0), [CHUNK_BYTES - 2]);
        assert_eq!(starts(&rope, &regex("a*b", ""), 0), [1]);
        assert_eq!(starts(&rope, &regex(r"a[^x]*\n", ""), 0), [1]);
    }

    #[test]
    fn carriage_returns_are_passed_over_and_belong_to_what_is_found() {
        let text = "a\r\n\r\nb\r\na\r\n\r\nb\r";
        let rope = Rope::new(text);
        let lines = LinesPattern::new("\nb");
        let found: Vec<_> = Search::new(&rope, Finder::Lines(&lines), 0..rope.len())
            .map(|it| it.start..it.end)
            .collect();
        assert_eq!(found, [3..8, 11..15]);
    }

    #[test]
    fn what_was_searched_is_counted() {
        let text = long();
        let rope = Rope::new(&text);
        let regex = regex("z", "");
        let mut search = Search::new(&rope, Finder::Regex(&regex), 0..rope.len());
        assert_eq!(search.next(), None);
        assert!(search.searched() >= text.len() as u64);
    }
}
