//! The subject of a statement and the values that it gives, so that a later statement with another
//! value for the same subject replaces it.
//!
//! A subject is a set of words, each with its qualifiers. `subject_reader` reads it,
//! `subject_replaces` and `subject_contrast` compare two.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use super::{
    definition::Definition,
    label::label,
    subject_words::{Grammar, is_kind},
    value::Form,
};

/// The subject and the values of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    pub(super) topic: Topic,
    pub(super) values: BTreeMap<Form, BTreeSet<String>>,
    /// The words directly before values, which name them: `branch main-2`.
    pub(super) slots: BTreeMap<Form, BTreeSet<String>>,
    /// Words and values that the statement calls no longer true: `instead of tea`, `no longer
    /// Ada's`.
    pub(super) denied: BTreeSet<String>,
    /// All words in order, with the form of each value instead of the value.
    pub(super) frame: Vec<String>,
    /// The words and values in order, without grammatical words.
    pub(super) content: Vec<String>,
    pub(super) mood: Mood,
    pub(super) label: Label,
}

/// What a statement is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Topic {
    /// Each word, with the neighbouring words that qualify it.
    pub(super) words: BTreeMap<String, BTreeSet<String>>,
    /// Words with an opposite, such as `first` and `open`: the number of the pair, and the sides.
    pub(super) sides: BTreeMap<u8, BTreeSet<u8>>,
    /// The word that the other words qualify: `party` in `The launch party is on`.
    pub(super) core: Option<String>,
    /// Values that distinguish the subject from others: `Room 12 is free`.
    pub(super) identifiers: BTreeSet<String>,
    /// Names of the place, person or day to which the statement is limited: `the Berlin office`,
    /// `on Mondays`.
    pub(super) scopes: BTreeSet<String>,
}

/// How something is stated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mood {
    /// Whether the statement asserts something, instead of asking for a step.
    pub(super) asserts: bool,
    /// Whether it announces a change.
    pub(super) changes: bool,
    /// Whether the statement is about passing on information.
    pub(super) tells: bool,
    pub(super) stance: Stance,
    pub(super) polarity: Polarity,
}

/// How far the user stands by a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stance {
    #[default]
    Direct,
    /// The verb is in the past tense, or the statement reports another person's words. It replaces
    /// an earlier statement only if it announces a change.
    Reported,
    /// A question or a supposition, which replaces no statement.
    Musing,
}

/// Whether a statement contains a negation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Polarity {
    #[default]
    Affirms,
    Denies,
    /// It is a prohibition about its first value.
    Forbids,
}

/// The label of a statement, and what it says about the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Label {
    /// The words of the label; empty without a label.
    pub(super) text: String,
    /// Whether the label names the subject: `Owner: Ada Byron`. This is also set if the statement
    /// has at most one word for its subject, because such a statement reads like an entry.
    pub(super) is_entry: bool,
    /// Its definition, if the text after the label is one.
    pub(super) definition: Option<Definition>,
}

impl Subject {
    /// Returns the subject of a statement on one line.
    pub fn of(statement: &str) -> Self {
        let (label, body) = label(statement).unwrap_or(("", statement));
        let mut subject = Self::read(body);
        if !label.is_empty() {
            label.clone_into(&mut subject.label.text);
            subject.mood.asserts = true;
            subject.label.definition = Definition::of(body);
        }
        // A label before a whole statement is not part of the subject, as in `NOTE: the port is
        // 8080`. Before a bare value the label is the subject: `Port: 8080`.
        let announces =
            label.split(' ').any(|word| Grammar::of(&word.to_lowercase()).is(Grammar::CHANGE));
        if subject.topic.words.len() < 2 || announces {
            let mut named = Self::read(label);
            subject.label.is_entry = subject.topic.words.len() < 2 || !named.topic.words.is_empty();
            subject.topic.words.append(&mut named.topic.words);
        }
        subject.mood.changes |= announces;
        if statement.ends_with(['?', '\u{ff1f}'])
            || Grammar::MUSING.is_in(statement)
            || subject.frame.iter().any(|word| Grammar::of(word).is(Grammar::MUSING))
        {
            subject.mood.stance = Stance::Musing;
        }
        subject
    }

    /// The words by which statements about the same subject can be found.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.topic.words.keys().map(String::as_str)
    }

    /// The words and names for finding statements that this one may replace: it shares at least one
    /// with each of them, unless both are [definitions](Self::defines).
    pub fn terms(&self) -> impl Iterator<Item = &str> {
        let names = self.values.get(&Form::Name).into_iter().flatten();
        self.words().chain(names.chain(self.content.first()).map(String::as_str))
    }

    /// The values that distinguish the subject from others. If two statements both have such values
    /// and share none, neither replaces the other, unless both are [definitions](Self::defines).
    pub fn identifiers(&self) -> impl Iterator<Item = &str> {
        self.topic.identifiers.iter().map(String::as_str)
    }

    /// Whether it defines something: `Next: the old pier`.
    pub fn defines(&self) -> bool {
        self.label.definition.is_some()
    }

    /// Returns the [frame](Self::frame) of a statement that only asks for something; `None` for any
    /// other. Requests that differ only in their values have the same frame.
    pub fn request(&self) -> Option<&[String]> {
        (!self.mood.asserts && !self.mood.changes).then_some(self.frame.as_slice())
    }

    /// Whether the statement asks for a step: `Fix the typo in line 40.` Its values matter less
    /// when the step is done.
    pub fn is_order(&self) -> bool {
        let begins = |first: &String, second: &String| {
            Grammar::of(first) == Grammar::default() && Grammar::of(second).is(Grammar::DETERMINER)
        };
        self.request().is_some_and(|words| matches!(words, [one, two, ..] if begins(one, two)))
    }

    /// Whether it gives an exact value: digits or a name.
    pub fn has_value(&self) -> bool {
        self.values.iter().any(|(form, values)| {
            // A number in words, as in `two ideas`, is rarely meant as a value.
            *form != Form::Number
                || values.iter().any(|value| value.contains(|c: char| c.is_ascii_digit()))
        })
    }

    /// Whether it contains a negation.
    pub fn denies(&self) -> bool {
        self.mood.polarity != Polarity::Affirms
    }

    /// Whether the statement begins like small talk: with the speaker, or with a reaction to the
    /// text before it.
    pub fn is_talk(&self) -> bool {
        self.frame.first().is_none_or(|word| Grammar::of(word).is(Grammar::TALK))
    }

    /// Whether it announces a change.
    pub fn is_change(&self) -> bool {
        self.mood.changes
    }

    /// The values of an older statement that this one replaces: those of the form in which the two
    /// differ.
    pub fn replaced_values<'a>(&self, old: &'a Self) -> Vec<&'a str> {
        let denied: Vec<&str> = old.values().filter(|value| self.denied.contains(*value)).collect();
        if !denied.is_empty() {
            return denied;
        }
        let forms = self.differing_forms(old);
        let replaced =
            old.values.iter().filter(|(form, _)| forms.is_empty() || forms.contains(form));
        let replaced = replaced.flat_map(|(form, values)| {
            let new = self.values.get(form);
            values.iter().filter(move |value| new.is_none_or(|new| !new.contains(*value)))
        });
        replaced.map(String::as_str).collect()
    }

    /// The number of words and values in this statement that the other one lacks.
    pub fn words_beside(&self, other: &Self) -> usize {
        self.content.iter().filter(|word| !other.content.contains(word)).count()
    }

    /// Whether this statement repeats most of an older one in other words.
    pub fn restates(&self, old: &Self) -> bool {
        // In a script without spaces, words are pairs of characters.
        const ADDRESSED: [&str; 7] = ["agent", "assist", "model", "用户", "ユー", "ーザ", "ザー"];
        let words: BTreeSet<&String> =
            self.content.iter().filter(|word| !ADDRESSED.contains(&word.as_str())).collect();
        let shared = words.iter().filter(|word| old.content.contains(word)).count();
        self.denies() == old.denies() && shared > 0 && shared * 5 >= words.len() * 3
    }

    /// How closely a clause is about this subject: the number of its words in the clause, names
    /// counted twice.
    pub fn weight_in(&self, clause: &str) -> usize {
        let lower = clause.to_lowercase();
        let names = self.values.get(&Form::Name).into_iter().flatten();
        self.shared_topic(&Self::of(clause))
            + 2 * names.filter(|name| lower.contains(*name)).count()
    }

    /// The values in the statement.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.values.values().flatten().map(String::as_str)
    }

    /// Whether the statement has this value, or a word with this stem, as `internally` has the stem
    /// of `internal`.
    pub(super) fn has(&self, text: &str) -> bool {
        let from = (Bound::Included(text), Bound::Unbounded);
        let word = self.topic.words.range::<str, _>(from).map(|(word, _)| word).next();
        let values = self.values.values().filter_map(|all| all.range::<str, _>(from).next());
        word.into_iter().chain(values).any(|found| found.starts_with(text))
    }

    /// All words in order, without those that announce a change.
    pub(super) fn unchanged(&self) -> impl Iterator<Item = &String> {
        self.frame.iter().filter(|word| !Grammar::of(word).is(Grammar::CHANGE))
    }

    /// Returns the forms of which each statement has a value that the other lacks.
    pub(super) fn differing_forms(&self, other: &Self) -> Vec<Form> {
        let forms = self.values.iter().filter(|(form, new)| {
            let old = other.values.get(form);
            // A number that identifies the subject, such as that of a room, is not its value.
            let is_value =
                |old: &String| **form != Form::Number || !other.topic.identifiers.contains(old);
            old.is_some_and(|old| {
                !new.is_subset(old) && !old.is_subset(new) && old.iter().any(is_value)
            })
        });
        forms.map(|(form, _)| *form).collect()
    }

    /// The words that name the subject, without those that only name the kind of value.
    pub(super) fn topic_words(&self) -> impl Iterator<Item = &str> {
        self.words().filter(|word| !is_kind(word))
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.words().filter(|word| is_kind(word))
    }

    pub(super) fn shared_kinds(&self, other: &Self) -> usize {
        self.kinds().filter(|kind| other.topic.words.contains_key(*kind)).count()
    }

    /// The number of shared words, names included.
    pub(super) fn shared_topic(&self, other: &Self) -> usize {
        let words = self.topic_words().filter(|word| other.topic.words.contains_key(*word)).count();
        words + self.shared_names(other)
    }

    fn shared_names(&self, other: &Self) -> usize {
        let both = self.values.get(&Form::Name).zip(other.values.get(&Form::Name));
        both.map_or(0, |(new, old)| new.intersection(old).count())
    }

    /// The number of words that name the subject, and of names that the other has, too.
    pub(super) fn size(&self, other: &Self) -> usize {
        self.topic_words().count() + self.shared_names(other)
    }
}
