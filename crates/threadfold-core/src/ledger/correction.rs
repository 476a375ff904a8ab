//! Sentences with which the user takes a rule back.

use super::meaning::{listed, topic, words};

/// What a sentence takes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Correction {
    /// Rules that forbid this topic: `you may touch the lexer`.
    Allows(Vec<String>),
    /// Rules that demand this topic: `you don't have to use tabs`.
    Releases(Vec<String>),
    /// The rule whose topic contains these words: `forget what I said about tabs`.
    Forgets(Vec<String>),
    /// The rule whose words this sentence contains: `forget never use tabs`.
    Names(String),
    /// All rules.
    All,
}

const ALLOWS: [&str; 14] = [
    "you may",
    "you can",
    "you are allowed to",
    "you're allowed to",
    "you are free to",
    "you're free to",
    "feel free to",
    "it's ok to",
    "it's okay to",
    "it's fine to",
    "it is ok to",
    "it is okay to",
    "it is fine to",
    "you are now allowed to",
];

const RELEASES: [&str; 11] = [
    "you don't have to",
    "you don't need to",
    "you do not have to",
    "you do not need to",
    "you no longer have to",
    "you no longer need to",
    "you needn't",
    "you need not",
    "no need to",
    "there is no need to",
    "there's no need to",
];

const ABOUT: [&str; 8] = [
    "what i said about",
    "what i told you about",
    "everything i said about",
    "the rule about",
    "my rule about",
    "that rule about",
    "the rules about",
    "my rules about",
];

const EVERY: [&str; 5] =
    ["all my rules", "all the rules", "all rules", "all of my rules", "all these rules"];

/// Returns which rules a sentence takes back, or `None` if it is no correction.
pub(super) fn correction(sentence: &str) -> Option<Correction> {
    let filler =
        |word: &String| listed(" actually ok okay now please and so well oh then also ", word);
    let words: Vec<String> = words(sentence).take(200).skip_while(filler).collect();
    let line = words.join(" ");
    let rest = |phrases: &[&str]| {
        let rest = |phrase: &&str| line.strip_prefix(*phrase)?.strip_prefix(' ');
        phrases.iter().find_map(rest)
    };
    if let Some(rest) = rest(&ALLOWS) {
        let allows = !listed(" not only never no ", rest.split(' ').next().unwrap_or_default());
        return allows.then(|| Correction::Allows(about(rest)));
    }
    if let Some(rest) = rest(&RELEASES) {
        return Some(Correction::Releases(about(rest)));
    }
    let forgotten = rest(&["forget", "ignore", "disregard", "drop", "scratch", "cancel"])?;
    if let Some(subject) = ABOUT.iter().find_map(|phrase| forgotten.strip_prefix(phrase)) {
        return Some(Correction::Forgets(about(subject)));
    }
    if EVERY.contains(&forgotten) {
        return Some(Correction::All);
    }
    Some(Correction::Names(format!(" {forgotten} ")))
}

fn about(rest: &str) -> Vec<String> {
    let words: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
    topic(&words)
}
