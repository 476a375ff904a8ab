//! Finds the texts that may state some facts, in one pass over their bytes.
//!
//! A search for facts reads every token of a text. Most texts of a thread state none of the few
//! unknown facts of a summary, so a cheaper test rules these texts out first. It has three steps,
//! each for the positions that passed the step before: it compares two bytes, then three bytes,
//! then runs of letters or digits. A text without a fact may pass; a text with a fact always
//! passes.

use std::{cmp::Reverse, collections::HashMap};

/// The pairs of successive runs of ASCII letters or digits in the wanted facts, or the run itself
/// for a fact with one run. A text that lacks a pair of a fact does not state the fact.
#[derive(Debug)]
pub(super) struct Sieve {
    /// The bit of each pair or run, by its hash.
    bits: HashMap<u64, u64>,
    /// For two successive bytes, whether they are part of the rarest three bytes of a fact, in
    /// upper or lower case. It suffices to test the even positions of a text: two of the three
    /// bytes begin at one.
    twos: Box<[bool; 1 << 16]>,
    /// One bit for the hash of each of these sequences of three bytes.
    threes: [u64; 64],
    /// Whether a fact has no run of three to `LONGEST` bytes. Then no text can be ruled out.
    is_any: bool,
}

/// A set of pairs. More than 64 pairs share bits, which only lets more texts through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pairs(u64);

impl Pairs {
    pub(super) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The maximum bytes of a run that are read before a position, and after it.
const LONGEST: usize = 64;

impl Default for Sieve {
    fn default() -> Self {
        Self {
            bits: HashMap::new(),
            twos: Box::new([false; 1 << 16]),
            threes: [0; 64],
            is_any: false,
        }
    }
}

impl Sieve {
    /// Adds a fact by its words, and returns the pairs that every text with this fact contains.
    pub(super) fn add(&mut self, words: &str) -> Pairs {
        /// The maximum number of pairs of a fact that are searched for. The longest are chosen,
        /// because they are the rarest.
        const MOST: usize = 4;
        let runs: Vec<&[u8]> = runs(words.as_bytes()).collect();
        let mut parts: Vec<&[&[u8]]> = runs.windows(runs.len().clamp(1, 2)).collect();
        parts.sort_by_key(|part| Reverse(part.iter().map(|run| run.len()).sum::<usize>()));
        parts.truncate(MOST);
        // Letters such as `q` and `z` are rare, so three bytes with them rule out most positions.
        let threes = parts.iter().flat_map(|part| part.iter()).flat_map(|run| run.windows(3));
        let rarest = threes.max_by_key(|three| rarity(three)).unwrap_or_default();
        self.is_any |= rarest.is_empty() || runs.iter().any(|run| run.len() > LONGEST);
        rarest.windows(2).for_each(|two| self.add_two(two));
        let (word, bit) = place_of_three(rarest);
        self.threes.get_mut(word).into_iter().for_each(|word| *word |= bit);
        let mut all = 0;
        for part in parts {
            // From the 65th part on, parts share a bit.
            let next = 1_u64.rotate_left(self.bits.len() as u32);
            all |= *self.bits.entry(hash(part)).or_insert(next);
        }
        Pairs(all)
    }

    fn add_two(&mut self, two: &[u8]) {
        let [one, other] = two else { return };
        for one in [one.to_ascii_lowercase(), one.to_ascii_uppercase()] {
            for other in [other.to_ascii_lowercase(), other.to_ascii_uppercase()] {
                self.twos.get_mut(place([one, other])).into_iter().for_each(|two| *two = true);
            }
        }
    }

    /// Returns those of the pairs and runs that a text has.
    pub(super) fn pairs(&self, text: &str) -> Pairs {
        let (mut found, mut before) = (0, [].as_slice());
        if !self.may_be_in(text.as_bytes()) {
            return Pairs::default();
        }
        for run in runs(text.as_bytes()) {
            for part in [[run].as_slice(), &[before, run]] {
                found |= self.bits.get(&hash(part)).copied().unwrap_or_default();
            }
            before = run;
        }
        Pairs(found)
    }

    /// Whether a text has a pair of any fact. Most texts have none, and need no look at all runs.
    fn may_be_in(&self, text: &[u8]) -> bool {
        let (parts, rest) = text.as_chunks::<16>();
        let mut parts = parts.iter().enumerate();
        // Every second position is enough: of three successive bytes, two begin at an even
        // position.
        let is_after = |start| (start..start + 16).step_by(2).any(|at| self.is_at(text, at));
        self.is_any
            || parts.any(|(part, bytes)| {
                // Without a branch for each position, the processor tests several positions at
                // once.
                let twos = bytes.as_chunks().0;
                twos.iter().fold(false, |any, two| any | self.has_two(*two)) && is_after(part * 16)
            })
            || is_after(text.len() - rest.len())
    }

    fn has_two(&self, two: [u8; 2]) -> bool {
        self.twos.get(place(two)).is_some_and(|two| *two)
    }

    /// Whether a pair of any fact contains the two bytes at a position, as the first or the last
    /// two of its rarest three bytes.
    fn is_at(&self, text: &[u8], at: usize) -> bool {
        let two = text.get(at..).and_then(<[u8]>::first_chunk);
        two.is_some_and(|two| self.has_two(*two))
            && (self.has_three(text, at) || self.has_three(text, at.wrapping_sub(1)))
            && self.is_around(text, at)
    }

    fn has_three(&self, text: &[u8], at: usize) -> bool {
        let (word, bit) = place_of_three(text.get(at..at.wrapping_add(3)).unwrap_or_default());
        self.threes.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Whether the run at a position is one of the runs, or in one of the pairs.
    fn is_around(&self, text: &[u8], at: usize) -> bool {
        // The parts of a fact are single runs or two successive ones, so the neighbours decide too.
        let (start, run) = run_at(text, at);
        let end = start + run.len();
        let before = text.get(..start).and_then(|text| text.iter().rposition(is_in_run));
        let after = text.get(end..).and_then(|text| text.iter().position(is_in_run));
        self.is_part(&[run])
            || before.is_some_and(|at| self.is_part(&[run_at(text, at).1, run]))
            || after.is_some_and(|at| self.is_part(&[run, run_at(text, end + at).1]))
    }

    /// Whether successive runs are one of the pairs, or a run is one of the runs.
    fn is_part(&self, runs: &[&[u8]]) -> bool {
        self.bits.contains_key(&hash(runs))
    }
}

fn is_in_run(byte: &u8) -> bool {
    kind(byte).is_some()
}

/// Returns the start of the run at a position and the run, as far as `LONGEST` bytes before and
/// after the position.
fn run_at(text: &[u8], at: usize) -> (usize, &[u8]) {
    let (before, after) = text.split_at_checked(at).unwrap_or_default();
    let wanted = after.first().and_then(kind);
    let before = before.iter().rev().take(LONGEST).take_while(|byte| kind(byte) == wanted).count();
    let after = after.iter().take(LONGEST).take_while(|byte| kind(byte) == wanted).count();
    (at - before, text.get(at - before..at + after).unwrap_or_default())
}

/// Returns the index of two bytes.
fn place(two: [u8; 2]) -> usize {
    usize::from(u16::from_le_bytes(two))
}

/// Returns the index of the word with the bit of three bytes in any case, and the bit.
fn place_of_three(three: &[u8]) -> (usize, u64) {
    let three = three.iter().fold(0_usize, |three, byte| three * 29 + usize::from(byte | 0x20));
    (three >> 6 & 63, 1 << (three & 63))
}

/// Returns the hash of successive runs, in any case.
fn hash(runs: &[&[u8]]) -> u64 {
    runs.iter().fold(0_u64, |hash, run| {
        let hash = run.iter().fold(hash, |hash, byte| hash.rotate_left(5) ^ u64::from(byte | 0x20));
        hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// Returns the runs of ASCII letters and of digits.
fn runs(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let runs = text.chunk_by(|one, other| kind(one) == kind(other));
    runs.filter(|run| run.first().is_some_and(|byte| kind(byte).is_some()))
}

/// Returns whether a byte is a letter, or `None` if it is neither a letter nor a digit.
fn kind(byte: &u8) -> Option<bool> {
    byte.is_ascii_alphanumeric().then(|| byte.is_ascii_alphabetic())
}

/// Greater for letters and digits that are rarer in text.
fn rarity(run: &[u8]) -> usize {
    const BY_FREQUENCY: &[u8; 26] = b"etaoinshrdlcumwfgypbvkjxqz";
    let ranks = run.iter().map(|byte| {
        let rank = BY_FREQUENCY.iter().position(|letter| byte.eq_ignore_ascii_case(letter));
        rank.unwrap_or(BY_FREQUENCY.len())
    });
    ranks.sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn a_fact_is_found_at_every_position(
            facts in prop::collection::vec("[A-Za-z0-9]{1,7}([ ./_-]{1,3}[a-z0-9]{1,5}){0,5}", 1..6),
            before in "([a-z0-9]{0,6}[ .]){0,4}",
            after in "([ .][a-z0-9]{0,6}){0,4}",
        ) {
            let mut sieve = Sieve::default();
            let pairs: Vec<Pairs> = facts.iter().map(|fact| sieve.add(fact)).collect();
            for (fact, pairs) in facts.iter().zip(pairs) {
                for fact in [fact.to_uppercase(), fact.to_lowercase()] {
                    let text = format!("{before}{fact}{after}");
                    prop_assert!(sieve.pairs(&text).contains(pairs), "{text}");
                }
            }
        }
    }
}
