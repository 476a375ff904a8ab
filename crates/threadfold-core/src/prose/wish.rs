//! Whether the words of a sentence demand something.

use super::scan::is_listed;
use crate::message::steps;

/// Words that demand, wherever they stand.
#[rustfmt::skip]
const WORDS: [&str; 20] = [
    "always", "avoid", "don't", "dont", "ensure", "forbidden", "instead", "keep", "must", "mustn't",
    "never", "only", "prefer", "preferably", "required", "shall", "should", "shouldn't", "stick",
    "without",
];

/// Words that demand together.
const PHRASES: [&str; 27] = [
    "do not",
    "make sure",
    "rather than",
    "no need to",
    "be sure to",
    "remember to",
    "has to",
    "have to",
    "needs to",
    "we want",
    "i want",
    "we need",
    "i need",
    "i'd like",
    "i would like",
    "at most",
    "at least",
    "not allowed",
    "you may not",
    "you can not",
    "you cannot",
    "you can't",
    "from now on",
    "no longer",
    "as long as",
    "please",
    "leave",
];

/// Who stands before `don't`, `must` and the like that tell of something and demand nothing.
#[rustfmt::skip]
const TELLERS: [&str; 15] = [
    "he", "i", "it", "she", "someone", "that", "there", "these", "they", "this", "those", "we",
    "what", "which", "who",
];

/// Whether a word before `don't`, `must` and the like says that they demand nothing.
pub(crate) fn is_teller(word: &str) -> bool {
    is_listed(&TELLERS, word)
}

/// The words of a sentence, as they stand.
pub(crate) fn spoken(sentence: &str) -> impl Iterator<Item = &str> {
    let apart = |c: char| !c.is_alphanumeric() && c != '\'' && c != '\u{2019}';
    steps::through(sentence).split(apart).filter(|word| !word.is_empty())
}

/// What makes a telling a demand all the same.
const WISHES: [&str; 6] = ["accept", "allow", "like", "need", "use", "want"];

/// The first words of a sentence in lower case, with a space before each and behind the last.
///
/// They lie in one text that is used again for the next sentence. With a text for each word, the
/// prose of users was read at 3 MB a second instead of at 20.
#[derive(Debug, Default)]
pub(crate) struct Words {
    line: String,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Words {
    /// Reads a sentence.
    pub(crate) fn read(&mut self, sentence: &str) {
        self.line.clear();
        self.ends.clear();
        self.line.push(' ');
        for word in spoken(sentence).take(200) {
            if word.is_ascii() {
                let start = self.line.len();
                self.line.push_str(word);
                self.line.get_mut(start..).unwrap_or_default().make_ascii_lowercase();
            } else {
                self.line.push_str(&word.to_lowercase().replace('\u{2019}', "'"));
            }
            self.ends.push(self.line.len());
            self.line.push(' ');
        }
    }

    /// Whether there is more than a word or two, and some of them demand something.
    pub(crate) fn demand(&self) -> bool {
        self.ends.len() > 2 && (says(self) || phrased(self))
    }

    /// Where each word begins, and the word.
    fn each(&self) -> impl Iterator<Item = (usize, &str)> {
        let starts = std::iter::once(1).chain(self.ends.iter().map(|end| end + 1));
        let both = starts.zip(&self.ends);
        both.map(|(start, end)| (start, self.line.get(start..*end).unwrap_or_default()))
    }
}

/// For every letter, the letters that follow it at the beginnings of words and phrases that demand,
/// as bits. Few other words begin so; to look up all of them took a sixth of the time.
const BEGINNINGS: [u32; 32] = beginnings();

#[allow(clippy::indexing_slicing, reason = "it runs while it is compiled")]
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

fn may_demand(text: &str) -> bool {
    let [one, two, ..] = text.as_bytes() else { return false };
    BEGINNINGS.get(usize::from(one & 31)).is_some_and(|next| next >> (two & 31) & 1 == 1)
}

fn says(words: &Words) -> bool {
    let mut before = "";
    words.each().any(|(start, word)| {
        let before = std::mem::replace(&mut before, word);
        if !may_demand(word) || !is_listed(&WORDS, word) {
            return false;
        }
        let next =
            || words.line.get(start + word.len() + 1..).and_then(|rest| rest.split(' ').next());
        let told = matches!(word, "don't" | "dont" | "never") && is_teller(before);
        let only = word == "only"
            && matches!(before, "is" | "was" | "are" | "were" | "it's" | "the" | "an");
        let opens = matches!(word, "keep" | "without" | "instead" | "leave" | "stick")
            && !matches!(before, "" | "please" | "and" | "then" | "but");
        (!told || next().is_some_and(|next| is_listed(&WISHES, next)))
            && !only
            && (!opens || word == "instead")
    })
}

fn phrased(words: &Words) -> bool {
    // Some phrases count only where they stand first.
    let mut seen: Vec<&str> = Vec::new();
    words.each().any(|(start, word)| {
        let rest = words.line.get(start..).unwrap_or_default();
        if !may_demand(rest) {
            return false;
        }
        let begins = |phrase: &&&str| {
            let behind = rest.strip_prefix(**phrase);
            behind.is_some_and(|behind| behind.starts_with(' '))
        };
        let near =
            PHRASES.iter().filter(|phrase| phrase.as_bytes().first() == word.as_bytes().first());
        near.filter(begins).any(|phrase| {
            let again = seen.contains(phrase);
            seen.push(phrase);
            let before = words.line.get(..start.saturating_sub(1)).unwrap_or_default();
            !again && demands_behind(phrase, before, rest)
        })
    })
}

/// Whether a phrase demands something between these words.
fn demands_behind(phrase: &str, before: &str, rest: &str) -> bool {
    let next =
        || rest.get(phrase.len() + 1..).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    match phrase {
        "please" | "leave" => before.is_empty() || before.ends_with(" and"),
        "do not" => {
            let who = before.rsplit(' ').next().unwrap_or_default();
            !is_teller(who) || is_listed(&WISHES, next())
        }
        // Who needs to do something tells what comes next.
        "i need" | "we need" => next() != "to",
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(WORDS.is_sorted());
        assert!(TELLERS.is_sorted());
        assert!(WISHES.is_sorted());
    }
}
