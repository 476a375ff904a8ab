//! Shortens a summary without a model: removes whole lines, the oldest detail first.

use crate::{strategy::clip::clip, tokens::ByteEstimate};

/// Counts each byte as one token, to clip by bytes.
const BYTES: ByteEstimate = ByteEstimate::new(1);

/// Returns the text with at most `most` bytes.
///
/// Every section (a heading with its lines) shrinks in proportion to its size. In a section, lines
/// that demand or forbid something have priority, then the last lines; a note gives the number of
/// omitted lines. A fenced block is kept or removed as a whole. If no line fits, the middle of the
/// text is omitted.
pub(super) fn condense(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let sections = sections(text);
    let total: usize = sections.iter().map(Section::size).sum();
    let mut unused = 0;
    let mut kept: Vec<String> = Vec::with_capacity(sections.len());
    // Begin with the last section, and give the bytes that a section does not use to the one
    // before.
    for section in sections.iter().rev() {
        let share = most as u128 * section.size() as u128 / (total as u128).max(1);
        let room = usize::try_from(share).unwrap_or(most).saturating_add(unused);
        let part = section.within(room);
        unused = room.saturating_sub(part.len());
        kept.push(part);
    }
    kept.reverse();
    let condensed = kept.concat();
    if condensed.trim().is_empty() || condensed.len() > most {
        return clipped(text, most);
    }
    condensed
}

/// Returns the text in at most `most` bytes, with its middle omitted if it is longer.
pub(super) fn clipped(text: &str, most: usize) -> String {
    let mut clipped = clip(text, most as u64, &BYTES);
    // If the limit is very low, the note about the omission alone exceeds it.
    while clipped.len() > most {
        clipped.pop();
    }
    clipped
}

/// A heading and the lines up to the next one.
#[derive(Default)]
struct Section<'t> {
    heading: Option<&'t str>,
    /// Lines, or fenced blocks, with their line breaks.
    units: Vec<&'t str>,
    /// Number of lines that earlier condensations omitted.
    left_out: usize,
}

fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections = vec![Section::default()];
    let mut start = 0;
    let mut fence: Option<&str> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        if let Some(open) = fence {
            if closes(line, open) {
                fence = None;
            }
        } else {
            fence = opening(line);
        }
        // The lines of a fence are one unit.
        if fence.is_some() && at < text.len() {
            continue;
        }
        let unit = text.get(start..at).unwrap_or_default();
        start = at;
        if unit == line && is_heading(line) {
            sections.push(Section { heading: Some(line), ..Section::default() });
        } else if let Some(section) = sections.last_mut() {
            section.add(unit);
        }
    }
    sections
}

/// The run of at least three backticks or tildes that opens a fence.
fn opening(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.trim_start_matches('`').len().min(line.trim_start_matches('~').len());
    line.get(..line.len() - rest).filter(|fence| fence.len() >= 3)
}

fn closes(line: &str, open: &str) -> bool {
    let line = line.trim();
    line.starts_with(open) && line.trim_start_matches(['`', '~']).is_empty()
}

fn is_heading(line: &str) -> bool {
    let level = line.len() - line.trim_start_matches('#').len();
    (1..=6).contains(&level) && line.get(level..).is_some_and(|rest| rest.starts_with(' '))
}

impl<'t> Section<'t> {
    fn add(&mut self, text: &'t str) {
        if let Some(count) = omitted_lines(text) {
            self.left_out = self.left_out.saturating_add(count);
        } else if !text.trim().is_empty() {
            self.units.push(text);
        }
    }

    fn size(&self) -> usize {
        let units: usize = self.units.iter().map(|unit| unit.len()).sum();
        units + self.heading.map_or(0, str::len)
    }

    /// Returns the section in at most `room` bytes; empty if no line fits.
    fn within(&self, room: usize) -> String {
        // A blank line follows the heading, and another one the section.
        let fixed = self.heading.map_or(0, |heading| heading.len() + 1) + 2;
        let whole = self.size().saturating_add(fixed);
        let note_bytes = note(if whole <= room { self.left_out } else { 99_999 }).len();
        let mut left = room.saturating_sub(fixed).saturating_sub(note_bytes);
        let mut units: Vec<(&str, bool)> = self.units.iter().map(|unit| (*unit, false)).collect();
        for (unit, kept) in units.iter_mut().rev() {
            if let Some(rest) = left.checked_sub(unit.len()) {
                (*kept, left) = (true, rest);
            }
        }
        let (kept, removed): (Vec<_>, Vec<_>) = units.into_iter().partition(|(_, kept)| *kept);
        let text: String = kept.into_iter().map(|(unit, _)| unit).collect();
        if text.is_empty() {
            return text;
        }
        let removed: usize = removed.iter().map(|(unit, _)| unit.lines().count()).sum();
        let heading = self.heading.map(|line| format!("{line}\n")).unwrap_or_default();
        let note = note(self.left_out.saturating_add(removed));
        let end = if text.ends_with('\n') { "\n" } else { "\n\n" };
        format!("{heading}{note}{text}{end}")
    }
}

/// The line with the number of omitted lines; empty if there are none.
fn note(count: usize) -> String {
    if count == 0 { String::new() } else { format!("({count} lines left out)\n") }
}

/// Returns the number in a line that [`note`] wrote.
fn omitted_lines(line: &str) -> Option<usize> {
    line.trim().strip_prefix('(')?.strip_suffix(" lines left out)")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brief() -> String {
        let done = (0..40).map(|step| format!("- step {step} of the port is done\n"));
        let files = (0..10).map(|file| format!("- src/part_{file}.rs was changed\n"));
        let (done, files) = (done.collect::<String>(), files.collect::<String>());
        format!("# Brief\n\n- You must never touch the lexer.\n{done}\n## Files\n\n{files}")
    }

    #[test]
    fn a_text_that_fits_is_unchanged() {
        let brief = brief();
        assert_eq!(condense(&brief, brief.len()), brief);
    }

    #[test]
    fn the_newest_lines_of_every_section_stay_whole() {
        let (brief, most) = (brief(), 600);
        let condensed = condense(&brief, most);
        assert!(condensed.len() <= most && condensed.len() > most / 2, "{condensed}");
        for kept in ["step 39", "part_9.rs", "# Brief", "## Files"] {
            assert!(condensed.contains(kept), "{kept}: {condensed}");
        }
        assert!(!condensed.contains("step 1 ") && condensed.contains("lines left out)"));
        let whole =
            |line: &str| line.ends_with("left out)") || brief.contains(&format!("{line}\n"));
        assert!(condensed.lines().all(|line| line.is_empty() || whole(line)), "{condensed}");
    }

    #[test]
    fn lines_that_an_earlier_condensation_left_out_are_counted() {
        let lines = (0..20).map(|line| format!("- line number {line}\n")).collect::<String>();
        let twice = condense(&condense(&lines, 240), 120);
        let kept = twice.lines().filter(|line| line.starts_with('-')).count();
        assert!(twice.contains(&format!("({} lines left out)", 20 - kept)), "{twice}");
        assert_eq!(twice.matches("left out").count(), 1);
    }

    #[test]
    fn a_fence_stays_whole_or_goes_whole() {
        let code = "let x = 1;\n".repeat(8);
        let brief = format!("# A\n\n```rust\n# no heading\n{code}```\n- old\n- new\n");
        for most in 20..brief.len() {
            let condensed = condense(&brief, most);
            let whole = condensed.contains(&code) && condensed.contains("```rust\n# no heading");
            assert!(whole || !condensed.contains("let x"), "{most}: {condensed}");
            assert_eq!(condensed.matches("```").count() % 2, 0, "{most}: {condensed}");
        }
    }

    #[test]
    fn one_line_that_is_too_long_loses_its_middle() {
        let long = "ä".repeat(1_000);
        let condensed = condense(&long, 300);
        assert!(condensed.len() <= 300 && condensed.starts_with('ä') && condensed.ends_with('ä'));
        for most in 0..40 {
            assert!(condense(&long, most).len() <= most);
        }
    }
}
