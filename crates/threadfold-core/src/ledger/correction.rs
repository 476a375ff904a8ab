//! Sentences with which the user revokes a rule.

use super::meaning::{Meaning, listed, topic, words};

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
    /// Whether it holds for good: `again`, `any more`, `from now on`.
    lasts: bool,
    /// Whether it begins with the thing and not with the verb: `tabs are fine again`.
    thing_first: bool,
}

/// How well a correction fits a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    None,
    /// It may mean this rule, if it fits no other.
    Part,
    /// Both have the same topic.
    Whole,
}

#[rustfmt::skip]
const ALLOWS: [&str; 10] = [
    "you may", "you can", "you are allowed to", "you are free to", "feel free to", "go ahead and",
    "it is ok to", "it is okay to", "it is fine to", "you are now allowed to",
];

#[rustfmt::skip]
const RELEASES: [&str; 7] = [
    "you do not have to", "you do not need to", "you no longer have to", "you no longer need to",
    "you need not", "no need to", "there is no need to",
];

/// What may follow the allowed thing: `red ink is fine again`.
#[rustfmt::skip]
const ALLOWED: [&str; 10] = [
    "fine", "ok", "okay", "allowed", "permitted", "welcome", "no problem", "not a problem",
    "no longer forbidden", "no longer banned",
];

/// What may follow a thing that is no longer demanded: `the header is no longer needed`.
#[rustfmt::skip]
const NEEDLESS: [&str; 7] = [
    "no longer needed", "no longer required", "no longer necessary", "not needed", "not required",
    "not necessary", "optional",
];

/// What may follow the name of a rule: `the ban on tabs is lifted`.
#[rustfmt::skip]
const ENDED: [&str; 7] = [
    "is lifted", "is off", "is gone", "is over", "no longer applies", "no longer holds",
    "does not apply",
];

#[rustfmt::skip]
const FORGETS: [&str; 10] = [
    "forget", "ignore", "disregard", "drop", "scrap", "scratch", "cancel", "lift", "i take back",
    "i withdraw",
];

/// What may precede the topic of a forgotten rule.
#[rustfmt::skip]
const ABOUT: [&str; 7] = [
    "what i said about", "what i told you about", "everything i said about", "what i said on",
    "what i wrote about", "that about", "about",
];

/// Nouns for a rule, which are too general to name one.
const RULES: &str = " rule rules ban limit limits restriction requirement instruction thing ";

const EVERY: [&str; 5] =
    ["all my rules", "all the rules", "all rules", "all of my rules", "all these rules"];

/// Phrases that make a permission hold for good.
#[rustfmt::skip]
const LASTING: [&str; 9] = [
    " again ", " anymore ", " any more ", " any longer ", " from now on ", " from here on ",
    " from today ", " after all ", " these days ",
];

/// Returns the ways in which a sentence may revoke rules, the likeliest first.
pub(super) fn corrections(sentence: &str) -> Vec<Correction> {
    let line = without_fillers(sentence);
    // A clause may be a comment on another: `forget the rule about tabs, use what fits`.
    let clauses: Vec<String> = match sentence.contains([',', ';']) {
        true => sentence.split([',', ';']).map(without_fillers).collect(),
        false => vec![line.clone()],
    };
    let forgotten = clauses.iter().enumerate().find_map(|(at, clause)| {
        forgotten(clause).filter(|found| at == 0 || !matches!(found, Correction::Names(_)))
    });
    if let Some(rest) = after(&line, &ALLOWS) {
        let (first, object) = rest.split_once(' ').unwrap_or((rest, ""));
        let ends = listed(" stop skip drop omit quit ", first);
        let released = ends.then(|| Correction::Releases(About::of(object, true)));
        let allows = !ends && !listed(" not only never no ", first);
        let allowed = allows.then(|| Correction::Allows(About::of(rest, false)));
        return [forgotten, released, allowed].into_iter().flatten().collect();
    }
    if let Some(rest) = after(&line, &RELEASES) {
        return vec![Correction::Releases(About::of(rest, false))];
    }
    let first = clauses.first().filter(|_| clauses.len() > 1);
    let thing = of_thing(&line).or_else(|| of_thing(first?));
    [forgotten, thing].into_iter().flatten().collect()
}

/// Whether a sentence takes something back for good, so that it must not be lost.
pub(crate) fn takes_back(sentence: &str) -> bool {
    // Each such sentence has one of these phrases. Most sentences have none, and need no closer look.
    let lower = sentence.to_lowercase();
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase.trim()));
    (has(&LASTING) || has(&FORGETS) || has(&ENDED))
        && corrections(sentence).iter().any(|correction| match correction {
            Correction::Allows(about) | Correction::Releases(about) => about.lasts,
            Correction::Forgets(_) | Correction::Names(_) | Correction::All => true,
        })
}

/// Reads `forget the rule about tabs`, `ignore the ten line limit`, `the ban on tabs is lifted`.
fn forgotten(line: &str) -> Option<Correction> {
    let (line, _) = without_lasting(line);
    let ended = ENDED.iter().find_map(|end| line.strip_suffix(end)?.strip_suffix(' '));
    if let Some(named) = ended {
        return named_rule(named).map(|topic| Correction::Forgets(stripped(&topic)));
    }
    let line = after(&line, &ALLOWS).unwrap_or(&line);
    let rest = after(line, &FORGETS)?;
    if EVERY.contains(&rest) {
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
    let at = words.iter().position(|word| listed(RULES, word))?;
    let binds =
        words.get(at + 1).is_none_or(|next| listed(" about on against for of that to with ", next));
    let rest = words.iter().enumerate().filter(|(index, _)| *index != at);
    binds.then(|| rest.map(|(_, word)| *word).collect::<Vec<_>>().join(" "))
}

/// Reads `hikes above 14 km are allowed now`, `the header is no longer needed`.
fn of_thing(line: &str) -> Option<Correction> {
    let (bare, lasts) = without_lasting(line);
    let is_marked = lasts || bare != line || bare.contains(" no longer ");
    // `The red ink can be used again`.
    let passive = bare.split_once(" can be ").or_else(|| bare.split_once(" may be "));
    if let Some((thing, _)) = passive.filter(|(_, verb)| lasts && !verb.contains(' ')) {
        return Some(Correction::Allows(About::of_thing(thing, lasts)));
    }
    // Without a word such as `again` it is only a judgement: `tabs are fine`.
    if let Some(thing) = thing_before(&bare, &ALLOWED).filter(|_| is_marked) {
        return Some(Correction::Allows(About::of_thing(thing, lasts)));
    }
    let thing = thing_before(&bare, &NEEDLESS)?;
    Some(Correction::Releases(About::of_thing(thing, lasts)))
}

/// Returns the subject of a line that ends with `is` or `are` and one of these phrases.
fn thing_before<'a>(line: &'a str, ends: &[&str]) -> Option<&'a str> {
    let thing = ends.iter().find_map(|end| line.strip_suffix(end)?.strip_suffix(' '))?;
    [" is", " are"].iter().find_map(|verb| thing.strip_suffix(verb))
}

/// Returns the rest of a line after the first of the phrases that it begins with.
fn after<'a>(line: &'a str, phrases: &[&str]) -> Option<&'a str> {
    phrases.iter().find_map(|phrase| line.strip_prefix(phrase)?.strip_prefix(' '))
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
    words.join(" ")
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

/// Returns a line without the phrases of time at its end, and whether one of them makes it hold for
/// good.
fn without_lasting(line: &str) -> (String, bool) {
    let mut bare = format!(" {line} ");
    let lasts = LASTING.iter().any(|phrase| bare.contains(phrase));
    for phrase in LASTING {
        bare = bare.replace(phrase, " ");
    }
    (bare.replace(" now ", " ").trim().to_owned(), lasts)
}

impl About {
    fn of(phrase: &str, thing_first: bool) -> Self {
        let (bare, lasts) = without_lasting(phrase);
        Self { topic: stripped(&bare), lasts, thing_first }
    }

    /// Returns the subject that a thing names. A gerund also names the verb of the rule: `pushing to
    /// trunk`.
    fn of_thing(thing: &str, lasts: bool) -> Self {
        let names_verb = thing.split(' ').next().is_some_and(|word| word.ends_with("ing"));
        Self { lasts, ..Self::of(thing, !names_verb) }
    }

    /// Returns how well this fits the topic of a rule.
    pub(super) fn fit(&self, rule: &Meaning) -> Fit {
        let (named, topic) = (&self.topic, significant(&rule.topic));
        if named.is_empty() {
            return Fit::None;
        }
        if named == &topic || is_reordered(named, &topic, &rule.topic) {
            return Fit::Whole;
        }
        // Naming one thing does not revoke a rule about several, or with more to its topic than a
        // verb: `emoji are fine again`.
        let is_all = self.lasts && self.thing_first && topic.len() == 2;
        if (named.len() < 2 && !is_all) || rule.lists {
            return Fit::None;
        }
        let positions: Option<Vec<usize>> =
            named.iter().map(|word| topic.iter().position(|other| other == word)).collect();
        let Some(positions) = positions else { return Fit::None };
        let ordered = self.thing_first || positions.is_sorted();
        let last = positions.iter().max().copied().unwrap_or_default();
        // `You may touch the oven again` omits `while I'm out`, and `red ink is fine again` omits
        // the verb. But a word that is omitted between two named ones makes it another thing.
        let fits = topic.iter().enumerate().all(|(at, _)| {
            positions.contains(&at) || (self.thing_first && at == 0) || (self.lasts && at > last)
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
    const JOINING: &str =
        " of at on in to with for by from about against me i it each every any anything all ";
    topic.iter().filter(|word| !listed(JOINING, word)).cloned().collect()
}

/// Whether a rule's topic contains all words of another.
pub(super) fn contains(rule: &Meaning, topic: &[String]) -> bool {
    !topic.is_empty() && topic.iter().all(|word| rule.topic.contains(word))
}
