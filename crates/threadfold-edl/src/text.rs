//! Functions over plain text: ranges, lines, line endings, and short forms for messages.

use std::ops::Range;

/// The maximum number of characters of a pattern, word or path that a message quotes.
const QUOTED_CHARACTERS: usize = 60;

/// Returns a range of a text. The range must end on character boundaries.
pub(crate) fn slice(text: &str, range: Range<usize>) -> &str {
    let slice = text.get(range.clone());
    debug_assert!(slice.is_some(), "{range:?} is no range of {} bytes", text.len());
    slice.unwrap_or_default()
}

/// Counts the lines of a text. A last line counts with and without its line feed.
pub(crate) fn count_lines(text: &str) -> usize {
    let feeds = text.bytes().filter(|byte| *byte == b'\n').count();
    feeds + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Returns the number of line feeds in a text, and of characters after the last of them.
pub(crate) fn end_position(text: &str) -> (usize, usize) {
    let last_line = text.rsplit('\n').next().unwrap_or(text);
    (text.matches('\n').count(), last_line.chars().count())
}

/// Returns the line ending of a text: CRLF if every line has it, otherwise a line feed.
pub(crate) fn line_ending(text: &str) -> &'static str {
    let feeds = text.matches('\n').count();
    if feeds > 0 && text.matches("\r\n").count() == feeds { "\r\n" } else { "\n" }
}

/// Shortens a text to the length that messages quote.
pub(crate) fn shorten(text: &str) -> String {
    abridge(text, QUOTED_CHARACTERS)
}

/// Returns the first characters of a text, on one line.
pub(crate) fn abridge(text: &str, characters: usize) -> String {
    let mut abridged = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == characters {
            abridged.push('…');
            break;
        }
        match character {
            '\n' => abridged.push('⏎'),
            _ if character.is_control() => abridged.extend(character.escape_default()),
            _ => abridged.push(character),
        }
    }
    abridged
}

/// Returns a number with its noun, in the plural where English has it.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abridged_text_has_one_line() {
        assert_eq!(abridge("a\nb\rcd", 5), "a⏎b\\rc…");
        assert_eq!(abridge("ab", 2), "ab");
        assert_eq!(shorten("né \"x\\d\" 'y'\u{7}"), "né \"x\\d\" 'y'\\u{7}");
    }

    #[test]
    fn a_last_line_counts_once() {
        assert_eq!(["", "a", "a\n", "a\nb", "\n"].map(count_lines), [0, 1, 1, 2, 1]);
    }

    #[test]
    fn columns_count_characters() {
        let ends = ["", "né", "né\n", "né\nx", "\n\n"].map(end_position);
        assert_eq!(ends, [(0, 0), (0, 2), (1, 0), (1, 1), (2, 0)]);
    }

    #[test]
    fn a_text_ends_its_lines_with_crlf_if_all_do() {
        assert_eq!(line_ending("a\r\nb\r\n"), "\r\n");
        for text in ["", "a", "a\r\nb\n", "\n"] {
            assert_eq!(line_ending(text), "\n", "{text:?}");
        }
    }
}
