//! Choices of one thing instead of another: `use spaces in this file, not tabs`.

use super::{
    phrases::{CHANGES, CHOICES, EMPTY, MARKS, NEGATIONS, OPENINGS, REFUSALS},
    words::{listed, singular},
};

/// A choice: `use spaces in this file, not tabs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    verb: String,
    pub(super) object: Vec<String>,
    circumstances: Vec<String>,
    /// The things that are not chosen.
    pub(super) refused: Vec<String>,
    /// Whether it announces a change of an earlier choice.
    pub(super) is_change: bool,
}

/// The part of a choice that a word belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Object,
    Circumstances,
    Refused,
}

impl Choice {
    /// Reads a choice. Grammar is not parsed: words such as `in` and `not` decide to which part the
    /// words after them belong.
    pub(super) fn of(words: &[String]) -> Option<Self> {
        let line = format!(" {} ", words.join(" "));
        let bare = OPENINGS.iter().fold(line.clone(), |line, opening| line.replace(opening, " "));
        // A sentence that forbids one thing does not choose another.
        let mut before_verb = bare.split_whitespace().take_while(|word| !listed(CHOICES, word));
        if before_verb.any(|word| listed(NEGATIONS, word)) {
            return None;
        }
        let words = bare.split_whitespace();
        let mut words = words.filter(|word| !listed(EMPTY, word) || listed(REFUSALS, word));
        let verb = words.by_ref().take(3).find(|word| listed(CHOICES, word))?;
        let verb = if verb == "prefer" { "use" } else { verb };
        let (mut object, mut circumstances, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        let mut part = Part::Object;
        for word in words {
            if listed(REFUSALS, word) {
                part = Part::Refused;
            } else if listed(MARKS, word) {
                part = Part::Circumstances;
                circumstances.push(word.to_owned());
            } else if part != Part::Refused || !refused.is_empty() || !matches!(word, "of" | "than")
            {
                let words = match part {
                    Part::Object => &mut object,
                    Part::Circumstances => &mut circumstances,
                    Part::Refused => &mut refused,
                };
                words.push(singular(word).to_owned());
            }
        }
        let is_change = CHANGES.iter().any(|change| line.contains(change));
        Some(Self { verb: verb.to_owned(), object, circumstances, refused, is_change })
    }

    /// Whether this choice refuses the object of the other.
    pub(super) fn refuses(&self, other: &Self) -> bool {
        let same = self.verb == other.verb && self.circumstances == other.circumstances;
        same && !self.refused.is_empty() && self.refused == other.object
    }

    /// Whether this choice may replace the other: they differ only in the object or only in the
    /// circumstances.
    pub(super) fn differs_in_one(&self, other: &Self) -> bool {
        let (object, circumstances) = (&self.object, &self.circumstances);
        let same_object = *object == other.object;
        let same_circumstances = *circumstances == other.circumstances;
        let of_one_kind = circumstances.first() == other.circumstances.first();
        self.verb == other.verb
            && match (same_object, same_circumstances) {
                (false, true) => are_short(object, &other.object),
                (true, false) => of_one_kind && are_short(circumstances, &other.circumstances),
                (true, true) | (false, false) => false,
            }
    }
}

/// Whether both name a thing in at most three words. Longer phrases may differ in other details.
fn are_short(one: &[String], other: &[String]) -> bool {
    [one, other].iter().all(|words| (1..=3).contains(&words.len()))
}
