//! Sentences of the user that demand, forbid or prefer.

use super::{
    class::{FactClass, Note},
    demand_words::Words,
    value::is_german_month,
    word_kinds::one_line,
};
use crate::message::steps;

/// Marks of code and markup. A sentence that contains one does not count as a demand.
const CODE: [&str; 10] = ["};", ");", "</", "==", "=>", "&&", "();", "::<", "/>", "; }"];

/// Whether a text contains a sentence that demands something.
pub fn has_demand(text: &str) -> bool {
    let mut found = false;
    demands(text, &mut |_, _| found = true);
    found
}

/// Notes the sentences of a text that demand something, each on one line.
pub fn demands(text: &str, note: Note<'_>) {
    let mut words = Words::default();
    for paragraph in paragraphs(text) {
        for sentence in sentences(&paragraph) {
            if may_demand(sentence) && words.demand(sentence) {
                note(FactClass::Constraint, sentence);
            }
        }
    }
}

/// A paragraph, on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paragraph {
    pub(crate) text: String,
    /// Whether it is an item of a list, or a quoted line.
    pub(crate) is_item: bool,
}

/// Returns the paragraphs outside of fences, each on one line. A list item is a paragraph.
pub fn paragraphs(text: &str) -> Vec<String> {
    marked_paragraphs(text).into_iter().map(|paragraph| paragraph.text).collect()
}

/// Returns the paragraphs of a text, and which of them are items.
pub(crate) fn marked_paragraphs(text: &str) -> Vec<Paragraph> {
    let (mut done, mut open, mut fenced, mut length) = (Vec::new(), Paragraph::default(), false, 0);
    for line in steps::through(text).lines() {
        let line = line.trim();
        let fence = line.starts_with("```");
        let item = item(line);
        // A line under 30 bytes was not wrapped, so the next line begins a new paragraph.
        if fence
            || fenced
            || line.is_empty()
            || item.is_some()
            || line.starts_with(['#', '<'])
            || length < 30
        {
            done.push(std::mem::take(&mut open));
        }
        fenced ^= fence;
        length = line.len();
        if fenced || fence || line.starts_with(['#', '<']) {
            length = 0;
            continue;
        }
        open.is_item |= item.is_some();
        let line = one_line(item.unwrap_or(line));
        if !open.text.is_empty() && !line.is_empty() {
            open.text.push(' ');
        }
        open.text.push_str(&line);
    }
    done.push(open);
    done.retain(|paragraph| !paragraph.text.is_empty());
    done
}

/// Returns the text of a list item or a quoted line, without its mark.
pub fn item(line: &str) -> Option<&str> {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (numbered.len() < line.len()).then_some(numbered);
    let numbered = numbered.and_then(|rest| rest.strip_prefix(". ").or(rest.strip_prefix(") ")));
    ["- ", "* ", "> ", "\u{2022} "].iter().find_map(|mark| line.strip_prefix(mark)).or(numbered)
}

/// Returns the sentences of a paragraph.
pub fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    let (mut start, mut at) = (0, 0);
    std::iter::from_fn(move || {
        while let Some(next) = paragraph.get(at..).and_then(next_end_mark) {
            at += next;
            let mark = paragraph.get(at..)?.chars().next()?;
            let wide = matches!(mark, '\u{3002}' | '\u{ff01}' | '\u{ff1f}');
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

/// Returns the byte offset of the first `.`, `!` or `?`, or of a character whose first byte is that of a
/// full-width form of them.
fn next_end_mark(text: &str) -> Option<usize> {
    let mark = text.bytes().position(|byte| matches!(byte, b'.' | b'!' | b'?' | 0xe3 | 0xef));
    steps::up_to(text, mark)
}

/// Whether a text ends with an abbreviation or the day of a German date, so that a point after it
/// does not end the sentence.
fn abbreviates(text: &str, after: &str) -> bool {
    const SHORT: [&str; 9] = ["e.g", "i.e", "vs", "cf", "approx", "no", "nr", "z.b", "ca"];
    // Titles count only with their capital, because `12 ms.` may end a sentence.
    const TITLES: [&str; 7] = ["Dr", "Mr", "Mrs", "Ms", "Prof", "Sr", "Sra"];
    let last = steps::through(text.rsplit([' ', '(']).next().unwrap_or_default());
    let is_number = !last.is_empty() && last.len() < 3 && last.bytes().all(|b| b.is_ascii_digit());
    SHORT.iter().any(|word| word.eq_ignore_ascii_case(last))
        || TITLES.contains(&last)
        || (is_number && after.split_whitespace().next().is_some_and(is_german_month))
}

/// Whether a sentence can demand something: it begins with a word, is not a question, introduces no
/// list or code, and is not code itself.
pub fn may_demand(sentence: &str) -> bool {
    let opens =
        sentence.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '@' | '`' | '"' | '*'));
    opens && !sentence.ends_with(['?', ':', '{', ';', '\u{ff1f}']) && !is_code(sentence)
}

/// Whether a sentence contains marks of code or markup.
fn is_code(sentence: &str) -> bool {
    // One pass over the bytes rules out most sentences; ten searches take longer.
    steps::through(sentence).bytes().any(|byte| b"});<=&(:/".contains(&byte))
        && CODE.iter().any(|mark| sentence.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_are_sentences_that_demand_or_forbid() {
        let text = "Fix the parser. Never touch the lexer! It is not slow. I don't know why. We can not say.\n```\nmust not\n```\n\
                    - Please don't push.\nif (must) { return; }\nShould I go on?";
        let mut found = Vec::new();
        demands(text, &mut |_, sentence| found.push(sentence.to_owned()));
        assert_eq!(found, ["Never touch the lexer!", "Please don't push."]);
    }
}
