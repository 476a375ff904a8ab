//! Changing the selected ranges of a document, all of them in one sweep.

use super::{
    document::{Document, Meter, Selected},
    run_error::RunError,
    shifts::Edit,
};

/// On which side of a range to insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// Replaces every range. What was put in is selected afterwards.
pub(crate) fn replace(
    document: &mut Document<'_>,
    selected: &[Selected],
    text: &str,
    meter: &mut Meter<'_>,
) -> Result<Vec<Selected>, RunError> {
    let edits: Vec<Edit<'_>> =
        selected.iter().map(|range| Edit { start: range.start, end: range.end, text }).collect();
    document.edit(&edits, meter)?;
    document.counts.replacements += edits.len();
    let (mut added, mut removed) = (0, 0);
    let moved = selected.iter().map(|range| {
        let start = range.start + added - removed;
        added += text.len();
        removed += range.end - range.start;
        Selected { start, end: start + text.len(), is_lines: false }
    });
    Ok(moved.collect())
}

/// Inserts a text beside every range. The same text as before is selected afterwards.
pub(crate) fn insert(
    document: &mut Document<'_>,
    selected: &[Selected],
    side: Side,
    text: &str,
    meter: &mut Meter<'_>,
) -> Result<Vec<Selected>, RunError> {
    let on_new_line = format!("{}{text}", document.line_ending.as_str());
    let edits: Vec<Edit<'_>> = selected
        .iter()
        .map(|range| match side {
            Side::Before => Edit { start: range.start, end: range.start, text },
            Side::After => {
                let text = if needs_line_feed(document, range) { &on_new_line } else { text };
                Edit { start: range.end, end: range.end, text }
            }
        })
        .collect();
    document.edit(&edits, meter)?;
    document.counts.insertions += edits.len();
    let mut added = 0;
    let moved = selected.iter().zip(&edits).map(|(range, edit)| {
        let before = added;
        added += edit.text.len();
        let shift = match side {
            Side::Before => added,
            Side::After => before,
        };
        Selected { start: range.start + shift, end: range.end + shift, ..*range }
    });
    Ok(moved.collect())
}

/// Removes every range. The place where the first one stood is selected afterwards.
pub(crate) fn delete(
    document: &mut Document<'_>,
    selected: &[Selected],
    meter: &mut Meter<'_>,
) -> Result<Vec<Selected>, RunError> {
    let edits: Vec<Edit<'_>> = selected
        .iter()
        .map(|range| Edit { start: range.start, end: range.end, text: "" })
        .collect();
    document.edit(&edits, meter)?;
    document.counts.deletions += edits.len();
    let start = selected.first().map_or(0, |range| range.start);
    Ok(vec![Selected { start, end: start, is_lines: false }])
}

/// Whole lines at the end of a file may lack their line feed; what follows them needs one first.
fn needs_line_feed(document: &Document<'_>, range: &Selected) -> bool {
    range.is_lines && !document.slice(range.start..range.end).ends_with('\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn at(start: usize, end: usize) -> Selected {
        Selected { start, end, is_lines: true }
    }

    #[test]
    fn insertions_leave_the_same_text_selected() {
        let limits = Limits::default();
        let mut meter = Meter { limits: &limits, searched_bytes: 0, open_bytes: 5 };
        let mut document = Document::load("x\ny\nx");
        let selected = [at(0, 2), at(4, 5)];
        let selected = insert(&mut document, &selected, Side::After, "z\n", &mut meter);
        assert_eq!(selected, Ok(vec![at(0, 2), at(6, 7)]));
        let selected = insert(&mut document, &[at(0, 2), at(6, 7)], Side::Before, ">", &mut meter);
        assert_eq!(selected, Ok(vec![at(1, 3), at(8, 9)]));
        assert_eq!(document.into_text(), ">x\nz\ny\n>x\nz\n");
    }
}
