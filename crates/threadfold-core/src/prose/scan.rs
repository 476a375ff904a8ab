//! The words of a text, each with the kinds of signs in it, in one pass over its bytes.
//!
//! Most words of prose can be no fact, and one look at these kinds tells so: with it, prose of the
//! model is read at some 90 MB a second, and at 5 where every word is asked everything.

use std::{borrow::Cow, str::SplitWhitespace};

use crate::message::steps;

/// A word, as white space parts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    /// Kinds that stand in the word. Some may not, where it has letters beyond ASCII.
    pub(crate) signs: Signs,
}

/// A set of kinds of signs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signs(u16);

impl Signs {
    pub(crate) const LOWER: Self = Self(1);
    pub(crate) const UPPER: Self = Self(1 << 1);
    pub(crate) const DIGIT: Self = Self(1 << 2);
    /// A point that is not the last sign.
    pub(crate) const POINT: Self = Self(1 << 3);
    /// `/` or `\`.
    pub(crate) const SLASH: Self = Self(1 << 4);
    /// A colon that is not the last sign.
    pub(crate) const COLON: Self = Self(1 << 5);
    /// A hyphen that is not the last sign.
    pub(crate) const HYPHEN: Self = Self(1 << 6);
    pub(crate) const UNDERSCORE: Self = Self(1 << 7);
    pub(crate) const BACKTICK: Self = Self(1 << 8);
    /// Anything that does not part the pieces of a word.
    pub(crate) const BODY: Self = Self(1 << 9);
    /// A capital that is not the first sign.
    pub(crate) const INNER: Self = Self(1 << 10);
    /// Anything beyond ASCII.
    pub(crate) const WIDE: Self = Self(1 << 11);
    const SPACE: Self = Self(1 << 12);

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn has_any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    fn of(byte: u8) -> Self {
        SIGNS.get(usize::from(byte)).copied().unwrap_or_default()
    }
}

const SIGNS: [Signs; 256] = signs();

#[allow(clippy::indexing_slicing, reason = "it runs while it is compiled")]
const fn signs() -> [Signs; 256] {
    let mut table = [Signs(0); 256];
    let mut byte: u8 = 0;
    loop {
        table[byte as usize] = match byte {
            b'a'..=b'z' => Signs::LOWER.and(Signs::BODY),
            b'A'..=b'Z' => Signs::UPPER.and(Signs::BODY).and(Signs::INNER),
            b'0'..=b'9' => Signs::DIGIT.and(Signs::BODY),
            b'.' => Signs::POINT.and(Signs::BODY),
            b'/' | b'\\' => Signs::SLASH.and(Signs::BODY),
            b':' => Signs::COLON.and(Signs::BODY),
            b'-' => Signs::HYPHEN.and(Signs::BODY),
            b'_' => Signs::UNDERSCORE.and(Signs::BODY),
            b'`' => Signs::BACKTICK,
            9..=13 | b' ' => Signs::SPACE,
            128.. => Signs::WIDE.and(Signs::BODY),
            _ if parts(byte) => Signs(0),
            _ => Signs::BODY,
        };
        if byte == u8::MAX {
            return table;
        }
        byte += 1;
    }
}

const fn parts(byte: u8) -> bool {
    matches!(byte, b'"' | b'`' | b'\'' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>')
        || matches!(
            byte,
            b',' | b';' | b'|' | b'=' | b'!' | b'?' | b'*' | b'$' | b'&' | b'^' | b'%'
        )
}

/// Whether a sign of ASCII parts a word into pieces.
pub(crate) fn is_border(byte: u8) -> bool {
    !Signs::of(byte).has_any(Signs::BODY.and(Signs::SPACE))
}

/// Returns the words of a text, in order.
pub(crate) fn words(text: &str) -> Words<'_> {
    Words { text, at: 0, wide: "".split_whitespace(), signs: Signs::default() }
}

#[derive(Debug)]
pub(crate) struct Words<'a> {
    text: &'a str,
    at: usize,
    /// What is left of a word that other white space than that of ASCII may part.
    wide: SplitWhitespace<'a>,
    signs: Signs,
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        loop {
            if let Some(text) = self.wide.next() {
                return Some(Word { text, signs: self.signs });
            }
            let (text, signs) = self.piece()?;
            if !signs.has_any(Signs::WIDE) {
                return Some(Word { text, signs });
            }
            (self.wide, self.signs) = (text.split_whitespace(), signs);
        }
    }
}

impl<'a> Words<'a> {
    /// What stands between white space of ASCII.
    fn piece(&mut self) -> Option<(&'a str, Signs)> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let spaces = rest.iter().take_while(|byte| Signs::of(**byte).has_any(Signs::SPACE)).count();
        let (start, rest) = (self.at + spaces, rest.get(spaces..)?);
        let mut signs = Signs::of(*rest.first()?).without(Signs::INNER);
        let mut length = 1;
        for byte in rest.get(1..)? {
            let next = Signs::of(*byte);
            if next.has_any(Signs::SPACE) {
                break;
            }
            signs = signs.and(next);
            length += 1;
        }
        self.at = start + length;
        let text = steps::through(self.text.get(start..self.at)?);
        Some((text, if text.ends_with(['.', ':', '-']) { but_ending(text, signs) } else { signs }))
    }
}

/// The signs of a word without what its last one alone is.
fn but_ending(text: &str, signs: Signs) -> Signs {
    let before = text.bytes().rev().skip(1).map(Signs::of).fold(Signs::default(), Signs::and);
    let ending = Signs::POINT.and(Signs::COLON).and(Signs::HYPHEN);
    Signs(signs.without(ending).0 | (before.0 & ending.0))
}

/// Returns a text with one space for all white space between its words.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let mut before = b' ';
    let plain = steps::through(text).bytes().all(|byte| {
        let last = std::mem::replace(&mut before, byte);
        byte.is_ascii_graphic() || (byte == b' ' && last != b' ')
    });
    if plain && before != b' ' {
        return text.into();
    }
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line.into()
}

/// Whether a byte pair stands in a text.
pub(crate) fn has_pair(text: &str, pair: [u8; 2]) -> bool {
    text.as_bytes().windows(2).any(|two| two == pair)
}

/// Whether a word is in a list, which is sorted.
pub(crate) fn is_listed(list: &[&str], word: &str) -> bool {
    list.binary_search(&word).is_ok()
}

/// Whether a word is in a list of words in lower case, which is sorted, whatever the case of its
/// letters.
pub(crate) fn is_listed_in_any_case(list: &[&str], word: &str) -> bool {
    let compare =
        |listed: &&str| listed.bytes().cmp(word.bytes().map(|byte| byte.to_ascii_lowercase()));
    list.binary_search_by(compare).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_between_white_space_of_any_kind() {
        let text = " a.b c. \u{a0}d\u{2003}e\u{b}f\u{1c}g \u{85}\n\u{6f22}\u{5b57} `H`iJ ";
        let found: Vec<&str> = words(text).map(|word| word.text).collect();
        assert_eq!(found, text.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn signs_say_what_is_in_a_word() {
        let signs = |text| words(text).next().unwrap().signs;
        assert_eq!(signs("end."), Signs::LOWER.and(Signs::BODY));
        let dotted = Signs::LOWER.and(Signs::BODY).and(Signs::POINT);
        assert_eq!(signs("a.b"), dotted);
        assert_eq!(signs("The"), Signs::LOWER.and(Signs::BODY).and(Signs::UPPER));
        assert!(signs("aB").has_any(Signs::INNER));
        assert_eq!(signs("()"), Signs::default());
    }
}
