//! Pieces of a word, and how readily a piece counts as a fact.

use super::{
    token::{is_quotation_mark, is_word},
    word_kinds,
};
use crate::message::steps;

/// How readily a word counts as a fact, depending on where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Least readily: in tool output, which is full of lists, code and logs.
    Little,
    /// In prose of the user or the model.
    Prose,
    /// Most readily: between backticks, or if candidates are only compared with known facts.
    Full,
}

/// A piece of a word between brackets, quotation marks and the like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<'a> {
    pub(crate) text: &'a str,
    /// Whether `(` follows the piece directly.
    pub(crate) opens_call: bool,
    /// Whether the piece continues another one before a bracket, as `/b.ts` does in `a/[id]/b.ts`.
    pub(crate) severed: bool,
    /// Whether the piece is the whole text between two backticks.
    pub(crate) ticked: bool,
}

/// Returns the pieces of a word.
pub(crate) fn chunks(word: &str) -> impl Iterator<Item = Chunk<'_>> {
    let mut rest = word;
    let mut opener = ' ';
    let is_ascii = word.is_ascii();
    std::iter::from_fn(move || {
        let start = find(rest, is_ascii, false)?;
        if let Some(last) = rest.get(..start).and_then(|border| border.chars().next_back()) {
            opener = last;
        }
        let body = rest.get(start..)?;
        let end = find(body, is_ascii, true).unwrap_or(body.len());
        let closer = body.get(end..).and_then(|rest| rest.chars().next());
        let text = trimmed(body.get(..end)?);
        rest = body.get(end..)?;
        let ticked = opener == '`' && (closer == Some('`') || rest.starts_with("()`"));
        let severed = matches!(opener, ']' | ')' | '}' | '>') && text.starts_with(['/', '.']);
        let opens_call = closer == Some('(');
        opener = ' ';
        Some(Chunk { text, opens_call, severed, ticked })
    })
}

/// Returns the byte offset of the first character that is a border, or with `border == false` of
/// the first that is not.
fn find(text: &str, is_ascii: bool, border: bool) -> Option<usize> {
    // Most words are ASCII, and bytes are classified faster than characters.
    let found = if is_ascii {
        text.bytes().position(|byte| word_kinds::is_border(byte) == border)
    } else {
        text.find(|c| is_border(c) == border)
    };
    steps::up_to(text, found)
}

fn is_border(c: char) -> bool {
    match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() => word_kinds::is_border(byte),
        _ => is_quotation_mark(c) || matches!(c, '\u{2026}' | '\u{2192}' | '\u{300c}' | '\u{300d}'),
    }
}

/// Strips the punctuation at the end, and the marks of lists and diffs at the start.
fn trimmed(text: &str) -> &str {
    let text = text.trim_end_matches(['.', ':', '-', '+', '#', '\\']);
    let diff = ["+./", "-./"].iter().any(|mark| text.starts_with(mark));
    let text = if diff { text.get(1..).unwrap_or(text) } else { text };
    text.trim_start_matches([':', '#', '+'])
}

/// Whether a text begins and ends with a character of a word.
pub(crate) fn is_wordy(text: &str) -> bool {
    text.starts_with(is_word) && text.ends_with(is_word)
}
