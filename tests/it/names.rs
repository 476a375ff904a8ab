//! Public names and file names use the words of the glossary, and none of the words that the
//! glossary excludes.

use std::{collections::BTreeSet, fs, path::Path};

/// The rows of the glossary: the word, and the words that are not used for it.
fn glossary() -> Vec<(String, Vec<String>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/glossary.md");
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let cells = rows.filter(|line| line.starts_with('|')).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [word, _, not] = cells.as_slice() else { panic!("three cells: {line}") };
        let not = not.split(", ").filter(|word| !word.is_empty()).map(str::to_owned);
        ((*word).to_owned(), not.collect())
    });
    cells.collect()
}

/// The words of a name, in lower case: `CompactionId` and `compaction_id` have two.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut was_lower = false;
    for letter in name.chars() {
        let begins = letter.is_uppercase() && was_lower;
        match words.last_mut() {
            Some(word) if letter != '_' && !begins => word.extend(letter.to_lowercase()),
            _ => words.push(letter.to_lowercase().filter(|letter| *letter != '_').collect()),
        }
        was_lower = letter.is_lowercase();
    }
    words
}

/// The names of files below a folder of sources, and of the public items in them.
fn names(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names(&path, found);
            continue;
        }
        let stem = path.file_stem().unwrap().to_string_lossy();
        found.insert(stem.into_owned());
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        for line in fs::read_to_string(&path).unwrap().lines() {
            let Some(item) = line.trim_start().strip_prefix("pub ") else { continue };
            let item = item.trim_start_matches("async ").trim_start_matches("const ");
            for kind in ["struct ", "enum ", "trait ", "type ", "fn ", "mod "] {
                if let Some(rest) = item.strip_prefix(kind) {
                    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                    found.insert(rest[..end.unwrap_or(rest.len())].to_owned());
                }
            }
        }
    }
}

#[test]
fn the_glossary_is_short_and_explains_each_word_once() {
    let rows = glossary();
    assert!((40..=60).contains(&rows.len()), "{} words", rows.len());
    let words: BTreeSet<_> = rows.iter().map(|(word, _)| word).collect();
    assert_eq!(words.len(), rows.len());
}

#[test]
fn names_use_no_word_that_the_glossary_excludes() {
    let refused: BTreeSet<String> = glossary().into_iter().flat_map(|(_, not)| not).collect();
    assert!(refused.contains("told"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = BTreeSet::new();
    for folder in [
        "src",
        "crates/threadfold-audit/src",
        "crates/threadfold-core/src",
        "crates/threadfold-edl/src",
        "crates/threadfold-postgres/src",
        "crates/threadfold-sqlite/src",
        "crates/threadfold-wire/src",
    ] {
        names(&root.join(folder), &mut all);
    }
    assert!(all.contains("CompactionId") && all.contains("snapshot"));
    let wrong: Vec<&String> =
        all.iter().filter(|name| words(name).iter().any(|word| refused.contains(word))).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn a_name_has_words() {
    assert_eq!(words("CompactionId"), ["compaction", "id"]);
    assert_eq!(words("tell_end_later"), ["tell", "end", "later"]);
}
