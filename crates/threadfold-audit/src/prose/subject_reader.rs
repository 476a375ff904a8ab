//! Reads the words and values of a statement into its subject.
//!
//! A statement is read clause by clause, and a clause word by word. What the words of a clause are
//! to the subject is known only at its end, so they are collected in a [`Clause`] until then.

use std::collections::BTreeSet;

use super::{
    stem::{is_unspaced, parts, stem},
    subject::{Polarity, Stance, Subject},
    subject_clause::{Clause, Denying, Last, Opening},
    subject_words::{Grammar, PLACED, TELL, change_phrases, common_form, side},
    value::{Form, Piece, pieces},
};
use crate::message::steps;

/// The maximum number of words of a statement that are read.
const WORDS: usize = 120;

/// A subject, as far as it is read, and the clause that is being read.
#[derive(Debug, Default)]
struct Reader {
    subject: Subject,
    clause: Clause,
}

impl Subject {
    /// Returns the subject of a text without a label.
    pub(super) fn read(text: &str) -> Self {
        let mut reader = Reader::default();
        let all = pieces(steps::through(text), WORDS);
        let start = reported_from(&all);
        if start > 0 {
            reader.subject.mood.stance = Stance::Reported;
        }
        let mut at = start;
        while let Some(piece) = all.get(at) {
            let announced = change_phrase(all.get(at..).unwrap_or_default());
            if announced > 0 {
                at += announced;
                reader.subject.mood.changes = true;
                if all.get(at - 1).is_some_and(|last| last.end.is_some()) {
                    reader.end();
                }
                continue;
            }
            // Every first word has a capital, so it is not a name for that reason.
            let is_first = start > 0 && at == start;
            reader.piece(piece, piece.form.filter(|form| !is_first || *form != Form::Name));
            at += 1;
        }
        reader.end();
        reader.subject
    }
}

impl Reader {
    fn piece(&mut self, piece: &Piece, form: Option<Form>) {
        self.subject.mood.changes |= announces(&self.subject.frame, piece);
        // `It is in the west barn` states a value, `the west barn is red` a subject.
        let is_stated = self.clause.has_copula
            && !self.clause.has_value
            && Grammar::of(&self.clause.previous).is(Grammar::DETERMINER);
        if let Some((pair, of)) = side(&piece.text.to_lowercase()).filter(|_| !is_stated) {
            self.subject.topic.sides.entry(pair).or_default().insert(of);
        }
        match form {
            Some(form) => self.value(form, &piece.text),
            None if piece.text.contains(is_unspaced) => self.unspaced(&piece.text),
            None => parts(&piece.text).into_iter().for_each(|word| self.word(word)),
        }
        if let Some(end) = piece.end {
            self.subject.mood.asserts |= end == ':';
            self.end();
            self.clause.follows_comma = end == ',';
        }
    }

    fn value(&mut self, form: Form, text: &str) {
        let (subject, clause) = (&mut self.subject, &mut self.clause);
        let value = text.to_lowercase();
        let value = value.trim_end_matches("'s").trim_end_matches("\u{2019}s").to_owned();
        let is_time = form == Form::Number && is_hour(&clause.previous, &value);
        let form = if is_time { Form::Time } else { form };
        subject.mood.asserts |= clause.has_copula;
        subject.frame.push(format!("{form:?}"));
        if clause.denying != Denying::Nothing
            || (clause.is_negated && (clause.has_copula || !subject.values.is_empty()))
        {
            self.deny(value);
            return;
        }
        if clause.is_negated && subject.values.is_empty() {
            subject.mood.polarity = Polarity::Forbids;
        }
        subject.content.push(value.clone());
        // The verb of an order does not name its value: `Buy 3 lamps`.
        let slot = std::mem::take(&mut clause.qualifier);
        if !slot.is_empty() && clause.length > 1 {
            subject.slots.entry(form).or_default().insert(slot);
        }
        // An acronym may be a name or a common word.
        let is_acronym = form == Form::Name && text.chars().all(char::is_uppercase);
        if is_acronym {
            subject.topic.words.entry(stem(&value)).or_default();
        } else {
            self.distinguish(&value);
        }
        self.limit(form, &value);
        let clause = &mut self.clause;
        if !is_acronym || clause.last != Last::Word {
            clause.last = if form == Form::Name { Last::Name } else { Last::Value };
        }
        clause.has_value = true;
        clause.length += 1;
        clause.relation = None;
        self.subject.values.entry(form).or_default().insert(value);
    }

    /// Notes a value before the verb, which may distinguish the subject from others. An earlier one
    /// does if words are between the two.
    fn distinguish(&mut self, value: &str) {
        let clause = &mut self.clause;
        if clause.last == Last::Word {
            self.subject.topic.identifiers.append(&mut clause.before_verb.values);
        }
        if clause.length > 0 && !clause.has_copula {
            clause.before_verb.values.insert(value.to_owned());
            clause.before_verb.is_followed = false;
        }
    }

    /// Notes a value that limits the statement to a thing, place, person or day.
    fn limit(&mut self, form: Form, value: &str) {
        let (subject, clause) = (&mut self.subject, &mut self.clause);
        // `There are 26 children in class 3a`.
        let mut before = subject.frame.iter().rev().skip(1);
        let is_placed =
            before.clone().nth(1).is_some_and(|it| Grammar::of(it).is(Grammar::RELATION));
        if form == Form::Number && is_placed && before.any(|it| it == "Number") {
            subject.topic.identifiers.insert(value.to_owned());
        }
        let previous = std::mem::take(&mut clause.previous);
        let is_weekday = Grammar::of(value).is(Grammar::WEEKDAY);
        let is_led = clause.opening.take_preposition() || (is_weekday && clause.length == 0);
        let is_related = Grammar::of(&previous).is(Grammar::RELATION)
            && !matches!(previous.as_str(), "from" | "to" | "with");
        if (form == Form::Name || is_weekday) && (is_led || is_related) {
            subject.topic.scopes.insert(value.to_owned());
            subject.topic.identifiers.extend(is_led.then(|| value.to_owned()));
        }
    }

    fn word(&mut self, word: String) {
        let does = Grammar::of(&word);
        // The text after the conjunction is another clause, which may have another subject.
        if self.clause.has_value && matches!(word.as_str(), "and" | "und" | "y" | "et") {
            self.end();
        }
        let is_first = self.clause.length == 0;
        let opens_text = is_first && self.subject.frame.is_empty();
        if opens_text {
            self.clause.opening = Opening::of(does);
        }
        self.clause.length += usize::from(!(is_first && does.is(Grammar::DETERMINER)));
        // A copula makes a statement only if a word follows it, which is not so in `as they are`.
        self.subject.mood.asserts |= self.clause.has_copula;
        self.copula(does);
        if self.clause.length == 2 && matches!(word.as_str(), "of" | "von" | "de") {
            self.part();
        }
        // In `Now fix the parser` the word `now` means `next` and announces no change.
        let comes_next = opens_text && word == "now";
        self.clause.is_occasion |= matches!(word.as_str(), "when" | "als" | "cuando" | "quand");
        let changes = does.is(Grammar::CHANGE) && !comes_next && !self.clause.is_occasion;
        let is_joint = self.denial(&word, does, is_first);
        self.subject.mood.changes |= changes || is_joint;
        if does.is(Grammar::PAST) {
            self.subject.mood.stance = Stance::Reported;
        }
        if does.is(Grammar::NEGATION) {
            self.negation();
        }
        self.clause.is_negated &= !does.is(Grammar::EXCEPTION);
        self.framed(&word, does);
        // `Rebased onto a branch` changes the base of something.
        if changes && let Some(base) = word.strip_prefix("re") {
            let base = common_form(base).map_or_else(|| stem(base), str::to_owned);
            self.subject.content.push(base.clone());
            self.clause.words.push((base, String::new()));
        }
        if does.is_empty()
            || is_joint
            || does.is(Grammar::SHORT_FORM)
            || (self.clause.last != Last::Word && does.is(Grammar::CURRENCY))
        {
            self.clause.empty_word(does);
        } else {
            self.content_word(word);
        }
    }

    /// Reads which of the next words are no longer true, and returns whether this word ends a
    /// phrase that announces this, such as `instead of`.
    fn denial(&mut self, word: &str, does: Grammar, is_first: bool) -> bool {
        let clause = &mut self.clause;
        let previous = std::mem::replace(&mut clause.previous, word.to_owned());
        let denying = denying(&previous, word, does, self.subject.mood.changes);
        // `The tent is red, not green`.
        let corrects = is_first && clause.follows_comma && matches!(word, "not" | "nicht" | "pas");
        clause.denying = denying.or(corrects.then_some(Denying::Rest)).unwrap_or(clause.denying);
        self.subject.mood.changes |= previous == "nicht" && word == "mehr";
        denying.is_some() && !does.is(Grammar::SWAP)
    }

    fn negation(&mut self) {
        self.clause.is_negated = true;
        self.subject.mood.polarity = self.subject.mood.polarity.max(Polarity::Denies);
    }

    /// Adds a word to the frame. There, `we changed the lid to tin` becomes `the lid is tin`, and
    /// `the lid was moved to the shed` becomes `the lid is in the shed`.
    fn framed(&mut self, word: &str, does: Grammar) {
        let (frame, becomes) = (&mut self.subject.frame, &mut self.clause.becomes);
        if does.is(Grammar::ALTER) || does.is(Grammar::MOTION) {
            let is_auxiliary = |word: &mut String| {
                let does = Grammar::of(word);
                does.is_empty() && !does.is(Grammar::DETERMINER)
            };
            while frame.pop_if(is_auxiliary).is_some() {}
            *becomes = if does.is(Grammar::MOTION) { PLACED } else { "is" };
        }
        let is_placed = does.is(Grammar::PLACE)
            && frame.pop_if(|last| Grammar::of(last).is(Grammar::COPULA)).is_some();
        let is_target = matches!(word, "to" | "into" | "auf" | "zu" | "a");
        frame.push(
            match word {
                _ if is_placed => PLACED,
                _ if is_target && !becomes.is_empty() => std::mem::take(becomes),
                _ => word,
            }
            .to_owned(),
        );
    }

    /// Notes that a number is a part of something: `ten of the chairs`.
    fn part(&mut self) {
        let subject = &mut self.subject;
        if subject.frame.last().is_some_and(|it| it == "Number") {
            subject.topic.scopes.extend(subject.content.last().cloned());
            subject.topic.identifiers.extend(subject.content.last().cloned());
        }
    }

    /// Reads a copula or a similar verb, which ends the subject.
    fn copula(&mut self, does: Grammar) {
        let clause = &mut self.clause;
        let is_copula = does.is(Grammar::COPULA);
        if (is_copula || does.is(Grammar::OWN)) && !clause.has_copula && clause.core.is_empty() {
            clause.core.clone_from(&clause.qualifier);
        }
        clause.has_copula |= is_copula;
        if is_copula && clause.last != Last::Word {
            self.subject.topic.identifiers.append(&mut clause.before_verb.values);
        }
    }

    fn content_word(&mut self, word: String) {
        let (subject, clause) = (&mut self.subject, &mut self.clause);
        let stem = common_form(&word).map_or_else(|| stem(&word), str::to_owned);
        if stem == TELL {
            subject.mood.tells = true;
            clause.qualifier.clear();
            return;
        }
        if word.ends_with("'s") || clause.opening.take_preposition() {
            subject.topic.scopes.insert(stem.clone());
        }
        match clause.denying {
            Denying::Nothing => {}
            Denying::Next => return self.deny(word),
            Denying::Rest => {
                subject.denied.insert(word);
            }
        }
        if clause.last == Last::Name {
            subject.topic.scopes.extend(subject.content.last().cloned());
        }
        clause.before_verb.is_followed |= !clause.before_verb.values.is_empty();
        clause.last = Last::Word;
        subject.content.push(stem.clone());
        if let Some(noun) = clause.relation.take() {
            if clause.core.is_empty() {
                clause.core.clone_from(&noun);
            }
            clause.words.push((noun, stem.clone()));
        }
        clause.qualified(stem);
    }

    fn deny(&mut self, denied: String) {
        self.subject.denied.insert(denied);
        if self.clause.denying == Denying::Next {
            self.clause.denying = Denying::Nothing;
        }
    }

    /// Reads words of a script without spaces between them.
    fn unspaced(&mut self, text: &str) {
        self.subject.mood.asserts |= Grammar::COPULA.is_in(text);
        self.subject.mood.changes |= Grammar::CHANGE.is_in(text);
        if Grammar::NEGATION.is_in(text) {
            self.negation();
        }
        // Words that announce a change are not part of the subject.
        let changes = Grammar::CHANGE.unspaced();
        let text = changes.fold(text.to_owned(), |text, change| text.replace(change, " "));
        let clause = &mut self.clause;
        clause.length += 1;
        clause.last = Last::Word;
        for run in text.split(' ') {
            clause.qualifier.clear();
            for word in parts(run) {
                self.subject.frame.push(word.clone());
                self.subject.content.push(word.clone());
                clause.qualified(word);
            }
        }
    }

    /// Ends the clause: what was read of it becomes a part of the subject.
    fn end(&mut self) {
        let (subject, clause) = (&mut self.subject, std::mem::take(&mut self.clause));
        let is_statement = clause.opening == Opening::Determiner;
        subject.mood.asserts |= is_statement;
        // Words in a clause without a value do not belong to the subject of a value in another
        // clause.
        let counts = clause.has_value || subject.values.is_empty();
        for (word, qualifier) in clause.words.into_iter().filter(|_| counts) {
            let qualifiers = subject.topic.words.entry(word).or_default();
            qualifiers.extend(Some(qualifier).filter(|qualifier| !qualifier.is_empty()));
        }
        if clause.has_value && !clause.core.is_empty() {
            subject.topic.core.get_or_insert(clause.core);
        }
        // A value before the verb identifies the subject in `The page in a.md is old`, but not in
        // `The answer is in a.md`.
        if is_statement && clause.before_verb.is_followed && !subject.mood.tells {
            let counted = [Form::Amount, Form::Date, Form::Time, Form::Number];
            let counts: BTreeSet<&String> =
                counted.iter().filter_map(|form| subject.values.get(form)).flatten().collect();
            let values = clause.before_verb.values.into_iter();
            subject.topic.identifiers.extend(values.filter(|value| !counts.contains(value)));
        }
    }
}

/// Whether a number is an hour: `It opens at 9`.
fn is_hour(previous: &str, value: &str) -> bool {
    value.parse().map_or(Grammar::of(value).is(Grammar::NUMBER), |hour: u8| hour < 25)
        && matches!(previous, "at" | "past" | "um" | "halb" | "las")
}

/// Returns where the reported text of a statement begins. A preamble such as `The owner says that`
/// is not part of the subject, unless the text is about its speaker.
fn reported_from(pieces: &[Piece]) -> usize {
    const SPEAKER: usize = 5;
    let does = |piece: &Piece| Grammar::of(&piece.text.to_lowercase());
    let mut start = pieces.iter().take(SPEAKER);
    let Some(verb) = start.position(|piece| does(piece).is(Grammar::REPORT)) else { return 0 };
    if pieces.iter().take(verb).any(|piece| piece.end.is_some()) {
        return 0;
    }
    let listener = |piece: &&Piece| {
        matches!(piece.text.as_str(), "me" | "us" | "you" | "that" | "mir" | "uns" | "dass" | "que")
    };
    let start = verb + 1 + pieces.iter().skip(verb + 1).take_while(listener).count();
    // In Spanish `es` is a copula.
    let is_speaker = |piece: &Piece| does(piece).is(Grammar::BACKWARD) && piece.text != "es";
    if pieces.iter().skip(start).any(is_speaker) { 0 } else { start }
}

/// Returns the number of words at the start that form a phrase announcing a change.
fn change_phrase(words: &[Piece]) -> usize {
    let is = |phrase: &&Vec<&str>| {
        let mut both = phrase.iter().zip(words);
        phrase.len() <= words.len() && both.all(|(one, two)| two.text.eq_ignore_ascii_case(one))
    };
    change_phrases().iter().find(is).map_or(0, Vec::len)
}

/// Whether the words so far announce a change before this word: `Make that 14`, `Now we need 6`.
fn announces(frame: &[String], next: &Piece) -> bool {
    let begins =
        next.text == "we" || Grammar::of(&next.text.to_lowercase()).is(Grammar::DETERMINER);
    match frame {
        [now] if now == "now" => begins || next.form.is_some(),
        [.., make, it] if make == "make" => {
            next.form.is_some() && matches!(it.as_str(), "it" | "that")
        }
        _ => false,
    }
}

/// Returns which words are no longer true after these two words.
fn denying(previous: &str, word: &str, does: Grammar, changes: bool) -> Option<Denying> {
    match (previous, word) {
        ("instead", "of")
        | ("rather", "than")
        | ("no", "longer")
        | ("vez" | "lugar", "de")
        | (_, "statt" | "anstatt" | "anstelle") => Some(Denying::Rest),
        (_, "from") if changes => Some(Denying::Next),
        _ => does.is(Grammar::SWAP).then_some(Denying::Next),
    }
}
