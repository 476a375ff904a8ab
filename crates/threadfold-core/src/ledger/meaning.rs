//! What a rule is about, as far as its words tell.

use crate::{message::steps, prose::spoken_words};

/// Words that say nothing of what a rule is about.
const EMPTY: &str = " a an the my your our please just now actually ok okay so also ever never always must mustn't should \
    shouldn't shall do not don't dont only again anymore you may can cannot can't no longer then and but well oh instead \
    need have to be sure make ensure remember allowed are free feel ";

/// Words that turn a demand into its opposite.
const NEGATIONS: &str = " never not don't dont mustn't shouldn't cannot can't no ";

/// Words with which a sentence says more than one thing.
const CONTRASTS: &str = " except unless instead rather than but if ";

/// Verbs that choose one thing where another could be.
const CHOICES: &str = " use prefer write answer reply respond format indent name call ";

/// What may stand before a choice.
const OPENINGS: [&str; 4] =
    [" i changed my mind ", " from now on ", " on second thought ", " scratch that "];

/// Words that begin the circumstances of a choice.
const MARKS: &str = " for in with when while inside on as by at before after everywhere ";

/// Words that begin what is not chosen.
const REFUSALS: &str = " not instead rather over ";

/// The words of a sentence, in lower case.
pub(super) fn words(sentence: &str) -> impl Iterator<Item = String> {
    spoken_words(sentence).map(|word| word.to_lowercase().replace('\u{2019}', "'"))
}

/// What a sentence asks for, in the words that tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Meaning {
    /// What it is about.
    pub(super) topic: Vec<String>,
    /// Whether it forbids; `None` if it says more than one thing.
    pub(super) forbids: Option<bool>,
    /// What it chooses, if it does.
    pub(super) choice: Option<Choice>,
    /// Its words with the numbers behind a limit taken out, if it sets one.
    pub(super) limit: Option<Vec<String>>,
}

/// One thing where another could be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    verb: String,
    pub(super) object: Vec<String>,
    circumstances: Vec<String>,
    /// What is not chosen.
    pub(super) refused: Vec<String>,
    /// Whether it says that it is a change.
    pub(super) is_change: bool,
}

impl Meaning {
    pub(super) fn of(sentence: &str) -> Self {
        let words: Vec<String> = words(sentence).take(200).collect();
        let count = |list| words.iter().filter(|word| listed(list, word)).count();
        let forbids = match (count(NEGATIONS), count(CONTRASTS)) {
            (0, 0) => Some(false),
            (1, 0) => Some(true),
            _ => None,
        };
        Self { topic: topic(&words), forbids, choice: choice(&words), limit: limit(&words) }
    }
}

impl Choice {
    /// Whether this names the other as what is no longer chosen.
    pub(super) fn refuses(&self, other: &Self) -> bool {
        let same = self.verb == other.verb && self.circumstances == other.circumstances;
        same && !self.refused.is_empty() && self.refused == other.object
    }

    /// Whether this may be chosen in the place of the other: all but one thing is the same.
    pub(super) fn differs_in_one(&self, other: &Self) -> bool {
        let short = |words: &[String]| (1..=3).contains(&words.len());
        let another = |one: &[String], two: &[String]| one != two && short(one) && short(two);
        let of_one_kind = self.circumstances.first() == other.circumstances.first();
        self.verb == other.verb
            && ((self.circumstances == other.circumstances && another(&self.object, &other.object))
                || (self.object == other.object
                    && of_one_kind
                    && another(&self.circumstances, &other.circumstances)))
    }
}

/// Whether a list of words between blanks holds a word.
pub(super) fn listed(list: &str, word: &str) -> bool {
    let mut places = steps::through(list).match_indices(word);
    !word.is_empty()
        && places.any(|(at, word)| {
            let before = list.get(..at).is_some_and(|before| before.ends_with(' '));
            let after = list.get(at + word.len()..).is_some_and(|after| after.starts_with(' '));
            before && after
        })
}

/// The words that tell what a sentence is about, in the singular.
pub(super) fn topic(words: &[String]) -> Vec<String> {
    let line = format!(" {} ", words.join(" ")).replace(" from now on ", " ");
    line.split_whitespace().filter(|word| !listed(EMPTY, word)).map(singular).collect()
}

fn singular(word: &str) -> String {
    let plural = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
    let end = if plural { word.len() - 1 } else { word.len() };
    word.get(..end).unwrap_or(word).to_owned()
}

fn choice(words: &[String]) -> Option<Choice> {
    let line = format!(" {} ", words.join(" "));
    let bare = OPENINGS.iter().fold(line.clone(), |line, opening| line.replace(opening, " "));
    let words: Vec<String> = bare.split_whitespace().map(str::to_owned).collect();
    let telling = |word: &&String| !listed(EMPTY, word) || listed(REFUSALS, word);
    let told: Vec<&String> = words.iter().filter(telling).collect();
    let at = told.iter().position(|word| listed(CHOICES, word)).filter(|at| *at < 3)?;
    // Who forbids one thing does not choose another.
    let forbids = |word: &&String| listed(NEGATIONS, word);
    if words.iter().take_while(|word| !listed(CHOICES, word)).any(|word| forbids(&word)) {
        return None;
    }
    let verb = match told.get(at)?.as_str() {
        "prefer" => "use",
        verb => verb,
    };
    let (mut object, mut circumstances, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    let mut place = 0;
    for word in told.iter().skip(at + 1) {
        match word.as_str() {
            // At the end of a sentence it only says that this is a change.
            word if listed(REFUSALS, word) => place = 2,
            "of" | "than" if place == 2 && refused.is_empty() => {}
            word if listed(MARKS, word) => {
                place = 1;
                circumstances.push(word.to_owned());
            }
            word => match place {
                0 => object.push(singular(word)),
                1 => circumstances.push(singular(word)),
                _ => refused.push(singular(word)),
            },
        }
    }
    let changes =
        [" instead ", " actually ", " changed my mind ", " on second thought ", " scratch that "];
    let is_change = changes.iter().any(|change| line.contains(change));
    Some(Choice { verb: verb.to_owned(), object, circumstances, refused, is_change })
}

fn limit(words: &[String]) -> Option<Vec<String>> {
    let limits =
        [["at", "most"], ["at", "least"], ["more", "than"], ["up", "to"], ["less", "than"]];
    let is_number = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
    let mut masked = words.to_vec();
    let mut found = false;
    for at in 2..words.len() {
        let before = words.get(at - 2..at).unwrap_or_default();
        if limits.iter().any(|limit| before == limit) && words.get(at).is_some_and(is_number) {
            masked.get_mut(at).into_iter().for_each(String::clear);
            found = true;
        }
    }
    found.then(|| topic(&masked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_its_words_and_no_empty_one() {
        for (word, expected) in [("for", true), ("after", true), ("", false), ("fo", false)] {
            assert_eq!(listed(MARKS, word), expected, "{word:?}");
        }
    }
}
