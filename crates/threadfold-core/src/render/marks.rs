//! What the rendering writes in its own name, and how the thread's text is kept apart from it.

use std::fmt::{self, Write};

use super::scan::Scan;

/// How many bytes of a name, an id, a path or a title are shown.
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

/// Writes a text of the thread on the current line.
pub(super) fn inline(out: &mut impl Write, text: &str) -> fmt::Result {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'#' && byte != b'`';
    if text.len() <= INLINE && text.bytes().all(is_plain) {
        return out.write_str(text);
    }
    let plain = |c: char| match c {
        '`' => '\'',
        _ if c.is_control() || c.is_whitespace() => ' ',
        _ => c,
    };
    let short = text.get(..border_before(text, INLINE)).unwrap_or_default();
    let line: String = short.chars().map(plain).collect();
    let mut scan = Scan::default();
    scan.read(&line);
    escaped(out, &line, &scan)?;
    if short.len() < text.len() { out.write_str("...") } else { Ok(()) }
}

/// Writes a text of the thread as it is, and a blank line.
pub(super) fn prose(out: &mut impl Write, text: &str, scan: &mut Scan) -> fmt::Result {
    scan.read(text);
    escaped(out, text, scan)?;
    end_line(out, text)?;
    if let Some(fence) = open_fence(text, scan) {
        out.write_str(fence)?;
        out.write_str("\n")?;
    }
    out.write_str("\n")
}

/// Writes a text with a backslash before each hash that would begin a heading of ours.
pub(super) fn escaped(out: &mut impl Write, text: &str, scan: &Scan) -> fmt::Result {
    let mut written = 0;
    for hash in &scan.hashes {
        out.write_str(text.get(written..*hash).unwrap_or_default())?;
        out.write_str("\\")?;
        written = *hash;
    }
    out.write_str(text.get(written..).unwrap_or_default())
}

/// Ends the line that a text may have left open.
pub(super) fn end_line(out: &mut impl Write, text: &str) -> fmt::Result {
    if text.ends_with('\n') { Ok(()) } else { out.write_str("\n") }
}

/// Writes so many backticks.
pub(super) fn backticks(out: &mut impl Write, mut count: usize) -> fmt::Result {
    const RUN: &str = "````````````````````````````````";
    while count > 0 {
        let run = RUN.get(..count).unwrap_or(RUN);
        out.write_str(run)?;
        count -= run.len();
    }
    Ok(())
}

/// The last place not after an offset where a text may be cut.
pub(super) fn border_before(text: &str, offset: usize) -> usize {
    let mut border = offset.min(text.len());
    while !text.is_char_boundary(border) {
        border -= 1;
    }
    border
}

/// Returns the line that closes the fence which a text leaves open: indented like the one that
/// opened it, so that it closes a fence in an item of a list too.
fn open_fence<'a>(text: &'a str, scan: &Scan) -> Option<&'a str> {
    let mut open: Option<&str> = None;
    for (fence, info) in scan.fences.iter().filter_map(|run| fence(text, *run)) {
        open = match open {
            // An info string with a backtick makes it a span of code.
            None if fence.ends_with('`') && info.contains('`') => None,
            None => Some(fence),
            Some(opener) => {
                let is_long = fence.trim_start().starts_with(opener.trim_start());
                let closes = is_long && info.trim().is_empty();
                (!closes).then_some(opener)
            }
        };
    }
    open
}

/// Returns the fence whose run begins here, with its indent, and what follows on its line; nothing
/// if more than an indent stands before it.
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
        let mut scan = Scan::default();
        scan.read(text);
        super::open_fence(text, &scan)
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
    fn what_stands_in_a_heading_stays_on_its_line() {
        let text = written(|out| heading(out, "tool_use", "a\n# user:\u{2028}`b`", ["t\r1"]));
        assert_eq!(text, "## tool_use: a \\# user: 'b' (t 1)\n\n");
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let text = written(|out| inline(out, &"ä".repeat(150)));
        assert_eq!(text, format!("{}...", "ä".repeat(100)));
    }

    #[test]
    fn a_run_of_backticks_has_any_length() {
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
