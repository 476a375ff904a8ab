//! Sentences with which the user revokes a rule.
//!
//! Each clause is brought into one form first, a [`Line`]. The readers of permissions, releases and
//! revoked rules look only at lines, and [`corrections`] says which of them has precedence.

use super::{
    asking::asking,
    english::in_english,
    meaning::{Meaning, topic},
    phrases::{
        ABOUT, ALLOWED, ALLOWS, ENDED, EVERY_RULE, FORGETS, JOINING, LASTING, NEEDLESS, ORDERING,
        POLITE, POLITE_LAST, RELEASES, RULE_NOUNS,
    },
    standing::is_for_once,
    words::{listed, words},
};
use crate::message::slice;

/// The rules that a sentence revokes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Correction {
    /// A rule that forbids this: `you may touch the lexer`.
    Allows(About),
    /// A rule that demands this: `you don't have to use tabs`.
    Releases(About),
    /// The rule whose topic contains these words: `forget what I said about tabs`.
    Forgets(Vec<String>),
    /// The rule whose words this sentence contains: `forget never use tabs`.
    Names(String),
    /// All rules.
    All,
}

/// The subject of a permission or a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct About {
    topic: Vec<String>,
    /// Whether it is permanent: `again`, `any more`, `from now on`.
    lasts: bool,
    /// Whether it begins with the thing instead of a verb: `tabs are fine again`.
    thing_first: bool,
    /// Whether it applies in all circumstances or replaces those of the rule: `at any hour`.
    is_wide: bool,
    /// Whether it applies to everybody: `anyone may sign now`.
    for_all: bool,
}

/// How well a correction fits a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    None,
    /// The correction means this rule only if it fits no other.
    Part,
    /// The correction and the rule have the same topic.
    Whole,
}

/// A sentence or clause in the form in which corrections are read: words in lower case, without
/// contractions and polite words.
#[derive(Clone)]
struct Line {
    whole: String,
    /// The words without phrases of time: `again`, `now`.
    bare: String,
    /// Whether a phrase of time makes it permanent.
    lasts: bool,
}

impl Line {
    fn of(text: &str) -> Self {
        let words = words(text).take(200).skip_while(|word| listed(POLITE, word));
        let mut words: Vec<String> = words.map(without_contraction).collect();
        while words.last().is_some_and(|word| listed(POLITE_LAST, word)) {
            words.pop();
        }
        let whole = words.join(" ").replace(" has been ", " is ").replace(" have been ", " are ");
        let mut bare = format!(" {whole} ");
        let lasts = LASTING.iter().any(|phrase| bare.contains(phrase));
        for phrase in LASTING.iter().filter(|_| lasts) {
            bare = bare.replace(phrase, " ");
        }
        let bare = bare.replace(" now ", " ").trim().to_owned();
        Self { whole, bare, lasts }
    }

    /// Whether it says that something has changed. Without such a word it may be an opinion: `tabs
    /// are fine`.
    fn is_change(&self) -> bool {
        self.lasts || self.bare != self.whole
    }
}

fn without_contraction(word: String) -> String {
    if !word.contains('\'') {
        return word;
    }
    match word.strip_suffix("n't").filter(|verb| !matches!(*verb, "ca" | "wo")) {
        Some(verb) => format!("{verb} not"),
        None => word.replace("'re", " are").replace("it's", "it is").replace("there's", "there is"),
    }
}

/// Returns the corrections that a sentence may express, the most likely first. `english` is its
/// [English form](super::english::in_english).
pub(super) fn corrections(sentence: &str, english: &str) -> Vec<Correction> {
    let is_foreign = english != sentence;
    let line = Line::of(english);
    // A clause may be a comment on another: `forget the rule about tabs, use what fits`.
    let clauses: Vec<Line> = match english.contains([',', ';']) {
        true => english.split([',', ';']).map(Line::of).collect(),
        false => vec![line.clone()],
    };
    let forgotten = || {
        clauses.iter().enumerate().find_map(|(at, clause)| {
            forgotten(clause).filter(|found| at == 0 || !matches!(found, Correction::Names(_)))
        })
    };
    // The first of these readings that fits: a permission, a release, a statement about a thing.
    let found: Vec<Correction> = if let Some(allowed) = permitted(&line, is_foreign) {
        forgotten().into_iter().chain(allowed).collect()
    } else if let Some(released) = released(&line) {
        vec![released]
    } else {
        let thing =
            of_thing(&line).or_else(|| of_thing(clauses.first().filter(|_| clauses.len() > 1)?));
        forgotten().into_iter().chain(thing).collect()
    };
    // A permission for one occasion, or of another person, revokes nothing.
    let revokes = !found.is_empty()
        && !is_for_once(&format!(" {} ", line.bare))
        && (!is_foreign || asking(english).is_some());
    if revokes { found } else { Vec::new() }
}

/// Whether a sentence revokes something permanently, so that it must not be lost.
pub(crate) fn takes_back(sentence: &str) -> bool {
    // Every such sentence has one of these phrases. Most sentences have none, and this check is
    // cheap.
    let english = in_english(sentence);
    let lower = english.to_lowercase();
    let mut phrases = LASTING.iter().chain(FORGETS.iter()).chain(ENDED.iter());
    phrases.any(|phrase| lower.contains(phrase.trim()))
        && corrections(sentence, &english).iter().any(|correction| match correction {
            Correction::Allows(about) | Correction::Releases(about) => about.lasts,
            Correction::Forgets(_) | Correction::Names(_) | Correction::All => true,
        })
}

/// Whether a sentence that revokes a rule permits only part of it, so that it is a rule itself.
pub(super) fn restricts(sentence: &str) -> bool {
    words(sentence).any(|word| word == "only")
}

/// Reads a permission: `you may touch the lexer`, `anyone may sign now`.
fn permitted(line: &Line, is_foreign: bool) -> Option<impl Iterator<Item = Correction>> {
    let for_all = for_everybody(&line.bare).filter(|_| line.is_change());
    // `Agora pode enviar`: some languages need no subject.
    let subjectless = line.bare.strip_prefix("may ").filter(|_| is_foreign);
    let rest = for_all.or(subjectless).or_else(|| after(&line.bare, &ALLOWS))?;
    // `You can order parts without asking me` revokes `ask me before you order parts`.
    let unasked = rest.strip_suffix(" me").unwrap_or(rest).strip_suffix(" without asking");
    let unasked = unasked.map(|unasked| {
        Correction::Releases(About::action(&format!("ask before {unasked}"), line.lasts))
    });
    let (verb, object) = rest.split_once(' ').unwrap_or((rest, ""));
    let named = if listed(" stop skip drop omit quit ", verb) {
        Some(Correction::Releases(About::thing(object, line.lasts)))
    } else if listed(" not only never no ", verb) {
        None
    } else {
        let about = About::action(rest, line.lasts);
        Some(Correction::Allows(About { for_all: for_all.is_some(), ..about }))
    };
    Some(unasked.into_iter().chain(named))
}

/// Returns what a line permits to everybody: `anyone on the team may sign`.
fn for_everybody(bare: &str) -> Option<&str> {
    let (subject, rest) = bare.split_once(' ')?;
    if subject == "we" {
        return after(rest, &["may", "can"]);
    }
    let all = listed(" everyone everybody anyone anybody ", subject);
    let permit = [" may ", " can "].iter().find_map(|modal| bare.split_once(modal));
    permit.filter(|_| all).map(|(_, permitted)| permitted)
}

/// Reads what is no longer demanded: `we no longer need two approvals`, `we don't confirm by phone
/// any more`.
fn released(line: &Line) -> Option<Correction> {
    let lasts = line.lasts || line.bare.contains("no longer");
    let mine = line.bare.strip_prefix("i ").filter(|rest| rest.contains(" need "));
    let ours = line.bare.strip_prefix("we ").or(mine);
    let yours = ours.map_or(line.bare.clone(), |rest| format!("you {rest}"));
    // Other languages have another word order: `you have to ask me no longer`.
    let late = yours.strip_prefix("you have to ").filter(|rest| rest.contains("no longer "));
    let phrase = || RELEASES.iter().find_map(|phrase| Some((phrase, after(&yours, &[phrase])?)));
    let about = if let Some(rest) = late {
        About::thing(&rest.replacen("no longer ", "", 1), lasts)
    } else if let Some((phrase, rest)) = phrase() {
        match phrase.ends_with(" need") || phrase.ends_with(" for") {
            true => About::thing(rest, lasts),
            false => About::action(rest, lasts),
        }
    } else {
        let stopped = yours.strip_prefix("you do not ").filter(|_| ours.is_some() && line.lasts);
        About::action(stopped?, lasts)
    };
    Some(Correction::Releases(about))
}

/// Reads `forget the rule about tabs`, `ignore the ten line limit`, `the ban on tabs is lifted`.
fn forgotten(line: &Line) -> Option<Correction> {
    let bare = &line.bare;
    let ended = ENDED.iter().find_map(|end| bare.strip_suffix(end)?.strip_suffix(' '));
    if let Some(named) = ended {
        return named_rule(named).map(|topic| Correction::Forgets(stripped(&topic)));
    }
    // `You may forget the rule about tabs`.
    let rest = after(after(bare, &ALLOWS).unwrap_or(bare), &FORGETS)?;
    if EVERY_RULE.contains(&rest) {
        return Some(Correction::All);
    }
    let about = after(rest, &ABOUT).unwrap_or(rest);
    let about = named_rule(about).or_else(|| (about != rest).then(|| about.to_owned()));
    Some(about.map_or_else(
        || Correction::Names(format!(" {rest} ")),
        |about| Correction::Forgets(stripped(&about)),
    ))
}

/// Returns the words of a phrase that names a rule, without the noun and the preposition after it:
/// `the rule about tabs`, `the ten line limit`.
fn named_rule(phrase: &str) -> Option<String> {
    let words: Vec<&str> = phrase.split(' ').collect();
    let at = words.iter().position(|word| listed(RULE_NOUNS, word))?;
    let binds =
        words.get(at + 1).is_none_or(|next| listed(" about on against for of that to with ", next));
    let rest = words.iter().enumerate().filter(|(index, _)| *index != at);
    binds.then(|| rest.map(|(_, word)| *word).collect::<Vec<_>>().join(" "))
}

/// Reads a statement about a thing: `the red ink can be used again`, `hikes above 14 km are allowed
/// now`, `the header is no longer needed`.
fn of_thing(line: &Line) -> Option<Correction> {
    let passive = line.bare.split_once(" can be ").or_else(|| line.bare.split_once(" may be "));
    if let Some((thing, _)) = passive.filter(|(_, verb)| line.lasts && !verb.contains(' ')) {
        return Some(Correction::Allows(About::thing_or_gerund(thing, line.lasts)));
    }
    let verbs = [" is ", " are "].iter().filter_map(|verb| line.bare.split_once(verb));
    let (thing, state) = verbs.min_by_key(|(thing, _)| thing.len())?;
    let rest = |phrases: &[&str]| {
        let mut rests = phrases.iter().filter_map(|phrase| state.strip_prefix(phrase));
        rests.find(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    if let Some(manner) = rest(&ALLOWED) {
        return allowed_thing(line, thing, state, manner);
    }
    let lasts = line.lasts || state.starts_with("no longer");
    let named = format!("{thing}{}", rest(&NEEDLESS)?);
    Some(Correction::Releases(About::thing_or_gerund(&named, lasts)))
}

/// Reads the permission of a thing that is in this state, in this manner: `restarts are fine at any
/// hour`, `restarts are fine only on Sunday`.
fn allowed_thing(line: &Line, thing: &str, state: &str, manner: &str) -> Option<Correction> {
    let any = manner.find(" any ").or_else(|| manner.starts_with(" only ").then_some(0));
    let named = format!("{thing}{}", slice(manner, ..any.unwrap_or(manner.len())));
    // `The server is okay again` may only describe a state, so it revokes only a rule that forbids
    // its use.
    let is_state = listed(" fine ok okay ", state) && after(thing, &["the", "my", "our"]).is_some();
    let named = if is_state { format!("use {named}") } else { named };
    let is_change = line.is_change() || line.bare.contains(" no longer ");
    let about = About { is_wide: any.is_some(), ..About::thing_or_gerund(&named, line.lasts) };
    (is_change || about.is_wide).then_some(Correction::Allows(about))
}

/// Returns the rest of a line after the first of these phrases with which it begins.
fn after<'a>(line: &'a str, phrases: &[impl AsRef<str>]) -> Option<&'a str> {
    phrases.iter().find_map(|phrase| line.strip_prefix(phrase.as_ref())?.strip_prefix(' '))
}

impl About {
    /// Returns the subject of a phrase that begins with a verb: `touch the lexer`.
    fn action(phrase: &str, lasts: bool) -> Self {
        Self { topic: stripped(phrase), lasts, thing_first: false, is_wide: false, for_all: false }
    }

    /// Returns the subject of a phrase that begins with a thing: `two approvals`.
    fn thing(phrase: &str, lasts: bool) -> Self {
        Self { thing_first: true, ..Self::action(phrase, lasts) }
    }

    /// Returns the subject of a phrase that begins with a thing, or with a gerund, which names the
    /// verb of the rule: `pushing to trunk`.
    fn thing_or_gerund(phrase: &str, lasts: bool) -> Self {
        let is_gerund = phrase.split(' ').next().is_some_and(|word| word.ends_with("ing"));
        Self { thing_first: !is_gerund, ..Self::action(phrase, lasts) }
    }

    /// Returns how well this fits the topic of a rule.
    pub(super) fn fit(&self, rule: &Meaning) -> Fit {
        if self.topic.is_empty() || (rule.reserved > 0 && !self.for_all) {
            return Fit::None;
        }
        let whole = rule.topic.get(rule.reserved..).unwrap_or_default();
        let topic = significant(whole);
        if self.topic == topic || is_reordered(&self.topic, &topic, whole) {
            return Fit::Whole;
        }
        let position = |word| topic.iter().position(|other| other == word);
        let positions: Option<Vec<usize>> = self.topic.iter().map(position).collect();
        let is_part = positions.is_some_and(|positions| self.is_part(rule, &topic, &positions));
        if is_part && !rule.lists { Fit::Part } else { Fit::None }
    }

    /// Whether a rule with this topic can be meant, although this names only the words at these
    /// positions.
    fn is_part(&self, rule: &Meaning, topic: &[String], positions: &[usize]) -> bool {
        let first = positions.iter().min().copied().unwrap_or_default();
        let last = positions.iter().max().copied().unwrap_or_default();
        // Naming one thing does not revoke a rule about several, or with more to its topic than a
        // verb (`emoji are fine again`), unless it names the verb and is for all circumstances.
        let is_all = self.lasts && self.thing_first && topic.len() == 2;
        let names_enough = self.topic.len() > 1 || is_all || (self.is_wide && first == 0);
        let is_ordered = self.thing_first || positions.is_sorted();
        // `Red ink is fine again` omits the verb. A release may name only the end of the rule: `we
        // no longer need two approvals`.
        let asks = topic.first().is_some_and(|verb| listed(" ask tell check ", verb));
        let omits_verb = self.thing_first && !asks;
        let omits_start = omits_verb && rule.forbids == Some(false) && self.lasts;
        // `You may touch the oven again` omits `while I'm out`.
        let omits_end = self.lasts || self.is_wide;
        let until = topic.iter().position(|word| word == "until").unwrap_or(topic.len());
        // If a word between two named words is omitted, another thing is meant.
        let may_omit = |at: usize, word: &str| {
            (at < first && (omits_start || (omits_verb && at == 0)))
                || (at > last && (omits_end || at >= until))
                || listed(" befor after ", word)
        };
        let mut words = topic.iter().enumerate();
        names_enough
            && is_ordered
            && words.all(|(at, word)| positions.contains(&at) || may_omit(at, word))
    }
}

/// Whether two topics have the same significant words in another order, and the whole topic of the
/// rule has none that gives the order a meaning: `callers' phone numbers` and `phone numbers of
/// callers`, but not `from the kitchen to the bar`.
fn is_reordered(named: &[String], topic: &[String], whole: &[String]) -> bool {
    let (mut one, mut other) = (named.to_vec(), topic.to_vec());
    one.sort_unstable();
    other.sort_unstable();
    one == other && !whole.iter().any(|word| listed(ORDERING, word))
}

/// Returns the significant words of a phrase, in their base form.
fn stripped(phrase: &str) -> Vec<String> {
    let words: Vec<String> = phrase.split_whitespace().map(str::to_owned).collect();
    significant(&topic(&words))
}

/// Returns the words of a topic without conjunctions, prepositions and counts.
fn significant(topic: &[String]) -> Vec<String> {
    topic.iter().filter(|word| !listed(JOINING, word)).cloned().collect()
}

/// Whether a rule's topic contains all words of another.
pub(super) fn contains(rule: &Meaning, topic: &[String]) -> bool {
    !topic.is_empty() && topic.iter().all(|word| rule.topic.contains(word))
}
