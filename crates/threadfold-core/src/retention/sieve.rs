//! Tells in one pass over the bytes of a text which of some facts it can state.

use std::collections::HashMap;

/// The pairs of successive runs of ASCII letters or digits in the facts to look for; of a fact with one
/// run, this run. A text that lacks a pair of a fact does not state it.
#[derive(Debug, Default)]
pub(super) struct Sieve {
    /// The bit of each pair or run, by its hash.
    bits: HashMap<u64, u64>,
    /// A bit for each low byte of these hashes: most pairs of a text need no look into the map.
    low: [u64; 4],
}

/// A set of pairs. More than 64 pairs share bits, which only lets more texts through.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pairs(u64);

impl Pairs {
    pub(super) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Sieve {
    /// Adds a fact by its words, and returns the pairs that a text with this fact has.
    pub(super) fn add(&mut self, words: &str) -> Pairs {
        /// The most pairs that are looked for: the longest are the rarest.
        const MOST: usize = 4;
        let mut runs = Vec::new();
        each_run(words, &mut |hash, length| runs.push((length, hash)));
        let pairs = runs.windows(2).filter_map(|two| {
            let [(before, one), (length, other)] = two else { return None };
            Some((before + length, pair(*one, *other)))
        });
        let mut pairs: Vec<(usize, u64)> = pairs.collect();
        pairs.sort_unstable();
        let found = if pairs.is_empty() { runs } else { pairs };
        let mut all = 0;
        for (_, hash) in found.into_iter().rev().take(MOST) {
            let next = 1_u64.rotate_left(self.bits.len() as u32);
            all |= *self.bits.entry(hash).or_insert(next);
            if let Some(low) = self.low.get_mut(low_part(hash)) {
                *low |= 1 << (hash & 63);
            }
        }
        Pairs(all)
    }

    /// Returns those of the pairs and runs that a text has.
    pub(super) fn pairs(&self, text: &str) -> Pairs {
        let (mut found, mut before) = (0, 0);
        each_run(text, &mut |hash, _| {
            for hash in [hash, pair(before, hash)] {
                let low = self.low.get(low_part(hash));
                if low.is_some_and(|low| low >> (hash & 63) & 1 == 1) {
                    found |= self.bits.get(&hash).copied().unwrap_or_default();
                }
            }
            before = hash;
        });
        Pairs(found)
    }
}

/// The hash of two successive runs.
fn pair(one: u64, other: u64) -> u64 {
    (one >> 7) ^ other
}

fn low_part(hash: u64) -> usize {
    usize::try_from(hash >> 6 & 3).unwrap_or_default()
}

/// Calls `visit` with the hash and the length of each run of letters or of digits, in any case.
fn each_run(text: &str, visit: &mut impl FnMut(u64, usize)) {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Kind {
        Other,
        Letter,
        Digit,
    }
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (mut hash, mut length, mut before) = (0_u64, 0, Kind::Other);
    for byte in text.bytes().chain([b' ']) {
        let lower = byte | 0x20;
        let kind = match lower {
            b'a'..=b'z' if byte.is_ascii() => Kind::Letter,
            b'0'..=b'9' if byte.is_ascii_digit() => Kind::Digit,
            _ => Kind::Other,
        };
        if kind != before {
            if before != Kind::Other {
                visit(hash.wrapping_mul(FACTOR) >> 24, length);
            }
            (hash, length, before) = (0, 0, kind);
        }
        hash = hash.rotate_left(5) ^ u64::from(lower);
        length += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_a_fact_has_all_of_its_pairs() {
        let mut sieve = Sieve::default();
        let (path, time) = (sieve.add("parse.rs"), sieve.add("12 ms"));
        let rows = [
            ("see src/Parse.RS", true, false),
            ("12ms", false, true),
            ("it took 12 of them, ms; parse the rs", false, false),
            ("parser.rs", false, false),
            ("parse", false, false),
            ("120 ms", false, false),
            ("1 2 ms", false, false),
        ];
        for (text, has_path, has_time) in rows {
            let pairs = sieve.pairs(text);
            let has = (pairs.contains(path), pairs.contains(time));
            assert_eq!(has, (has_path, has_time), "{text}");
        }
        let word = sieve.add("Ada");
        assert!(sieve.pairs("to ADA.").contains(word) && !sieve.pairs("Adam").contains(word));
        let wide = sieve.add("\u{5f20}\u{4f1f}");
        assert!(sieve.pairs("").contains(wide));
    }
}
