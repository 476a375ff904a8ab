//! What is selected, for a report: where each range is, and its text without the middle.

use std::ops::Range;

use super::{
    document::{Document, Selected},
    original::count_lines,
    path::FilePath,
    report::{LineColumn, SelectedRange, Selection},
    rope::Rope,
    words::count,
};

/// How many ranges are shown.
const RANGES: usize = 10;
/// How long a text may be to be shown whole, in characters.
const WHOLE_CHARACTERS: usize = 800;
/// How much of a longer text is shown at its head, and as much at its end.
const END_CHARACTERS: usize = 397;
/// Up to this many bytes are looked through for the sake of a trace.
const COUNTED_BYTES: usize = 64 * 1024;

/// Describes what is selected at the end of a run.
pub(crate) fn selection(
    path: &FilePath,
    document: &Document<'_>,
    selected: &[Selected],
) -> Selection {
    let mut places =
        Places { rope: &document.rope, offset: 0, place: LineColumn { line: 1, column: 0 } };
    let ranges = selected.iter().take(RANGES).map(|range| SelectedRange {
        start: places.place(range.start),
        end: places.place(range.end),
        text: abridged(&document.rope, range.start..range.end),
    });
    Selection { path: path.clone(), ranges: ranges.collect(), count: selected.len() }
}

/// Returns how much is selected, for a trace.
pub(crate) fn extent(document: &Document<'_>, selected: &[Selected]) -> String {
    let ranges = count(selected.len(), "range");
    let bytes: usize = selected.iter().map(|range| range.end - range.start).sum();
    if bytes > COUNTED_BYTES || selected.len() > COUNTED_BYTES / 64 {
        return format!("{ranges}, {}", count(bytes, "byte"));
    }
    let lines = |range: &Selected| count_lines(&document.rope.slice(range.start..range.end));
    format!("{ranges}, {}", count(selected.iter().map(lines).sum(), "line"))
}

/// Turns ascending offsets into places while walking the text once.
struct Places<'r> {
    rope: &'r Rope<'r>,
    offset: usize,
    place: LineColumn,
}

impl Places<'_> {
    fn place(&mut self, offset: usize) -> LineColumn {
        for chunk in self.rope.chunks_from(self.offset) {
            let from = self.offset.saturating_sub(chunk.start);
            let to = offset.saturating_sub(chunk.start).min(chunk.text.len());
            let part = chunk.text.get(from..to).unwrap_or_default();
            if let Some((before, last)) = part.rsplit_once('\n') {
                self.place.line += 1 + before.matches('\n').count();
                self.place.column = last.chars().count();
            } else {
                self.place.column += part.chars().count();
            }
            self.offset += part.len();
            if chunk.end() >= offset {
                break;
            }
        }
        self.place
    }
}

fn abridged(rope: &Rope<'_>, range: Range<usize>) -> String {
    // A character has at most four bytes, so these pieces hold enough of them.
    let head_end = rope.boundary_before(range.end.min(range.start + 4 * WHOLE_CHARACTERS));
    let head = rope.slice(range.start..head_end);
    if head_end == range.end && head.chars().count() <= WHOLE_CHARACTERS {
        return head.into_owned();
    }
    let tail_start = range.end.saturating_sub(4 * END_CHARACTERS).max(range.start);
    let tail = rope.slice(rope.boundary_before(tail_start)..range.end);
    let shown_head: String = head.chars().take(END_CHARACTERS).collect();
    let tail_characters = tail.chars().count();
    let shown_tail: String =
        tail.chars().skip(tail_characters.saturating_sub(END_CHARACTERS)).collect();
    format!("{shown_head}\n…\n{shown_tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: usize, end: usize) -> Selected {
        Selected { start, end, is_lines: false }
    }

    #[test]
    fn ranges_are_placed_by_line_and_character() {
        let path: FilePath = "a".parse().expect("a path");
        let document = Document::load("né\nx\n");
        let shown = selection(&path, &document, &[at(1, 3), at(4, 6)]);
        let places: Vec<_> = shown
            .ranges
            .iter()
            .map(|it| {
                (it.start.line, it.start.column, it.end.line, it.end.column, it.text.as_str())
            })
            .collect();
        assert_eq!(places, [(1, 1, 1, 2, "é"), (2, 0, 3, 0, "x\n")]);
    }

    #[test]
    fn a_long_text_loses_its_middle() {
        let text = format!("{}{}", "ä".repeat(800), "b".repeat(800));
        let shown = abridged(&Rope::new(&text), 0..text.len());
        assert_eq!(shown, format!("{}\n…\n{}", "ä".repeat(397), "b".repeat(397)));
        let turned = format!("{}{}", "b".repeat(800), "😀".repeat(800));
        let shown = abridged(&Rope::new(&turned), 0..turned.len());
        assert_eq!(shown, format!("{}\n…\n{}", "b".repeat(397), "😀".repeat(397)));
    }

    #[test]
    fn a_text_of_so_many_characters_stays_whole() {
        for character in ["x", "ä", "😀"] {
            let (most, more) = (character.repeat(800), character.repeat(801));
            assert_eq!(abridged(&Rope::new(&more), 0..most.len()), most);
            assert!(abridged(&Rope::new(&more), 0..more.len()).contains('…'), "{character}");
        }
    }

    #[test]
    fn extents_count_lines_as_long_as_that_is_cheap() {
        let long = "a\n".repeat(COUNTED_BYTES);
        let document = Document::load(&long);
        assert_eq!(extent(&document, &[at(0, 2), at(4, 7)]), "2 ranges, 3 lines");
        let extents = [
            (vec![at(2, 2 + COUNTED_BYTES)], "1 range, 32768 lines"),
            (vec![at(2, 3 + COUNTED_BYTES)], "1 range, 65537 bytes"),
            (vec![at(2, 4); 1_024], "1024 ranges, 1024 lines"),
            (vec![at(2, 4); 1_025], "1025 ranges, 2050 bytes"),
        ];
        for (selected, expected) in extents {
            assert_eq!(extent(&document, &selected), expected);
        }
    }

    #[test]
    fn places_are_found_far_behind_each_other() {
        let long = "é\n".repeat(20_000);
        let document = Document::load(&long);
        let mut places =
            Places { rope: &document.rope, offset: 0, place: LineColumn { line: 1, column: 0 } };
        for (offset, line, column) in [(2, 1, 1), (30_000, 10_001, 0), (59_999, 20_000, 1)] {
            assert_eq!(places.place(offset), LineColumn { line, column });
        }
    }
}
