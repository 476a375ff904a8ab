//! The meaning of a rule, as far as its words show it, and which later rules contradict it.

use super::{
    choice::Choice,
    phrases::{CONTRASTS, EMPTY, FILLERS, NEGATIONS},
    values::{Value, values},
    words::{base, has_any, listed, word_at, words},
};
use crate::prose::spoken_words;

/// The meaning of a sentence that asks for something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Meaning {
    /// The words of its topic, in their base form.
    pub(super) topic: Vec<String>,
    /// How many of these words name the only people to whom the action is permitted: `only Ada may
    /// sign`.
    pub(super) reserved: usize,
    /// Whether it names several things: `the lexer or the parser`.
    pub(super) lists: bool,
    /// Whether the sentence forbids something; `None` if it has more than one message.
    pub(super) forbids: Option<bool>,
    /// The choice that the sentence makes, if any.
    pub(super) choice: Option<Choice>,
    values: Vec<Value>,
}

impl Meaning {
    pub(super) fn of(sentence: &str) -> Self {
        let words: Vec<String> = words(sentence).take(200).collect();
        // Two negations may cancel each other, and a contrast may reverse one.
        let negations = words.iter().filter(|word| listed(NEGATIONS, word)).count();
        let is_clear = negations < 2 && !has_any(CONTRASTS, &words);
        let reserved = reserved(sentence, &words);
        let forbids = if reserved > 0 { Some(true) } else { is_clear.then_some(negations == 1) };
        Self {
            topic: topic(&words),
            reserved,
            lists: has_any(" and or nor ", &words),
            forbids,
            choice: Choice::of(&words),
            values: values(sentence),
        }
    }

    /// Whether a rule with this meaning and an older one cannot both be valid.
    pub(super) fn contradicts(&self, old: &Self) -> bool {
        self.reverses(old) || self.refuses(old) || self.revalues(old)
    }

    /// Whether this forbids what the old rule demands, or demands what it forbids: `use tabs`,
    /// `don't use tabs`.
    fn reverses(&self, old: &Self) -> bool {
        let sides = self.forbids.zip(old.forbids);
        let is_opposite = sides.is_some_and(|(new, old)| new != old);
        is_opposite && !self.topic.is_empty() && self.topic == old.topic
    }

    /// Whether this chooses something instead of what the old rule chooses: `use tabs`, `use spaces
    /// instead of tabs`.
    fn refuses(&self, old: &Self) -> bool {
        let choices = self.choice.as_ref().zip(old.choice.as_ref());
        choices.is_some_and(|(new, old)| new.refuses(old) && old.refused.is_empty())
    }

    /// Whether this is the old demand with another value, and only one of them can be valid:
    /// `answer in French`, `keep it under 20 pages`. Two prohibitions of different things are both
    /// valid.
    fn revalues(&self, old: &Self) -> bool {
        let pairs = self.values.iter().zip(&old.values);
        let mut differing = pairs.filter(|(one, other)| one.word != other.word);
        let (Some((new, was)), None) = (differing.next(), differing.next()) else {
            return false;
        };
        let both_demand = [self, old].iter().all(|meaning| meaning.forbids == Some(false));
        let is_one = new.is_bound || (both_demand && new.is_one);
        is_one && self.values.len() == old.values.len() && new.kind == was.kind
    }
}

/// Returns the words of a sentence's topic, in their base form.
pub(super) fn topic(words: &[String]) -> Vec<String> {
    let line = format!(" {} ", words.join(" ")).replace(" from now on ", " ");
    line.split_whitespace().filter(|word| !listed(EMPTY, word)).map(base).collect()
}

/// Returns how many words of the topic precede the verb in a sentence that permits something only
/// to some people.
fn reserved(sentence: &str, words: &[String]) -> usize {
    let only = words.iter().position(|word| !listed(FILLERS, word));
    let Some(only) = only.filter(|at| listed(" only nobody no ", word_at(words, *at))) else {
        return 0;
    };
    let modal = words.iter().position(|word| listed(" may can must should ", word));
    // `Only Ada signs`, but not `only use tabs`.
    let named = spoken_words(sentence).nth(only + 1).unwrap_or_default();
    let is_named = named == "the" || named.starts_with(char::is_uppercase);
    let acts = |(_, word): &(usize, &String)| word.ends_with('s');
    let verb = words.iter().enumerate().skip(only + 2).find(acts).map(|(at, _)| at);
    let verb = modal.or(verb.filter(|_| is_named));
    verb.and_then(|at| words.get(..at)).map_or(0, |head| topic(head).len())
}
