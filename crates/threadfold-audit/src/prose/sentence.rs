//! Paragraphs and sentences, in any language.

use super::word_kinds::one_line;
use crate::message::steps;

/// A line of fewer bytes was not wrapped, so the next line begins a new paragraph.
pub(crate) const UNWRAPPED: usize = 30;

/// Returns the paragraphs outside of fences, each on one line. A list item is a paragraph.
pub fn paragraphs(text: &str) -> Vec<String> {
    let (mut done, mut open, mut fenced, mut length) = (Vec::new(), String::new(), false, 0);
    for line in steps::through(text).lines() {
        let line = line.trim();
        let fence = line.starts_with("```");
        let (item, row) = (item(line), row(line));
        if fence
            || fenced
            || line.is_empty()
            || item.is_some()
            || row.is_some()
            || line.starts_with(['#', '<'])
            || length < UNWRAPPED
        {
            done.push(std::mem::take(&mut open));
        }
        fenced ^= fence;
        // Each row of a table is a paragraph.
        length = if row.is_some() { 0 } else { line.len() };
        if fenced || fence || line.starts_with(['#', '<']) {
            length = 0;
            continue;
        }
        let line = row.unwrap_or_else(|| one_line(item.unwrap_or(line)).into_owned());
        if !open.is_empty() && !line.is_empty() {
            open.push(' ');
        }
        open.push_str(&line);
    }
    done.push(open);
    done.retain(|paragraph| !paragraph.is_empty());
    done
}

/// Returns the text of a list item or a quoted line, without its mark.
pub fn item(line: &str) -> Option<&str> {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (numbered.len() < line.len()).then_some(numbered);
    let numbered = numbered.and_then(|rest| rest.strip_prefix(". ").or(rest.strip_prefix(") ")));
    ["- ", "* ", "> ", "\u{2022} "].iter().find_map(|mark| line.strip_prefix(mark)).or(numbered)
}

/// Returns the text of a row of a Markdown table: its cells, without a row number. The line below
/// the header has no text.
fn row(line: &str) -> Option<String> {
    let cells = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim);
    let mut cells: Vec<&str> = cells.filter(|cell| cell.contains(char::is_alphanumeric)).collect();
    if cells.len() > 1 && cells.first().is_some_and(|cell| cell.bytes().all(|b| b.is_ascii_digit()))
    {
        cells.remove(0);
    }
    Some(one_line(&cells.join(" | ")).into_owned())
}

/// The maximum bytes of a sentence. What people say without end marks may be longer.
pub const LONGEST: usize = 600;

/// Returns the sentences of a paragraph. A sentence of over [`LONGEST`] bytes is cut into pieces.
pub fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    whole_sentences(paragraph).flat_map(pieces)
}

/// Returns a sentence in pieces of up to [`LONGEST`] bytes. Each ends after a comma or its kin in its
/// second half, else between two words, else between two characters.
fn pieces(sentence: &str) -> impl Iterator<Item = &str> {
    let mut rest = sentence;
    std::iter::from_fn(move || {
        if rest.len() <= LONGEST {
            return (!rest.is_empty()).then(|| std::mem::take(&mut rest));
        }
        let window = (0..=LONGEST).rev().find_map(|end| rest.get(..end))?;
        let window = steps::through(window);
        let after = |found: Option<(usize, &str)>| found.map(|(at, mark)| at + mark.len());
        let pause = after(window.rmatch_indices(|c| PAUSES.contains(c)).next())
            .filter(|end| *end > LONGEST / 2);
        let word = || after(window.rmatch_indices(char::is_whitespace).next());
        let end = pause.or_else(word).unwrap_or(window.len());
        let (piece, left) = rest.split_at_checked(end)?;
        rest = left.trim_start();
        Some(piece.trim_end())
    })
}

/// The marks at which a speaker pauses.
const PAUSES: &str = ",;\u{60c}\u{61b}\u{2013}\u{2014}\u{3001}\u{ff0c}\u{ff1b}";

/// The marks that end a sentence whatever follows: full-width marks, dandas, and the question mark and
/// full stop of scripts that are written from right to left.
const ENDS: &str = "\u{3002}\u{ff01}\u{ff1f}\u{ff61}\u{964}\u{965}\u{61f}\u{6d4}";

fn whole_sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    let (mut start, mut at) = (0, 0);
    std::iter::from_fn(move || {
        while let Some(next) = paragraph.get(at..).and_then(next_end_mark) {
            at += next;
            let mark = paragraph.get(at..)?.chars().next()?;
            let wide = ENDS.contains(mark);
            let sentence = paragraph.get(start..at)?;
            at += mark.len_utf8();
            // A closing quotation mark after the end of a sentence belongs to the sentence.
            let rest = paragraph.get(at..)?;
            let closing = rest.chars().next().filter(|c| matches!(c, '"' | '\u{201d}'));
            let after = rest.get(closing.map_or(0, char::len_utf8)..)?;
            if closing.is_some() && after.starts_with(' ') {
                at = paragraph.len() - after.len();
            }
            let follows = paragraph.get(at..)?.chars().next();
            let ends = mark.is_ascii() && follows.is_none_or(char::is_whitespace);
            if wide || (ends && !abbreviates(sentence, after)) {
                let sentence = paragraph.get(start..at);
                start = at;
                return sentence.map(str::trim);
            }
        }
        let rest = paragraph.get(start..).map(str::trim).filter(|rest| !rest.is_empty());
        (start, at) = (paragraph.len(), paragraph.len());
        rest
    })
}

/// Returns the byte offset of the first `.`, `!` or `?`, or of a character that may be one of the
/// other marks: its first byte decides.
fn next_end_mark(text: &str) -> Option<usize> {
    let mark = text
        .bytes()
        .position(|byte| matches!(byte, b'.' | b'!' | b'?' | 0xd8 | 0xdb | 0xe0 | 0xe3 | 0xef));
    steps::up_to(text, mark)
}

/// Whether a text ends with an abbreviation, an initial or an ordinal, so that a full stop after it
/// does not end the sentence: `am 23. um acht`, `ask R. for it`. If a word with a capital follows
/// an initial or an ordinal, the sentence does end.
fn abbreviates(text: &str, after: &str) -> bool {
    const SHORT: [&str; 9] = ["e.g", "i.e", "vs", "cf", "approx", "no", "nr", "z.b", "ca"];
    // Titles count only with their capital, because `12 ms.` may end a sentence.
    const TITLES: [&str; 7] = ["Dr", "Mr", "Mrs", "Ms", "Prof", "Sr", "Sra"];
    let last = steps::through(text.rsplit([' ', '(']).next().unwrap_or_default());
    let is_number = !last.is_empty() && last.len() < 3 && last.bytes().all(|b| b.is_ascii_digit());
    let is_initial = last.starts_with(char::is_uppercase) && last.chars().nth(1).is_none();
    let next = after.trim_start();
    let goes_on = next.starts_with(char::is_lowercase);
    SHORT.iter().any(|word| word.eq_ignore_ascii_case(last))
        || TITLES.contains(&last)
        || (goes_on && (is_number || is_initial))
}

/// Whether a character belongs to a script that puts no spaces between words.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(
        c,
        '\u{e00}'..='\u{eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3005}'..='\u{3007}'
            | '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{ff66}'..='\u{ff9f}'
            | '\u{20000}'..='\u{3ffff}'
    )
}

/// Returns the words of a text, with their case and apostrophes.
pub(crate) fn spoken_words(text: &str) -> impl Iterator<Item = &str> {
    steps::through(text)
        .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '\u{2019}')
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_stop_after_an_initial_or_an_ordinal_does_not_end_the_sentence() {
        let rows = [
            ("The race is am 23. um 16 Uhr. Bring tea.", 2),
            ("Refer to her as R. only. Thanks.", 2),
            ("We need 12. Then we go.", 2),
            ("It is plan B. Then we go.", 2),
            ("It took 12 ms. then it failed.", 2),
            ("\u{92a}\u{939}\u{932}\u{93e}\u{964} \u{926}\u{942}\u{938}\u{930}\u{93e}\u{964}", 2),
            ("\u{647}\u{644}\u{61f} \u{644}\u{627}.", 2),
        ];
        for (text, expected) in rows {
            let found: Vec<&str> = sentences(text).collect();
            assert_eq!(found.len(), expected, "{found:?}");
        }
    }

    #[test]
    fn a_sentence_without_an_end_is_cut_into_pieces_and_loses_nothing() {
        let rows = [
            "and then we go on and ".repeat(80),
            format!("{}, {}", "one two ".repeat(60), "three four ".repeat(60)),
            "\u{6211}\u{4eec}\u{5bb6}\u{8001}".repeat(120),
        ];
        for text in rows {
            let found: Vec<&str> = sentences(&text).collect();
            assert!(found.len() > 1 && found.iter().all(|it| it.len() <= LONGEST), "{found:?}");
            let dense = |text: &str| text.replace(' ', "");
            assert_eq!(dense(&found.concat()), dense(&text));
        }
        let text = format!("{}, {}", "one two ".repeat(60), "three four ".repeat(60));
        assert!(sentences(&text).next().is_some_and(|first| first.ends_with(',')), "{text}");
    }

    #[test]
    fn a_row_of_a_table_is_a_paragraph() {
        let text = "Look:\n| # | what |\n|---|:---:|\n| 1 | The light in room three is 50 lux at most. |\n\
                    | 2 | Never open the case of the long painting. |\nThat is all of it for now.";
        let expected = [
            "Look:",
            "what",
            "The light in room three is 50 lux at most.",
            "Never open the case of the long painting.",
            "That is all of it for now.",
        ];
        assert_eq!(paragraphs(text), expected);
        assert!(row("| a | b").is_none() && row("||").is_some_and(|text| text.is_empty()));
    }
}
