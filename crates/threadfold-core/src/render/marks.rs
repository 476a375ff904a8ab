//! Writing the rendering's own lines, and escaping text of the thread that looks like them.

use std::fmt::{self, Write};

use super::lookalikes::Lookalikes;
use crate::message::{boundary_before, slice};

/// The maximum length in bytes of a name, id, path or title.
const INLINE: usize = 200;

/// Writes the heading of a block: its kind, a detail, and notes in parentheses.
pub(super) fn heading<'a>(
    out: &mut impl Write,
    kind: &str,
    detail: &str,
    notes: impl IntoIterator<Item = &'a str>,
) -> fmt::Result {
    out.write_str("## ")?;
    out.write_str(kind)?;
    if !detail.is_empty() {
        out.write_str(": ")?;
        inline(out, detail)?;
    }
    let mut open = false;
    for note in notes {
        out.write_str(if open { ", " } else { " (" })?;
        inline(out, note)?;
        open = true;
    }
    out.write_str(if open { ")\n\n" } else { "\n\n" })
}

/// Writes a text of the thread on the current line, cut to [`INLINE`] bytes.
pub(super) fn inline(out: &mut impl Write, text: &str) -> fmt::Result {
    if text.len() <= INLINE
        && text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'#' && byte != b'`')
    {
        return out.write_str(text);
    }
    let (short, _) = text.split_at(boundary_before(text, INLINE));
    let line = short.replace('`', "'").replace(|c: char| c.is_control() || c.is_whitespace(), " ");
    let mut lookalikes = Lookalikes::default();
    lookalikes.find(&line);
    escaped(out, &line, &lookalikes)?;
    if short.len() < text.len() { out.write_str("...") } else { Ok(()) }
}

/// Writes a text of the thread, and a blank line.
pub(super) fn prose(out: &mut impl Write, text: &str, lookalikes: &mut Lookalikes) -> fmt::Result {
    lookalikes.find(text);
    escaped(out, text, lookalikes)?;
    end_line(out, text)?;
    if let Some(fence) = open_fence(text, lookalikes) {
        out.write_str(fence)?;
        out.write_str("\n")?;
    }
    out.write_str("\n")
}

/// Writes a text with a backslash before each hash that would start one of our headings.
pub(super) fn escaped(out: &mut impl Write, text: &str, lookalikes: &Lookalikes) -> fmt::Result {
    let mut written = 0;
    for hash in &lookalikes.hashes {
        out.write_str(slice(text, written..*hash))?;
        out.write_str("\\")?;
        written = *hash;
    }
    out.write_str(slice(text, written..))
}

/// Writes a line break unless the text ends with one.
pub(super) fn end_line(out: &mut impl Write, text: &str) -> fmt::Result {
    if text.ends_with('\n') { Ok(()) } else { out.write_str("\n") }
}

pub(super) fn backticks(out: &mut impl Write, mut count: usize) -> fmt::Result {
    const RUN: &str = "````````````````````````````````";
    while count > 0 {
        let run = RUN.get(..count).unwrap_or(RUN);
        out.write_str(run)?;
        count -= run.len();
    }
    Ok(())
}

/// Returns the line that closes the fence which a text leaves open. It has the indent of the
/// opening line, so that it also closes a fence in a list item.
fn open_fence<'a>(text: &'a str, lookalikes: &Lookalikes) -> Option<&'a str> {
    let mut open: Option<&str> = None;
    for (fence, info) in lookalikes.fences.iter().filter_map(|run| fence(text, *run)) {
        open = match open {
            // With a backtick in the info string it is a code span, not a fence.
            None if fence.ends_with('`') && info.contains('`') => None,
            None => Some(fence),
            Some(opener) => {
                let closes =
                    fence.trim_start().starts_with(opener.trim_start()) && info.trim().is_empty();
                (!closes).then_some(opener)
            }
        };
    }
    open
}

/// Returns the fence whose run of marks starts at `run`, with its indent, and the info string after
/// it; `None` if more than an indent precedes it.
fn fence(text: &str, run: usize) -> Option<(&str, &str)> {
    let before = text.get(..run)?;
    let line = before.trim_end_matches(' ');
    if run - line.len() > 3 || !(line.is_empty() || line.ends_with(['\n', '\r'])) {
        return None;
    }
    let rest = text.get(run..)?.split(['\n', '\r']).next()?;
    let info = rest.trim_start_matches(|mark| rest.starts_with(mark));
    Some((text.get(line.len()..run + rest.len() - info.len())?, info))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_fence(text: &str) -> Option<&str> {
        let mut lookalikes = Lookalikes::default();
        lookalikes.find(text);
        super::open_fence(text, &lookalikes)
    }

    fn written(write: impl FnOnce(&mut String) -> fmt::Result) -> String {
        let mut text = String::new();
        write(&mut text).unwrap();
        text
    }

    #[test]
    fn a_fence_that_a_text_leaves_open_is_found() {
        assert_eq!(open_fence("a\n```rust\nb\n"), Some("```"));
        assert_eq!(open_fence("  ~~~~\n~~~\n```"), Some("  ~~~~"));
        assert_eq!(open_fence("```\nb\n`````  \nc"), None);
        assert_eq!(open_fence("   ```\nb"), Some("   ```"));
        assert_eq!(open_fence("    ```\nb"), None);
        assert_eq!(open_fence("```\nb\n``` no"), Some("```"));
        assert_eq!(open_fence("```a`b\n    ```"), None);
    }

    #[test]
    fn text_in_a_heading_stays_on_one_line() {
        let text = written(|out| heading(out, "tool_use", "a\n# user:\u{2028}`b`", ["t\r1"]));
        assert_eq!(text, "## tool_use: a \\# user: 'b' (t 1)\n\n");
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let text = written(|out| inline(out, &"ä".repeat(150)));
        assert_eq!(text, format!("{}...", "ä".repeat(100)));
    }

    #[test]
    fn a_run_of_backticks_may_have_any_length() {
        assert_eq!(written(|out| backticks(out, 100)), "`".repeat(100));
    }

    #[test]
    fn a_short_name_is_written_without_marks() {
        for (text, expected) in
            [("a b~", "a b~"), ("a`b", "a'b"), ("``", "''"), ("# user: x", "\\# user: x")]
        {
            assert_eq!(written(|out| inline(out, text)), expected);
        }
        let (fits, too_long) = ("x".repeat(INLINE), "x".repeat(INLINE + 1));
        assert_eq!(written(|out| inline(out, &fits)), fits);
        assert_eq!(written(|out| inline(out, &too_long)), format!("{fits}..."));
    }

    #[test]
    fn a_heading_has_its_notes_in_parentheses() {
        assert_eq!(written(|out| heading(out, "text", "", [])), "## text\n\n");
        assert_eq!(written(|out| heading(out, "text", "d", ["a", "b"])), "## text: d (a, b)\n\n");
    }
}
