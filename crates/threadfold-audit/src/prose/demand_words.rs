//! Whether the words of a sentence demand something.

use super::word_kinds::is_listed;
use crate::message::{slice, steps};

/// Words that demand something at any position in a sentence.
#[rustfmt::skip]
const WORDS: [&str; 20] = [
    "always", "avoid", "don't", "dont", "ensure", "forbidden", "instead", "keep", "must", "mustn't",
    "never", "only", "prefer", "preferably", "required", "shall", "should", "shouldn't", "stick",
    "without",
];

/// Phrases that demand something.
#[rustfmt::skip]
const PHRASES: [&str; 27] = [
    "do not", "make sure", "rather than", "no need to", "be sure to", "remember to", "has to",
    "have to", "needs to", "we want", "i want", "we need", "i need", "i'd like", "i would like",
    "at most", "at least", "not allowed", "you may not", "you can not", "you cannot", "you can't",
    "from now on", "no longer", "as long as", "please", "leave",
];

/// Subjects before `don't`, `must` and the like that make a sentence a statement, not a demand.
#[rustfmt::skip]
const NARRATORS: [&str; 15] = [
    "he", "i", "it", "she", "someone", "that", "there", "these", "they", "this", "those", "we",
    "what", "which", "who",
];

/// Whether this subject makes a sentence a statement: `I don't know`, `it must be slow`.
pub(crate) fn is_narrator(word: &str) -> bool {
    is_listed(&NARRATORS, word)
}

/// Returns the words of a sentence, with their case and apostrophes.
pub(crate) fn spoken_words(sentence: &str) -> impl Iterator<Item = &str> {
    steps::through(sentence)
        .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '\u{2019}')
        .filter(|word| !word.is_empty())
}

/// Verbs after `don't` or `never` that make a statement a demand: `we don't want warnings`.
const PREFERENCES: [&str; 6] = ["accept", "allow", "like", "need", "use", "want"];

/// The first 200 words of a sentence in lower case, with a space before each and after the last.
///
/// One buffer is reused for all sentences. With a `String` for each word, prose was read at 3 MB/s
/// instead of 20 MB/s.
#[derive(Debug, Default)]
pub(crate) struct Words {
    line: String,
    /// The byte offset at which each word ends.
    ends: Vec<usize>,
}

impl Words {
    /// Whether a sentence has at least three words, and some of them demand something.
    pub(crate) fn demand(&mut self, sentence: &str) -> bool {
        self.read(sentence);
        self.ends.len() > 2 && (has_demanding_word(self) || has_demanding_phrase(self))
    }

    /// Returns the word that begins at a byte offset, or an empty text.
    fn word_at(&self, start: usize) -> &str {
        slice(&self.line, start..).split(' ').next().unwrap_or_default()
    }

    fn read(&mut self, sentence: &str) {
        self.line.clear();
        self.ends.clear();
        self.line.push(' ');
        for word in spoken_words(sentence).take(200) {
            if word.is_ascii() {
                self.line.push_str(word);
            } else {
                self.line.push_str(&word.to_lowercase().replace('\u{2019}', "'"));
            }
            self.ends.push(self.line.len());
            self.line.push(' ');
        }
        self.line.make_ascii_lowercase();
    }

    /// Returns each word and the byte offset at which it begins.
    fn each(&self) -> impl Iterator<Item = (usize, &str)> {
        let starts = std::iter::once(1).chain(self.ends.iter().map(|end| end + 1));
        let both = starts.zip(&self.ends);
        both.map(|(start, end)| (start, slice(&self.line, start..*end)))
    }
}

/// For each first letter of a demanding word or phrase, the possible second letters as bits. Few
/// other words begin with such a pair, so most lookups are avoided; they took a sixth of the time.
const BEGINNINGS: [u32; 32] = beginnings();

#[allow(clippy::indexing_slicing, reason = "the compiler evaluates it")]
const fn beginnings() -> [u32; 32] {
    let (mut table, mut at) = ([0; 32], 0);
    while at < WORDS.len() + PHRASES.len() {
        let text = if at < WORDS.len() { WORDS[at] } else { PHRASES[at - WORDS.len()] };
        let text = text.as_bytes();
        table[(text[0] & 31) as usize] |= 1 << (text[1] & 31);
        at += 1;
    }
    table
}

fn has_demanding_beginning(text: &str) -> bool {
    let [one, two, ..] = text.as_bytes() else { return false };
    BEGINNINGS.get(usize::from(one & 31)).is_some_and(|next| next >> (two & 31) & 1 == 1)
}

fn has_demanding_word(words: &Words) -> bool {
    let mut before = "";
    words.each().any(|(start, word)| {
        let before = std::mem::replace(&mut before, word);
        if !has_demanding_beginning(word) || !is_listed(&WORDS, word) {
            return false;
        }
        match word {
            // `Nearly never` only states how often something happens.
            "never" | "always"
                if matches!(before, "nearly" | "almost" | "hardly" | "practically") =>
            {
                false
            }
            "don't" | "dont" | "never" => {
                !is_narrator(before) || prefers(words, start + word.len() + 1)
            }
            "only" => !matches!(before, "is" | "was" | "are" | "were" | "it's" | "the" | "an"),
            // These demand only as the first word of a clause.
            "keep" | "without" | "stick" => {
                matches!(before, "" | "please" | "and" | "then" | "but")
            }
            _ => true,
        }
    })
}

fn has_demanding_phrase(words: &Words) -> bool {
    // Only the first occurrence of each phrase counts.
    let mut seen: Vec<&str> = Vec::new();
    words.each().any(|(start, word)| {
        let rest = slice(&words.line, start..);
        if !has_demanding_beginning(rest) {
            return false;
        }
        // Comparing first bytes rules out most phrases without a call.
        let near = PHRASES.iter().filter(|phrase| phrase.bytes().next() == word.bytes().next());
        near.filter(|phrase| {
            rest.strip_prefix(**phrase).is_some_and(|after| after.starts_with(' '))
        })
        .any(|phrase| {
            let again = seen.contains(phrase);
            seen.push(phrase);
            !again && phrase_demands(words, phrase, start)
        })
    })
}

/// Whether the phrase at a byte offset demands something after the words before it.
fn phrase_demands(words: &Words, phrase: &str, start: usize) -> bool {
    let before = slice(&words.line, ..start.saturating_sub(1));
    let end = start + phrase.len() + 1;
    match phrase {
        "please" | "leave" => before.is_empty() || before.ends_with(" and"),
        "do not" => {
            !is_narrator(before.rsplit(' ').next().unwrap_or_default()) || prefers(words, end)
        }
        // `We need to fix this` announces the next step and demands nothing.
        "i need" | "we need" => words.word_at(end) != "to",
        _ => true,
    }
}

/// Whether the word at a byte offset states a preference: `we don't want warnings`.
fn prefers(words: &Words, start: usize) -> bool {
    is_listed(&PREFERENCES, words.word_at(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(WORDS.is_sorted());
        assert!(NARRATORS.is_sorted());
        assert!(PREFERENCES.is_sorted());
    }
}
