//! Texts as tokens (words, numbers, punctuation), so that a fact is found whole or not at all.
//!
//! A token is *glued* if no white space separates it from the previous one. Quotation marks,
//! apostrophes, backticks and double asterisks are skipped, so a fact is found in every style of
//! quotation.

use crate::message::steps;

/// A word, a number or a punctuation character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub text: &'a str,
    /// The byte offset at which it begins.
    pub(crate) start: usize,
    /// Whether no white space separates it from the previous token.
    pub(crate) glued: bool,
}

/// Returns the tokens of a text, in order.
pub fn tokens(text: &str) -> Tokens<'_> {
    Tokens { text, at: 0, glued: false, before_unit: false, before: None }
}

#[derive(Debug)]
pub struct Tokens<'a> {
    text: &'a str,
    at: usize,
    glued: bool,
    /// Whether the next token is the unit of a number. It does not count as glued, so that `12ms`
    /// equals `12 ms`.
    before_unit: bool,
    before: Option<char>,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let start = self.at;
            let rest = self.text.get(start..)?;
            let first = rest.chars().next()?;
            let before = self.before.replace(first);
            if first.is_whitespace() {
                steps::round();
                (self.at, self.glued) = (start + first.len_utf8(), false);
            } else if let Some(length) = skipped(rest, first) {
                steps::up_to(rest, Some(length));
                self.at = start + length;
            } else {
                let length = length(rest, first, before);
                steps::up_to(rest, Some(length));
                self.at = start + length;
                let text = rest.get(..length)?;
                let glued = self.glued && !std::mem::take(&mut self.before_unit);
                let next = rest.get(length..).and_then(|rest| rest.chars().next());
                self.before_unit = first.is_ascii_digit()
                    && next.is_some_and(|next| next.is_alphabetic() || next == '%');
                (self.glued, self.before) = (true, text.chars().next_back());
                return Some(Token { text, start, glued });
            }
        }
    }
}

/// Returns the length in bytes of the token that `rest` begins with.
fn length(rest: &str, first: char, before: Option<char>) -> usize {
    let lone = first.len_utf8();
    if !is_word(first) {
        return lone;
    }
    if matches!(first, 'v' | 'V')
        && rest.as_bytes().get(lone).is_some_and(u8::is_ascii_digit)
        && !before.is_some_and(is_word)
    {
        return lone;
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        return digits;
    }
    // Nearly all words are ASCII.
    let plain = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let plain = plain.count();
    if rest.as_bytes().get(plain).is_none_or(u8::is_ascii) {
        return plain;
    }
    rest.find(|c| !is_word(c)).unwrap_or(rest.len())
}

/// Returns the length in bytes of the mark of quotation or emphasis that `rest` begins with.
fn skipped(rest: &str, first: char) -> Option<usize> {
    match rest.starts_with("**") {
        true => Some(rest.bytes().take_while(|byte| *byte == b'*').count()),
        false => is_quotation_mark(first).then_some(first.len_utf8()),
    }
}

/// Whether a character is a quotation mark.
pub(crate) fn is_quotation_mark(c: char) -> bool {
    matches!(c, '"' | '`' | '\'' | '\u{ab}' | '\u{bb}' | '\u{2018}'..='\u{201f}')
}

/// Whether a character is part of a word. In scripts without spaces each character is a token.
pub(crate) fn is_word(c: char) -> bool {
    c == '_' || (c.is_alphanumeric() && c < '\u{2e80}')
}

/// Returns the form in which tokens are compared: without underscores of emphasis, and in lower
/// case if `folds_case` is set.
pub(crate) fn canonical<'a>(token: &'a str, folds_case: bool, out: &'a mut String) -> &'a str {
    if !folds_case
        || token.bytes().all(|byte| byte.is_ascii() && byte != b'_' && !byte.is_ascii_uppercase())
    {
        return token;
    }
    out.clear();
    let trimmed = token.trim_matches('_');
    let text = if trimmed.is_empty() { token } else { trimmed };
    out.extend(text.chars().flat_map(char::to_lowercase));
    out
}

/// Returns the 64-bit FNV-1a hash of bytes or characters. It is no protection against collisions.
pub(crate) fn hash<T: Into<u64>>(units: impl Iterator<Item = T>) -> u64 {
    units.fold(0xcbf2_9ce4_8422_2325, |hash, unit| {
        (hash ^ unit.into()).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(&str, bool)> {
        tokens(text).map(|token| (token.text, token.glued)).collect()
    }

    #[test]
    fn words_numbers_and_signs_are_tokens() {
        let expected = [("a", false), (".", true), ("b_c", true)];
        assert_eq!(texts("**`a.b_c`**"), expected);
        assert_eq!(texts("don\u{2019}t"), [("don", false), ("t", true)]);
        assert_eq!(texts("don't"), texts("don\u{2019}t"));
        assert_eq!(texts("12ms"), texts("12 ms"));
        assert_eq!(texts("v1.2"), [("v", false), ("1", true), (".", true), ("2", true)]);
        assert_eq!(texts("\u{6f22}\u{5b57}"), [("\u{6f22}", false), ("\u{5b57}", true)]);
        assert_eq!(texts("--x=\"y\""), texts("--x=y"));
    }
}
