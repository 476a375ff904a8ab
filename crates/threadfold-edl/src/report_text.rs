//! What a run did, as the text that goes back to a model.
//!
//! The headline says whether it worked. Sections that have nothing to say are left out, and long
//! lists lose their middle: the text costs the model tokens, and the data has it all.

use std::fmt::{self, Display, Formatter};

use super::{
    document::EditCounts,
    report::{Failure, FileChange, Report, SelectedRange, Selection},
    words::count,
};

/// How many lines of a list are shown at its head, and as many at its end.
const LIST_LINES: usize = 25;

impl Display for Report {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        headline(self, formatter)?;
        if !self.warnings.is_empty() {
            formatter.write_str("\n\nWarnings:")?;
            list(formatter, &self.warnings, |warning, formatter| write!(formatter, "{warning}"))?;
        }
        if !self.trace.is_empty() {
            formatter.write_str("\n\nTrace:")?;
            list(formatter, &self.trace, |entry, formatter| {
                write!(formatter, "{} → {}", entry.command, entry.outcome)
            })?;
        }
        if !self.changes.is_empty() {
            formatter.write_str("\n\nWritten:")?;
            list(formatter, &self.changes, change)?;
        }
        if let Some(selected) = &self.selection {
            selection(selected, formatter)?;
        }
        if !self.failures.is_empty() {
            formatter.write_str("\n\nFailed:")?;
            list(formatter, &self.failures, failure)?;
        }
        Ok(())
    }
}

fn headline(report: &Report, formatter: &mut Formatter<'_>) -> fmt::Result {
    let written = count(report.changes.len(), "file");
    match report.failures.len() {
        0 if report.changes.is_empty() => formatter.write_str("OK: nothing modified."),
        0 => write!(formatter, "OK: {written} written."),
        failed => write!(
            formatter,
            "FAILED: {} failed and left as before, {written} written. See the end of this report.",
            count(failed, "file")
        ),
    }
}

/// Writes a list, one item a line, without its middle if it is long.
fn list<T>(
    formatter: &mut Formatter<'_>,
    items: &[T],
    write_item: impl Fn(&T, &mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    let tail = items.len().saturating_sub(LIST_LINES).max(LIST_LINES);
    for (index, item) in items.iter().enumerate() {
        if index == LIST_LINES && tail > index {
            write!(formatter, "\n  … {} more …", tail - index)?;
        }
        if index < LIST_LINES || index >= tail {
            formatter.write_str("\n  ")?;
            write_item(item, formatter)?;
        }
    }
    Ok(())
}

fn change(change: &FileChange, formatter: &mut Formatter<'_>) -> fmt::Result {
    let EditCounts { replacements, insertions, deletions, lines_added, lines_removed } =
        change.counts;
    let edits = [(replacements, "replacement"), (insertions, "insertion"), (deletions, "deletion")];
    let mut parts: Vec<String> = Vec::new();
    if change.created {
        parts.push("new file".to_owned());
    }
    let named = edits.into_iter().filter(|(number, _)| *number > 0);
    parts.extend(named.map(|(number, noun)| count(number, noun)));
    write!(formatter, "{}: {}", change.path, parts.join(", "))?;
    if change.counts.is_edited() {
        write!(formatter, " (+{lines_added}/-{lines_removed} lines)")?;
    }
    write!(formatter, ", {} now", count(change.bytes, "byte"))
}

fn selection(selection: &Selection, formatter: &mut Formatter<'_>) -> fmt::Result {
    let ranges = count(selection.count, "range");
    write!(formatter, "\n\nSelected at the end ({ranges} in {}):", selection.path)?;
    for SelectedRange { start, end, text } in &selection.ranges {
        let (from, to) = ((start.line, start.column), (end.line, end.column));
        write!(formatter, "\n[{}:{} - {}:{}]", from.0, from.1, to.0, to.1)?;
        if !text.is_empty() {
            write!(formatter, "\n{}", text.strip_suffix('\n').unwrap_or(text))?;
        }
    }
    match selection.count - selection.ranges.len().min(selection.count) {
        0 => Ok(()),
        hidden => write!(formatter, "\n… {} more …", count(hidden, "range")),
    }
}

fn failure(failure: &Failure, formatter: &mut Formatter<'_>) -> fmt::Result {
    let Failure { path, place, message, .. } = failure;
    write!(formatter, "{path}: script line {}: {message}", place.line)?;
    let skipped = failure.skipped_edits;
    let discarded = failure.discarded_edits;
    if skipped + discarded > 0 {
        let edits = count(skipped + discarded, "edit");
        write!(formatter, "\n    {edits} of this file not applied")?;
    }
    if discarded > 0 {
        let verb = if discarded == 1 { "was" } else { "were" };
        write!(formatter, " ({discarded} before the failure {verb} undone)")?;
    }
    for saved in &failure.saved {
        let bytes = count(saved.bytes, "byte");
        write!(
            formatter,
            "\n    text kept: write `{}` for its {bytes}, as in `replace {}`",
            saved.name, saved.name
        )?;
    }
    match failure.unsaved {
        0 => Ok(()),
        lost => write!(formatter, "\n    {} not kept: the registers are full", count(lost, "text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbers(Vec<usize>);

    impl Display for Numbers {
        fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
            list(formatter, &self.0, |number, formatter| write!(formatter, "{number}"))
        }
    }

    #[test]
    fn a_long_list_loses_its_middle() {
        let shown = |count| Numbers((0..count).collect()).to_string();
        assert_eq!(shown(2), "\n  0\n  1");
        assert_eq!(shown(50).lines().count(), 51);
        let text = shown(60);
        assert_eq!(text.lines().count(), 52);
        assert!(text.contains("\n  24\n  … 10 more …\n  35\n") && text.ends_with("\n  59"));
    }
}
