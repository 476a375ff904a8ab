//! The words of a text, each with the kinds of its characters.
//!
//! The kinds show for most words of prose that they are no facts, so prose is read many times as fast as
//! with every test on every word.

use std::borrow::Cow;

use crate::message::steps;

/// A word between white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    /// The kinds of its characters.
    pub(crate) kinds: CharKinds,
}

/// A set of kinds of characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CharKinds(u16);

impl CharKinds {
    pub(crate) const LOWER: Self = Self(1);
    pub(crate) const UPPER: Self = Self(1 << 1);
    pub(crate) const DIGIT: Self = Self(1 << 2);
    /// A point that is not the last character.
    pub(crate) const POINT: Self = Self(1 << 3);
    /// `/` or `\`.
    pub(crate) const SLASH: Self = Self(1 << 4);
    /// A colon that is not the last character.
    pub(crate) const COLON: Self = Self(1 << 5);
    /// A hyphen that is not the last character.
    pub(crate) const HYPHEN: Self = Self(1 << 6);
    pub(crate) const UNDERSCORE: Self = Self(1 << 7);
    pub(crate) const BACKTICK: Self = Self(1 << 8);
    /// Any character that does not split a word into pieces.
    pub(crate) const BODY: Self = Self(1 << 9);
    /// A capital that is not the first character.
    pub(crate) const INNER: Self = Self(1 << 10);
    /// Any character beyond ASCII.
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

    #[allow(clippy::indexing_slicing, reason = "the table has an entry for every byte")]
    const fn of(byte: u8) -> Self {
        KINDS[byte as usize]
    }
}

const KINDS: [CharKinds; 256] = kinds();

#[allow(clippy::indexing_slicing, reason = "the compiler evaluates it")]
const fn kinds() -> [CharKinds; 256] {
    let mut table = [CharKinds(0); 256];
    let mut byte: u8 = 0;
    loop {
        table[byte as usize] = match byte {
            b'a'..=b'z' => CharKinds::LOWER.and(CharKinds::BODY),
            b'A'..=b'Z' => CharKinds::UPPER.and(CharKinds::BODY).and(CharKinds::INNER),
            b'0'..=b'9' => CharKinds::DIGIT.and(CharKinds::BODY),
            b'.' => CharKinds::POINT.and(CharKinds::BODY),
            b'/' | b'\\' => CharKinds::SLASH.and(CharKinds::BODY),
            b':' => CharKinds::COLON.and(CharKinds::BODY),
            b'-' => CharKinds::HYPHEN.and(CharKinds::BODY),
            b'_' => CharKinds::UNDERSCORE.and(CharKinds::BODY),
            b'`' => CharKinds::BACKTICK,
            9..=13 | b' ' => CharKinds::SPACE,
            128.. => CharKinds::WIDE.and(CharKinds::BODY),
            _ if splits_words(byte) => CharKinds(0),
            _ => CharKinds::BODY,
        };
        if byte == u8::MAX {
            return table;
        }
        byte += 1;
    }
}

const fn splits_words(byte: u8) -> bool {
    matches!(byte, b'"' | b'`' | b'\'' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>')
        || matches!(
            byte,
            b',' | b';' | b'|' | b'=' | b'!' | b'?' | b'*' | b'$' | b'&' | b'^' | b'%'
        )
}

/// Whether an ASCII character splits a word into pieces.
pub(crate) fn is_border(byte: u8) -> bool {
    !CharKinds::of(byte).has_any(CharKinds::BODY.and(CharKinds::SPACE))
}

/// Returns the words of a text, in order.
pub(crate) fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    text.split_whitespace().map(|text| Word { text: steps::through(text), kinds: kinds_of(text) })
}

fn kinds_of(word: &str) -> CharKinds {
    const ENDING: CharKinds = CharKinds::POINT.and(CharKinds::COLON).and(CharKinds::HYPHEN);
    let Some((last, before)) = word.as_bytes().split_last() else { return CharKinds::default() };
    let Some((first, inner)) = before.split_first() else {
        return CharKinds::of(*last).without(CharKinds::INNER.and(ENDING));
    };
    let ends = CharKinds::of(*first).without(CharKinds::INNER);
    let ends = ends.and(CharKinds::of(*last).without(ENDING));
    inner.iter().fold(ends, |kinds, byte| kinds.and(CharKinds::of(*byte)))
}

/// Returns a text with its runs of white space replaced by one space each, and trimmed.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let text = steps::through(text).trim();
    let is_line = !text.contains("  ") && text.chars().all(|c| c == ' ' || !c.is_whitespace());
    match is_line {
        true => text.into(),
        false => text.split_whitespace().collect::<Vec<_>>().join(" ").into(),
    }
}

/// Whether a text contains two bytes in a row. Faster than `contains` for the short texts here.
pub(crate) fn has_pair(text: &str, pair: [u8; 2]) -> bool {
    text.as_bytes().windows(2).any(|two| two == pair)
}

/// Whether a sorted list contains a word.
pub(crate) fn is_listed(list: &[&str], word: &str) -> bool {
    list.binary_search(&word).is_ok()
}

/// Whether a sorted list of lower-case words contains a word, ignoring ASCII case.
pub(crate) fn is_listed_in_any_case(list: &[&str], word: &str) -> bool {
    let compare =
        |listed: &&str| listed.bytes().cmp(word.bytes().map(|byte| byte.to_ascii_lowercase()));
    list.binary_search_by(compare).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_separated_by_any_white_space() {
        let text = " a.b c. \u{a0}d\u{2003}e\u{b}f\u{1c}g \u{85}\n\u{6f22}\u{5b57} `H`iJ ";
        let found: Vec<&str> = words(text).map(|word| word.text).collect();
        assert_eq!(found, text.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn the_kinds_describe_the_characters_of_a_word() {
        let kinds = |text| words(text).next().unwrap().kinds;
        assert_eq!(kinds("end."), CharKinds::LOWER.and(CharKinds::BODY));
        let dotted = CharKinds::LOWER.and(CharKinds::BODY).and(CharKinds::POINT);
        assert_eq!(kinds("a.b"), dotted);
        assert_eq!(kinds("The"), CharKinds::LOWER.and(CharKinds::BODY).and(CharKinds::UPPER));
        assert!(kinds("aB").has_any(CharKinds::INNER));
        assert_eq!(kinds("()"), CharKinds::default());
    }
}
