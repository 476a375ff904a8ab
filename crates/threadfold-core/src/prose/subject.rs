//! What a statement is about and which values it gives, so that a later statement with another value
//! for the same subject replaces it.
//!
//! A subject is a set of words. A later statement that announces a change (`now`, `moved`, `instead`)
//! replaces an earlier one if most of their words agree. One that announces nothing replaces it only if
//! no word speaks against it: the words of the one are among those of the other, and they differ in
//! values of one form. In both cases no word may have another qualifier in each: `left lamp` and
//! `right lamp` are two subjects, as are `room 12` and `room 14`.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    definition::Definition,
    demand::has_demand,
    meanings::{TELL, canonical, is_kind, side},
    stem::{is_mark, is_unspaced, parts, stem},
    subject_words::{
        ANNOUNCEMENTS, CHANGES, COPULAS, DETERMINERS, EXCEPTIONS, NEGATIONS, RELATIONS, STOPS,
        SWAPS, TALK, UNSPACED_CHANGES, UNSPACED_COPULAS, UNSPACED_NEGATIONS, is_listed_word,
    },
    value::{Form, Piece, pieces},
};
use crate::message::steps;

/// The most words of a statement that are read.
const WORDS: usize = 120;

/// The subject and the values of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Each word with the words beside it that qualify it.
    words: BTreeMap<String, BTreeSet<String>>,
    /// Words of which another one says the opposite: `first`, `open`.
    sides: BTreeMap<u8, BTreeSet<u8>>,
    values: BTreeMap<Form, BTreeSet<String>>,
    /// The words directly before values, which name them: `branch main-2`.
    slots: BTreeMap<Form, BTreeSet<String>>,
    /// Values that tell its subject from others: `Room 12 is free`.
    identifiers: BTreeSet<String>,
    /// Words and values that no longer hold: `instead of tea`, `no longer Ada's`.
    denied: BTreeSet<String>,
    /// All words in order, with the form of a value in its place.
    frame: Vec<String>,
    /// The words and values that say something, in order.
    content: Vec<String>,
    /// Whether it says that something is so, and does not ask for a step.
    asserts: bool,
    /// Whether it says that something changed.
    changes: bool,
    /// Whether it has a word that denies.
    denies: bool,
    /// Whether it forbids something about its first value.
    forbids: bool,
    /// Whether it is about telling something to others.
    tells: bool,
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
            let mut named = Self::default();
            named.read(label);
            subject.words.append(&mut named.words);
        }
        let lower = statement.to_lowercase();
        let announced = label.split(' ').any(|word| is_listed_word(CHANGES, &word.to_lowercase()));
        subject.changes |= announced || ANNOUNCEMENTS.iter().any(|phrase| lower.contains(phrase));
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

    /// Whether it gives a value in digits or a name.
    pub fn has_value(&self) -> bool {
        let is_exact = |(form, values): (&Form, &BTreeSet<String>)| {
            let digits = |value: &String| value.bytes().any(|byte| byte.is_ascii_digit());
            *form != Form::Number || values.iter().any(digits)
        };
        self.values.iter().any(is_exact)
    }

    /// Whether it says that something is so of a thing that it names, and not only of the speaker or of
    /// what was said before.
    pub fn asserts_of_a_thing(&self) -> bool {
        let is_talk = |word: &String| is_listed_word(TALK, word);
        self.asserts && !self.frame.first().is_none_or(is_talk)
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
        if self.defines_anew(old) {
            return true;
        }
        let forms = self.differing_forms(old);
        if self.changes && forms.is_empty() && self.differs_in_one_run(old) {
            return true;
        }
        if self.contrasts(old) || !(self.changes || (self.asserts && old.asserts)) {
            return false;
        }
        if self.names_old_value(old) {
            return true;
        }
        let Some(form) = forms.first().copied() else { return false };
        if self.names_what_is_forbidden(old, form) {
            // What must not be told is a value; other things that are forbidden hold side by side.
            return self.tells && old.tells && self.shared_topic(old) > 0;
        }
        if self.changes {
            return self.agrees(old, form);
        }
        forms.len() == 1 && self.is_about_the_same(old, form)
    }

    /// Whether enough words agree that an announced change can mean the old statement.
    fn agrees(&self, old: &Self, form: Form) -> bool {
        let shared = self.shared_topic(old);
        let least = self.size(old).min(old.size(self));
        // One common word is enough beside a value of a rare form.
        let is_rare = !matches!(form, Form::Name | Form::Number);
        let all = shared + self.shared_kinds(old);
        (shared > 0 || least == 0)
            && all > 0
            && all * 3 >= least
            && (all > 1 || least <= 1 || is_rare || self.names(form, old) || old.names(form, self))
    }

    /// Whether the words of the one are among those of the other.
    fn is_about_the_same(&self, old: &Self, form: Form) -> bool {
        let (shared, kinds) = (self.shared_topic(old), self.shared_kinds(old));
        let (new_size, old_size) = (self.size(old), old.size(self));
        let least = new_size.min(old_size);
        let has_kind = self.kinds().chain(old.kinds()).next().is_some();
        shared == least
            && shared + kinds > 0
            && (new_size == old_size || shared > 1 || has_kind)
            && (shared + kinds > 1 || least <= 1 || self.names(form, old) || old.names(form, self))
    }

    /// Whether it says of a word or value of the old statement that it no longer holds.
    fn names_old_value(&self, old: &Self) -> bool {
        let is_value = |denied: &&String| {
            old.values.values().any(|values| values.contains(*denied)) || old.frame.contains(denied)
        };
        let kept = |word: &&str| !self.denied.iter().any(|denied| stem(denied) == **word);
        !old.denies
            && self.denied.iter().any(|denied| is_value(&denied))
            && self.topic().filter(kept).any(|word| old.words.contains_key(word))
    }

    /// Whether all that says something is the same in both, but for one run of a few words.
    fn differs_in_one_run(&self, old: &Self) -> bool {
        const LONGEST: usize = 4;
        let (new, old_content) = (&self.content, &old.content);
        let alike = |(one, two): &(&String, &String)| one == two;
        let before = new.iter().zip(old_content).take_while(alike).count();
        let rest = new.len().min(old_content.len()) - before;
        let after = new.iter().rev().zip(old_content.iter().rev()).take(rest);
        let common = before + after.take_while(alike).count();
        let differing = |content: &Vec<String>| content.len() - common;
        !self.denies
            && !old.denies
            && before > 0
            && (common >= 2 || self.opens_like(old))
            && !self.is_other(old)
            && (1..=LONGEST).contains(&differing(new))
            && (1..=LONGEST).contains(&differing(old_content))
    }

    /// Whether both begin with the same words, those of grammar included.
    fn opens_like(&self, old: &Self) -> bool {
        const LEAST: usize = 4;
        let both = self.frame.iter().zip(&old.frame);
        both.take_while(|(one, two)| one == two).count() >= LEAST
    }

    /// Whether both define one thing under one label, in words whose form shows no value.
    fn defines_anew(&self, old: &Self) -> bool {
        let both = self.definition.as_ref().zip(old.definition.as_ref());
        let has_no_value = self.values.is_empty() && old.values.is_empty();
        both.is_some_and(|((label, new), (old_label, old))| {
            has_no_value && label == old_label && new.replaces(old)
        })
    }

    /// Returns the forms in which both give values, each some that the other lacks.
    fn differing_forms(&self, old: &Self) -> Vec<Form> {
        let differs = |(form, new): (&Form, &BTreeSet<String>)| {
            let old = old.values.get(form)?;
            (!new.is_subset(old) && !old.is_subset(new)).then_some(*form)
        };
        self.values.iter().filter_map(differs).collect()
    }

    /// Whether the value is what a prohibition is about.
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

    /// The words that say what it is about, without those that only say what kind of value it gives.
    fn topic(&self) -> impl Iterator<Item = &str> {
        self.words().filter(|word| !is_kind(word))
    }

    fn kinds(&self) -> impl Iterator<Item = &str> {
        self.words().filter(|word| is_kind(word))
    }

    fn shared_kinds(&self, other: &Self) -> usize {
        self.kinds().filter(|kind| other.words.contains_key(*kind)).count()
    }

    /// The number of words that both have, names included.
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

    /// Whether the two are plainly about different things: a word that both have is qualified by
    /// others in each, or each has an opposite, a kind of value or an identifier of its own.
    fn contrasts(&self, other: &Self) -> bool {
        let lacks = |subject: &Self, qualifiers: &BTreeSet<String>| {
            !qualifiers.is_empty() && qualifiers.iter().all(|q| !subject.words.contains_key(q))
        };
        let qualified = self.words.iter().any(|(word, qualifiers)| {
            let others = other.words.get(word);
            others.is_some_and(|others| lacks(other, qualifiers) && lacks(self, others))
        });
        let is_own = |kind: &&str| *kind != "=limit";
        let kinds: BTreeSet<&str> = self.kinds().filter(is_own).collect();
        let mut others = other.kinds().filter(is_own).peekable();
        let of_other_kind = !kinds.is_empty()
            && others.peek().is_some()
            && !others.any(|kind| kinds.contains(kind));
        qualified || of_other_kind || self.is_other(other)
    }

    /// Whether each has an opposite or an identifier of its own.
    fn is_other(&self, other: &Self) -> bool {
        let opposed = self.sides.iter().any(|(pair, sides)| {
            other.sides.get(pair).is_some_and(|others| sides.is_disjoint(others))
        });
        let (one, two) = (&self.identifiers, &other.identifiers);
        opposed || !(one.is_subset(two) || two.is_subset(one))
    }

    fn read(&mut self, text: &str) {
        let mut clause = Clause::default();
        for piece in pieces(steps::through(text), WORDS) {
            if let Some((pair, of)) = side(&piece.text.to_lowercase()) {
                self.sides.entry(pair).or_default().insert(of);
            }
            match piece.form {
                Some(form) => self.value(form, &piece.text, &mut clause),
                None if piece.text.contains(is_unspaced) => self.unspaced(&piece, &mut clause),
                None => {
                    let last = parts(&piece.text).len();
                    for (at, word) in parts(&piece.text).into_iter().enumerate() {
                        self.word(word, at + 1 == last, &mut clause);
                    }
                }
            }
            if let Some(end) = piece.end {
                self.asserts |= end == ':';
                self.end(&mut clause);
            }
        }
        self.end(&mut clause);
    }

    fn value(&mut self, form: Form, text: &str, clause: &mut Clause) {
        let value = text.to_lowercase();
        let value = value.trim_end_matches("'s").trim_end_matches("\u{2019}s").to_owned();
        self.asserts |= clause.has_copula;
        self.frame.push(format!("{form:?}"));
        let is_acronym = form == Form::Name && text.chars().all(char::is_uppercase);
        if clause.denying > 0 || (clause.negated && !self.values.is_empty()) {
            clause.denying = clause.denying.saturating_sub(1);
            self.denied.insert(value);
            return;
        }
        self.forbids |= clause.negated && self.values.is_empty();
        clause.counts = true;
        self.content.push(value.clone());
        if !clause.before.is_empty() {
            let slots = self.slots.entry(form).or_default();
            slots.insert(std::mem::take(&mut clause.before));
        }
        // An acronym may be a name or a common word.
        if is_acronym {
            self.words.entry(stem(&value)).or_default();
        } else {
            if !clause.after_value {
                self.identifiers.append(&mut clause.pending);
            }
            if clause.tokens > 0 && !clause.has_copula {
                clause.pending.insert(value.clone());
                clause.is_tail = false;
            }
            clause.after_value = true;
        }
        clause.named_by_article = form == Form::Name && clause.only_determiner;
        self.values.entry(form).or_default().insert(value);
        (clause.tokens, clause.only_determiner) = (clause.tokens + 1, false);
        clause.relation = None;
    }

    fn word(&mut self, word: String, is_last: bool, clause: &mut Clause) {
        // What follows is another clause, which may be about something else.
        if clause.counts && matches!(word.as_str(), "and" | "und" | "y" | "et") {
            self.end(clause);
        }
        let is_first = clause.tokens == 0;
        let is_determiner = is_listed_word(DETERMINERS, &word);
        if is_first && is_determiner && self.frame.is_empty() {
            clause.is_statement = true;
        }
        clause.only_determiner = is_first && is_determiner;
        clause.tokens += usize::from(!clause.only_determiner);
        // A copula says something only if a word follows it, which `as they are` has not.
        self.asserts |= clause.has_copula;
        if is_listed_word(COPULAS, &word) {
            clause.has_copula = true;
            if clause.after_value {
                self.identifiers.append(&mut clause.pending);
            }
        }
        let previous = std::mem::replace(&mut clause.previous, word.clone());
        let gives_up = matches!(
            (previous.as_str(), word.as_str()),
            ("instead", "of") | ("rather", "than") | ("no", "longer") | ("vez" | "lugar", "de")
        ) || matches!(word.as_str(), "statt" | "anstatt" | "anstelle")
            || (word == "from" && self.changes);
        if gives_up {
            clause.denying = if word == "from" { 1 } else { usize::MAX };
        } else if is_listed_word(SWAPS, &word) {
            clause.denying = 1;
        }
        let changes = is_listed_word(CHANGES, &word);
        // `Now fix the parser` only comes next.
        self.changes |= changes && !(is_first && word == "now" && self.frame.is_empty());
        self.denies |= is_listed_word(NEGATIONS, &word);
        clause.negated |= is_listed_word(NEGATIONS, &word);
        clause.negated &= !is_listed_word(EXCEPTIONS, &word);
        self.frame.push(word.clone());
        // `Rebased onto a branch` changes what something was based on.
        if changes && let Some(base) = word.strip_prefix("re") {
            clause.words.push((stem(base), String::new()));
        }
        let lists = [STOPS, COPULAS, CHANGES, NEGATIONS, EXCEPTIONS];
        let is_empty = lists.iter().any(|list| is_listed_word(list, &word));
        if is_empty {
            if is_listed_word(RELATIONS, &word) && !clause.before.is_empty() {
                clause.relation = Some(std::mem::take(&mut clause.before));
            } else if !is_determiner {
                clause.relation = None;
            }
            if clause.after_value
                && matches!(
                    word.as_str(),
                    "of" | "to" | "and" | "or" | "von" | "bis" | "und" | "y" | "de" | "et"
                )
            {
                clause.pending.clear();
            }
            clause.before.clear();
            clause.after_value &= is_last && is_determiner;
            return;
        }
        let stem = canonical(&word).map_or_else(|| stem(&word), str::to_owned);
        if stem == TELL {
            self.tells = true;
            clause.before.clear();
            return;
        }
        if clause.denying > 0 {
            self.denied.insert(word);
            clause.denying = clause.denying.saturating_sub(1);
            if clause.denying < 8 {
                return;
            }
        }
        if clause.named_by_article && clause.after_value {
            let names = self.values.get(&Form::Name).into_iter().flatten();
            let last = names.filter(|name| Some(*name) == self.content.last()).cloned();
            self.identifiers.extend(last.collect::<Vec<_>>());
        }
        clause.is_tail |= clause.after_value || !clause.pending.is_empty();
        clause.after_value = false;
        self.content.push(stem.clone());
        if let Some(noun) = clause.relation.take() {
            clause.words.push((noun, stem.clone()));
        }
        if clause.before.is_empty() {
            clause.words.push((stem.clone(), String::new()));
            clause.before = stem;
        } else {
            let before = std::mem::replace(&mut clause.before, stem.clone());
            clause.words.push((stem, before));
        }
    }

    /// Reads words of a script without spaces between them.
    fn unspaced(&mut self, piece: &Piece, clause: &mut Clause) {
        let has = |list: &[&str]| list.iter().any(|part| piece.text.contains(part));
        self.asserts |= has(&UNSPACED_COPULAS);
        self.changes |= has(&UNSPACED_CHANGES);
        let negates = has(&UNSPACED_NEGATIONS);
        self.denies |= negates;
        clause.negated |= negates;
        let changes = UNSPACED_CHANGES.iter();
        let text = changes.fold(piece.text.clone(), |text, change| text.replace(change, " "));
        clause.tokens += 1;
        clause.after_value = false;
        for run in text.split(' ') {
            clause.before.clear();
            for word in parts(run) {
                self.frame.push(word.clone());
                self.content.push(word.clone());
                let before = std::mem::replace(&mut clause.before, word.clone());
                clause.words.push((word, before));
            }
        }
    }

    fn end(&mut self, clause: &mut Clause) {
        self.asserts |= clause.is_statement;
        // What is said beside a value in a clause of its own is not what the value is about.
        let counts = clause.counts || self.values.is_empty();
        for (word, qualifier) in clause.words.drain(..).filter(|_| counts) {
            let qualifiers = self.words.entry(word).or_default();
            qualifiers.extend(Some(qualifier).filter(|qualifier| !qualifier.is_empty()));
        }
        // `The page in a.md is old`, but not `The answer is in a.md`.
        let mut pending = std::mem::take(&mut clause.pending);
        if clause.is_statement && clause.is_tail && !self.tells {
            let counted = [Form::Amount, Form::Date, Form::Time, Form::Number];
            let counts = counted.iter().filter_map(|form| self.values.get(form)).flatten();
            counts.for_each(|count| {
                pending.remove(count);
            });
            self.identifiers.append(&mut pending);
        }
        *clause = Clause::default();
    }
}

/// The state of reading one clause.
#[derive(Debug, Default)]
struct Clause {
    /// How many words and values were read, without a determiner at the start.
    tokens: usize,
    only_determiner: bool,
    /// Whether it gives a value.
    counts: bool,
    /// Its words, each with the one that qualifies it.
    words: Vec<(String, String)>,
    /// Whether the statement begins with a determiner: `Our office opens at nine`.
    is_statement: bool,
    has_copula: bool,
    negated: bool,
    /// Whether the last piece was a value.
    after_value: bool,
    named_by_article: bool,
    /// How many of the next words no longer hold.
    denying: usize,
    /// Values before a verb, which may tell the subject from others.
    pending: BTreeSet<String>,
    /// Whether a word follows a pending value.
    is_tail: bool,
    /// The word before, as typed.
    previous: String,
    /// The word before, if it may qualify the next one.
    before: String,
    /// The word that the next one qualifies: `dose` in `the dose for children`.
    relation: Option<String>,
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
