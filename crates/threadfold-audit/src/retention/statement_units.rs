//! Divides the text that the user typed into statements.

use std::collections::{HashMap, HashSet};

use crate::{
    ledger,
    prose::{
        Subject, asks_in_any_language, has_demand, has_wish, is_question, label, one_line,
        paragraphs, refers_back, sentences,
    },
};

/// The maximum bytes of a statement of several sentences.
const SHORT: usize = 300;

/// Returns the statements of a text: its sentences, each with the following ones that make no sense
/// without it.
pub(super) fn units(text: &str) -> Vec<String> {
    headed(text).iter().flat_map(|paragraph| units_of_paragraph(paragraph)).collect()
}

/// Returns the paragraphs of a text. Each item of a list is prefixed with the short heading above
/// the list, so that it can be understood alone.
fn headed(text: &str) -> Vec<String> {
    const HEADING: usize = 40;
    let mut lists: HashMap<String, String> = HashMap::new();
    let mut heading: Option<&str> = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if line.trim_start().starts_with(['-', '*', '\u{2022}']) {
            let item = line.trim().trim_start_matches(['-', '*', '\u{2022}']).trim();
            if let Some(heading) = heading {
                lists.insert(one_line(item).into_owned(), heading.trim().to_owned());
            }
        } else {
            let fits = line.len() <= HEADING && line.trim_end().ends_with([':', '\u{ff1a}']);
            heading = fits.then_some(line);
        }
    }
    let paragraphs = paragraphs(text).into_iter();
    let headings: HashSet<&String> = lists.values().collect();
    let whole = paragraphs.filter(|text| !headings.contains(text));
    whole
        .map(|text| match lists.get(&text) {
            Some(heading) => format!("{}: {text}", heading.trim_end_matches([':', '\u{ff1a}'])),
            None => text,
        })
        .collect()
}

/// Returns the statements of a paragraph. A short paragraph with a label is one statement up to its
/// first question or aside, because the label applies to all of it.
fn units_of_paragraph(paragraph: &str) -> Vec<String> {
    let mut is_labelled = paragraph.len() <= SHORT && label(paragraph).is_some();
    let mut units: Vec<String> = Vec::new();
    let mut binds_next = false;
    for sentence in sentences(paragraph) {
        is_labelled = is_labelled && (units.is_empty() || !is_aside(sentence));
        let joined = units.last_mut().filter(|unit| {
            let binds = is_labelled || binds_next || needs_sentence_before(sentence);
            binds && unit.len() + sentence.len() < SHORT
        });
        match joined {
            Some(unit) => {
                unit.push(' ');
                unit.push_str(sentence);
            }
            None => units.push(sentence.to_owned()),
        }
        // A preface, or a sentence that ends with a colon, makes no sense without the text after
        // it.
        binds_next = ledger::is_preface(sentence) || sentence.ends_with([':', '\u{ff1a}']);
    }
    units
}

/// Whether a sentence is a question or a remark of the speaker, so that a label before it does not
/// apply to it.
fn is_aside(sentence: &str) -> bool {
    is_question(sentence) || (!has_demand(sentence) && Subject::of(sentence).is_talk())
}

/// Whether a sentence refers to something that the previous sentence names: `It closes at ten.`
fn needs_sentence_before(sentence: &str) -> bool {
    !is_question(sentence)
        && (ledger::lacks_subject(sentence) || (refers_back(sentence) && says_something(sentence)))
}

/// Whether a sentence demands or wants something or gives a value. Other sentences are remarks.
fn says_something(sentence: &str) -> bool {
    has_demand(sentence)
        || asks_in_any_language(sentence)
        || has_wish(sentence)
        || Subject::of(sentence).has_value()
}
