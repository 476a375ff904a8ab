//! The words of a text, for searching prose and code alike.

use std::ops::Range;

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use crate::message::steps;

/// The maximum bytes of a word that count. Longer words are not typed into a query.
const WORD: usize = 64;

/// The maximum bytes of a compound, such as a path, that count.
const COMPOUND: usize = 256;

/// Calls a function with each word of a text, in lower case and without accents, and its byte
/// range: the words, the parts of words such as `parse_error`, and compounds such as paths and
/// names in code.
pub(super) fn each(text: &str, mut word: impl FnMut(&str, Range<usize>)) {
    let mut lower = String::new();
    let mut emit = |range: Range<usize>, most: usize| {
        lower.clear();
        let found = steps::through(text.get(range.clone()).unwrap_or_default());
        if found.is_ascii() {
            lower.push_str(found.get(..most).unwrap_or(found));
            lower.make_ascii_lowercase();
        } else {
            let folded = found.nfkd().filter(|letter| !is_combining_mark(*letter));
            for letter in folded.flat_map(char::to_lowercase) {
                if lower.len() >= most {
                    break;
                }
                lower.push(letter);
            }
        }
        word(&lower, range);
    };
    let mut at = 0;
    while let Some(start) = next_word(text, at) {
        let mut end = word_end(text, start);
        emit(start..end, WORD);
        parts(text, start..end, |part| emit(part, WORD));
        let mut count = 1;
        while let Some(next) = linked_word(text, end) {
            end = word_end(text, next);
            emit(next..end, WORD);
            parts(text, next..end, |part| emit(part, WORD));
            count += 1;
        }
        if count > 1 {
            emit(start..end, COMPOUND);
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

/// Whether a character counts as a word, because its script puts no spaces between words.
fn is_ideograph(letter: char) -> bool {
    matches!(letter, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

fn word_end(text: &str, start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    match rest.chars().next() {
        Some(first) if is_ideograph(first) => start + first.len_utf8(),
        _ => {
            // A combining accent may be a character of its own after its letter.
            let end = rest.find(|letter: char| {
                is_ideograph(letter) || !(is_letter(letter) || is_combining_mark(letter))
            });
            start + end.unwrap_or(rest.len())
        }
    }
}

/// Returns the start of the next word if a link such as `/` or `::` joins it to the word ending
/// here.
fn linked_word(text: &str, end: usize) -> Option<usize> {
    let rest = text.get(end..)?;
    let link = ["::", "->", "/", "\\", ".", "-"].into_iter().find(|link| rest.starts_with(link))?;
    let next = end + link.len();
    text.get(next..)?.starts_with(is_letter).then_some(next)
}

/// Calls a function with the range of each part of a name in code: `parse_error`, `parseError` and
/// `HTTPServer` have two parts. It is not called for a word of one part.
fn parts(text: &str, word: Range<usize>, mut part: impl FnMut(Range<usize>)) {
    let Some(letters) = text.get(word.clone()) else { return };
    let (mut start, mut last) = (word.start, '_');
    for (offset, letter) in letters.char_indices() {
        let at = word.start + offset;
        let rest = letters.get(offset..).unwrap_or_default();
        if letter == '_' || begins_part(last, letter, rest) {
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

/// Whether a letter is a capital that begins a part: after a lower-case letter, or as the last one
/// of several capitals. `rest` begins with it.
fn begins_part(last: char, letter: char, rest: &str) -> bool {
    letter.is_uppercase()
        && (last.is_lowercase()
            || (last.is_uppercase() && rest.chars().nth(1).is_some_and(char::is_lowercase)))
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
        assert_eq!(words("HTTPServer fn E"), ["httpserver", "http", "server", "fn", "e"]);
        let expected = ["max_retries", "max", "retries", "is", "maxretries", "max", "retries"];
        assert_eq!(words("MAX_RETRIES is maxRetries"), expected);
    }

    #[test]
    fn accents_and_widths_make_no_other_word() {
        let once = ["cafe", "ele", "angstrom", "naive", "abc"];
        assert_eq!(words("café élé Ångström naïve abc"), once);
        let decomposed = "CAFE\u{301} e\u{301}le\u{301} A\u{30a}ngstro\u{308}m NAÏVE ＡＢＣ";
        assert_eq!(words(decomposed), once);
    }

    #[test]
    fn in_scripts_without_spaces_each_character_is_a_word() {
        assert_eq!(words("Größe 端口ab"), ["große", "端", "口", "ab"]);
    }

    #[test]
    fn what_is_no_word_is_none_and_a_long_one_is_cut() {
        assert_eq!(words(" .*?[\u{1}\u{200b}]$ "), Vec::<String>::new());
        assert_eq!(words(&"x".repeat(10_000)), ["x".repeat(WORD)]);
    }
}
