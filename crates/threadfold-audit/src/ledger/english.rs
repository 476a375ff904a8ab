//! Replaces the grammatical words of other languages by English ones, so that one reader of rules
//! serves all languages.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use super::meaning::listed;
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
    let mut text = Cow::Borrowed(steps::through(sentence));
    if sentence.contains(is_unspaced) {
        for gloss in PHRASES.unspaced.iter().filter(|gloss| sentence.contains(gloss.phrase)) {
            text = text.replace(gloss.phrase, &format!(" {} ", gloss.english)).into();
        }
    }
    // In a script without spaces, known phrases have been replaced by English words before this.
    let has_english = matches!(text, Cow::Owned(_));
    if !has_english
        && !words(sentence).any(|(_, rest)| known(rest).is_some_and(|(gloss, _)| gloss.is_sure))
    {
        return sentence.into();
    }
    let (mut english, mut end) = (String::new(), 0);
    for (word, rest) in words(&text) {
        let at = text.len() - rest.len();
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

/// Returns a sentence that begins with an imperative with its adverb first, as in English: `Lösche
/// niemals Logs`, `Responde siempre en inglés`. A sentence that begins with the adverb and has no
/// imperative demands nothing: `Siempre llego tarde`.
fn with_adverb_first(english: &str, sentence: &str) -> String {
    const IMPERATIVES: &str = " answer use write keep ask tell in ";
    const NO_VERBS: &str = " please i we you he it no so noch schon fast wie auch gar ";
    let polite = english.strip_prefix("please ");
    let words: Vec<&str> = polite.unwrap_or(english).split(' ').collect();
    let word = |at: usize| words.get(at).map_or("", |word| word);
    let adverb = words.iter().position(|word| matches!(first_word(word), "never" | "always"));
    // `Bitte duze sie nicht`.
    // In Japanese the verb that asks is the last word. A French sentence without a subject orders.
    let end = sentence.trim_end_matches(['\u{3002}', '\u{ff01}']);
    let asks =
        ["ください", "下さい", "こと", "ないで", "して"].iter().any(|last| end.ends_with(last));
    let is_asked = polite.is_some() || (words.contains(&"please") && end.ends_with("en."));
    let is_polite = is_asked && !english.contains(',');
    let last = words.len() - 1;
    let forbidden = (is_polite && first_word(word(last)) == "don't").then_some(last);
    let Some(at) = adverb.or(forbidden) else {
        return english.to_owned();
    };
    let second = first_word(sentence.split(' ').nth(1).unwrap_or_default());
    let is_order = match at {
        _ if asks || is_polite || word(0) == "ne" => true,
        0 => {
            polite.is_some()
                || listed(IMPERATIVES, word(1))
                || (word(0) == "never" && is_forbidden(second, word(1)))
        }
        // In a German statement the verb precedes the adverb; in a Spanish one it follows.
        1 if !listed(NO_VERBS, &word(0).to_lowercase()) => {
            listed(IMPERATIVES, word(0))
                || listed(" immer nie niemals stets ", second)
                || listed(" in the a without for ", word(2))
        }
        2.. => listed(IMPERATIVES, word(0)),
        _ => false,
    };
    if !is_order && at > 0 {
        return english.to_owned();
    }
    let adverb = if is_order { first_word(word(at)) } else { "ever" };
    let others = words.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, word)| *word);
    let others = others.filter(|word| *word != "ne");
    format!("{adverb} {}", others.collect::<Vec<_>>().join(" "))
}

/// Whether a word is a verb that forbids after `nunca`, or a word in a script without spaces.
fn is_forbidden(verb: &str, english: &str) -> bool {
    const STATES: &str = " sabe pode deve teve vale tienes sabes eres estás has puedes ";
    let forbids = verb.len() > 3 && ["es", "as", "e"].iter().any(|end| verb.ends_with(end));
    (forbids && !listed(STATES, verb)) || english.contains(is_unspaced)
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
