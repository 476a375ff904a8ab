//! Texts between quotation marks or backticks.

use super::class::{FactClass, Note};
use crate::message::{slice, steps};

/// The opening and closing marks.
const PAIRS: [(char, char); 5] = [
    ('"', '"'),
    ('\u{201c}', '\u{201d}'),
    ('\u{ab}', '\u{bb}'),
    ('\u{201e}', '\u{201c}'),
    ('`', '`'),
];

/// The maximum length of a quote, in bytes.
const LONGEST: usize = 160;

/// Notes the quoted texts in a text, outside fences. A quote does not extend beyond its line.
pub(crate) fn quotes(text: &str, note: Note<'_>) {
    let mut fenced = false;
    for line in steps::through(text).lines() {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        // Most lines have no mark, and bytes are compared faster than characters.
        let marked = line.bytes().any(|byte| matches!(byte, b'"' | b'`') || !byte.is_ascii());
        if marked && !fenced && !fence {
            of_line(line, note);
        }
    }
}

fn of_line(line: &str, note: Note<'_>) {
    let mut open: Option<(char, usize)> = None;
    let mut before = ' ';
    for (at, next) in line.char_indices() {
        match open {
            Some((close, start)) if next == close || at - start > LONGEST => {
                if next == close {
                    note_quote(slice(line, start..at), close == '`', note);
                }
                open = None;
            }
            Some(_) => {}
            None => {
                let pair = PAIRS.iter().find(|(opening, _)| *opening == next);
                let free = !before.is_alphanumeric();
                open = pair.filter(|_| free).map(|(_, close)| (*close, at + next.len_utf8()));
            }
        }
        before = next;
    }
}

fn note_quote(quote: &str, ticked: bool, note: Note<'_>) {
    let letters = quote.chars().filter(|c| c.is_alphanumeric()).count();
    let trimmed = quote.trim() == quote && !quote.contains('\\');
    // A single word between backticks is a name, which `symbol` finds.
    if letters > 1 && trimmed && (!ticked || (quote.contains(' ') && letters > 4)) {
        note(FactClass::Quote, quote);
    }
}
