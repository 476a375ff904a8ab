//! What a statement is about and which values it gives, so that a later statement with another value
//! for the same subject replaces it.
//!
//! A subject is a set of words. Two statements are about one subject if most of their words agree
//! and no agreeing word has another qualifier in each: `left lamp` and `right lamp`
//! are two subjects. A value is recognised by its form, in any language: an amount, a date, a path, a
//! code, a name. Words that only some statements about a subject contain make no difference.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    definition::Definition,
    demand::has_demand,
    stem::{is_mark, parts, stem},
    subject_words::{CHANGES, COPULAS, NEGATIONS, STOPS, is_listed_word},
};
use crate::message::steps;

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Amount,
    Date,
    Time,
    Number,
    Hash,
    Address,
    Path,
    Code,
    Name,
}

/// The most words of a statement that are read.
const WORDS: usize = 120;

/// The subject and the values of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Each word with the word before it, if that one qualifies it.
    words: BTreeMap<String, BTreeSet<String>>,
    values: BTreeMap<Form, BTreeSet<String>>,
    /// The words directly before values, which name them: `branch main-2`.
    slots: BTreeMap<Form, BTreeSet<String>>,
    /// All words in order, with the form of a value in its place.
    frame: Vec<String>,
    /// Whether it says that something is so, and does not ask for a step.
    asserts: bool,
    /// Whether it says that something changed.
    changes: bool,
    /// Whether it forbids something about its first value.
    forbids: bool,
    /// Its label and what it defines, if all of it is one definition.
    definition: Option<(String, Definition)>,
}

impl Subject {
    /// Returns the subject of a statement on one line.
    pub fn of(statement: &str) -> Self {
        let (label, body) = label(statement).unwrap_or(("", statement));
        let mut subject = Self { asserts: !label.is_empty(), ..Self::default() };
        subject.read(body);
        let defined = (!label.is_empty()).then(|| Definition::of(body)).flatten();
        subject.definition = defined.map(|definition| (label.to_owned(), definition));
        // A label beside a statement of its own is no part of what that is about.
        if subject.words.len() < 2 {
            subject.read(label);
        }
        subject
    }

    /// The words by which statements about the same subject can be found.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.keys().map(String::as_str)
    }

    /// All its words in order, with the form of a value in its place, if it only asks for something:
    /// equal for requests that differ in their values.
    pub fn request(&self) -> Option<&[String]> {
        (!self.asserts && !self.changes).then_some(self.frame.as_slice())
    }

    /// Whether it gives a value.
    pub fn has_value(&self) -> bool {
        !self.values.is_empty()
    }

    /// Whether it says that something changed.
    pub fn is_change(&self) -> bool {
        self.changes
    }

    /// The values that it gives and the other statement does not.
    pub fn values_beside<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a str> {
        let of_form = self
            .values
            .iter()
            .flat_map(|(form, values)| values.iter().map(move |value| (form, value)));
        let lacks = |form: &Form, value: &String| {
            other.values.get(form).is_none_or(|values| !values.contains(value))
        };
        of_form.filter(move |(form, value)| lacks(form, value)).map(|(_, value)| value.as_str())
    }

    /// The values that it gives.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.values.values().flatten().map(String::as_str)
    }

    /// Whether this later statement gives another value for the same subject.
    pub fn replaces(&self, old: &Self) -> bool {
        if !(self.asserts || self.changes) || !(old.asserts || old.changes) {
            return false;
        }
        let Some(form) = self.differing_form(old) else { return self.defines_anew(old) };
        if self.frame == old.frame {
            return !self.names_what_is_forbidden(old, form) || self.shared(old) >= 3;
        }
        let shared = self.shared(old);
        let least = self.size(old).min(old.size(self));
        // One common word is enough beside a value of a rare form.
        let changes = self.changes && !matches!(form, Form::Name | Form::Number);
        let enough = if self.changes { shared * 3 >= least } else { shared * 2 >= least };
        shared > 0
            && enough
            && (shared > 1
                || least == 1
                || changes
                || self.names(form, old)
                || old.names(form, self))
            && !self.contrasts(old)
            && (!self.names_what_is_forbidden(old, form) || shared >= 3)
    }

    /// Whether both define one thing under one label, in words whose form shows no value.
    fn defines_anew(&self, old: &Self) -> bool {
        let both = self.definition.as_ref().zip(old.definition.as_ref());
        let has_no_value = self.values.is_empty() && old.values.is_empty();
        both.is_some_and(|((label, new), (old_label, old))| {
            has_no_value && label == old_label && new.replaces(old)
        })
    }

    /// Returns a form in which both give values, each some that the other lacks.
    fn differing_form(&self, old: &Self) -> Option<Form> {
        let differs = |(form, new): (&Form, &BTreeSet<String>)| {
            let old = old.values.get(form)?;
            (!new.is_subset(old) && !old.is_subset(new)).then_some(*form)
        };
        self.values.iter().find_map(differs)
    }

    /// Whether the value is what a prohibition is about: two of them hold side by side.
    fn names_what_is_forbidden(&self, old: &Self, form: Form) -> bool {
        let identifies = match form {
            Form::Amount | Form::Date | Form::Time | Form::Number => false,
            Form::Hash | Form::Address | Form::Path | Form::Code | Form::Name => true,
        };
        identifies && (self.forbids || old.forbids)
    }

    /// Whether a word directly before a value of this form is one of the other's words.
    fn names(&self, form: Form, other: &Self) -> bool {
        let mut slots = self.slots.get(&form).into_iter().flatten();
        slots.any(|slot| other.words.contains_key(slot))
    }

    /// The number of words that both have, names included.
    fn shared(&self, other: &Self) -> usize {
        let words = self.words.keys().filter(|word| other.words.contains_key(*word)).count();
        words + self.shared_names(other)
    }

    fn shared_names(&self, other: &Self) -> usize {
        let both = self.values.get(&Form::Name).zip(other.values.get(&Form::Name));
        both.map_or(0, |(new, old)| new.intersection(old).count())
    }

    fn size(&self, other: &Self) -> usize {
        self.words.len() + self.shared_names(other)
    }

    /// Whether a word that both have is qualified by a word that only the one has in the one, and by
    /// a word that only the other has in the other.
    fn contrasts(&self, other: &Self) -> bool {
        let lacks = |subject: &Self, qualifiers: &BTreeSet<String>| {
            !qualifiers.is_empty() && qualifiers.iter().all(|q| !subject.words.contains_key(q))
        };
        self.words.iter().any(|(word, qualifiers)| {
            let others = other.words.get(word);
            others.is_some_and(|others| lacks(other, qualifiers) && lacks(self, others))
        })
    }

    fn read(&mut self, text: &str) {
        let mut clause = Clause::default();
        let mut tokens = steps::through(text).split_whitespace().take(WORDS).peekable();
        while let Some(token) = tokens.next() {
            let bare = token.trim_matches(is_mark);
            let next = tokens.peek().map(|next| next.trim_matches(is_mark)).unwrap_or_default();
            match form(bare, next, clause.is_first) {
                Some(form) => {
                    self.asserts |= clause.has_copula;
                    self.forbids |= clause.negated && self.values.is_empty();
                    self.frame.push(format!("{form:?}"));
                    let values = self.values.entry(form).or_default();
                    if !clause.before.is_empty() {
                        let slots = self.slots.entry(form).or_default();
                        slots.insert(std::mem::take(&mut clause.before));
                    }
                    // An acronym may be a name or a common word.
                    if form == Form::Name && bare.chars().all(char::is_uppercase) {
                        self.words.entry(stem(&bare.to_lowercase())).or_default();
                    }
                    values.insert(bare.trim_end_matches(['.', ',']).to_lowercase());
                    clause.before.clear();
                }
                None => parts(bare).into_iter().for_each(|word| self.word(word, &mut clause)),
            }
            clause.is_first = token.ends_with(['.', '!', '?']);
            if token.ends_with(['.', '!', '?', ';', ',', ':']) {
                self.asserts |= token.ends_with(':') && tokens.peek().is_some();
                clause = Clause { is_first: clause.is_first, ..Clause::default() };
            }
        }
    }

    fn word(&mut self, word: String, clause: &mut Clause) {
        // A copula says something only if a word follows it, which `as they are` has not.
        self.asserts |= clause.has_copula;
        clause.has_copula |= is_listed_word(COPULAS, &word);
        self.changes |= is_listed_word(CHANGES, &word);
        clause.negated |= is_listed_word(NEGATIONS, &word);
        self.frame.push(word.clone());
        let lists = [STOPS, COPULAS, CHANGES, NEGATIONS];
        if lists.iter().any(|list| is_listed_word(list, &word)) {
            clause.before.clear();
            return;
        }
        let stem = stem(&word);
        let qualifiers = self.words.entry(stem.clone()).or_default();
        if !clause.before.is_empty() {
            qualifiers.insert(std::mem::replace(&mut clause.before, stem));
        } else {
            clause.before = stem;
        }
    }
}

/// The state of reading one clause.
#[derive(Debug)]
struct Clause {
    /// Whether no word of the sentence was read yet.
    is_first: bool,
    has_copula: bool,
    negated: bool,
    /// The word before, if it may qualify the next one.
    before: String,
}

impl Default for Clause {
    fn default() -> Self {
        Self { is_first: true, has_copula: false, negated: false, before: String::new() }
    }
}

/// Returns the label before a statement and the rest: a few words and a colon, as in `NOTE: text`.
pub fn label(statement: &str) -> Option<(&str, &str)> {
    const LONGEST: usize = 40;
    let head: usize = statement.char_indices().take(LONGEST).last().map_or(0, |(at, _)| at);
    let head = statement.get(..head)?;
    let at = head.find([':', '\u{ff1a}'])?;
    let (label, rest) = statement.split_at_checked(at)?;
    let body = rest.trim_start_matches([':', '\u{ff1a}']);
    let is_apart = rest.starts_with('\u{ff1a}') || body.starts_with(char::is_whitespace);
    let plain = |c: char| c.is_alphabetic() || c == ' ' || c == '-' || c == '_';
    let words = label.split_whitespace().count();
    (is_apart && (1..=3).contains(&words) && label.chars().all(plain) && !body.trim().is_empty())
        .then(|| (label.trim(), body.trim()))
}

/// Returns a statement without the label before it, if the label only stresses what makes sense
/// alone: `NOTE: the port is 8080`, but not `Owner: Ada Byron`.
pub fn without_emphasis(statement: &str) -> &str {
    let Some((label, body)) = label(statement) else { return statement };
    let words = || body.split_whitespace().map(|word| word.trim_matches(is_mark).to_lowercase());
    let says = || words().any(|word| is_listed_word(COPULAS, &word)) || has_demand(body);
    let is_sentence = body.starts_with(|c: char| !c.is_lowercase())
        && body.ends_with(['.', '!', '\u{3002}', '\u{ff01}']);
    let stresses = if label.chars().any(char::is_lowercase) {
        is_sentence && says()
    } else {
        words().count() > 3 || says()
    };
    if stresses { body } else { statement }
}

/// Returns the form of a value, or `None` for a word.
fn form(word: &str, next: &str, is_first: bool) -> Option<Form> {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    let upper = word.chars().next().is_some_and(char::is_uppercase);
    let only = |signs: &str| word.chars().all(|c| c.is_ascii_digit() || signs.contains(c));
    if word.starts_with(['$', '\u{20ac}', '\u{a3}', '\u{a5}']) && digits > 0 {
        return Some(Form::Amount);
    }
    if word.contains("://") {
        return Some(Form::Address);
    }
    if word.contains('/') && letters > 0 && !word.starts_with('/') | (digits + letters > 1) {
        return Some(Form::Path);
    }
    if digits == 0 {
        let dotted = word.contains('.') && letters > 3 && !word.contains("..");
        let name = upper && !is_first && letters > 1;
        return if dotted { Some(Form::Path) } else { name.then_some(Form::Name) };
    }
    if letters == 0 {
        let unit = next.to_lowercase();
        let money = word.ends_with(['$', '\u{20ac}', '\u{a3}', '%'])
            || is_listed_word(" dollars dollar euros euro eur usd gbp chf yuan yen ", &unit);
        return Some(match digits {
            _ if money => Form::Amount,
            4..=8 if only("-/") && word.contains(['-', '/']) => Form::Date,
            6..=8 if only("-./") && word.contains(['-', '.', '/']) => Form::Date,
            _ if only(":") && word.contains(':') => Form::Time,
            7.. if only("") => Form::Hash,
            _ => Form::Number,
        });
    }
    let hex = word.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if hex && word.len() >= 7 {
        return Some(Form::Hash);
    }
    let measured = word.starts_with(|c: char| c.is_ascii_digit()) && letters < 4;
    Some(if measured { Form::Number } else { Form::Code })
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
            ("Der Port des Servers ist jetzt 8443.", "Der Port des Servers ist 8080."),
            ("\u{7aef}\u{53e3}\u{662f} 8443", "\u{7aef}\u{53e3}\u{662f} 8080"),
        ];
        for (new, old) in rows {
            assert!(replaces(new, old), "{new} {:?} {:?}", Subject::of(new), Subject::of(old));
        }
    }

    #[test]
    fn a_label_stresses_what_makes_sense_alone() {
        let rows = [
            ("NOTE: the port is 8080", "the port is 8080"),
            ("HARD RULE: Never touch the lexer.", "Never touch the lexer."),
            ("Important: The port is 8080.", "The port is 8080."),
            ("STATE: Next up: the old pier", "Next up: the old pier"),
        ];
        for (statement, body) in rows {
            assert_eq!(without_emphasis(statement), body);
        }
        for whole in ["Owner: Ada Byron", "Ports: the proxy has 8080", "TODO: 12", "Tea is fine."] {
            assert_eq!(without_emphasis(whole), whole);
        }
    }

    #[test]
    fn statements_about_two_subjects_both_hold() {
        let rows = [
            ("The left lamp is Model 7 in row-3.", "The right lamp is Model 6 in row-1."),
            ("The port of the proxy is 8443.", "The port of the server is 8080."),
            ("Fix ticket 12.", "Fix ticket 11."),
            ("Never delete backup-02.", "Never delete backup-01."),
            ("Never touch the file src/b.rs.", "Never touch the file src/a.rs."),
            ("Keep the names of part 2 as they are.", "Keep the names of part 1 as they are."),
            ("The owner is Ada.", "The owner is Ada."),
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
