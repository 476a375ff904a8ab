//! Looking for a pattern in a document that lies in chunks.
//!
//! Matches come from left to right and do not overlap; a match within a span sees all of the
//! document around it. How a pattern is searched for depends on how much text decides a match
//! ([`Reach`]):
//!
//! - A bounded number of bytes, or the rest of the line: each chunk is searched where it lies, and
//!   the places near its end, whose matches may go on in the next chunk, in a small copy of the
//!   text around that border. Nothing else is copied. A chunk in which no line like the first one of
//!   a heredoc begins is passed over unread.
//! - Anything: the span is copied in one piece, unless it is in one piece already.

use std::{borrow::Cow, ops::Range};

use super::{
    regex::Reach,
    rope::{CHUNK_BYTES, Chunk, Rope},
    window::{Finder, Match, Memory, Window},
};

/// The matches within a span, from left to right.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    rope: &'a Rope<'a>,
    finder: Finder<'a>,
    reach: Reach,
    memory: Memory,
    ground: Ground<'a>,
    /// The text around the border that was looked at last, and the first place that it does not
    /// settle. A long line may hold many matches; it is copied once for all of them.
    around: Option<(Window<'a>, usize)>,
    /// Where the next match may begin, or `None` if there is no more.
    next: Option<usize>,
    until: usize,
    searched: u64,
}

/// What is searched.
#[derive(Debug)]
enum Ground<'a> {
    /// The chunks, one after the other. This is the one that holds the place to go on from.
    Chunks(Chunk<'a>),
    Piece(Window<'a>),
}

/// What a look at a chunk led to.
enum Step {
    Done(Option<Match>),
    /// Nothing begins before this place. What begins here is decided by the text around a border.
    GoOn(usize),
}

impl<'a> Search<'a> {
    /// Prepares a search. It finds nothing before it is told where to look.
    pub(crate) fn new(rope: &'a Rope<'a>, finder: Finder<'a>) -> Self {
        let reach = match finder.reach() {
            // Every border of chunks would be copied together with a whole chunk or more.
            Reach::Bytes(bytes) if bytes > CHUNK_BYTES / 2 => Reach::Text,
            reach @ (Reach::Bytes(_) | Reach::Line | Reach::Text) => reach,
        };
        Self {
            rope,
            finder,
            reach,
            memory: Memory::default(),
            ground: Ground::Chunks(rope.chunk_at(0)),
            around: None,
            next: None,
            until: 0,
            searched: 0,
        }
    }

    /// Looks within a span from here on.
    pub(crate) fn within(&mut self, span: Range<usize>) {
        self.ground = match self.reach {
            Reach::Text => Ground::Piece(self.copy(span.start, span.end)),
            Reach::Bytes(_) | Reach::Line => Ground::Chunks(self.rope.chunk_at(span.start)),
        };
        if let (Ground::Piece(window), Finder::Lines(_)) = (&self.ground, self.finder) {
            // It is looked through for carriage returns, and copied without them.
            self.searched += window.text.len() as u64;
        }
        (self.around, self.next, self.until) = (None, Some(span.start), span.end);
    }

    /// How many bytes may have been read or copied so far.
    pub(crate) fn searched(&self) -> u64 {
        self.searched
    }

    fn find(&mut self, from: usize) -> Option<Match> {
        let Ground::Piece(window) = &self.ground else { return self.find_in_chunks(from) };
        let found = self.finder.find(&mut self.memory, window, from, self.until);
        self.searched += self.cost(window, from, found);
        found
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
                    Step::GoOn(border) => from = border,
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
            return Step::GoOn(chunk.end());
        }
        // The character before the first one of a chunk lies outside of it, so that place belongs
        // to a border too.
        if from == chunk.start && from > 0 {
            let around = self.border_window(from, from);
            self.around = Some(around);
            return Step::GoOn(from);
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
        let around = self.border_window(from, chunk.end());
        self.around = Some(around);
        Step::GoOn(from)
    }

    /// Returns the first place in a chunk whose match may depend on the next chunk.
    fn border(&self, chunk: &Chunk<'_>) -> usize {
        let border = match self.reach {
            Reach::Bytes(bytes) => chunk.text.len().saturating_sub(bytes),
            Reach::Line | Reach::Text => chunk.text.rfind('\n').map_or(0, |feed| feed + 1),
        };
        let boundary = (0..=border).rev().find(|at| chunk.text.is_char_boundary(*at));
        chunk.start + boundary.unwrap_or(0)
    }

    /// Returns a copy of the text around a border, and the first place that it does not settle.
    fn border_window(&mut self, from: usize, beyond: usize) -> (Window<'a>, usize) {
        let next = self.rope.boundary_after(beyond + 1);
        let (settled, end) = match self.reach {
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
        (self.copy(from, end), settled)
    }

    fn search(&mut self, window: &Window<'_>, from: usize) -> Option<Match> {
        let found = self.finder.find(&mut self.memory, window, from, self.until);
        self.searched += self.cost(window, from, found);
        found
    }

    /// Returns the text from one place to another in one piece. What had to be copied for that
    /// counts as searched.
    fn copy(&mut self, from: usize, to: usize) -> Window<'a> {
        let window = Window::around(self.rope, from, to);
        if matches!(window.text, Cow::Owned(_)) {
            self.searched += window.text.len() as u64;
        }
        window
    }

    /// Returns how many bytes a look at a window may have read.
    ///
    /// A short match can be known as one only after what follows it was read: `a` for `/a[^]*z|a/`
    /// only where no `z` follows. So what could have decided it counts, and not only its own length.
    fn cost(&self, window: &Window<'_>, from: usize, found: Option<Match>) -> u64 {
        let limit = self.until.min(window.start + window.text.len());
        let end = found.map_or(limit, |found| {
            let decided = match self.finder.reach_beyond() {
                Reach::Bytes(bytes) => found.end.saturating_add(bytes),
                Reach::Line => window.line_end(found.end),
                Reach::Text => limit,
            };
            decided.min(limit).max(found.end)
        });
        end.saturating_sub(from) as u64
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edl::{lines_pattern::LinesPattern, regex::Regex, rope::Edit};

    fn regex(source: &str, flags: &str) -> Regex {
        Regex::new(source, flags, 1 << 20).expect("a pattern that compiles")
    }

    /// Two chunks, the second of which begins with `b`.
    fn long() -> String {
        format!("{}bcd\n", "a".repeat(CHUNK_BYTES))
    }

    fn starts(rope: &Rope<'_>, regex: &Regex, from: usize) -> Vec<usize> {
        let mut search = Search::new(rope, Finder::Regex(regex));
        search.within(from..rope.len());
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
        assert_eq!(starts(&rope, &regex("a.*d", ""), 0), [1]);
        assert_eq!(starts(&rope, &regex("a.*d$", "m"), 0), [1]);
        assert_eq!(starts(&rope, &regex(r"a[^x]*\n", ""), 0), [1]);
    }

    #[test]
    fn a_match_behind_the_line_across_a_border_is_found_whole() {
        let text = format!("{}Match to the end of the line\n", long());
        let rope = Rope::new(&text);
        let regex = regex("M.*", "");
        let mut search = Search::new(&rope, Finder::Regex(&regex));
        search.within(0..rope.len());
        let found: Vec<_> = search.map(|found| (found.start, found.end)).collect();
        assert_eq!(found, [(long().len(), text.len() - 1)]);
    }

    #[test]
    fn a_chunk_may_hold_a_line_feed_at_its_start_and_no_other() {
        let line = "y".repeat(2 * CHUNK_BYTES);
        let text = format!("{}\n{line}z\n", "x".repeat(CHUNK_BYTES));
        let rope = Rope::new(&text);
        assert_eq!(starts(&rope, &regex("y.*z", ""), CHUNK_BYTES + 1), [CHUNK_BYTES + 1]);
        assert_eq!(starts(&rope, &regex("y.*z", ""), 0), [CHUNK_BYTES + 1]);
    }

    #[test]
    fn what_may_have_been_read_after_a_match_counts() {
        let text = format!("{}\n{}", "a".repeat(100), "b".repeat(100));
        let rope = Rope::new(&text);
        let searched = |pattern| {
            let regex = regex(pattern, "");
            let mut search = Search::new(&rope, Finder::Regex(&regex));
            search.within(0..rope.len());
            assert_eq!(search.next().map(|found| found.end), Some(1), "{pattern}");
            search.searched()
        };
        assert_eq!(searched("a[^]*z|a"), 201);
        assert_eq!(searched("a.*z|a"), 101);
        assert_eq!(searched("az?"), 7);
        assert_eq!(searched("az*"), 7);
    }

    #[test]
    fn copies_count() {
        let text = long();
        let mut rope = Rope::new(&text);
        rope.edit(&[Edit { start: 0, end: 1, text: "x" }]);
        let regex = regex("x[^]*z|x", "");
        let mut search = Search::new(&rope, Finder::Regex(&regex));
        search.within(0..rope.len());
        assert_eq!(search.searched(), rope.len() as u64);
    }

    #[test]
    fn long_lines_are_looked_for_in_one_piece_which_is_read_twice() {
        let wanted = "a".repeat(CHUNK_BYTES);
        let text = format!("x\r\n{wanted}\r\nb\n");
        let rope = Rope::new(&text);
        let lines = LinesPattern::new(&wanted);
        let mut search = Search::new(&rope, Finder::Lines(&lines));
        search.within(0..rope.len());
        assert_eq!(search.searched(), text.len() as u64);
        let found = Match { start: 3, end: text.len() - 2, is_lines: true };
        assert_eq!(search.next(), Some(found));
        assert_eq!(search.searched(), (text.len() + found.end) as u64);
    }

    #[test]
    fn what_was_searched_is_counted() {
        let text = "some words\n".repeat(CHUNK_BYTES);
        let mut rope = Rope::new(&text);
        rope.edit(&[Edit { start: 0, end: 0, text: "" }]);
        for (pattern, most) in [("z", 101), ("z.*", 101), ("z[^]*", 200), ("z[a-y]{100}", 105)] {
            let regex = regex(pattern, "");
            let mut search = Search::new(&rope, Finder::Regex(&regex));
            search.within(0..rope.len());
            assert_eq!(search.next(), None);
            let percent = search.searched() as usize * 100 / text.len();
            assert!((100..=most).contains(&percent), "{pattern}: {percent} %");
        }
    }

    #[test]
    fn lines_may_lie_across_chunks() {
        let text: String = (1_000..5_000).map(|number| format!("line {number}\r\n")).collect();
        let mut rope = Rope::new(&text);
        rope.edit(&[Edit { start: 0, end: 0, text: "" }]);
        let border = rope.chunk_at(0).end();
        // As many of these lines stand before the border as it takes.
        for before in [1, 2, 40] {
            let (start, end) = (border - before * 11, border + 22);
            let lines = LinesPattern::new(text[start..end].trim_end());
            let mut search = Search::new(&rope, Finder::Lines(&lines));
            search.within(0..rope.len());
            let found: Vec<_> = search.map(|found| (found.start, found.end)).collect();
            assert_eq!(found, [(start, end)], "{before}");
        }
    }
}
