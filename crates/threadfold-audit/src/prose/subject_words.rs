//! Words that do not belong to the subject of a statement, and words with a known meaning.
//!
//! The words are in `words.txt`, so that a speaker of a language can add some without reading code.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use super::{demand_words::spoken_words, stem::is_mark};

/// The function of a word in a statement. A word may have several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Grammar(u32);

impl Grammar {
    pub(super) const STOP: Self = Self(1);
    pub(super) const DETERMINER: Self = Self(1 << 1);
    pub(super) const RELATION: Self = Self(1 << 2);
    pub(super) const COPULA: Self = Self(1 << 3);
    pub(super) const CHANGE: Self = Self(1 << 4);
    pub(super) const SWAP: Self = Self(1 << 5);
    pub(super) const NEGATION: Self = Self(1 << 6);
    pub(super) const EXCEPTION: Self = Self(1 << 7);
    pub(super) const PAST: Self = Self(1 << 8);
    pub(super) const MUSING: Self = Self(1 << 9);
    pub(super) const TALK: Self = Self(1 << 10);
    pub(super) const CONJUNCTION: Self = Self(1 << 11);
    pub(super) const BACKWARD: Self = Self(1 << 12);
    const WISH: Self = Self(1 << 13);
    const DEMAND: Self = Self(1 << 14);
    pub(super) const CURRENCY: Self = Self(1 << 15);
    pub(super) const TIME_UNIT: Self = Self(1 << 16);
    pub(super) const MONTH: Self = Self(1 << 17);
    pub(super) const NUMBER: Self = Self(1 << 18);
    pub(super) const SHORT_FORM: Self = Self(1 << 19);
    pub(super) const ARTICLE: Self = Self(1 << 20);
    const ACT: Self = Self(1 << 21);
    pub(super) const WEEKDAY: Self = Self(1 << 22);
    const ORDER: Self = Self(1 << 23);
    pub(super) const ADVERB: Self = Self(1 << 24);
    pub(super) const REPORT: Self = Self(1 << 25);
    pub(super) const ALTER: Self = Self(1 << 26);
    pub(super) const MOTION: Self = Self(1 << 27);
    pub(super) const PLACE: Self = Self(1 << 28);
    pub(super) const MANY: Self = Self(1 << 29);
    pub(super) const OWN: Self = Self(1 << 30);
    pub(super) const MEASURE: Self = Self(1 << 31);

    /// The titles of the lists, in the order of the bits above.
    #[rustfmt::skip]
    const TITLES: [&str; 32] = [
        "stop", "determiner", "relation", "copula", "change", "swap", "negation", "exception",
        "past", "musing", "talk", "conjunction", "backward", "wish", "demand", "currency",
        "time unit", "month", "number", "short form", "article",
        "act", "weekday",
        "order", "adverb", "report", "alter", "motion", "place", "many",
        "own", "measure",
    ];

    pub(super) const UNIT: Self = Self(Self::CURRENCY.0 | Self::TIME_UNIT.0);

    /// Words that do not belong to the subject of a statement.
    const EMPTY: Self =
        Self(Self::STOP.0 | Self::COPULA.0 | Self::CHANGE.0 | Self::NEGATION.0 | Self::EXCEPTION.0);

    /// Returns the functions of a word in lower case.
    pub(super) fn of(word: &str) -> Self {
        WORDS.grammar.get(word).copied().unwrap_or_default()
    }

    /// Returns the function whose list has this title.
    fn titled(title: &str) -> Option<Self> {
        Self::TITLES.iter().position(|known| *known == title).map(|bit| Self(1 << bit))
    }

    pub(super) fn is(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    /// Returns the number that a word with these functions stands for in the function `of`.
    pub(super) fn number(self, word: &str, of: Self) -> Option<u32> {
        self.is(of).then(|| WORDS.numbers.get(&(of.0, word)).copied())?
    }

    pub(super) fn is_empty(self) -> bool {
        self.is(Self::EMPTY)
    }

    /// Returns the parts of statements with this function in scripts without spaces between words.
    pub(super) fn unspaced(self) -> impl Iterator<Item = &'static str> {
        WORDS.unspaced.iter().filter(move |(does, _)| *does == self).map(|(_, part)| *part)
    }

    /// Whether a text in such a script has one of these parts.
    pub(super) fn is_in(self, text: &str) -> bool {
        !text.is_ascii() && self.unspaced().any(|part| text.contains(part))
    }

    /// Whether one of the first 80 words of a statement has this function, in any script.
    fn is_stated(self, statement: &str) -> bool {
        self.is_in(statement)
            || spoken_words(statement).take(80).any(|word| Self::of(&word.to_lowercase()).is(self))
    }
}

/// The lists of `words.txt`. A word is looked up once instead of in each list.
#[derive(Default)]
struct Words {
    grammar: HashMap<&'static str, Grammar>,
    /// Parts of statements, in the order of the file, because one may contain another.
    unspaced: Vec<(Grammar, &'static str)>,
    meanings: HashMap<&'static str, &'static str>,
    /// Phrases that announce a change.
    phrases: Vec<Vec<&'static str>>,
    /// The numbers that words for months and numbers stand for.
    numbers: HashMap<(u32, &'static str), u32>,
    /// Words that tell a second thing from the first.
    others: HashSet<&'static str>,
    /// The number of a group of opposites, and of the side in it.
    sides: HashMap<&'static str, (u8, u8)>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let (mut words, mut group) = (Words::default(), 0);
    for list in include_str!("words.txt").split("\n[").skip(1) {
        let (title, body) = list.split_once("]\n").unwrap_or((list, ""));
        for (side, line) in (0..).zip(body.lines().filter(|line| !line.starts_with('#'))) {
            if title == "change phrase" && !line.is_empty() {
                words.phrases.push(line.split(' ').collect());
                continue;
            }
            let number = line.split(' ').next().and_then(|word| word.parse().ok());
            let skipped = usize::from(number.is_some());
            for word in line.split(' ').skip(skipped).filter(|word| !word.is_empty()) {
                if let Some(does) = Grammar::titled(title) {
                    words.numbers.extend(number.map(|number| ((does.0, word), number)));
                    words.grammar.entry(word).or_default().0 |= does.0;
                } else if let Some(title) = title.strip_prefix("unspaced ") {
                    words.unspaced.extend(Grammar::titled(title).map(|does| (does, word)));
                } else if title == "opposites" {
                    words.sides.insert(word, (group, side));
                } else if title == "other" {
                    words.others.insert(word);
                } else {
                    words.meanings.insert(word, title);
                }
            }
        }
        group += u8::from(title == "opposites");
    }
    words
});

/// The form of `is in` and of similar words, for a place.
pub(super) const PLACED: &str = "=placed";

/// Returns the common form of words that are synonyms next to a value.
pub(super) fn common_form(word: &str) -> Option<&'static str> {
    WORDS.meanings.get(word).copied()
}

/// The common form of verbs that pass information on.
pub(super) const TELL: &str = "=tell";

/// Whether a common form names a kind of value, as `deadline` names a date.
pub(super) fn is_kind(word: &str) -> bool {
    word.starts_with('=')
}

/// Returns the number that a word in lower case stands for; of a month, its number in the year.
pub(super) fn number_of(word: &str, does: Grammar) -> Option<u32> {
    Grammar::of(word).number(word, does)
}

/// Returns the number of a group of opposites, and the side of this word in it.
pub(super) fn side(word: &str) -> Option<(u8, u8)> {
    WORDS.sides.get(word).copied()
}

/// Whether a word after a determiner marks a second thing of the same kind: `the other deadline`.
pub(super) fn means_another(word: &str) -> bool {
    WORDS.others.contains(word)
}

/// Returns the phrases that announce a change, as their words.
pub(super) fn change_phrases() -> &'static [Vec<&'static str>] {
    &WORDS.phrases
}

/// Whether a sentence begins with a word that refers to something in the previous sentence.
pub(crate) fn refers_back(sentence: &str) -> bool {
    let words: Vec<String> = spoken_words(sentence).take(3).map(str::to_lowercase).collect();
    let first = words.first().is_some_and(|word| Grammar::of(word).is(Grammar::BACKWARD));
    let object = words.get(1).is_some_and(|word| matches!(word.as_str(), "it" | "them"));
    first || object
}

/// Whether a statement expresses a preference or a goal of the user.
pub(crate) fn has_wish(statement: &str) -> bool {
    Grammar::WISH.is_stated(statement)
}

/// Whether a sentence contains a word, in any language, that makes it a lasting instruction.
pub(crate) fn orders_in_any_language(sentence: &str) -> bool {
    Grammar::ORDER.is_stated(sentence)
}

/// Whether a word is a verb for an act of a person, such as `approved`.
pub(crate) fn is_act(word: &str) -> bool {
    Grammar::of(&word.trim_end_matches(is_mark).to_lowercase()).is(Grammar::ACT)
}

/// Whether a word in lower case is a grammatical word or small talk.
pub(crate) fn is_common(word: &str) -> bool {
    let does = Grammar::of(word);
    does.is_empty() || does.is(Grammar::TALK) || does.is(Grammar::BACKWARD)
}

/// Whether a word in lower case is a number.
pub(crate) fn is_number(word: &str) -> bool {
    Grammar::of(word).is(Grammar::NUMBER)
}

/// Whether a word is the name of a month or a weekday.
pub(crate) fn is_calendar(word: &str) -> bool {
    let does = Grammar::of(&word.to_lowercase());
    does.is(Grammar::MONTH) || does.is(Grammar::WEEKDAY)
}

/// Whether a statement has a word that demands something in a language other than English. This
/// only ranks the statement above other typed text, so a wrong answer does little harm.
pub(crate) fn asks_in_any_language(statement: &str) -> bool {
    Grammar::DEMAND.is_stated(statement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_of_words_is_used() {
        let titles = include_str!("words.txt").lines().filter_map(|line| line.strip_prefix('['));
        let titles: Vec<&str> = titles.filter_map(|line| line.strip_suffix(']')).collect();
        for title in &titles {
            let function = title.strip_prefix("unspaced ").unwrap_or(title);
            let is_meaning = is_kind(title) || matches!(*title, "answer" | "depart");
            let is_known = Grammar::titled(function).is_some()
                || matches!(*title, "opposites" | "change phrase" | "other");
            assert!(is_known || is_meaning, "{title}");
        }
        assert!(Grammar::TITLES.iter().all(|title| titles.contains(title)));
        assert_eq!(common_form("reveal"), Some(TELL));
        assert_eq!((side("left"), side("sin")), (Some((0, 0)), Some((18, 1))));
        assert!(Grammar::CHANGE.is_in("会议延期"));
    }
}
