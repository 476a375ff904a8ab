//! Reads the words and values of a statement into its subject.

use std::collections::BTreeSet;

use super::{
    stem::{is_unspaced, parts, stem},
    subject::Subject,
    subject_words::{Grammar, PLACED, TELL, change_phrases, common_form, side},
    value::{Form, Piece, pieces},
};
use crate::message::steps;

/// The maximum number of words of a statement that are read.
const WORDS: usize = 120;

/// The state of reading one clause.
#[derive(Debug, Default)]
struct Clause {
    /// The number of words and values read so far, without a determiner at the start.
    tokens: usize,
    /// The word that replaces the next `to` after a verb such as `changed` or `moved`.
    becomes: &'static str,
    /// Whether the clause follows a comma.
    continues: bool,
    /// Whether the clause begins with a preposition: `In the cellar the code is 2093`.
    is_led: bool,
    /// Whether only a determiner was read so far.
    only_determiner: bool,
    /// Whether the clause begins with a determiner: `Our office opens at nine`.
    is_statement: bool,
    /// Whether the clause has a value.
    has_value: bool,
    /// Whether the rest of the clause is the occasion of the statement: `when we moved in`.
    is_occasion: bool,
    has_copula: bool,
    /// The word before the copula, or the first word that a relation qualifies.
    core: String,
    negated: bool,
    /// Whether the last piece was a value.
    after_value: bool,
    /// Whether the last piece is a name.
    after_name: bool,
    /// Which of the next words the statement calls no longer true.
    denying: Denying,
    /// Values before a verb, which may distinguish the subject from others.
    pending: BTreeSet<String>,
    /// Whether a word follows the last pending value.
    is_tail: bool,
    /// The words of the clause, each with the word that qualifies it.
    words: Vec<(String, String)>,
    /// The previous word, as typed.
    previous: String,
    /// The previous word, if it may qualify the next one.
    before: String,
    /// The word that the next word qualifies: `dose` in `the dose for children`.
    relation: Option<String>,
}

/// Which of the following words a statement calls no longer true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Denying {
    #[default]
    Nothing,
    /// The next word or value: `from 8 to 9`.
    Next,
    /// All words to the end of the clause: `instead of tea`.
    Rest,
}

impl Subject {
    pub(super) fn read(&mut self, text: &str) {
        let mut clause = Clause::default();
        let all = pieces(steps::through(text), WORDS);
        let start = reported_from(&all);
        self.is_indirect |= start > 0;
        let mut at = start;
        while let Some(piece) = all.get(at) {
            at += 1;
            let announced = change_phrase(all.get(at - 1..).unwrap_or_default());
            if announced > 0 {
                at += announced - 1;
                self.changes = true;
                if all.get(at - 1).is_some_and(|last| last.end.is_some()) {
                    self.end(&mut clause);
                }
                continue;
            }
            self.changes |= announces(&self.frame, piece);
            // `It is in the west barn` states a value, `the west barn is red` a subject.
            let is_stated = clause.has_copula
                && !clause.has_value
                && Grammar::of(&clause.previous).is(Grammar::DETERMINER);
            if let Some((pair, of)) = side(&piece.text.to_lowercase()).filter(|_| !is_stated) {
                self.sides.entry(pair).or_default().insert(of);
            }
            // Every first word has a capital, so it is not a name for that reason.
            let is_first = start > 0 && at == start + 1;
            match piece.form.filter(|form| !is_first || *form != Form::Name) {
                Some(form) => self.value(form, &piece.text, &mut clause),
                None if piece.text.contains(is_unspaced) => self.unspaced(piece, &mut clause),
                None => {
                    parts(&piece.text).into_iter().for_each(|word| self.word(word, &mut clause));
                }
            }
            if let Some(end) = piece.end {
                self.asserts |= end == ':';
                self.end(&mut clause);
                clause.continues = end == ',';
            }
        }
        self.end(&mut clause);
    }

    fn value(&mut self, form: Form, text: &str, clause: &mut Clause) {
        let value = text.to_lowercase();
        let value = value.trim_end_matches("'s").trim_end_matches("\u{2019}s").to_owned();
        self.asserts |= clause.has_copula;
        // `It opens at 9`.
        let is_hour =
            value.parse().map_or(Grammar::of(&value).is(Grammar::NUMBER), |hour: u8| hour < 25)
                && matches!(clause.previous.as_str(), "at" | "past" | "um" | "halb" | "las");
        let form = if form == Form::Number && is_hour { Form::Time } else { form };
        self.frame.push(format!("{form:?}"));
        if clause.denying != Denying::Nothing
            || (clause.negated && (clause.has_copula || !self.values.is_empty()))
        {
            self.deny(value, clause);
            return;
        }
        self.forbids |= clause.negated && self.values.is_empty();
        self.content.push(value.clone());
        // The verb of an order does not name its value: `Buy 3 lamps`.
        let before = std::mem::take(&mut clause.before);
        if !before.is_empty() && clause.tokens > 1 {
            self.slots.entry(form).or_default().insert(before);
        }
        // An acronym may be a name or a common word.
        if form == Form::Name && text.chars().all(char::is_uppercase) {
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
        // `There are 26 children in class 3a`.
        let mut before = self.frame.iter().rev().skip(1);
        let is_placed =
            before.clone().nth(1).is_some_and(|it| Grammar::of(it).is(Grammar::RELATION));
        if form == Form::Number && is_placed && before.any(|it| it == "Number") {
            self.identifiers.insert(value.clone());
        }
        let previous = std::mem::take(&mut clause.previous);
        let is_weekday = Grammar::of(&value).is(Grammar::WEEKDAY);
        let is_led = std::mem::take(&mut clause.is_led) || (is_weekday && clause.tokens == 0);
        let is_related = Grammar::of(&previous).is(Grammar::RELATION)
            && !matches!(previous.as_str(), "from" | "to" | "with");
        if (form == Form::Name || is_weekday) && (is_led || is_related) {
            self.scopes.insert(value.clone());
            self.identifiers.extend(Some(value.clone()).filter(|_| is_led));
        }
        clause.after_name = form == Form::Name;
        clause.has_value = true;
        self.values.entry(form).or_default().insert(value);
        (clause.tokens, clause.only_determiner) = (clause.tokens + 1, false);
        clause.relation = None;
    }

    fn word(&mut self, word: String, clause: &mut Clause) {
        let does = Grammar::of(&word);
        // The text after the conjunction is another clause, which may have another subject.
        if clause.has_value && matches!(word.as_str(), "and" | "und" | "y" | "et") {
            self.end(clause);
        }
        let is_first = clause.tokens == 0;
        clause.only_determiner = is_first && does.is(Grammar::DETERMINER);
        clause.is_statement |= clause.only_determiner && self.frame.is_empty();
        clause.is_led |= is_first && self.frame.is_empty() && does.is(Grammar::RELATION);
        clause.tokens += usize::from(!clause.only_determiner);
        // A copula makes a statement only if a word follows it, which is not so in `as they are`.
        self.asserts |= clause.has_copula;
        self.copula(does, clause);
        if clause.tokens == 2 && matches!(word.as_str(), "of" | "von" | "de") {
            self.part();
        }
        // In `Now fix the parser` the word `now` means `next` and announces no change.
        let comes_next = is_first && word == "now" && self.frame.is_empty();
        clause.is_occasion |= matches!(word.as_str(), "when" | "als" | "cuando" | "quand");
        let changes = does.is(Grammar::CHANGE) && !comes_next && !clause.is_occasion;
        let previous = std::mem::replace(&mut clause.previous, word.clone());
        // `The tent is red, not green`.
        let corrects =
            is_first && clause.continues && matches!(word.as_str(), "not" | "nicht" | "pas");
        let denying = denying(&previous, &word, does, self.changes);
        let is_joint = denying.is_some() && !does.is(Grammar::SWAP);
        if let Some(denying) = denying {
            clause.denying = denying;
        } else if corrects {
            clause.denying = Denying::Rest;
        }
        self.changes |= changes || is_joint || (previous == "nicht" && word == "mehr");
        self.is_indirect |= does.is(Grammar::PAST);
        self.denies |= does.is(Grammar::NEGATION);
        clause.negated |= does.is(Grammar::NEGATION);
        clause.negated &= !does.is(Grammar::EXCEPTION);
        self.framed(&word, does, clause);
        // `Rebased onto a branch` changes the base of something.
        if changes && let Some(base) = word.strip_prefix("re") {
            let base = common_form(base).map_or_else(|| stem(base), str::to_owned);
            self.content.push(base.clone());
            clause.words.push((base, String::new()));
        }
        if does.is_empty()
            || is_joint
            || does.is(Grammar::SHORT_FORM)
            || (clause.after_value && does.is(Grammar::CURRENCY))
        {
            empty_word(does, clause);
        } else {
            self.content_word(word, clause);
        }
    }

    /// Adds a word to the frame. There, `we changed the lid to tin` becomes `the lid is tin`, and
    /// `the lid was moved to the shed` becomes `the lid is in the shed`.
    fn framed(&mut self, word: &str, does: Grammar, clause: &mut Clause) {
        let alters = does.is(Grammar::ALTER) || does.is(Grammar::MOTION);
        if alters {
            let is_auxiliary = |word: &String| {
                let does = Grammar::of(word);
                does.is_empty() && !does.is(Grammar::DETERMINER)
            };
            while self.frame.pop_if(|word| is_auxiliary(word)).is_some() {}
            clause.becomes = if does.is(Grammar::MOTION) { PLACED } else { "is" };
        }
        let is_placed = does.is(Grammar::PLACE)
            && self.frame.pop_if(|last| Grammar::of(last).is(Grammar::COPULA)).is_some();
        let is_target = matches!(word, "to" | "into" | "auf" | "zu" | "a");
        self.frame.push(
            match word {
                _ if is_placed => PLACED,
                _ if is_target && !clause.becomes.is_empty() => std::mem::take(&mut clause.becomes),
                _ => word,
            }
            .to_owned(),
        );
    }

    /// Notes that a number is a part of something: `ten of the chairs`.
    fn part(&mut self) {
        let counted =
            self.content.last().filter(|_| self.frame.last().is_some_and(|it| it == "Number"));
        self.scopes.extend(counted.cloned());
        self.identifiers.extend(counted.cloned());
    }

    /// Reads a copula or a similar verb, which ends the subject.
    fn copula(&mut self, does: Grammar, clause: &mut Clause) {
        let is_copula = does.is(Grammar::COPULA);
        if (is_copula || does.is(Grammar::OWN)) && !clause.has_copula && clause.core.is_empty() {
            clause.core.clone_from(&clause.before);
        }
        clause.has_copula |= is_copula;
        if is_copula && clause.after_value {
            self.identifiers.append(&mut clause.pending);
        }
    }

    fn content_word(&mut self, word: String, clause: &mut Clause) {
        let stem = common_form(&word).map_or_else(|| stem(&word), str::to_owned);
        if stem == TELL {
            self.tells = true;
            clause.before.clear();
            return;
        }
        if word.ends_with("'s") || std::mem::take(&mut clause.is_led) {
            self.scopes.insert(stem.clone());
        }
        match clause.denying {
            Denying::Nothing => {}
            Denying::Next => return self.deny(word, clause),
            Denying::Rest => self.deny(word, clause),
        }
        if clause.after_name && clause.after_value {
            self.scopes.extend(self.content.last().cloned());
        }
        clause.is_tail |= !clause.pending.is_empty();
        clause.after_value = false;
        self.content.push(stem.clone());
        if let Some(noun) = clause.relation.take() {
            if clause.core.is_empty() {
                clause.core.clone_from(&noun);
            }
            clause.words.push((noun, stem.clone()));
        }
        let before = std::mem::replace(&mut clause.before, stem.clone());
        clause.words.push((stem, before));
    }

    fn deny(&mut self, denied: String, clause: &mut Clause) {
        self.denied.insert(denied);
        if clause.denying == Denying::Next {
            clause.denying = Denying::Nothing;
        }
    }

    /// Reads words of a script without spaces between them.
    fn unspaced(&mut self, piece: &Piece, clause: &mut Clause) {
        self.asserts |= Grammar::COPULA.is_in(&piece.text);
        self.changes |= Grammar::CHANGE.is_in(&piece.text);
        let negates = Grammar::NEGATION.is_in(&piece.text);
        self.denies |= negates;
        clause.negated |= negates;
        // Words that announce a change are not part of the subject.
        let changes = Grammar::CHANGE.unspaced();
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
        // Words in a clause without a value do not belong to the subject of a value in another
        // clause.
        let counts = clause.has_value || self.values.is_empty();
        for (word, qualifier) in clause.words.drain(..).filter(|_| counts) {
            let qualifiers = self.words.entry(word).or_default();
            qualifiers.extend(Some(qualifier).filter(|qualifier| !qualifier.is_empty()));
        }
        if clause.has_value && !clause.core.is_empty() {
            self.core.get_or_insert(std::mem::take(&mut clause.core));
        }
        // A value before the verb identifies the subject in `The page in a.md is old`, but not in
        // `The answer is in a.md`.
        if clause.is_statement && clause.is_tail && !self.tells {
            let counted = [Form::Amount, Form::Date, Form::Time, Form::Number];
            let counts: BTreeSet<&String> =
                counted.iter().filter_map(|form| self.values.get(form)).flatten().collect();
            let pending = clause.pending.iter().filter(|value| !counts.contains(value));
            self.identifiers.extend(pending.cloned());
        }
        *clause = Clause::default();
    }
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

/// Reads a word that does not belong to the subject.
fn empty_word(does: Grammar, clause: &mut Clause) {
    if does.is(Grammar::RELATION) && !clause.before.is_empty() {
        clause.relation = Some(std::mem::take(&mut clause.before));
    } else if !does.is(Grammar::DETERMINER) {
        clause.relation = None;
    }
    if clause.after_value && does.is(Grammar::CONJUNCTION) {
        clause.pending.clear();
    }
    // `Bruno now pays 5` has the same subject as `Bruno pays 5 now`.
    if !does.is(Grammar::ADVERB) || clause.tokens != 2 {
        clause.before.clear();
    }
    clause.after_value = false;
}
