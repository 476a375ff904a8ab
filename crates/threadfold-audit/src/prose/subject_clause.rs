//! The state of reading one clause of a statement.

use std::collections::BTreeSet;

use super::subject_words::Grammar;

/// A clause, as far as it is read.
#[derive(Debug, Default)]
pub(super) struct Clause {
    /// The number of words and values, without a determiner at the start.
    pub(super) length: usize,
    pub(super) opening: Opening,
    pub(super) follows_comma: bool,
    /// Whether the rest of the clause is the occasion of the statement: `when we moved in`.
    pub(super) is_occasion: bool,
    pub(super) is_negated: bool,
    pub(super) has_copula: bool,
    pub(super) has_value: bool,
    pub(super) last: Last,
    /// The previous word, as typed.
    pub(super) previous: String,
    /// The previous word, if it may qualify the next one.
    pub(super) qualifier: String,
    /// The word that the next word qualifies: `dose` in `the dose for children`.
    pub(super) relation: Option<String>,
    /// The word before the copula, or the first word that a relation qualifies.
    pub(super) core: String,
    /// The words, each with the word that qualifies it.
    pub(super) words: Vec<(String, String)>,
    pub(super) before_verb: BeforeVerb,
    pub(super) denying: Denying,
    /// The word that replaces the next `to` after a verb such as `changed` or `moved`.
    pub(super) becomes: &'static str,
}

/// How a clause begins. Only the first word of the text is considered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Opening {
    #[default]
    Other,
    /// With a determiner, so it is a statement: `Our office opens at nine`.
    Determiner,
    /// With a preposition, whose object is not read yet: `In the cellar the code is 2093`.
    Preposition,
}

/// What was read last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Last {
    #[default]
    Word,
    Name,
    /// A value that is no name.
    Value,
}

/// The values before a verb, which may distinguish the subject from others.
#[derive(Debug, Default)]
pub(super) struct BeforeVerb {
    pub(super) values: BTreeSet<String>,
    /// Whether a word follows the last of them.
    pub(super) is_followed: bool,
}

/// Which of the following words a statement calls no longer true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Denying {
    #[default]
    Nothing,
    /// The next word or value: `from 8 to 9`.
    Next,
    /// All words to the end of the clause: `instead of tea`.
    Rest,
}

impl Clause {
    /// Adds a word that the word before it qualifies, and that may qualify the next one.
    pub(super) fn qualified(&mut self, word: String) {
        let qualifier = std::mem::replace(&mut self.qualifier, word.clone());
        self.words.push((word, qualifier));
    }

    /// Reads a word that does not belong to the subject.
    pub(super) fn empty_word(&mut self, does: Grammar) {
        if does.is(Grammar::RELATION) && !self.qualifier.is_empty() {
            self.relation = Some(std::mem::take(&mut self.qualifier));
        } else if !does.is(Grammar::DETERMINER) {
            self.relation = None;
        }
        if self.last != Last::Word && does.is(Grammar::CONJUNCTION) {
            self.before_verb.values.clear();
        }
        // `Bruno now pays 5` has the same subject as `Bruno pays 5 now`.
        if !does.is(Grammar::ADVERB) || self.length != 2 {
            self.qualifier.clear();
        }
        self.last = Last::Word;
    }
}

impl Opening {
    pub(super) fn of(first: Grammar) -> Self {
        match first {
            _ if first.is(Grammar::DETERMINER) => Self::Determiner,
            _ if first.is(Grammar::RELATION) => Self::Preposition,
            _ => Self::Other,
        }
    }

    /// Whether a preposition opens the clause and its object is not read yet. It is now.
    pub(super) fn take_preposition(&mut self) -> bool {
        let is_led = *self == Self::Preposition;
        if is_led {
            *self = Self::Other;
        }
        is_led
    }
}
