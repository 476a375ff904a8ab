//! What is selected, for a report: where each range is, and its text without the middle.

use super::{
    document::{Document, Selected},
    original::count_lines,
    path::FilePath,
    report::{LineColumn, SelectedRange, Selection},
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
    let ranges = selected.iter().take(RANGES).map(|range| SelectedRange {
        start: place(document, range.start),
        end: place(document, range.end),
        text: abridged(document.slice(range.start..range.end)),
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
    let texts = selected.iter().map(|range| document.slice(range.start..range.end));
    format!("{ranges}, {}", count(texts.map(count_lines).sum(), "line"))
}

fn place(document: &Document<'_>, offset: usize) -> LineColumn {
    let before = document.slice(0..offset);
    let (lines, last) = before.rsplit_once('\n').map_or((0, before), |(lines, last)| {
        let feeds = lines.matches('\n').count();
        (feeds + 1, last)
    });
    LineColumn { line: lines + 1, column: last.chars().count() }
}

fn abridged(text: &str) -> String {
    if text.chars().nth(WHOLE_CHARACTERS).is_none() {
        return text.to_owned();
    }
    let head_end = text.char_indices().nth(END_CHARACTERS);
    let tail_start = text.char_indices().nth_back(END_CHARACTERS - 1);
    let head = head_end.and_then(|(at, _)| text.get(..at)).unwrap_or(text);
    let tail = tail_start.and_then(|(at, _)| text.get(at..)).unwrap_or(text);
    format!("{head}\n…\n{tail}")
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
        let shown = abridged(&text);
        assert_eq!(shown, format!("{}\n…\n{}", "ä".repeat(397), "b".repeat(397)));
        let turned = format!("{}{}", "b".repeat(800), "😀".repeat(800));
        let shown = abridged(&turned);
        assert_eq!(shown, format!("{}\n…\n{}", "b".repeat(397), "😀".repeat(397)));
    }

    #[test]
    fn a_text_of_so_many_characters_stays_whole() {
        for character in ["x", "ä", "😀"] {
            let (most, more) = (character.repeat(800), character.repeat(801));
            assert_eq!(abridged(&most), most);
            assert!(abridged(&more).contains('…'), "{character}");
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
    fn places_are_found_far_into_a_text() {
        let long = "é\n".repeat(20_000);
        let document = Document::load(&long);
        for (offset, line, column) in [(2, 1, 1), (30_000, 10_001, 0), (59_999, 20_000, 1)] {
            assert_eq!(place(&document, offset), LineColumn { line, column });
        }
    }
}
