//! Replaces the grammatical words of other languages by English ones, so that one reader of rules
//! serves all languages.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use super::words::listed;
use crate::{
    message::{slice, steps},
    prose::{is_unspaced, one_line},
};

/// A phrase of another language and its English meaning.
struct Gloss {
    phrase: &'static str,
    english: &'static str,
    /// Whether the phrase shows that a sentence is not English.
    is_sure: bool,
}

/// The phrases of `english.txt`, the longest first.
#[derive(Default)]
struct Phrases {
    by_word: HashMap<&'static str, Vec<Gloss>>,
    /// Those in scripts without spaces.
    unspaced: Vec<Gloss>,
}

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| {
    let lines = include_str!("english.txt").lines().filter_map(|line| line.split_once(": "));
    let pairs = lines.flat_map(|(english, phrases)| phrases.split(", ").map(move |p| (english, p)));
    let mut all: Vec<Gloss> = pairs
        .map(|(english, marked)| {
            let phrase = marked.trim_start_matches('?');
            Gloss { phrase, english, is_sure: phrase == marked }
        })
        .collect();
    all.sort_by_key(|gloss| std::cmp::Reverse(gloss.phrase.len()));
    let mut phrases = Phrases::default();
    for gloss in all {
        match gloss.phrase.contains(is_unspaced) {
            true => phrases.unspaced.push(gloss),
            false => phrases.by_word.entry(first_word(gloss.phrase)).or_default().push(gloss),
        }
    }
    phrases
});

/// Returns the phrase with which a text begins, and its length in bytes.
fn known(text: &str) -> Option<(&'static Gloss, usize)> {
    // Most words are in lower case and unknown, so they are looked up without a copy.
    let word = first_word(text);
    let is_capital = word.starts_with(char::is_uppercase);
    let known = if is_capital {
        PHRASES.by_word.get(word.to_lowercase().as_str())
    } else {
        PHRASES.by_word.get(word)
    };
    known?.iter().find_map(|gloss| Some((gloss, phrase_length(text, gloss.phrase)?)))
}

/// Returns a sentence with its known words in English and the others without their endings. A
/// sentence without such words is returned as it is.
pub(super) fn in_english(sentence: &str) -> Cow<'_, str> {
    let sentence = steps::through(sentence);
    let text = with_unspaced_in_english(sentence);
    // In a script without spaces, known phrases have been replaced by English words before this.
    let has_english = matches!(text, Cow::Owned(_));
    let is_sure = |(_, rest)| known(rest).is_some_and(|(gloss, _)| gloss.is_sure);
    if !has_english && !words(sentence).any(is_sure) {
        return sentence.into();
    }
    let (mut english, mut end) = (String::new(), 0);
    for (word, rest) in words(&text) {
        let at = text.len() - rest.len();
        // A phrase may have more than one word.
        let Some(between) = text.get(end..at) else { continue };
        english.push_str(between);
        let is_english = has_english && !word.contains(is_unspaced);
        let unknown = if is_english { word } else { without_ending(word) };
        let (known, length) =
            known(rest).map_or((unknown, word.len()), |(gloss, length)| (gloss.english, length));
        english.push_str(known);
        end = at + length;
    }
    english.push_str(slice(&text, end..));
    with_adverb_first(&one_line(&english), sentence).into()
}

/// Returns a sentence with the known phrases of scripts without spaces in English.
fn with_unspaced_in_english(sentence: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(sentence);
    if sentence.contains(is_unspaced) {
        for gloss in PHRASES.unspaced.iter().filter(|gloss| sentence.contains(gloss.phrase)) {
            text = text.replace(gloss.phrase, &format!(" {} ", gloss.english)).into();
        }
    }
    text
}

/// Returns the words of a text, each with the text from there on.
fn words(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| !is_letter(c));
        let (word, from) = (first_word(rest), rest);
        rest = slice(rest, word.len()..);
        (!word.is_empty()).then_some((word, from))
    })
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '\''
}

fn first_word(text: &str) -> &str {
    slice(text, ..text.find(|c: char| !is_letter(c)).unwrap_or(text.len()))
}

/// Returns the length in bytes of a phrase at the start of a text, in any case.
fn phrase_length(text: &str, phrase: &str) -> Option<usize> {
    let mut length = 0;
    for (at, expected) in phrase.split(' ').enumerate() {
        let rest = slice(text, length..);
        let rest = if at == 0 { rest } else { rest.strip_prefix([' ', '-'])? };
        let word = first_word(rest);
        if word.to_lowercase() != expected {
            return None;
        }
        length += word.len() + usize::from(at > 0);
    }
    Some(length)
}

/// Returns a word without the ending of its form: `borrar` and `borres`, `Archive` and `Archiven`.
fn without_ending(word: &str) -> &str {
    const ENDINGS: [&str; 14] =
        ["了", "en", "ar", "er", "ir", "es", "as", "os", "em", "e", "a", "o", "s", "n"];
    const SHORTEST: usize = 4;
    let stem = ENDINGS.iter().find_map(|ending| word.strip_suffix(ending));
    stem.filter(|stem| stem.chars().count() >= SHORTEST).unwrap_or(word)
}

/// Returns an order with its adverb first, as in English: `Lösche niemals Logs`, `Responde siempre
/// en inglés`. A sentence that begins with the adverb and is no order demands nothing: `Siempre
/// llego tarde`.
fn with_adverb_first(english: &str, typed: &str) -> String {
    let Some(sentence) = Sentence::of(english, typed) else { return english.to_owned() };
    let is_order = ORDERS.iter().any(|shows_order| shows_order(&sentence));
    let adverb = match sentence.word(sentence.adverb) {
        word if is_order => first_word(word),
        _ if sentence.adverb == 0 => "ever",
        _ => return english.to_owned(),
    };
    let words = sentence.words.iter().enumerate();
    let others = words.filter(|(at, word)| *at != sentence.adverb && **word != "ne");
    let others: Vec<&str> = others.map(|(_, word)| *word).collect();
    format!("{adverb} {}", others.join(" "))
}

/// The ends of Japanese verbs that ask for something.
const ASKING_ENDS: [&str; 5] = ["ください", "下さい", "こと", "ないで", "して"];

/// What shows that a sentence with an adverb is an order, and in which languages. One is enough.
const ORDERS: [fn(&Sentence<'_>) -> bool; 8] = [
    // All: a known imperative is first, beside the adverb. `Responde siempre en inglés.`
    |it| listed(" answer use write keep ask tell in ", it.word(usize::from(it.adverb == 0))),
    // All: it asks politely. `Bitte duze sie nicht.`
    |it| it.is_polite || (it.opens_politely && it.adverb == 0),
    // German: the adverb follows a verb that is first. `Lösche niemals Logs.`
    |it| it.has_verb_first() && listed(" immer nie niemals stets ", it.typed_second()),
    // Spanish and Portuguese: an object follows the adverb. In a statement, it is a verb.
    |it| it.has_verb_first() && listed(" in the a without for ", it.word(2)),
    // Spanish and Portuguese: a subjunctive follows `nunca`. `Nunca borres logs.`
    |it| it.begins_with_never() && is_subjunctive(it.typed_second()),
    // Chinese: there is no subject before `never`.
    |it| it.begins_with_never() && it.word(1).contains(is_unspaced),
    // French: there is no subject before `ne`. `Ne touche jamais aux logs.`
    |it| it.word(0) == "ne",
    // Japanese: the verb that asks is the last word.
    |it| ASKING_ENDS.iter().any(|asking| end_of(it.typed).ends_with(asking)),
];

/// A sentence whose adverb may be out of its English place.
struct Sentence<'a> {
    /// As typed.
    typed: &'a str,
    /// The English words, without the `please` that opens them.
    words: Vec<&'a str>,
    /// The position of `never` or `always`, or of a `don't` at the end of a polite request.
    adverb: usize,
    opens_politely: bool,
    is_polite: bool,
}

impl<'a> Sentence<'a> {
    /// Returns `None` if the sentence has no adverb.
    fn of(english: &'a str, typed: &'a str) -> Option<Self> {
        let polite = english.strip_prefix("please ");
        let words: Vec<&str> = polite.unwrap_or(english).split(' ').collect();
        let asks =
            polite.is_some() || (words.contains(&"please") && end_of(typed).ends_with("en."));
        let is_polite = asks && !english.contains(',');
        let adverb = words.iter().position(|word| matches!(first_word(word), "never" | "always"));
        let last = words.len() - 1;
        let forbids = is_polite && words.last().is_some_and(|word| first_word(word) == "don't");
        let adverb = adverb.or(forbids.then_some(last))?;
        Some(Self { typed, words, adverb, opens_politely: polite.is_some(), is_polite })
    }

    fn word(&self, at: usize) -> &'a str {
        self.words.get(at).map_or("", |word| word)
    }

    fn typed_second(&self) -> &'a str {
        first_word(self.typed.split(' ').nth(1).unwrap_or_default())
    }

    /// Whether the adverb is the second word, and the first may be a verb.
    fn has_verb_first(&self) -> bool {
        const NO_VERBS: &str = " please i we you he it no so noch schon fast wie auch gar ";
        self.adverb == 1 && !listed(NO_VERBS, &self.word(0).to_lowercase())
    }

    fn begins_with_never(&self) -> bool {
        self.adverb == 0 && self.word(0) == "never"
    }
}

/// Returns a sentence without the full stop of a script without spaces.
fn end_of(sentence: &str) -> &str {
    sentence.trim_end_matches(['\u{3002}', '\u{ff01}'])
}

/// Whether a Spanish or Portuguese verb forbids after `nunca`, by its ending.
fn is_subjunctive(verb: &str) -> bool {
    const STATES: &str = " sabe pode deve teve vale tienes sabes eres estás has puedes ";
    let has_ending = verb.len() > 3 && ["es", "as", "e"].iter().any(|end| verb.ends_with(end));
    has_ending && !listed(STATES, verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_grammar_are_in_english() {
        let rows = [
            ("Never touch the solo.", "Never touch the solo."),
            ("Lösche niemals Logs!", "never Lösch Logs!"),
            ("Responde siempre en inglés.", "always answer in inglé."),
            ("Ana siempre llega tarde.", "Ana always lleg tard."),
            ("Frag mich, bevor du etwas löschst.", "ask me, before du etwas löschst."),
            ("Pergunte-me antes de apagar.", "ask me before apag."),
            ("不要在白天重启服务器。", "never 在白天重启服务器。"),
            ("请始终用中文回答。", "always in 中文 answer 。"),
            ("Siempre llego tarde.", "ever lleg tard."),
            ("总是这样。", "ever 这样。"),
        ];
        for (sentence, expected) in rows {
            assert_eq!(in_english(sentence), expected);
        }
    }
}
