//! The words of a text, for searching prose and code alike.

use std::ops::Range;

use crate::message::steps;

/// How many bytes of a word count. What is longer is no word that anybody types.
const WORD: usize = 64;

/// How many bytes count of words that stand together.
const COMPOUND: usize = 256;

/// Calls a function with each word of a text and where it is: words, the parts of those that have
/// some, and what stands together as a path or a name of code. All are in small letters.
pub(super) fn each(text: &str, mut word: impl FnMut(&str, Range<usize>)) {
    let mut small = String::new();
    let mut tell = |range: Range<usize>, most: usize| {
        small.clear();
        let found = steps::through(text.get(range.clone()).unwrap_or_default());
        if found.is_ascii() {
            small.push_str(found.get(..most).unwrap_or(found));
            small.make_ascii_lowercase();
        } else {
            for letter in found.chars().flat_map(char::to_lowercase) {
                if small.len() >= most {
                    break;
                }
                small.push(letter);
            }
        }
        word(&small, range);
    };
    let mut at = 0;
    while let Some(start) = next_word(text, at) {
        let mut end = word_end(text, start);
        tell(start..end, WORD);
        parts(text, start..end, |part| tell(part, WORD));
        let mut count = 1;
        while let Some(next) = joined(text, end) {
            end = word_end(text, next);
            tell(next..end, WORD);
            parts(text, next..end, |part| tell(part, WORD));
            count += 1;
        }
        if count > 1 {
            tell(start..end, COMPOUND);
        }
        at = end;
    }
}

fn next_word(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    steps::up_to(rest, rest.find(is_letter)).map(|found| at + found)
}

fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Whether it is a word by itself: these scripts put no spaces between words.
fn is_ideograph(letter: char) -> bool {
    matches!(letter, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

fn word_end(text: &str, start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    match rest.chars().next() {
        Some(first) if is_ideograph(first) => start + first.len_utf8(),
        _ => {
            let end = rest.find(|letter: char| !is_letter(letter) || is_ideograph(letter));
            start + end.unwrap_or(rest.len())
        }
    }
}

/// The next word, if it stands together with what ends here.
fn joined(text: &str, end: usize) -> Option<usize> {
    let rest = text.get(end..)?;
    let link = ["::", "->", "/", "\\", ".", "-"].into_iter().find(|link| rest.starts_with(link))?;
    let next = end + link.len();
    text.get(next..)?.starts_with(is_letter).then_some(next)
}

/// The parts of a word, if it has several: between `_`, and where a capital follows a small letter.
fn parts(text: &str, word: Range<usize>, mut part: impl FnMut(Range<usize>)) {
    let Some(letters) = text.get(word.clone()) else { return };
    let (mut start, mut last) = (word.start, '_');
    for (offset, letter) in letters.char_indices() {
        let at = word.start + offset;
        if letter == '_' || (letter.is_uppercase() && last.is_lowercase()) {
            if start < at {
                part(start..at);
            }
            start = at + if letter == '_' { 1 } else { 0 };
        }
        last = letter;
    }
    if word.start < start && start < word.end {
        part(start..word.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each(text, |word, _| words.push(word.to_owned()));
        words
    }

    #[test]
    fn a_path_is_its_words_and_itself() {
        let expected = ["in", "src", "parse", "rs", "src/parse.rs", "12", "5"];
        assert_eq!(words("in ./src/parse.rs:12:5."), expected);
        assert_eq!(words("std::fs E0425"), ["std", "fs", "std::fs", "e0425"]);
    }

    #[test]
    fn a_name_is_itself_and_its_parts() {
        assert_eq!(words("parse_Error"), ["parse_error", "parse", "error"]);
        assert_eq!(words("ParseError __x"), ["parseerror", "parse", "error", "__x", "x"]);
    }

    #[test]
    fn scripts_without_spaces_are_told_by_characters() {
        assert_eq!(words("Größe 端口ab"), ["größe", "端", "口", "ab"]);
    }

    #[test]
    fn what_is_no_word_is_none_and_a_long_one_is_cut() {
        assert_eq!(words(" .*?[\u{1}\u{200b}]$ "), Vec::<String>::new());
        assert_eq!(words(&"x".repeat(10_000)), ["x".repeat(WORD)]);
    }
}
