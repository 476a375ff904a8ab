//! Tells in one pass over the bytes of a text which of some facts it can state.

use std::collections::HashMap;

/// The pairs of successive runs of ASCII letters or digits in the facts to look for; of a fact with one
/// run, this run. A text that lacks a pair of a fact does not state it.
#[derive(Debug, Default)]
pub(super) struct Sieve {
    /// The bit of each pair or run, by its hash.
    bits: HashMap<u64, u64>,
    /// A bit for the low bits of each of these hashes: most pairs of a text need no look into the map.
    low: [u64; 32],
    triples: Triples,
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
        self.triples.add(words);
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
        if !self.triples.may_be_in(text) {
            return Pairs::default();
        }
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
    usize::try_from(hash >> 6 & 31).unwrap_or_default()
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

/// Three successive letters or digits of each fact, a bit each. Most texts have none of them, and need
/// no look at their runs.
#[derive(Debug)]
struct Triples {
    bits: Vec<u64>,
    /// The [`code`] of each byte.
    codes: [u8; 256],
    /// Whether a fact has no run of three, so that any text may state it.
    has_short: bool,
}

impl Default for Triples {
    fn default() -> Self {
        Self { bits: vec![0; 4_096], codes: std::array::from_fn(code), has_short: false }
    }
}

impl Triples {
    /// Adds the rarest three of a fact.
    fn add(&mut self, words: &str) {
        let codes: Vec<usize> = words.bytes().map(|byte| self.code(byte)).collect();
        // A unit may be written with a blank after the number, so no three mix letters and digits.
        let is_run = |codes: &&[usize]| {
            codes.iter().all(|code| (1..FIRST_DIGIT).contains(code))
                || codes.iter().all(|code| *code >= FIRST_DIGIT)
        };
        let triples = codes.windows(3).filter(is_run);
        match triples.max_by_key(|codes| codes.iter().sum::<usize>()) {
            None => self.has_short = true,
            Some(rarest) => {
                let triple = rarest.iter().fold(0, |triple, code| triple << 6 | code);
                if let Some(bits) = self.bits.get_mut(triple >> 6) {
                    *bits |= 1 << (triple & 63);
                }
            }
        }
    }

    fn code(&self, byte: u8) -> usize {
        self.codes.get(usize::from(byte)).map_or(0, |code| usize::from(*code))
    }

    /// Whether a text has the three of any fact.
    fn may_be_in(&self, text: &str) -> bool {
        self.has_short
            || text.as_bytes().windows(3).any(|bytes| {
                let [one, two, three] = bytes else { return false };
                let triple = self.code(*one) << 12 | self.code(*two) << 6 | self.code(*three);
                self.bits.get(triple >> 6).is_some_and(|bits| bits >> (triple & 63) & 1 == 1)
            })
    }
}

/// The least code of a digit.
const FIRST_DIGIT: usize = 27;

/// A number below 64 for each letter in any case, greater for rarer ones, and each digit; 0 for other
/// bytes.
fn code(byte: usize) -> u8 {
    const BY_FREQUENCY: &[u8; 26] = b"etaoinshrdlcumwfgypbvkjxqz";
    let byte = u8::try_from(byte).unwrap_or_default();
    let rank = BY_FREQUENCY.iter().zip(1..).find(|(letter, _)| byte.eq_ignore_ascii_case(letter));
    match rank {
        Some((_, rank)) => rank,
        None if byte.is_ascii_digit() => FIRST_DIGIT as u8 + byte - b'0',
        None => 0,
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
        let mut sieve = Sieve::default();
        let size = sieve.add("417KB");
        assert!(sieve.pairs("about 417 kB").contains(size) && !sieve.pairs("417").contains(size));
        let wide = sieve.add("\u{5f20}\u{4f1f}");
        assert!(sieve.pairs("").contains(wide));
    }
}
