//! The text of a report, which is returned to the model.
//!
//! The first line states whether the run succeeded. Empty sections and the middle of long lists are
//! left out, because every line costs the model tokens. The data in [`Report`] is complete.

use std::fmt::{self, Display, Formatter};

use super::{
    document::{Document, Selected},
    report::{Failure, FileChange, Report},
    text::{count_lines, counted, end_position, slice},
};

/// The number of list items shown from the start, and again from the end.
const LIST_ITEMS: usize = 25;
/// The number of selected ranges that are shown.
const RANGES: usize = 10;
/// The longest text that is shown whole, in characters.
const WHOLE_CHARACTERS: usize = 800;
/// The number of characters of a longer text shown from the start, and again from the end.
const END_CHARACTERS: usize = 397;
/// The largest selection whose lines are counted for the trace.
const COUNTED_BYTES: usize = 64 * 1024;

/// Returns the size of a selection, for the trace.
pub(crate) fn extent(document: &Document<'_>, selected: &[Selected]) -> String {
    let ranges = counted(selected.len(), "range");
    let bytes: usize = selected.iter().map(|range| range.end - range.start).sum();
    if bytes > COUNTED_BYTES || selected.len() > COUNTED_BYTES / 64 {
        return format!("{ranges}, {}", counted(bytes, "byte"));
    }
    let lines = selected.iter().map(|range| count_lines(document.selected(range))).sum();
    format!("{ranges}, {}", counted(lines, "line"))
}

/// Returns the selected texts, abridged, with their lines and columns.
pub(crate) fn selection(document: &Document<'_>, selected: &[Selected]) -> String {
    let ranges = counted(selected.len(), "range");
    let mut shown = format!("Selected at the end ({ranges} in {}):", document.change.path);
    for range in selected.iter().take(RANGES) {
        let (start, end) = (position(document, range.start), position(document, range.end));
        shown.push_str(&format!("\n[{start} - {end}]"));
        let text = abridged(document.selected(range));
        if !text.is_empty() {
            shown.push('\n');
            shown.push_str(text.strip_suffix('\n').unwrap_or(&text));
        }
    }
    let hidden = selected.len().saturating_sub(RANGES);
    if hidden > 0 {
        shown.push_str(&format!("\n… {} more …", counted(hidden, "range")));
    }
    shown
}

/// Returns the line and the column of an offset, as a script writes them.
fn position(document: &Document<'_>, offset: usize) -> String {
    let (lines, characters) = end_position(slice(&document.text, 0..offset));
    format!("{}:{characters}", lines + 1)
}

fn abridged(text: &str) -> String {
    if text.chars().nth(WHOLE_CHARACTERS).is_none() {
        return text.to_owned();
    }
    let head: String = text.chars().take(END_CHARACTERS).collect();
    let tail = text.char_indices().nth_back(END_CHARACTERS - 1);
    format!("{head}\n…\n{}", tail.map_or(text, |(at, _)| slice(text, at..text.len())))
}

impl Display for Report {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let written = counted(self.changes.len(), "file");
        match self.failures.len() {
            0 if self.changes.is_empty() => formatter.write_str("OK: nothing modified.")?,
            0 => write!(formatter, "OK: {written} written.")?,
            failed => write!(
                formatter,
                "FAILED: {} failed and left as before, {written} written. \
                 See the end of this report.",
                counted(failed, "file")
            )?,
        }
        list(formatter, "Warnings", &self.warnings, String::clone)?;
        list(formatter, "Trace", &self.trace, String::clone)?;
        list(formatter, "Written", &self.changes, change)?;
        if let Some(selection) = &self.selection {
            write!(formatter, "\n\n{selection}")?;
        }
        list(formatter, "Failed", &self.failures, |failure| self.failure(failure))
    }
}

/// Writes a heading and a list, one item a line. A long list loses its middle.
fn list<T>(
    formatter: &mut Formatter<'_>,
    heading: &str,
    items: &[T],
    show: impl Fn(&T) -> String,
) -> fmt::Result {
    if !items.is_empty() {
        write!(formatter, "\n\n{heading}:")?;
    }
    let tail = items.len().saturating_sub(LIST_ITEMS).max(LIST_ITEMS);
    for (index, item) in items.iter().enumerate() {
        if index == LIST_ITEMS && tail > index {
            write!(formatter, "\n  … {} more …", tail - index)?;
        }
        if index < LIST_ITEMS || index >= tail {
            write!(formatter, "\n  {}", show(item))?;
        }
    }
    Ok(())
}

fn change(change: &FileChange) -> String {
    let edits = [
        (change.replacements, "replacement"),
        (change.insertions, "insertion"),
        (change.deletions, "deletion"),
    ];
    let mut parts: Vec<String> = Vec::new();
    if change.created {
        parts.push("new file".to_owned());
    }
    let made = edits.into_iter().filter(|(number, _)| *number > 0);
    parts.extend(made.map(|(number, noun)| counted(number, noun)));
    let mut shown = format!("{}: {}", change.path, parts.join(", "));
    if change.edits() > 0 {
        shown.push_str(&format!(" (+{}/-{} lines)", change.lines_added, change.lines_removed));
    }
    format!("{shown}, {} now", counted(change.bytes, "byte"))
}

impl Report {
    fn failure(&self, failure: &Failure) -> String {
        let Failure { path, line, message, skipped_edits, discarded_edits, .. } = failure;
        let mut shown = format!("{path}: script line {line}: {message}");
        if skipped_edits + discarded_edits > 0 {
            let edits = counted(skipped_edits + discarded_edits, "edit");
            shown.push_str(&format!("\n    {edits} of this file not applied"));
        }
        if *discarded_edits > 0 {
            let verb = if *discarded_edits == 1 { "was" } else { "were" };
            shown.push_str(&format!(" ({discarded_edits} before the failure {verb} undone)"));
        }
        for (name, bytes) in failure.saved.iter().filter_map(|it| self.registers.get_key_value(it))
        {
            let bytes = counted(*bytes, "byte");
            shown.push_str(&format!(
                "\n    text kept: write `{name}` for its {bytes}, as in `replace {name}`"
            ));
        }
        if failure.unsaved > 0 {
            let lost = counted(failure.unsaved, "text");
            shown.push_str(&format!("\n    {lost} not kept: the registers are full"));
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbers(Vec<usize>);

    impl Display for Numbers {
        fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
            list(formatter, "Numbers", &self.0, ToString::to_string)
        }
    }

    #[test]
    fn a_long_list_loses_its_middle() {
        let shown = |count| Numbers((0..count).collect()).to_string();
        assert_eq!(shown(2), "\n\nNumbers:\n  0\n  1");
        assert_eq!(shown(50).lines().count(), 53);
        let text = shown(60);
        assert_eq!(text.lines().count(), 54);
        assert!(text.contains("\n  24\n  … 10 more …\n  35\n") && text.ends_with("\n  59"));
    }

    fn at(start: usize, end: usize) -> Selected {
        Selected { start, end, is_lines: false }
    }

    #[test]
    fn ranges_are_shown_by_line_and_character() {
        let document = Document::open("a", Some("né\nx\n"));
        let shown = selection(&document, &[at(1, 3), at(4, 6)]);
        let expected = "Selected at the end (2 ranges in a):\n[1:1 - 1:2]\né\n[2:0 - 3:0]\nx";
        assert_eq!(shown, expected);
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
    fn a_text_is_abridged_from_801_characters_on() {
        for character in ["x", "ä", "😀"] {
            let (most, more) = (character.repeat(800), character.repeat(801));
            assert_eq!(abridged(&most), most);
            assert!(abridged(&more).contains('…'), "{character}");
        }
    }

    #[test]
    fn large_extents_count_bytes_instead_of_lines() {
        let long = "a\n".repeat(COUNTED_BYTES);
        let document = Document::open("a", Some(&long));
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
    fn positions_are_found_far_into_a_text() {
        let long = "é\n".repeat(20_000);
        let document = Document::open("a", Some(&long));
        for (offset, line, column) in [(2, 1, 1), (30_000, 10_001, 0), (59_999, 20_000, 1)] {
            assert_eq!(position(&document, offset), format!("{line}:{column}"));
        }
    }
}
