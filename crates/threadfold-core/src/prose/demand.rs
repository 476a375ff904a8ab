//! Sentences of the user that demand, forbid or prefer.

use super::{class::FactClass, scan::one_line, wish::Words};
use crate::message::steps;

/// Signs of code and markup, in which words demand nothing.
const CODE: [&str; 10] = ["};", ");", "</", "==", "=>", "&&", "();", "::<", "/>", "; }"];

/// Whether a text has a sentence that demands something.
pub fn has_demand(text: &str) -> bool {
    let mut found = false;
    demands(text, &mut |_, _| found = true);
    found
}

/// Tells of the sentences of a text that demand something, each on one line.
pub(crate) fn demands(text: &str, note: &mut dyn FnMut(FactClass, &str)) {
    let mut words = Words::default();
    for paragraph in paragraphs(text) {
        for sentence in sentences(&paragraph) {
            if is_demand(sentence, &mut words) {
                note(FactClass::Constraint, sentence);
            }
        }
    }
}

/// The paragraphs outside of fences, each on one line. An item of a list is one.
pub fn paragraphs(text: &str) -> Vec<String> {
    let (mut done, mut open, mut fenced, mut length) = (Vec::new(), String::new(), false, 0);
    for line in steps::through(text).lines() {
        let line = line.trim();
        let fence = line.starts_with("```");
        let item = item(line);
        // A short line was not wrapped: the next one begins anew.
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
        let line = one_line(item.unwrap_or(line));
        if !open.is_empty() && !line.is_empty() {
            open.push(' ');
        }
        open.push_str(&line);
    }
    done.push(open);
    done.retain(|paragraph| !paragraph.is_empty());
    done
}

/// What an item of a list says.
pub(crate) fn item(line: &str) -> Option<&str> {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (numbered.len() < line.len()).then_some(numbered);
    let numbered = numbered.and_then(|rest| rest.strip_prefix(". ").or(rest.strip_prefix(") ")));
    ["- ", "* ", "> ", "\u{2022} "].iter().find_map(|mark| line.strip_prefix(mark)).or(numbered)
}

/// The sentences of a paragraph.
pub fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    let (mut start, mut at) = (0, 0);
    std::iter::from_fn(move || {
        // The bytes of three signs, and those that three wide ones begin with.
        let may_end = |byte: &u8| matches!(byte, b'.' | b'!' | b'?' | 0xe3 | 0xef);
        let next = |at: usize| {
            let rest = paragraph.get(at..)?;
            steps::up_to(rest, rest.as_bytes().iter().position(may_end))
        };
        while let Some(next) = next(at) {
            at += next;
            let sign = paragraph.get(at..)?.chars().next()?;
            let wide = matches!(sign, '\u{3002}' | '\u{ff01}' | '\u{ff1f}');
            let sentence = paragraph.get(start..at)?;
            at += sign.len_utf8();
            let follows = paragraph.get(at..)?.chars().next();
            let ends = sign.is_ascii() && follows.is_none_or(char::is_whitespace);
            if wide || (ends && !abbreviates(sentence)) {
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

/// Whether the point behind a text belongs to its last word.
fn abbreviates(text: &str) -> bool {
    let last = steps::through(text.rsplit([' ', '(']).next().unwrap_or_default());
    ["e.g", "i.e", "vs", "cf", "approx", "no"].iter().any(|word| word.eq_ignore_ascii_case(last))
}

fn is_demand(sentence: &str, words: &mut Words) -> bool {
    if !may_demand(sentence) {
        return false;
    }
    words.read(sentence);
    words.demand()
}

/// Whether a sentence can demand something: it begins with a word, is no question, opens nothing
/// that follows and is no code.
pub fn may_demand(sentence: &str) -> bool {
    let opens =
        sentence.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '@' | '`' | '"' | '*'));
    opens && !sentence.ends_with(['?', ':', '{', ';', '\u{ff1f}']) && !is_code(sentence)
}

/// Whether a sentence has signs of code or markup.
fn is_code(sentence: &str) -> bool {
    let begins =
        |byte| matches!(byte, b'}' | b')' | b'<' | b'=' | b'&' | b'(' | b':' | b'/' | b';');
    steps::through(sentence).bytes().any(begins) && CODE.iter().any(|sign| sentence.contains(sign))
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
