//! Which lines a piece of text may hold, in a few bytes.
//!
//! To be sure that a line is the only one of its kind, all of a file must be looked at; to be sure
//! that a line is not in a piece of it, one look at the piece's filter mostly does. This is a Bloom
//! filter: each line sets two bits that its hash names.

use std::hash::{DefaultHasher, Hasher};

/// How many words of bits a filter has: 4096 bits, for some hundred lines.
const WORDS: usize = 64;

/// The hash of a line without its line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineHash(u64);

/// A set of lines that may claim to hold more than it does, and never less.
#[derive(Clone, Debug)]
pub(crate) struct LineFilter(Box<[u64; WORDS]>);

impl LineHash {
    pub(crate) fn of(line: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(line.as_bytes());
        Self(hasher.finish())
    }

    /// The words and bits that stand for the line.
    fn bits(self) -> [(usize, u64); 2] {
        [self.0, self.0 >> 32].map(|part| {
            // The remainder is below the number of words, so it fits.
            let word = usize::try_from((part >> 6) % WORDS as u64).unwrap_or(0);
            (word, 1 << (part & 63))
        })
    }
}

impl LineFilter {
    pub(crate) fn of(text: &str) -> Self {
        let mut words = Box::new([0; WORDS]);
        for line in text.split('\n') {
            let line = line.strip_suffix('\r').unwrap_or(line);
            for (word, bit) in LineHash::of(line).bits() {
                if let Some(word) = words.get_mut(word) {
                    *word |= bit;
                }
            }
        }
        Self(words)
    }

    pub(crate) fn may_hold(&self, line: LineHash) -> bool {
        line.bits().iter().all(|(word, bit)| self.0.get(*word).is_some_and(|it| it & bit != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_holds_its_lines_and_few_others() {
        let text: String = (0..100).map(|number| format!("line {number}\n")).collect();
        let filter = LineFilter::of(&text);
        let held = |numbers: std::ops::Range<usize>| {
            numbers.filter(|it| filter.may_hold(LineHash::of(&format!("line {it}")))).count()
        };
        assert_eq!(held(0..100), 100);
        assert!(held(1_000..2_000) < 12);
    }
}
