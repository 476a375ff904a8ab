//! Tests that count the steps of reading prose: they are linear in the length of the text.

use std::{collections::BTreeSet, fs};

use proptest::prelude::*;
use serde_json::Value;

use threadfold::message::steps::{round, steps};
use threadfold_testing::shared::fuzz::prose::READERS;

use crate::support::{language, odd, recorded, tries::tries};

/// Upper limit for the steps: per byte of the text, and a constant. The audit needs most: it
/// repeats the text four times and searches it four times for every fact.
const MOST: (u64, u64) = (500, 100_000);

/// Steps by which a text of double length may exceed its limit.
const SPARE: u64 = 20_000;

/// Bytes at each end of a recorded text within which it is cut at every word, and the number of
/// texts that are cut.
const CUT: (usize, usize) = (160, 60);

/// The steps of a reader over a text.
fn steps_of(read: fn(&str), text: &str) -> u64 {
    steps(text.len() as u64 * MOST.0 + MOST.1, || read(text))
}

/// Checks that a reader takes about twice the steps for twice the text.
fn check_growth(name: &str, read: fn(&str), small: &str, large: &str) {
    let (few, many) = (steps_of(read, small), steps_of(read, large));
    let start: String = small.chars().take(60).collect();
    assert!(many <= few * 22 / 10 + SPARE, "{name}: {few} steps, then {many}, for {start:?}...");
}

#[test]
fn every_reader_counts_its_steps() {
    for (name, read) in READERS {
        let uncounted = name == "recall" && !cfg!(feature = "recall");
        let text = "Use 2 tabs, never spaces. ".repeat(40);
        assert!(steps_of(read, &text) >= 200 || uncounted, "{name}");
    }
}

#[test]
fn work_over_its_limit_fails() {
    let work = || (0..2_000).for_each(|_| round());
    assert!(std::panic::catch_unwind(|| steps(1_000, work)).is_err());
    assert_eq!(steps(3_000, work), 2_000);
}

#[test]
fn hostile_texts_take_linear_work() {
    for (name, read) in READERS {
        for part in odd::HOSTILE {
            let count = 2_000 / part.len();
            let text = |count| odd::repeated(part, count);
            check_growth(name, read, &text(count), &text(2 * count));
        }
        for pair in odd::PAIRS {
            let count = 2_000 / (pair.0.len() + pair.1.len());
            let text = |count| odd::nested(*pair, count);
            check_growth(name, read, &text(count), &text(2 * count));
        }
    }
}

#[test]
fn recorded_texts_are_read_in_bounded_work_wherever_they_are_cut() {
    let texts = recorded();
    let every = texts.len().div_ceil(CUT.1).max(1);
    for (_, read) in READERS {
        for text in &texts {
            steps_of(read, text);
        }
        for piece in texts.iter().step_by(every).flat_map(|text| pieces(text)) {
            steps_of(read, piece);
        }
    }
}

/// The beginnings of a text up to each word of its head, and the ends from each word of its tail.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let gaps = || text.match_indices(char::is_whitespace).map(|(at, _)| at);
    let heads = gaps().take_while(|at| *at <= CUT.0).filter_map(|at| text.get(..at));
    let tails = gaps().filter(|at| at + CUT.0 >= text.len()).filter_map(|at| text.get(at..));
    heads.chain(tails)
}

/// The texts in recorded requests.
fn recorded() -> Vec<String> {
    let (mut paths, mut texts) = (recorded::folders(), BTreeSet::new());
    while let Some(path) = paths.pop() {
        let entries = fs::read_dir(&path).into_iter().flatten().flatten();
        paths.extend(entries.map(|entry| entry.path()));
        let record = fs::read_to_string(path).unwrap_or_default();
        collect(&serde_json::from_str(&record).unwrap_or_default(), &mut texts);
    }
    texts.into_iter().collect()
}

/// Adds the texts of more than one word.
fn collect(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.contains(' ') => drop(texts.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, texts)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

proptest! {
    #![proptest_config(tries(40))]

    #[test]
    fn any_text_takes_linear_work(text in language::text()) {
        let small = text.repeat(1 + 1_000 / text.len().max(1));
        for (name, read) in READERS {
            steps_of(read, &text);
            check_growth(name, read, &small, &small.repeat(2));
        }
    }
}
