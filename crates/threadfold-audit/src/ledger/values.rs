//! The values of a demand: the language of an answer, the number of a limit, the name of a thing.

use super::{
    phrases::{BESIDE_VALUES, FORMS},
    words::{is_limit, listed},
};
use crate::prose::{is_calendar, spoken_words};

/// A word of a demand, and whether the demand can have only one value in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) word: String,
    pub(super) kind: Kind,
    /// Whether a demand can have only one value in the place of this word.
    pub(super) is_one: bool,
    /// Whether the word is the number of a bound. Even a prohibition has only one: `more than 6`.
    pub(super) is_bound: bool,
}

/// The kind of a value, by its form. A value replaces only a value of the same kind: `in French`
/// does not replace `in bullets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Number,
    Form,
    Name,
    Other,
}

impl Kind {
    fn of(word: &str, may_be_form: bool) -> Self {
        let first = word.chars().next().unwrap_or_default();
        match first {
            _ if first.is_ascii_digit() => Self::Number,
            _ if may_be_form && listed(FORMS, &word.to_lowercase()) => Self::Form,
            _ if first.is_uppercase() => Self::Name,
            _ => Self::Other,
        }
    }
}

/// Verbs with one value after a preposition.
struct Place {
    verbs: &'static [&'static str],
    prepositions: &'static [&'static str],
    is_name: bool,
}

const PLACES: [Place; 3] = [
    // `Answer in French`, `label them as drafts`.
    Place {
        verbs: &["answer", "reply", "respond", "label"],
        prepositions: &["in", "as"],
        is_name: false,
    },
    // `Write in French`. `Write in the book` does not exclude another book.
    Place { verbs: &["write", "format"], prepositions: &["in", "as"], is_name: true },
    // `Deploy to staging`.
    Place { verbs: &["deploy"], prepositions: &["to"], is_name: false },
];

/// Returns the words of a demand that may have a value, and none for other sentences.
pub(super) fn values(sentence: &str) -> Vec<Value> {
    let words = spoken_words(sentence).take(200).map(|word| (word, word.to_lowercase()));
    let mut words: Vec<(&str, String)> = words.collect();
    let from_now_on = words.windows(3).position(|three| {
        matches!(three, [(_, from), (_, now), (_, on)]
            if from == "from" && (now == "now" || now == "here") && on == "on")
    });
    if let Some(at) = from_now_on {
        words.drain(at..at + 3);
    }
    let any = |verbs: &[&str]| words.iter().any(|(_, word)| verbs.contains(&word.as_str()));
    let places: Vec<&Place> = PLACES.iter().filter(|place| any(place.verbs)).collect();
    let may_name = any(&["use", "name", "call"]);
    if places.is_empty() && !may_name && !words.iter().any(|(_, word)| is_limit(word)) {
        return Vec::new();
    }
    words.retain(|(_, word)| !listed(BESIDE_VALUES, word));
    // `Use the blue pen for signatures`: the thing is between the verb and the last `for`.
    let used = words.iter().position(|(_, word)| word == "use").map_or(usize::MAX, |at| at + 1);
    let purpose = words.iter().rposition(|(_, word)| word == "for" || word == "as");
    let used = used..purpose.unwrap_or_default();
    // `Name the cat Ada`, `call me Ada`.
    let named = match words.as_slice() {
        [(_, verb), _, ..] if verb == "name" => 2,
        [(_, verb), (_, me), ..] if verb == "call" && me == "me" => 2,
        _ => usize::MAX,
    };
    let (mut preposition, mut previous) = ("", "");
    let mut values = Vec::new();
    for (at, (written, word)) in words.iter().enumerate() {
        let kind = Kind::of(written, matches!(preposition, "in" | "as"));
        let is_placed = places.iter().any(|place| {
            place.prepositions.contains(&preposition) && (!place.is_name || kind == Kind::Name)
        });
        let is_only = is_placed || used.contains(&at) || at >= named;
        let is_number = kind == Kind::Number;
        let is_one = (is_only && !is_calendar(written)) || (is_number && is_limit(previous));
        let is_bound = is_number && matches!(previous, "most" | "least" | "than");
        values.push(Value { word: word.clone(), kind, is_one, is_bound });
        if matches!(word.as_str(), "to" | "in" | "as" | "on" | "with" | "for" | "at") {
            preposition = word;
        }
        previous = word;
    }
    values
}
