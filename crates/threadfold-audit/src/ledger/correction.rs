//! Sentences with which the user revokes a rule.

use super::{
    asking::asking,
    english::in_english,
    meaning::{Meaning, listed, phrases, topic, words},
    standing::is_for_once,
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

/// Nouns for a rule, which are too general to name one.
const RULES: &str = " rule rules ban limit limits restriction requirement instruction thing ";

/// Returns the corrections that a sentence may express, the most likely first. `english` is its
/// [English form](super::english::in_english).
pub(super) fn corrections(sentence: &str, english: &str) -> Vec<Correction> {
    let is_foreign = english != sentence;
    let line = without_fillers(english);
    let (bare, lasts) = without_lasting(&line);
    let found = found(english, &line, (&bare, lasts), is_foreign);
    // A permission for one occasion, or of another person, revokes nothing.
    let revokes = !found.is_empty()
        && !is_for_once(&format!(" {bare} "))
        && (!is_foreign || asking(english).is_some());
    if revokes { found } else { Vec::new() }
}

/// Returns the corrections that a line without fillers and phrases of time may express.
fn found(
    english: &str,
    line: &str,
    (bare, lasts): (&str, bool),
    is_foreign: bool,
) -> Vec<Correction> {
    // A clause may be a comment on another: `forget the rule about tabs, use what fits`.
    let clauses: Vec<String> = match english.contains([',', ';']) {
        true => english.split([',', ';']).map(without_fillers).collect(),
        false => vec![line.to_owned()],
    };
    let forgotten = clauses.iter().enumerate().find_map(|(at, clause)| {
        forgotten(clause).filter(|found| at == 0 || !matches!(found, Correction::Names(_)))
    });
    let is_changed = lasts || bare != line;
    let for_all = for_everybody(bare).filter(|_| is_changed);
    // `Agora pode enviar`: some languages need no subject.
    let allowed = bare.strip_prefix("may ").filter(|_| is_foreign);
    if let Some(rest) = for_all.or(allowed).or_else(|| after(bare, phrases("allows"))) {
        // `You can order parts without asking me` revokes `ask me before you order parts`.
        let unasked = rest.strip_suffix(" me").unwrap_or(rest).strip_suffix(" without asking");
        let asked = unasked.map(|unasked| {
            Correction::Releases(About::of(&format!("ask before {unasked}"), lasts, false))
        });
        let (first, object) = rest.split_once(' ').unwrap_or((rest, ""));
        let ends = listed(" stop skip drop omit quit ", first);
        let released = ends.then(|| Correction::Releases(About::of(object, lasts, true)));
        let allows = !ends && !listed(" not only never no ", first);
        let about = About { for_all: for_all.is_some(), ..About::of(rest, lasts, false) };
        let allowed = allows.then_some(Correction::Allows(about));
        return [forgotten, asked, released, allowed].into_iter().flatten().collect();
    }
    if let Some((rest, thing_first)) = released(bare, lasts) {
        let lasts = lasts || bare.contains("no longer");
        return vec![Correction::Releases(About::of(&rest, lasts, thing_first))];
    }
    let first = clauses.first().filter(|_| clauses.len() > 1);
    let thing = of_thing(line).or_else(|| of_thing(first?));
    [forgotten, thing].into_iter().flatten().collect()
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

/// Returns what a line no longer demands, and whether that is a thing: `we no longer need two
/// approvals`, `we don't confirm by phone any more`.
fn released(bare: &str, lasts: bool) -> Option<(String, bool)> {
    let mine = bare.strip_prefix("i ").filter(|rest| rest.contains(" need "));
    let ours = bare.strip_prefix("we ").or(mine);
    let bare = ours.map_or(bare.to_owned(), |rest| format!("you {rest}"));
    // Other languages have another word order: `you have to ask me no longer`.
    if let Some(rest) = bare.strip_prefix("you have to ").filter(|rest| rest.contains("no longer "))
    {
        return Some((rest.replacen("no longer ", "", 1), true));
    }
    let stopped = bare.strip_prefix("you do not ").filter(|_| ours.is_some() && lasts);
    let Some(phrase) = phrases("releases").iter().find(|phrase| after(&bare, &[phrase]).is_some())
    else {
        return stopped.map(|rest| (rest.to_owned(), false));
    };
    let is_thing = phrase.ends_with(" need") || phrase.ends_with(" for");
    after(&bare, &[phrase]).map(|rest| (rest.to_owned(), is_thing))
}

/// Whether a sentence revokes something permanently, so that it must not be lost.
pub(crate) fn takes_back(sentence: &str) -> bool {
    // Every such sentence has one of these phrases. Most sentences have none, and this check is
    // cheap.
    let english = in_english(sentence);
    let lower = english.to_lowercase();
    let has = |title: &str| phrases(title).iter().any(|phrase| lower.contains(phrase.trim()));
    (has("lasting") || has("forgets") || has("ended"))
        && corrections(sentence, &english).iter().any(|correction| match correction {
            Correction::Allows(about) | Correction::Releases(about) => about.lasts,
            Correction::Forgets(_) | Correction::Names(_) | Correction::All => true,
        })
}

/// Reads `forget the rule about tabs`, `ignore the ten line limit`, `the ban on tabs is lifted`.
fn forgotten(line: &str) -> Option<Correction> {
    let (line, _) = without_lasting(line);
    let ended = phrases("ended").iter().find_map(|end| line.strip_suffix(end)?.strip_suffix(' '));
    if let Some(named) = ended {
        return named_rule(named).map(|topic| Correction::Forgets(stripped(&topic)));
    }
    let line = after(&line, phrases("allows")).unwrap_or(&line);
    let rest = after(line, phrases("forgets"))?;
    if phrases("every rule").iter().any(|every| every == rest) {
        return Some(Correction::All);
    }
    let about = after(rest, phrases("about")).unwrap_or(rest);
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
    let at = words.iter().position(|word| listed(RULES, word))?;
    let binds =
        words.get(at + 1).is_none_or(|next| listed(" about on against for of that to with ", next));
    let rest = words.iter().enumerate().filter(|(index, _)| *index != at);
    binds.then(|| rest.map(|(_, word)| *word).collect::<Vec<_>>().join(" "))
}

/// Reads `hikes above 14 km are allowed now`, `the header is no longer needed`, `restarts are fine
/// at any hour`.
fn of_thing(line: &str) -> Option<Correction> {
    let (bare, lasts) = without_lasting(line);
    let is_marked = lasts || bare != line || bare.contains(" no longer ");
    // `The red ink can be used again`.
    let passive = bare.split_once(" can be ").or_else(|| bare.split_once(" may be "));
    if let Some((thing, _)) = passive.filter(|(_, verb)| lasts && !verb.contains(' ')) {
        return Some(Correction::Allows(About::of_thing(thing, lasts)));
    }
    let verbs = [" is ", " are "].iter().filter_map(|verb| bare.split_once(verb));
    let (thing, state) = verbs.min_by_key(|(thing, _)| thing.len())?;
    let rest = |title: &str| {
        phrases(title).iter().find_map(|phrase| {
            state.strip_prefix(phrase).filter(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    };
    let Some(manner) = rest("allowed") else {
        let manner = rest("needless")?;
        let lasts = lasts || state.starts_with("no longer");
        return Some(Correction::Releases(About::of_thing(&format!("{thing}{manner}"), lasts)));
    };
    // `Restarts are fine at any hour`, `restarts are fine only on Sunday`.
    let any = manner.find(" any ").or_else(|| manner.starts_with(" only ").then_some(0));
    let named = format!("{thing}{}", slice(manner, ..any.unwrap_or(manner.len())));
    // `The server is okay again` may only describe a state, so it revokes only a rule that forbids
    // its use.
    let is_state = listed(" fine ok okay ", state) && after(thing, &["the", "my", "our"]).is_some();
    let named = if is_state { format!("use {named}") } else { named };
    // Without a word such as `again`, the sentence is only an opinion: `tabs are fine`.
    let about = About { is_wide: any.is_some(), ..About::of_thing(&named, lasts) };
    (is_marked || about.is_wide).then_some(Correction::Allows(about))
}

/// Returns the rest of a line after the first of these phrases with which it begins.
fn after<'a>(line: &'a str, phrases: &[impl AsRef<str>]) -> Option<&'a str> {
    phrases.iter().find_map(|phrase| line.strip_prefix(phrase.as_ref())?.strip_prefix(' '))
}

/// Returns the words of a text in lower case, without contractions, and without filler words at
/// both ends.
fn without_fillers(text: &str) -> String {
    const FILLERS: &str = " actually ok okay now please and so well oh then also yes sure alright ";
    const LAST: &str = " btw though too thanks please ";
    let words = words(text).take(200).skip_while(|word| listed(FILLERS, word));
    let mut words: Vec<String> = words.map(without_contraction).collect();
    while words.last().is_some_and(|word| listed(LAST, word)) {
        words.pop();
    }
    words.join(" ").replace(" has been ", " is ").replace(" have been ", " are ")
}

/// Whether a sentence that revokes a rule permits only part of it, so that it is a rule itself.
pub(super) fn restricts(sentence: &str) -> bool {
    words(sentence).any(|word| word == "only")
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

/// Returns a line without the phrases of time at its end, and whether one of them makes it
/// permanent.
fn without_lasting(line: &str) -> (String, bool) {
    let mut bare = format!(" {line} ");
    let lasts = phrases("lasting").iter().any(|phrase| bare.contains(phrase));
    for phrase in phrases("lasting") {
        bare = bare.replace(phrase, " ");
    }
    (bare.replace(" now ", " ").trim().to_owned(), lasts)
}

impl About {
    fn of(phrase: &str, lasts: bool, thing_first: bool) -> Self {
        Self { topic: stripped(phrase), lasts, thing_first, is_wide: false, for_all: false }
    }

    /// Returns the subject of a permission that begins with a thing. A gerund also names the verb
    /// of the rule: `pushing to trunk`.
    fn of_thing(thing: &str, lasts: bool) -> Self {
        let names_verb = thing.split(' ').next().is_some_and(|word| word.ends_with("ing"));
        Self::of(thing, lasts, !names_verb)
    }

    /// Returns how well this fits the topic of a rule.
    pub(super) fn fit(&self, rule: &Meaning) -> Fit {
        if rule.reserved > 0 && !self.for_all {
            return Fit::None;
        }
        let whole = rule.topic.get(rule.reserved..).unwrap_or_default();
        let (named, topic) = (&self.topic, significant(whole));
        if named.is_empty() {
            return Fit::None;
        }
        if named == &topic || is_reordered(named, &topic, whole) {
            return Fit::Whole;
        }
        let positions: Option<Vec<usize>> =
            named.iter().map(|word| topic.iter().position(|other| other == word)).collect();
        let Some(positions) = positions.filter(|_| !rule.lists) else { return Fit::None };
        let (first, last) = (
            positions.iter().min().copied().unwrap_or_default(),
            positions.iter().max().copied().unwrap_or_default(),
        );
        // Naming one thing does not revoke a rule about several, or with more to its topic than a
        // verb (`emoji are fine again`), unless it names the verb and is for all circumstances.
        let is_all = self.lasts && self.thing_first && topic.len() == 2;
        if named.len() < 2 && !is_all && !(self.is_wide && first == 0) {
            return Fit::None;
        }
        let ordered = self.thing_first || positions.is_sorted();
        let may_omit =
            self.thing_first && !topic.first().is_some_and(|verb| listed(" ask tell check ", verb));
        // A release may name only the end of the rule: `we no longer need two approvals`.
        let is_demanded = rule.forbids == Some(false) && self.lasts;
        // `You may touch the oven again` omits `while I'm out`, and `red ink is fine again` omits
        // the verb. But if a word between two named words is omitted, another thing is meant.
        let until = topic.iter().position(|word| word == "until").unwrap_or(topic.len());
        let fits = topic.iter().enumerate().all(|(at, word)| {
            (at > last && at >= until)
                || positions.contains(&at)
                || (at < first && may_omit && (at == 0 || is_demanded))
                || ((self.lasts || self.is_wide) && at > last)
                || listed(" befor after ", word)
        });
        if ordered && fits { Fit::Part } else { Fit::None }
    }
}

/// Whether two topics have the same significant words in another order, and the whole topic of the
/// rule has none that gives the order a meaning: `callers' phone numbers` and `phone numbers of
/// callers`, but not `from the kitchen to the bar`.
fn is_reordered(named: &[String], topic: &[String], whole: &[String]) -> bool {
    const ORDERS: &str = " from to into onto before after over above below under than until ";
    let (mut one, mut other) = (named.to_vec(), topic.to_vec());
    one.sort_unstable();
    other.sort_unstable();
    one == other && !whole.iter().any(|word| listed(ORDERS, word))
}

fn stripped(phrase: &str) -> Vec<String> {
    let words: Vec<String> = phrase.split_whitespace().map(str::to_owned).collect();
    significant(&topic(&words))
}

/// Returns the words of a topic without conjunctions, prepositions and counts.
fn significant(topic: &[String]) -> Vec<String> {
    // Base forms, because the words of a topic are base forms.
    const JOINING: &str = " of at on in to with for by from about against me i it each every any anyth anyon anybody all ";
    topic.iter().filter(|word| !listed(JOINING, word)).cloned().collect()
}

/// Whether a rule's topic contains all words of another.
pub(super) fn contains(rule: &Meaning, topic: &[String]) -> bool {
    !topic.is_empty() && topic.iter().all(|word| rule.topic.contains(word))
}
