//! Decides whether two statements are about two subjects, so that both are valid.

use std::collections::BTreeSet;

use super::{
    demand_words::is_narrator,
    subject::Subject,
    subject_words::{Grammar, common_form, is_kind, side},
};

impl Subject {
    /// Whether the two are clearly about different things: a word of both has other qualifiers in
    /// each, they name different kinds of value, or they name [different things](Self::is_other).
    pub(super) fn contrasts(&self, other: &Self) -> bool {
        let qualified = self.topic.words.iter().any(|(word, qualifiers)| {
            let others = other.topic.words.get(word);
            others.is_some_and(|others| other.lacks(qualifiers) && self.lacks(others))
        });
        let (kinds, others) = (self.own_kinds(), other.own_kinds());
        let of_other_kind = !kinds.is_empty() && !others.is_empty() && kinds.is_disjoint(&others);
        qualified || of_other_kind || self.is_other(other) || self.is_parallel(other)
    }

    /// Whether both make the same statement about different things: `send the bills to`, `send the
    /// letters to`; or one is about the speaker and the other about another person: `I get up at`,
    /// `my aunt gets up at`.
    fn is_parallel(&self, other: &Self) -> bool {
        /// With more different words they are rarely two forms of one sentence.
        const MOST: usize = 4;
        let (one, two): (Vec<_>, Vec<_>) =
            (self.unchanged().collect(), other.unchanged().collect());
        let is_word = |word: &str| word.starts_with(char::is_lowercase);
        let is_plain =
            |word: &str| Grammar::of(word) == Grammar::default() && common_form(word).is_none();
        let is_apart = |word: &String, all: &[&String]| is_word(word) && !all.contains(&word);
        // `Start` and `begin` are the same.
        let is_same =
            |one: &str, two: &str| one == two || side(one).is_some() && side(one) == side(two);
        let most = one.len().min(two.len());
        let pairs = one.iter().zip(&two).filter(|(one, two)| !is_same(one, two));
        let differing: Vec<_> = pairs.take(MOST).collect();
        // One of them may have `from now on` at its end.
        let is_aligned = one.len().abs_diff(two.len()) <= 2
            && (1..most.saturating_sub(1).min(MOST)).contains(&differing.len())
            && differing.iter().all(|(word, of)| {
                is_apart(word, &two) && is_apart(of, &one) && (is_plain(word) || is_plain(of))
            });
        is_aligned || self.is_beside_speaker(other) || other.is_beside_speaker(self)
    }

    /// Whether it begins with a subject that the other does not name, and the other with the
    /// speaker.
    fn is_beside_speaker(&self, other: &Self) -> bool {
        let speaks = other.frame.first().is_some_and(|first| is_narrator(first));
        let begins =
            self.frame.first().is_some_and(|first| Grammar::of(first).is(Grammar::DETERMINER));
        speaks && begins && self.content.first().is_some_and(|subject| !other.has(subject))
    }

    /// Whether there are qualifiers, and none of them is one of its words.
    fn lacks(&self, qualifiers: &BTreeSet<String>) -> bool {
        !qualifiers.is_empty() && !qualifiers.iter().any(|word| self.topic.words.contains_key(word))
    }

    /// The kinds of value that the statement names, except limits: anything can have a limit.
    fn own_kinds(&self) -> BTreeSet<&str> {
        self.kinds().filter(|kind| *kind != "=limit").collect()
    }

    /// Whether the two name opposites (`left`, `right`), different cores (`Leo is 7`, `Mia is 9`)
    /// or different identifiers (`room 12`, `room 14`).
    pub(super) fn is_other(&self, other: &Self) -> bool {
        let opposed = self.topic.sides.iter().any(|(pair, sides)| {
            other.topic.sides.get(pair).is_some_and(|others| sides.is_disjoint(others))
        });
        let cores = self.topic.core.as_ref().zip(other.topic.core.as_ref());
        let headed = cores.is_some_and(|(one, two)| {
            !is_kind(one) && !is_kind(two) && !self.has(two) && !other.has(one)
        });
        let (one, two) = (&self.topic.identifiers, &other.topic.identifiers);
        opposed || headed || !(one.is_subset(two) || two.is_subset(one))
    }
}
