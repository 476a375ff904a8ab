//! Statements that define a thing in words: `The next stop is a long walk`, `Next stop: the pier`.

use std::collections::BTreeSet;

use super::{
    demand::sentences,
    stem::{is_mark, parts, stem},
    subject_words::Grammar,
};

/// The maximum number of words before the verb.
const TOPIC: usize = 8;

/// The thing that a sentence defines, and the words that define it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    topic: BTreeSet<String>,
    /// Whether a colon follows the topic, as in `Next stop: the pier`.
    is_entry: bool,
    said: String,
}

impl Definition {
    /// Returns the definition in a statement, if the statement is one sentence without a negation.
    pub(super) fn of(statement: &str) -> Option<Self> {
        let mut all = sentences(statement);
        let sentence = all.next().filter(|_| all.next().is_none())?;
        let mut topic = BTreeSet::new();
        let mut tokens = sentence.split_whitespace();
        for _ in 0..=TOPIC {
            let token = tokens.next()?;
            let bare = token.trim_matches(is_mark);
            let is_entry = token.ends_with(':');
            for word in parts(bare) {
                if Grammar::of(&word).is(Grammar::NEGATION) {
                    return None;
                }
                if Grammar::of(&word).is(Grammar::COPULA) {
                    return Self { topic, is_entry: false, said: said(tokens)? }.checked();
                }
                if !Grammar::of(&word).is(Grammar::STOP) {
                    topic.insert(stem(&word));
                }
            }
            if is_entry {
                return Self { topic, is_entry, said: said(tokens)? }.checked();
            }
            // Words before a comma state a time or an occasion, not the defined thing.
            if token.ends_with(',') {
                topic.clear();
            }
        }
        None
    }

    /// Whether this later definition gives other words for the same thing.
    pub(super) fn replaces(&self, old: &Self) -> bool {
        let is_same = self.topic.is_subset(&old.topic) || old.topic.is_subset(&self.topic);
        is_same && self.said != old.said
    }

    /// A single word before a verb is too vague: two statements with it may be about two things.
    fn checked(self) -> Option<Self> {
        let least = if self.is_entry { 1 } else { 2 };
        (self.topic.len() >= least).then_some(self)
    }
}

/// Returns the words after the verb. A single word is only a property, of which a thing has
/// several.
fn said<'a>(tokens: impl Iterator<Item = &'a str>) -> Option<String> {
    let words: Vec<&str> = tokens.map(|token| token.trim_matches(is_mark)).collect();
    let denies = words.iter().any(|word| Grammar::of(&word.to_lowercase()).is(Grammar::NEGATION));
    (words.len() > 1 && !denies).then(|| words.join(" ").to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaces(new: &str, old: &str) -> bool {
        let both = Definition::of(new).zip(Definition::of(old));
        both.is_some_and(|(new, old)| new.replaces(&old))
    }

    #[test]
    fn another_definition_of_the_same_thing_replaces_the_old_one() {
        let old = "The next stop is a long walk.";
        for new in ["After lunch, the next stop is the old pier.", "Next: the old pier"] {
            assert!(replaces(new, old) && replaces(old, new), "{new}");
        }
    }

    #[test]
    fn definitions_of_other_things_and_properties_stay() {
        let old = "The next stop is a long walk.";
        let others = [old, "The last stop is the old pier.", "The next stop is quiet."];
        for new in [others.as_slice(), &["The next stop is never a pier.", "Walk on."]].concat() {
            assert!(!replaces(new, old), "{new}");
        }
    }
}
