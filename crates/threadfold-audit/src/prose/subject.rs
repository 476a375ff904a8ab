//! The subject of a statement and the values that it gives, so that a later statement with another
//! value for the same subject replaces it.
//!
//! A subject is a set of words. A later statement that announces a change (`now`, `moved`,
//! `instead`) replaces an earlier one if most of their words agree. A later statement without such
//! a word replaces it only if one set of words contains the other and the two differ in values of
//! one form. In both cases no shared word may have different qualifiers: `left lamp` and `right
//! lamp` are two subjects, as are `room 12` and `room 14`. A later statement about a part of the
//! subject does not replace one about the whole: `the late fee for films`, `the fee in Lisbon`.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use super::{
    definition::Definition,
    label::label,
    stem::stem,
    subject_words::{Grammar, PLACED, is_kind},
    value::Form,
};

/// Words that mark a second thing of the same kind: `the other deadline`.
const OTHERS: [&str; 8] =
    ["other", "andere", "anderer", "anderen", "otro", "otra", "autre", "outro"];

/// The subject and the values of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Each word, with the neighbouring words that qualify it.
    pub(super) words: BTreeMap<String, BTreeSet<String>>,
    /// Words with an opposite, such as `first` and `open`: the number of the pair, and the sides.
    pub(super) sides: BTreeMap<u8, BTreeSet<u8>>,
    pub(super) values: BTreeMap<Form, BTreeSet<String>>,
    /// The words directly before values, which name them: `branch main-2`.
    pub(super) slots: BTreeMap<Form, BTreeSet<String>>,
    /// Values that distinguish the subject from others: `Room 12 is free`.
    pub(super) identifiers: BTreeSet<String>,
    /// Names of the place, person or day to which the statement is limited: `the Berlin office`,
    /// `on Mondays`.
    pub(super) scopes: BTreeSet<String>,
    /// Words and values that the statement calls no longer true: `instead of tea`, `no longer
    /// Ada's`.
    pub(super) denied: BTreeSet<String>,
    /// All words in order, with the form of each value instead of the value.
    pub(super) frame: Vec<String>,
    /// The words and values in order, without grammatical words.
    pub(super) content: Vec<String>,
    /// Whether the statement asserts something, instead of asking for a step.
    pub(super) asserts: bool,
    /// Whether it announces a change.
    pub(super) changes: bool,
    pub(super) stance: Stance,
    pub(super) polarity: Polarity,
    /// The word that the other words qualify: `party` in `The launch party is on`.
    pub(super) core: Option<String>,
    /// Whether the statement is about passing on information.
    pub(super) tells: bool,
    pub(super) label: String,
    /// Whether its label names the subject: `Owner: Ada Byron`.
    pub(super) is_entry: bool,
    /// Its definition, if the text after the label is one.
    pub(super) definition: Option<Definition>,
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

impl Subject {
    /// Returns the subject of a statement on one line.
    pub fn of(statement: &str) -> Self {
        let (label, body) = label(statement).unwrap_or(("", statement));
        let mut subject = Self::read(body);
        if !label.is_empty() {
            label.clone_into(&mut subject.label);
            subject.asserts = true;
            subject.definition = Definition::of(body);
        }
        // A label before a whole statement is not part of the subject, as in `NOTE: the port is
        // 8080`. Before a bare value the label is the subject: `Port: 8080`.
        let announces =
            label.split(' ').any(|word| Grammar::of(&word.to_lowercase()).is(Grammar::CHANGE));
        if subject.words.len() < 2 || announces {
            let mut named = Self::read(label);
            subject.is_entry = subject.words.len() < 2 || !named.words.is_empty();
            subject.words.append(&mut named.words);
        }
        subject.changes |= announces;
        if statement.ends_with(['?', '\u{ff1f}'])
            || Grammar::MUSING.is_in(statement)
            || subject.frame.iter().any(|word| Grammar::of(word).is(Grammar::MUSING))
        {
            subject.stance = Stance::Musing;
        }
        subject
    }

    /// The words by which statements about the same subject can be found.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.keys().map(String::as_str)
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
        self.identifiers.iter().map(String::as_str)
    }

    /// Whether it defines something: `Next: the old pier`.
    pub fn defines(&self) -> bool {
        self.definition.is_some()
    }

    /// Returns the [frame](Self::frame) of a statement that only asks for something; `None` for any
    /// other. Requests that differ only in their values have the same frame.
    pub fn request(&self) -> Option<&[String]> {
        (!self.asserts && !self.changes).then_some(self.frame.as_slice())
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
        self.polarity != Polarity::Affirms
    }

    /// Whether the statement begins like small talk: with the speaker, or with a reaction to the
    /// text before it.
    pub fn is_talk(&self) -> bool {
        self.frame.first().is_none_or(|word| Grammar::of(word).is(Grammar::TALK))
    }

    /// Whether it announces a change.
    pub fn is_change(&self) -> bool {
        self.changes
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

    /// Whether this later statement gives another value for the same subject.
    pub fn replaces(&self, old: &Self) -> bool {
        if self.is_tentative() {
            return false;
        }
        if self.defines_anew(old) {
            return true;
        }
        let corrects = self.names_old_value(old);
        if !(self.changes || corrects || (self.asserts && old.asserts)) {
            return false;
        }
        // Values of different forms answer different questions, so `on Monday` does not replace `in
        // room 4`.
        let forms = self.differing_forms(old);
        if self.changes && forms.is_empty() && self.differs_in_one_run(old) {
            let has_alike = |form: &Form| {
                let is_alike = |own: &Form| own == form || (own.identifies() && form.identifies());
                *form == Form::Number || self.values.keys().any(is_alike)
            };
            return (self.has_value() || !old.has_value())
                && old.values.keys().all(has_alike)
                && self.shares_predicate(old);
        }
        let Some(form) = forms.first().copied() else {
            return corrects && !self.contrasts(old);
        };
        // A statement about one place or person does not replace a general one.
        if self.contrasts(old) || self.is_narrower(old, form) {
            return false;
        }
        if corrects {
            return true;
        }
        if self.names_what_is_forbidden(old, form) {
            // Two prohibitions to disclose something about a shared topic give two values for it,
            // so the later one replaces the earlier. Other prohibitions of different things are
            // both valid.
            return self.tells && old.tells && self.shared_topic(old) > 0;
        }
        // An announced change may omit words. Without an announcement, the subjects must be the
        // same.
        match self.changes {
            true => self.agrees(old, form),
            false => {
                // `The tests need Redis` and `the tests need Docker` are both valid.
                let may_be_many = |word: &String| Grammar::of(word).is(Grammar::MANY);
                forms.len() == 1
                    && !(form.identifies() && self.frame.iter().any(may_be_many))
                    && !old.is_narrower(self, form)
                    && self.is_about_the_same(old, form)
            }
        }
    }

    fn is_tentative(&self) -> bool {
        match self.stance {
            Stance::Direct => false,
            Stance::Reported => !self.changes,
            Stance::Musing => true,
        }
    }

    /// Whether this statement is about a part of the other's subject, or limited to a place, person
    /// or day that the other does not name: `the fee for films`, `the Berlin office`.
    fn is_narrower(&self, other: &Self, form: Form) -> bool {
        // A name that is the value itself is no limitation.
        let values = self.values.get(&form);
        let is_value = |name: &String| {
            !self.identifiers.contains(name) && values.is_some_and(|values| values.contains(name))
        };
        let limits = |word: &String| self.changes && !other.has(word);
        let is_other = |words: &[String]| {
            matches!(words, [the, word] if Grammar::of(the).is(Grammar::DETERMINER)
                && OTHERS.contains(&word.as_str())
                && !other.frame.contains(word))
        };
        self.scopes.iter().any(|scope| !other.has(scope) && !is_value(scope))
            || self.frame.windows(2).any(is_other)
            || self.core.as_ref().is_some_and(|core| limits(core) && !is_kind(core))
            || self.words.iter().any(|(word, qualifiers)| {
                other.words.contains_key(word) && qualifiers.iter().any(limits)
            })
    }

    /// Whether the statement has this value, or a word with this stem, as `internally` has the stem
    /// of `internal`.
    pub(super) fn has(&self, text: &str) -> bool {
        let from = (Bound::Included(text), Bound::Unbounded);
        let word = self.words.range::<str, _>(from).map(|(word, _)| word).next();
        let values = self.values.values().filter_map(|all| all.range::<str, _>(from).next());
        word.into_iter().chain(values).any(|found| found.starts_with(text))
    }

    /// Whether enough words agree for an announced change to refer to the old statement.
    fn agrees(&self, old: &Self, form: Form) -> bool {
        let shared = self.shared_topic(old);
        let least = self.size(old).min(old.size(self));
        // One shared word is enough if the form of the value is rare.
        let is_rare = !matches!(form, Form::Name | Form::Number | Form::Quoted);
        let all = shared + self.shared_kinds(old);
        (shared > 0 || self.size(old) == 0)
            && all > 0
            && all * 3 >= least
            && (all > 1 || least <= 1 || is_rare || self.names(form, old) || old.names(form, self))
    }

    /// Whether the words of one statement are a subset of those of the other.
    fn is_about_the_same(&self, old: &Self, form: Form) -> bool {
        let (shared, kinds) = (self.shared_topic(old), self.shared_kinds(old));
        let (new_size, old_size) = (self.size(old), old.size(self));
        let least = new_size.min(old_size);
        // An additional word usually means another thing: `the pool next door`. A shared label
        // shows that both are about the same thing.
        let is_labelled_alike =
            (!self.label.is_empty() && self.label == old.label) || self.is_entry || old.is_entry;
        let has_kind = self.kinds().chain(old.kinds()).next().is_some();
        shared == least
            && shared + kinds > 0
            && (new_size == old_size
                || (is_labelled_alike && (shared > 1 || (shared > 0 && has_kind))))
            && (shared + kinds > 1 || least <= 1 || self.names(form, old) || old.names(form, self))
    }

    /// Whether this statement calls a word or value of the old one no longer true.
    fn names_old_value(&self, old: &Self) -> bool {
        let names_one = self.denied.iter().any(|denied| {
            old.values.values().any(|values| values.contains(denied)) || old.frame.contains(denied)
        });
        // They must share another word in addition to the denied one.
        let stems: Vec<String> = self.denied.iter().map(|denied| stem(denied)).collect();
        let mut topic = self.topic().filter(|word| !stems.iter().any(|stem| stem == word));
        !old.denies() && names_one && topic.any(|word| old.words.contains_key(word))
    }

    /// Whether both have the same words and values, except for one run of a few words.
    fn differs_in_one_run(&self, old: &Self) -> bool {
        const LONGEST: usize = 4;
        let (new, old_content) = (&self.content, &old.content);
        let before = new.iter().zip(old_content).take_while(|(one, two)| one == two).count();
        let rest = new.len().min(old_content.len()) - before;
        let after = new.iter().rev().zip(old_content.iter().rev()).take(rest);
        let common = before + after.take_while(|(one, two)| one == two).count();
        !self.denies()
            && !old.denies()
            && before > 0
            && (common >= 2 || self.opens_like(old))
            && !self.is_other(old)
            && (1..=LONGEST).contains(&(new.len() - common))
            && (1..=LONGEST).contains(&(old_content.len() - common))
    }

    /// Whether the words with which both begin include the verb. `At the Oslo office the code is
    /// 4471` and `At the Oslo office we now have a cat` share only a place, so both are valid.
    fn shares_predicate(&self, old: &Self) -> bool {
        let is_copula = |word: &String| word == PLACED || Grammar::of(word).is(Grammar::COPULA);
        let common: Vec<&String> = self
            .unchanged()
            .zip(old.unchanged())
            .take_while(|(one, two)| one == two)
            .map(|(word, _)| word)
            .collect();
        let speaker = common.iter().position(|word| Grammar::of(word).is(Grammar::TALK));
        if common.iter().any(|word| is_copula(word))
            || speaker.is_some_and(|at| at + 1 < common.len())
        {
            return true;
        }
        let states_other = [self, old]
            .into_iter()
            .any(|one| one.unchanged().skip(common.len()).take(5).any(is_copula));
        // `My sister moved to Leeds` replaces no other statement about her.
        let is_verb = |word: &String| {
            let does = Grammar::of(word);
            does.is(Grammar::CHANGE) && !does.is(Grammar::ADVERB)
        };
        speaker.is_none() && !states_other && !self.frame.get(common.len()).is_some_and(is_verb)
    }

    /// All words in order, without those that announce a change.
    pub(super) fn unchanged(&self) -> impl Iterator<Item = &String> {
        self.frame.iter().filter(|word| !Grammar::of(word).is(Grammar::CHANGE))
    }

    /// Whether both begin with the same words, grammar included.
    fn opens_like(&self, old: &Self) -> bool {
        const LEAST: usize = 4;
        let both = self.unchanged().zip(old.unchanged()).take_while(|(one, two)| one == two);
        // A copula counts twice, because `The plan is` shows more agreement than `The plan for`.
        let weights = both.map(|(word, _)| match word.as_str() {
            PLACED => 3,
            word => 1 + usize::from(Grammar::of(word).is(Grammar::COPULA)),
        });
        weights.sum::<usize>() >= LEAST
    }

    /// Whether both define the same thing under the same label, without values.
    fn defines_anew(&self, old: &Self) -> bool {
        let both = self.definition.as_ref().zip(old.definition.as_ref());
        let has_no_value = self.values.is_empty() && old.values.is_empty();
        both.is_some_and(|(new, old_definition)| {
            has_no_value && self.label == old.label && new.replaces(old_definition)
        })
    }

    /// Returns the forms of which each statement has a value that the other lacks.
    fn differing_forms(&self, other: &Self) -> Vec<Form> {
        let forms = self.values.iter().filter(|(form, new)| {
            let old = other.values.get(form);
            // A number that identifies the subject, such as that of a room, is not its value.
            let is_value =
                |old: &String| **form != Form::Number || !other.identifiers.contains(old);
            old.is_some_and(|old| {
                !new.is_subset(old) && !old.is_subset(new) && old.iter().any(is_value)
            })
        });
        forms.map(|(form, _)| *form).collect()
    }

    /// Whether a value of this form is the object of a prohibition.
    fn names_what_is_forbidden(&self, old: &Self, form: Form) -> bool {
        form.identifies() && [self, old].iter().any(|one| one.polarity == Polarity::Forbids)
    }

    /// Whether a word directly before a value of this form is one of the other's words.
    fn names(&self, form: Form, other: &Self) -> bool {
        let mut slots = self.slots.get(&form).into_iter().flatten();
        slots.any(|slot| other.words.contains_key(slot))
    }

    /// The words that name the subject, without those that only name the kind of value.
    fn topic(&self) -> impl Iterator<Item = &str> {
        self.words().filter(|word| !is_kind(word))
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.words().filter(|word| is_kind(word))
    }

    fn shared_kinds(&self, other: &Self) -> usize {
        self.kinds().filter(|kind| other.words.contains_key(*kind)).count()
    }

    /// The number of shared words, names included.
    fn shared_topic(&self, other: &Self) -> usize {
        let words = self.topic().filter(|word| other.words.contains_key(*word)).count();
        words + self.shared_names(other)
    }

    fn shared_names(&self, other: &Self) -> usize {
        let both = self.values.get(&Form::Name).zip(other.values.get(&Form::Name));
        both.map_or(0, |(new, old)| new.intersection(old).count())
    }

    fn size(&self, other: &Self) -> usize {
        self.topic().count() + self.shared_names(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaces(new: &str, old: &str) -> bool {
        Subject::of(new).replaces(&Subject::of(old))
    }

    #[test]
    fn another_value_for_the_same_subject_replaces_the_old_one() {
        let rows = [
            ("The port of the proxy is 8443.", "The port of the proxy is 8080."),
            ("Seats are now limited to 40 for the pilot.", "The pilot is limited to 25 seats."),
            ("The owner of the pilot is Ada Byron.", "Pilot owner: Grace Hopper"),
            ("TODO: the fee is $40 a seat", "NOTE: the fee is $30 a seat"),
            ("We have 50 goats now.", "We have 34 goats."),
            ("There are 28 children in class 3a now.", "There are 26 children in class 3a."),
            ("The class has 28 children now.", "The class has 26 children."),
            ("Starting in May the rent is 1,350 a month.", "The rent is 1,200 a month."),
            ("Der Port des Servers ist jetzt 8443.", "Der Port des Servers ist 8080."),
            ("\u{7aef}\u{53e3}\u{662f} 8443", "\u{7aef}\u{53e3}\u{662f} 8080"),
        ];
        for (new, old) in rows {
            assert!(replaces(new, old), "{new} {:?} {:?}", Subject::of(new), Subject::of(old));
        }
    }

    #[test]
    fn statements_about_two_subjects_are_both_valid() {
        let rows = [
            ("The left lamp is Model 7 in row-3.", "The right lamp is Model 6 in row-1."),
            ("The port of the proxy is 8443.", "The port of the server is 8080."),
            ("Fix ticket 12.", "Fix ticket 11."),
            ("Never delete backup-02.", "Never delete backup-01."),
            ("Never touch the file src/b.rs.", "Never touch the file src/a.rs."),
            ("Keep the names of part 2 as they are.", "Keep the names of part 1 as they are."),
            ("The owner is Ada.", "The owner is Ada."),
            ("The neighbours have 50 goats now.", "We have 34 goats."),
            ("Their budget is 6,000.", "Our budget is 5,000."),
            ("Her flight now leaves at 10:15.", "His flight leaves at 9:40."),
            ("The other deadline is on Monday.", "The deadline is on Friday."),
            ("The live site now has 9 pages.", "The test site has 7 pages."),
            ("Send letters to b@example.org from now on.", "Send bills to a@example.org."),
            ("Use port 9090 for the metrics now.", "Use port 8080 for the proxy."),
            ("Sara now sleeps six hours a day.", "Sara drinks two coffees a day."),
            ("My aunt now gets up at 9.", "I get up at 8."),
            ("Unser Saal hat jetzt 40 Plätze.", "Ihr Saal hat 30 Plätze."),
            ("Die Nachbarn haben jetzt 24 Kühe.", "Wir haben 20 Kühe."),
            ("10 of the chairs need new legs.", "We need 40 chairs."),
            ("There are 28 children in class 3b now.", "There are 26 children in class 3a."),
            (
                "NOTE: the tea API base page is https://a.b/v2.",
                "NOTE: fix-1 is based on commit 5c0ffee.",
            ),
        ];
        for (new, old) in rows {
            assert!(!replaces(new, old), "{new} {:?} {:?}", Subject::of(new), Subject::of(old));
        }
    }
}
