//! Finds the texts that may state some facts, in one pass over their bytes.
//!
//! A search for facts reads every token of a text. Most texts of a thread state none of the few
//! unknown facts of a summary, so a cheaper test rules these texts out first. It has three steps,
//! each for the positions that passed the step before: it compares two bytes, then three bytes,
//! then runs of letters or digits. A text without a fact may pass; a text with a fact always
//! passes.

use std::{cmp::Reverse, collections::HashMap};

/// The maximum bytes of a run that are read before a position, and after it.
const LONGEST: usize = 64;

/// The wanted facts, divided into parts. A part is a pair of successive runs of ASCII letters or
/// digits, or the run itself if the fact has only one. A text that lacks a part of a fact does not
/// state the fact.
#[derive(Debug, Default)]
pub(super) struct Sieve {
    /// The first step: the first two and the last two of the rarest three bytes of each fact, in
    /// upper and lower case. It suffices to test the even positions of a text, because two of three
    /// successive bytes begin at one.
    twos: Table<{ 1 << 16 }>,
    /// The second step: the rarest three bytes of each fact.
    threes: Table<{ 1 << 12 }>,
    /// The third step: the parts of all facts.
    numbered: Numbered,
    /// Whether a fact has no run of three to `LONGEST` bytes. Then no text can be ruled out.
    is_any: bool,
}

/// A set of parts, which a [`Sieve`] numbers. Each part has one of 64 bits; parts with the same bit
/// only let more texts through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Parts(u64);

impl Parts {
    fn of_number(number: usize) -> Self {
        Self(1 << (number % 64))
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(super) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Sieve {
    /// Adds a fact by its words, and returns the parts that every text with this fact contains.
    pub(super) fn add(&mut self, words: &str) -> Parts {
        /// The maximum number of parts of a fact that are searched for. The longest are chosen,
        /// because they are the rarest.
        const MOST: usize = 4;
        let runs: Vec<&[u8]> = runs(words.as_bytes()).collect();
        let mut parts: Vec<&[&[u8]]> = runs.windows(runs.len().clamp(1, 2)).collect();
        parts.sort_by_key(|part| Reverse(part.iter().map(|run| run.len()).sum::<usize>()));
        parts.truncate(MOST);
        // Letters such as `q` and `z` are rare, so three bytes with them rule out most positions.
        let threes = parts.iter().flat_map(|part| part.iter()).flat_map(|run| run.windows(3));
        let rarest = threes.max_by_key(|three| rarity(three)).and_then(<[u8]>::first_chunk);
        self.is_any |= rarest.is_none() || runs.iter().any(|run| run.len() > LONGEST);
        if let Some(three) = rarest {
            three.windows(2).for_each(|two| self.add_two(two));
            self.threes.insert(index_of_three(three));
        }
        let mut all = Parts::default();
        parts.into_iter().for_each(|part| all.add(self.numbered.insert(part)));
        all
    }

    fn add_two(&mut self, two: &[u8]) {
        let [one, other] = two else { return };
        for one in [one.to_ascii_lowercase(), one.to_ascii_uppercase()] {
            for other in [other.to_ascii_lowercase(), other.to_ascii_uppercase()] {
                self.twos.insert(index_of_two([one, other]));
            }
        }
    }

    /// Returns the parts of wanted facts that a text has.
    pub(super) fn parts(&self, text: &str) -> Parts {
        let (mut found, mut before) = (Parts::default(), [].as_slice());
        if !self.may_be_in(text.as_bytes()) {
            return found;
        }
        for run in runs(text.as_bytes()) {
            for part in [[run].as_slice(), &[before, run]] {
                found.add(self.numbered.get(part).unwrap_or_default());
            }
            before = run;
        }
        found
    }

    /// Whether a text has a part of any fact. Most texts have none, and need no look at all runs.
    fn may_be_in(&self, text: &[u8]) -> bool {
        let (blocks, rest) = text.as_chunks::<16>();
        let mut blocks = blocks.iter().enumerate();
        let is_after = |start| (start..start + 16).step_by(2).any(|at| self.is_at(text, at));
        self.is_any
            || blocks.any(|(block, bytes)| {
                // Without a branch for each position, the processor tests several positions at
                // once.
                let twos = bytes.as_chunks().0;
                twos.iter().fold(false, |any, two| any | self.has_two(*two)) && is_after(block * 16)
            })
            || is_after(text.len() - rest.len())
    }

    /// Whether the two bytes at a position pass all three steps.
    fn is_at(&self, text: &[u8], at: usize) -> bool {
        let bytes_at = |at: usize| text.get(at..).unwrap_or_default();
        let has_three = |at: usize| {
            let three = bytes_at(at).first_chunk();
            three.is_some_and(|three| self.threes.contains(index_of_three(three)))
        };
        bytes_at(at).first_chunk().is_some_and(|two| self.has_two(*two))
            && (has_three(at) || at.checked_sub(1).is_some_and(has_three))
            && self.is_around(text, at)
    }

    fn has_two(&self, two: [u8; 2]) -> bool {
        self.twos.contains(index_of_two(two))
    }

    /// Whether the run at a position is a part of a fact, or belongs to one with the run before or
    /// after it.
    fn is_around(&self, text: &[u8], at: usize) -> bool {
        let is_part = |runs: &[&[u8]]| self.numbered.get(runs).is_some();
        let (start, run) = run_at(text, at);
        let end = start + run.len();
        let before = text.get(..start).and_then(|text| text.iter().rposition(is_in_run));
        let after = text.get(end..).and_then(|text| text.iter().position(is_in_run));
        is_part(&[run])
            || before.is_some_and(|at| is_part(&[run_at(text, at).1, run]))
            || after.is_some_and(|at| is_part(&[run, run_at(text, end + at).1]))
    }
}

/// A set of short sequences of bytes, by their index in a table. Sequences may share an index, which
/// only lets more texts through.
#[derive(Debug)]
struct Table<const SIZE: usize>(Box<[bool; SIZE]>);

impl<const SIZE: usize> Default for Table<SIZE> {
    fn default() -> Self {
        Self(Box::new([false; SIZE]))
    }
}

impl<const SIZE: usize> Table<SIZE> {
    fn insert(&mut self, index: usize) {
        self.0.get_mut(index % SIZE).into_iter().for_each(|is_in| *is_in = true);
    }

    fn contains(&self, index: usize) -> bool {
        self.0.get(index % SIZE).is_some_and(|is_in| *is_in)
    }
}

/// Returns the index of two bytes in the first table. It depends on their case, because the test of
/// most bytes of a thread ends here and must be short.
fn index_of_two(two: [u8; 2]) -> usize {
    usize::from(u16::from_le_bytes(two))
}

/// Returns the index of three bytes in the second table, in any case.
fn index_of_three(three: &[u8; 3]) -> usize {
    three.iter().fold(0, |hash, byte| hash * 29 + usize::from(byte | 0x20))
}

/// Parts of facts by their hashes, each with its bit.
#[derive(Debug, Default)]
struct Numbered(HashMap<u64, Parts>);

impl Numbered {
    fn insert(&mut self, part: &[&[u8]]) -> Parts {
        let next = Parts::of_number(self.0.len());
        *self.0.entry(Self::hash(part)).or_insert(next)
    }

    fn get(&self, part: &[&[u8]]) -> Option<Parts> {
        self.0.get(&Self::hash(part)).copied()
    }

    /// Returns the hash of successive runs, in any case.
    fn hash(part: &[&[u8]]) -> u64 {
        part.iter().fold(0_u64, |hash, run| {
            let hash =
                run.iter().fold(hash, |hash, byte| hash.rotate_left(5) ^ u64::from(byte | 0x20));
            hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }
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

/// Returns the runs of ASCII letters and of digits.
fn runs(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let runs = text.chunk_by(|one, other| kind(one) == kind(other));
    runs.filter(|run| run.first().is_some_and(is_in_run))
}

fn is_in_run(byte: &u8) -> bool {
    kind(byte).is_some()
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
    fn a_text_with_a_fact_has_all_of_its_parts() {
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
            let parts = sieve.parts(text);
            let has = (parts.contains(path), parts.contains(time));
            assert_eq!(has, (has_path, has_time), "{text}");
        }
        let word = sieve.add("Ada");
        assert!(sieve.parts("to ADA.").contains(word) && !sieve.parts("Adam").contains(word));
        let mut sieve = Sieve::default();
        let size = sieve.add("417KB");
        assert!(sieve.parts("about 417 kB").contains(size) && !sieve.parts("417").contains(size));
        let wide = sieve.add("\u{5f20}\u{4f1f}");
        assert!(sieve.parts("").contains(wide));
    }

    proptest! {
        #[test]
        fn a_fact_is_found_at_every_position(
            facts in prop::collection::vec("[A-Za-z0-9]{1,7}([ ./_-]{1,3}[a-z0-9]{1,5}){0,5}", 1..6),
            before in "([a-z0-9]{0,6}[ .]){0,4}",
            after in "([ .][a-z0-9]{0,6}){0,4}",
        ) {
            let mut sieve = Sieve::default();
            let parts: Vec<Parts> = facts.iter().map(|fact| sieve.add(fact)).collect();
            for (fact, parts) in facts.iter().zip(parts) {
                for fact in [fact.to_uppercase(), fact.to_lowercase()] {
                    let text = format!("{before}{fact}{after}");
                    prop_assert!(sieve.parts(&text).contains(parts), "{text}");
                }
            }
        }
    }
}
