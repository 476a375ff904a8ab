//! The text of a document under edit.
//!
//! A document is a list of chunks of some kilobytes. A chunk is a piece of the text as it was
//! loaded until an edit touches it, and a text of its own from then on; so loading copies nothing,
//! and an edit copies the chunks that it touches, never the document. One sweep carries out any
//! number of edits.

use std::{borrow::Cow, cell::OnceCell, ops::Range};

use super::line_filter::{LineFilter, LineHash};

/// The size at which text is cut into chunks. An edit copies about this much, and a walk over the
/// chunks of a document of `n` bytes takes `n / CHUNK_BYTES` steps; this keeps both small.
pub(crate) const CHUNK_BYTES: usize = 8 * 1024;

/// A text in chunks. Offsets are bytes and stand on character boundaries.
#[derive(Clone, Debug)]
pub(crate) struct Rope<'a> {
    /// Never empty. A chunk is empty only if it is the only one.
    chunks: Vec<Stored<'a>>,
    len: usize,
    /// The text as loaded, as long as nothing was edited.
    untouched: Option<&'a str>,
}

/// The text of a chunk, where it begins, and which lines it may hold, once that was asked.
#[derive(Clone, Debug, Default)]
struct Stored<'a> {
    start: usize,
    text: Cow<'a, str>,
    lines: OnceCell<LineFilter>,
}

/// A range of a text and what to put in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edit<'t> {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) text: &'t str,
}

/// A chunk and where it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<'r> {
    pub(crate) index: usize,
    pub(crate) start: usize,
    pub(crate) text: &'r str,
    lines: Option<&'r OnceCell<LineFilter>>,
}

impl Chunk<'_> {
    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether a line with this hash may begin in the chunk. `false` is certain, `true` is not.
    pub(crate) fn may_hold_line(&self, hash: LineHash) -> bool {
        // A line that goes on in the next chunk is not whole here.
        let Some(lines) = self.lines.filter(|_| self.text.ends_with('\n')) else { return true };
        lines.get_or_init(|| LineFilter::of(self.text)).may_hold(hash)
    }
}

impl<'a> Rope<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut chunks = Vec::with_capacity(text.len() / CHUNK_BYTES + 1);
        let mut rest = text;
        while let Some((chunk, after)) = split_chunk(rest) {
            chunks.push(Stored::new(Cow::Borrowed(chunk)));
            rest = after;
        }
        chunks.push(Stored::new(Cow::Borrowed(rest)));
        let mut rope = Self { chunks, len: text.len(), untouched: Some(text) };
        rope.number_from(0);
        rope
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Carries out edits, which are in order and do not overlap, in one sweep.
    pub(crate) fn edit(&mut self, edits: &[Edit<'_>]) {
        let Some((first_edit, last_edit)) = edits.first().zip(edits.last()) else { return };
        let first = self.chunk_at(first_edit.start);
        let last = self.chunk_at(last_edit.end).index;
        let (first, mut start) = (first.index, first.start);
        let mut sweep = Sweep { built: Vec::new(), kept_from: start };
        let mut edits = edits.iter().peekable();
        for (index, chunk) in self.chunks.iter_mut().enumerate().take(last + 1).skip(first) {
            let end = start + chunk.text.len();
            let begins_here = |edit: &&Edit<'_>| edit.start < end || index == last;
            if sweep.kept_from > start || edits.peek().is_some_and(begins_here) {
                let mut own = String::with_capacity(chunk.text.len() + 64);
                while let Some(edit) = edits.next_if(begins_here) {
                    sweep.keep(&mut own, &chunk.text, start, edit.start);
                    own.push_str(edit.text);
                    sweep.kept_from = edit.end.max(sweep.kept_from);
                    self.len = self.len + edit.text.len() - (edit.end - edit.start);
                }
                sweep.keep(&mut own, &chunk.text, start, end);
                sweep.push(own);
            } else {
                sweep.kept_from = end;
                sweep.built.push(std::mem::take(chunk));
            }
            start = end;
        }
        self.chunks.splice(first..=last, sweep.built);
        if self.chunks.is_empty() {
            self.chunks.push(Stored::new(Cow::Borrowed("")));
        }
        self.number_from(first);
        self.untouched = None;
    }

    /// Sets where chunks begin, from one of them on.
    fn number_from(&mut self, index: usize) {
        let before = index.checked_sub(1).and_then(|before| self.chunks.get(before));
        let mut start = before.map_or(0, |before| before.start + before.text.len());
        for chunk in self.chunks.iter_mut().skip(index) {
            chunk.start = start;
            start += chunk.text.len();
        }
    }

    /// Returns the text of a range, borrowed where it lies in one piece.
    pub(crate) fn slice(&self, range: Range<usize>) -> Cow<'_, str> {
        if let Some(text) = self.untouched {
            return Cow::Borrowed(text.get(range).unwrap_or_default());
        }
        let mut gathered = String::new();
        for chunk in self.chunks_from(range.start) {
            let from = range.start.saturating_sub(chunk.start);
            let to = range.end.saturating_sub(chunk.start).min(chunk.text.len());
            let part = chunk.text.get(from..to).unwrap_or_default();
            if gathered.is_empty() && range.end <= chunk.end() {
                return Cow::Borrowed(part);
            }
            gathered.push_str(part);
            if range.end <= chunk.end() {
                break;
            }
        }
        Cow::Owned(gathered)
    }

    /// Returns the chunk that holds an offset; the last one for the end of the text.
    pub(crate) fn chunk_at(&self, offset: usize) -> Chunk<'_> {
        let next = self.chunks_from(offset).next();
        next.unwrap_or(Chunk { index: 0, start: 0, text: "", lines: None })
    }

    /// Returns the chunk after another.
    pub(crate) fn chunk_after(&self, chunk: &Chunk<'_>) -> Option<Chunk<'_>> {
        let index = chunk.index + 1;
        self.chunks.get(index).map(|stored| stored.chunk(index))
    }

    /// Walks over the chunks from the one that holds an offset.
    pub(crate) fn chunks_from(&self, offset: usize) -> impl Iterator<Item = Chunk<'_>> {
        let first = self.chunks.partition_point(|chunk| chunk.start <= offset).saturating_sub(1);
        let chunks = self.chunks.iter().enumerate().skip(first);
        chunks.map(|(index, stored)| stored.chunk(index))
    }

    /// Returns the character boundary at or before an offset.
    pub(crate) fn boundary_before(&self, offset: usize) -> usize {
        let offset = offset.min(self.len);
        let chunk = self.chunk_at(offset);
        let is_boundary = |at: &usize| chunk.text.is_char_boundary(at.saturating_sub(chunk.start));
        (chunk.start..=offset).rev().find(is_boundary).unwrap_or(offset)
    }

    /// Returns the character boundary at or after an offset.
    pub(crate) fn boundary_after(&self, offset: usize) -> usize {
        let offset = offset.min(self.len);
        let chunk = self.chunk_at(offset);
        let is_boundary = |at: &usize| chunk.text.is_char_boundary(at.saturating_sub(chunk.start));
        (offset..=chunk.end()).find(is_boundary).unwrap_or(offset)
    }

    /// Returns the whole text.
    pub(crate) fn into_text(self) -> String {
        let mut whole = String::with_capacity(self.len);
        self.chunks.iter().for_each(|chunk| whole.push_str(&chunk.text));
        whole
    }
}

/// The chunks that an edit has built so far, and from where on text is still to be kept.
struct Sweep<'a> {
    built: Vec<Stored<'a>>,
    kept_from: usize,
}

impl<'a> Stored<'a> {
    fn new(text: Cow<'a, str>) -> Self {
        Self { start: 0, text, lines: OnceCell::new() }
    }

    fn chunk(&self, index: usize) -> Chunk<'_> {
        Chunk { index, start: self.start, text: &self.text, lines: Some(&self.lines) }
    }
}

impl Sweep<'_> {
    /// Appends the part of a chunk that is kept before `until`.
    fn keep(&mut self, own: &mut String, chunk: &str, chunk_start: usize, until: usize) {
        let from = self.kept_from.saturating_sub(chunk_start);
        let to = until.saturating_sub(chunk_start).min(chunk.len());
        own.push_str(chunk.get(from..to).unwrap_or_default());
        self.kept_from = self.kept_from.max(until);
    }

    /// Appends text, as a part of the last chunk if both are small, cut up if it is large.
    fn push(&mut self, text: String) {
        if let Some(Stored { text: Cow::Owned(last), .. }) = self.built.last_mut()
            && last.len() + text.len() <= CHUNK_BYTES / 2
        {
            last.push_str(&text);
            return;
        }
        if text.len() <= 2 * CHUNK_BYTES {
            if !text.is_empty() {
                self.built.push(Stored::new(Cow::Owned(text)));
            }
            return;
        }
        let mut rest = text.as_str();
        while let Some((chunk, after)) = split_chunk(rest) {
            self.built.push(Stored::new(Cow::Owned(chunk.to_owned())));
            rest = after;
        }
        self.built.push(Stored::new(Cow::Owned(rest.to_owned())));
    }
}

/// Cuts a chunk off a text that is longer than one, after a line if its lines are not too long.
fn split_chunk(text: &str) -> Option<(&str, &str)> {
    if text.len() <= CHUNK_BYTES {
        return None;
    }
    // A character has at most four bytes, so one of the last four offsets is a boundary.
    let (chunk, _) =
        (CHUNK_BYTES - 3..=CHUNK_BYTES).rev().find_map(|at| text.split_at_checked(at))?;
    let after_line = chunk.rfind('\n').map(|feed| feed + 1).filter(|at| *at > CHUNK_BYTES / 2);
    text.split_at_checked(after_line.unwrap_or(chunk.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long() -> String {
        (0..9_000).map(|number| format!("línea {number}\n")).collect()
    }

    #[test]
    fn an_edit_copies_only_the_chunks_that_it_touches() {
        let text = long();
        let mut rope = Rope::new(&text);
        rope.edit(&[Edit { start: 40_000, end: 40_001, text: "x" }]);
        let owned = rope.chunks.iter().filter(|it| matches!(it.text, Cow::Owned(_))).count();
        assert_eq!((rope.chunks.len() > 5, owned), (true, 1));
    }

    #[test]
    fn a_chunk_between_two_edits_is_not_copied() {
        let text = long();
        let mut rope = Rope::new(&text);
        let start = rope.chunks[2].start;
        let edits = [0, start].map(|start| Edit { start, end: start + 1, text: "x" });
        rope.edit(&edits);
        let is_owned = |it: &Stored<'_>| matches!(it.text, Cow::Owned(_));
        let owned: Vec<bool> = rope.chunks.iter().take(4).map(is_owned).collect();
        assert_eq!(owned, [true, false, true, false]);
    }

    #[test]
    fn a_chunk_knows_of_most_lines_that_they_do_not_begin_in_it() {
        let held = |text: &str| {
            let rope = Rope::new(text);
            ["a", "b", "c"].map(|line| rope.chunk_at(0).may_hold_line(LineHash::of(line)))
        };
        assert_eq!(held("a\r\nb\n"), [true, true, false]);
        assert_eq!(held("a\r\nb"), [true, true, true]);
    }

    #[test]
    fn a_chunk_grows_to_twice_its_size_before_it_is_cut() {
        let text = "x".repeat(CHUNK_BYTES);
        let sizes = |more: usize| -> Vec<usize> {
            let mut rope = Rope::new(&text);
            rope.edit(&[Edit { start: 1, end: 1, text: &"y".repeat(more) }]);
            rope.chunks.iter().map(|it| it.text.len()).collect()
        };
        assert_eq!(sizes(CHUNK_BYTES), [2 * CHUNK_BYTES]);
        assert_eq!(sizes(CHUNK_BYTES + 1), [CHUNK_BYTES, CHUNK_BYTES, 1]);
    }

    #[test]
    fn a_text_is_cut_behind_a_line_that_ends_in_the_second_half_of_a_chunk() {
        for (line_end, first) in [
            (CHUNK_BYTES / 2 - 1, CHUNK_BYTES),
            (CHUNK_BYTES / 2, CHUNK_BYTES / 2 + 1),
            (CHUNK_BYTES - 1, CHUNK_BYTES),
        ] {
            let text = format!("{}\n{}", "x".repeat(line_end), "y".repeat(2 * CHUNK_BYTES));
            assert_eq!(Rope::new(&text).chunk_at(0).text.len(), first, "{line_end}");
        }
    }

    #[test]
    fn edits_across_chunks_agree_with_a_plain_text() {
        let text = long();
        let big = "ü".repeat(CHUNK_BYTES * 2);
        let at = |offset| Rope::new(&text).boundary_before(offset);
        let edits = [
            Edit { start: 0, end: 0, text: "head" },
            Edit { start: at(10), end: at(50_000), text: "" },
            Edit { start: at(60_000), end: at(60_000), text: &big },
            Edit { start: text.len(), end: text.len(), text: "tail" },
        ];
        let mut plain = text.clone();
        for edit in edits.iter().rev() {
            plain.replace_range(edit.start..edit.end, edit.text);
        }
        let mut rope = Rope::new(&text);
        rope.edit(&edits);
        assert_eq!(rope.len(), plain.len());
        let (start, end) = (rope.boundary_before(5), rope.boundary_before(80_000));
        assert_eq!(rope.slice(start..end), plain[start..end]);
        assert_eq!(rope.into_text(), plain);
    }

    #[test]
    fn a_text_may_be_emptied_and_filled_again() {
        let mut rope = Rope::new("abc");
        rope.edit(&[Edit { start: 0, end: 3, text: "" }]);
        assert_eq!(rope.slice(0..0), "");
        rope.edit(&[Edit { start: 0, end: 0, text: "d" }]);
        assert_eq!(rope.into_text(), "d");
    }

    #[test]
    fn what_is_left_of_chunks_is_put_together_while_it_is_small() {
        let text = "line\n".repeat(CHUNK_BYTES);
        let mut rope = Rope::new(&text);
        let ends: Vec<usize> = rope.chunks.iter().map(|it| it.start + it.text.len()).collect();
        // Of each chunk the last line stays.
        let kept = ends.iter().map(|end| end - 5);
        let starts = [0].into_iter().chain(ends.iter().copied());
        let edits = starts.zip(kept).map(|(start, end)| Edit { start, end, text: "" });
        rope.edit(&edits.collect::<Vec<_>>());
        assert_eq!(rope.chunks.len(), 1);
        assert_eq!(rope.into_text(), "line\n".repeat(ends.len()));
    }

    #[test]
    fn what_would_make_a_large_chunk_stays_apart() {
        let text = "x".repeat(CHUNK_BYTES * 2);
        let mut rope = Rope::new(&text);
        let half = CHUNK_BYTES / 4;
        let gone =
            |start: usize, more: usize| Edit { start, end: start + CHUNK_BYTES - more, text: "" };
        rope.edit(&[gone(0, half), gone(CHUNK_BYTES, half + 1)]);
        let sizes: Vec<usize> = rope.chunks.iter().map(|it| it.text.len()).collect();
        assert_eq!(sizes, [half, half + 1]);
        let mut rope = Rope::new(&text);
        rope.edit(&[gone(0, half), gone(CHUNK_BYTES, half)]);
        assert_eq!(rope.chunks.len(), 1);
    }

    #[test]
    fn a_large_insertion_is_cut_behind_lines() {
        let line = "é".repeat(49) + "\n";
        let big = line.repeat(CHUNK_BYTES / 10);
        let mut rope = Rope::new("ab");
        rope.edit(&[Edit { start: 1, end: 1, text: &big }]);
        assert!(rope.chunks.len() > 9);
        for chunk in &rope.chunks {
            assert!(
                chunk.text.len() <= CHUNK_BYTES && chunk.text.len() > CHUNK_BYTES / 2
                    || chunk.text.ends_with('b')
            );
            assert!(chunk.text.ends_with(['\n', 'b']));
        }
        assert_eq!(rope.into_text(), format!("a{big}b"));
    }

    #[test]
    fn a_place_within_a_character_has_a_boundary_on_either_side() {
        let text = "a".repeat(CHUNK_BYTES - 1) + "語b";
        let rope = Rope::new(&text);
        let start = CHUNK_BYTES - 1;
        for (offset, before, after) in [
            (start, start, start),
            (start + 1, start, start + 3),
            (start + 2, start, start + 3),
            (start + 3, start + 3, start + 3),
            (start + 9, start + 4, start + 4),
        ] {
            assert_eq!(
                (rope.boundary_before(offset), rope.boundary_after(offset)),
                (before, after)
            );
        }
    }
}
