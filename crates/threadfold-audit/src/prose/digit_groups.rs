//! Digits in a text, divided into groups, and the text around them.

use std::ops::Range;

use crate::message::{slice, steps};

/// The maximum bytes of a quantity. A longer sequence of digits is a key or a hash.
pub(super) const LONGEST: usize = 32;

/// The digits of one quantity, with the text around them.
pub(super) struct DigitGroups<'a> {
    pub(super) before: &'a str,
    pub(super) groups: Vec<&'a str>,
    /// The sign or the space after each group except the last.
    pub(super) signs: Vec<char>,
    pub(super) after: &'a str,
    /// The word after the digits, directly or after a space. It is empty if a mark follows.
    pub(super) next: &'a str,
    /// The word directly after the digits: `ms` in `12ms`.
    pub(super) glued: &'a str,
}

impl<'a> DigitGroups<'a> {
    /// Returns the groups in a range of a text.
    pub(super) fn new(text: &'a str, range: Range<usize>) -> Self {
        let after = slice(text, range.end..);
        let rest = after.trim_start_matches(is_space);
        // `A 30-second break`.
        let joined = rest.strip_prefix('-').filter(|rest| rest.starts_with(char::is_alphabetic));
        let rest = joined.unwrap_or(rest);
        let digits = slice(text, range.clone());
        let next = first_word(rest);
        Self {
            before: slice(text, ..range.start),
            groups: digits.split(|c: char| !c.is_ascii_digit()).collect(),
            signs: digits.chars().filter(|c| !c.is_ascii_digit()).collect(),
            after,
            next,
            glued: if rest.len() == after.len() { next } else { "" },
        }
    }

    /// Whether a word begins before the digits and ends after the glued word, and is not the number
    /// of an item in a list.
    pub(super) fn is_word(&self) -> bool {
        begins_word(self.before)
            && ends_word(slice(self.after, self.glued.len()..))
            && !is_item(self.before, self.after)
    }
}

/// Returns the position of the next digit at or after a position.
pub(super) fn next_digit(text: &str, at: usize) -> Option<usize> {
    let rest = text.as_bytes().get(at..)?;
    // Without a branch for each byte, the processor tests several bytes at once.
    let has_none =
        |bytes: &&[u8; 16]| !bytes.iter().fold(false, |any, byte| any | byte.is_ascii_digit());
    let skipped = 16 * rest.as_chunks().0.iter().take_while(has_none).count();
    let found = rest.iter().skip(skipped).position(u8::is_ascii_digit);
    Some(at + steps::up_to(text.get(at..)?, found.map(|found| skipped + found))?)
}

/// Returns the number of digits at the start.
pub(super) fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Returns the length in bytes of the digits at the start, which a sign or a space may divide into
/// groups. A group after a space has three digits, or four as in telephone numbers.
pub(super) fn length(text: &str) -> usize {
    let mut end = digits(text);
    let mut group = end;
    while let Some(c) = slice(text, end..).chars().next().filter(|_| end < LONGEST) {
        let next = digits(slice(text, end + c.len_utf8()..));
        if !(is_sign(c) && next > 0 || is_space(c) && matches!(next, 3 | 4) && group <= 4) {
            break;
        }
        (end, group) = (end + c.len_utf8() + next, next);
    }
    end
}

fn is_sign(c: char) -> bool {
    matches!(c, '.' | ',' | ':' | '/' | '-' | '_' | '\'' | '\u{2019}')
}

/// Whether a character is a space that may divide a number, or separate it from its unit.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{202f}')
}

/// Whether a character belongs to a script that writes particles directly after digits.
pub(super) fn is_beyond_latin(c: char) -> bool {
    c > '\u{2e7f}' && c.is_alphabetic()
}

/// Whether a word may begin after this text.
fn begins_word(before: &str) -> bool {
    let before = before.chars().next_back();
    before.is_none_or(|c| is_beyond_latin(c) || !(c.is_alphanumeric() || "._-/:#,@\\+".contains(c)))
}

/// Whether a word may end before this text.
fn ends_word(after: &str) -> bool {
    let mut rest = after.chars();
    let next = rest.next();
    let follows = rest.next().is_some_and(char::is_alphanumeric);
    next.is_none_or(|c| !("_/\\@=(".contains(c) || (".:-".contains(c) && follows)))
}

/// Whether digits between these texts count the items of a list: `12. Run the tests`.
fn is_item(before: &str, after: &str) -> bool {
    let starts = before.trim_end_matches([' ', '*', '#']);
    (starts.is_empty() || starts.ends_with('\n'))
        && [". ", ") "].iter().any(|end| after.starts_with(end))
}

/// Returns the word or the sign of a unit at the start of a text, or an empty one.
fn first_word(text: &str) -> &str {
    let mut chars = text.char_indices();
    let is_sign = chars.next().is_some_and(|(_, c)| "%$\u{20ac}\u{a3}\u{a5}".contains(c));
    let end =
        if is_sign { chars.next() } else { text.char_indices().find(|(_, c)| !c.is_alphabetic()) };
    slice(text, ..end.map_or(text.len(), |(at, _)| at))
}
