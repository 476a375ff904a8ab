//! Facts of a summary that the thread does not state.

use std::collections::BTreeMap;

use super::{
    fact::Fact,
    facts::Facts,
    gather::Gathered,
    options::AuditOptions,
    positions::Positions,
    search::Search,
    sieve::{Pairs, Sieve},
};
use crate::{
    ledger,
    message::{Message, slice},
    prose::{
        FactClass, Property, Speaker, is_unspaced, key, one_line, passages, sentences,
        without_emphasis, without_typed,
    },
};

/// Returns the invented facts of a summary: paths, addresses, commands, names, versions, hashes,
/// numbers and instructions in it that neither the facts of the conversation nor a message of the
/// thread states.
///
/// Words are compared as in an [audit](super::audit()). A sentence of the thread is never invented,
/// and a false sentence without such words is not found. A name is a word with a capital inside a
/// sentence; if one word in five has a capital, as in German, names are ignored. The lists of rules
/// and of the user's words that this crate adds to summaries do not count.
///
/// ```
/// use threadfold::{Message, retention::{RetentionPolicy, Facts, invented}};
///
/// let thread = [Message::user("Fix src/parse.rs."), Message::assistant("It took 12 ms.")];
/// let facts = Facts::of(&thread, &RetentionPolicy::default());
/// assert_eq!(invented("src/parse.rs took 12 ms.", &facts, &thread), []);
/// let found = invented("src/lex.rs took 15 ms.", &facts, &thread);
/// let texts: Vec<&str> = found.iter().map(|fact| fact.text.as_str()).collect();
/// assert_eq!(texts, ["src/lex.rs", "15 ms"]);
/// ```
#[must_use]
pub fn invented<'m>(
    summary: &str,
    facts: &Facts,
    thread: impl IntoIterator<Item = &'m Message>,
) -> Vec<Fact> {
    let own = without_typed(&ledger::without_titled(summary));
    let options = AuditOptions { tool_mentions: 1, ..AuditOptions::default() };
    let mut stated = Gathered::default();
    stated.read(0, &Message::user(own.as_str()), &options);
    let unknown = stated.relevant(&options).filter(|(class, key, _)| facts.is_unknown(*class, key));
    let unknown: Vec<&str> =
        unknown.map(|(class, key, mention)| common_part(class, key, &mention.text)).collect();
    let mut names = named(&own);
    let (mut sieve, mut of_facts, mut of_names) = sieve_for(&unknown, &names);
    let mut search = Search::new(&stated, 1, &options);
    for message in thread {
        if unknown.is_empty() && names.is_empty() {
            break;
        }
        passages(message, &mut |_, kind, text| {
            // Most texts state none of these, and reading them takes long.
            let pairs = sieve.pairs(text);
            if of_facts.iter().any(|fact| pairs.contains(*fact)) {
                search.read_text(kind, text);
            }
            if of_names.iter().any(|name| pairs.contains(*name)) && remove_read(&mut names, text) {
                (sieve, of_facts, of_names) = sieve_for(&unknown, &names);
            }
        });
    }
    let mut missing = if unknown.is_empty() { Vec::new() } else { search.retention().missing };
    missing.retain(|fact| facts.is_unknown(fact.class, &key(fact.class, &fact.text)));
    for fact in names.into_values() {
        if !missing.iter().any(|other| states(&other.text, &fact)) {
            missing.push(fact);
        }
    }
    missing
}

impl Facts {
    /// Whether a summary that states this fact has invented it.
    fn is_unknown(&self, class: FactClass, key: &str) -> bool {
        class.is(Property::Checked) && !self.knows(class, key)
    }
}

/// Returns a sieve for these facts and names, and the pairs of each.
fn sieve_for(facts: &[&str], names: &BTreeMap<String, Fact>) -> (Sieve, Vec<Pairs>, Vec<Pairs>) {
    let mut sieve = Sieve::default();
    let of_facts = facts.iter().map(|words| sieve.add(words)).collect();
    let of_names = names.keys().map(|name| sieve.add(name)).collect();
    (sieve, of_facts, of_names)
}

/// The part of a fact that all of its spellings have: of a path, the name of the file.
fn common_part<'a>(class: FactClass, key: &'a str, text: &'a str) -> &'a str {
    if class == FactClass::Path {
        key.rsplit('/').next().unwrap_or(key)
    } else if class == FactClass::Constraint {
        without_emphasis(text)
    } else {
        key
    }
}

/// Returns a summary without the sentences that state one of these facts, and without the lines that
/// have no other sentence.
///
/// ```
/// use threadfold::{Message, retention::{RetentionPolicy, Facts, invented, without_invented}};
///
/// let thread = [Message::user("Fix src/parse.rs.")];
/// let facts = Facts::of(&thread, &RetentionPolicy::default());
/// let summary = "They fixed src/parse.rs. The tests took 15 ms.\n- Ask Ada Byron.\n";
/// let found = invented(summary, &facts, &thread);
/// assert_eq!(without_invented(summary, &found), "They fixed src/parse.rs.\n");
/// ```
#[must_use]
pub fn without_invented(summary: &str, invented: &[Fact]) -> String {
    let mut kept = String::new();
    for line in summary.split_inclusive('\n') {
        let (gone, stay): (Vec<&str>, Vec<&str>) =
            sentences(line.trim_end()).partition(|sentence| {
                let sentence = one_line(sentence);
                invented.iter().any(|fact| states(&sentence, fact))
            });
        if gone.is_empty() {
            kept.push_str(line);
        } else if !stay.is_empty() {
            let end = if line.ends_with('\n') { "\n" } else { "" };
            kept.push_str(&format!("{}{end}", stay.join(" ")));
        }
    }
    kept
}

/// Whether a text contains the words of a fact as whole words.
fn states(text: &str, fact: &Fact) -> bool {
    let (text, wanted) = (text.to_lowercase(), fact.text.to_lowercase());
    text.match_indices(wanted.as_str()).any(|(start, found)| {
        let before = slice(&text, ..start);
        let after = slice(&text, start + found.len()..);
        !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric)
    })
}

/// The names, the numbers of three digits or more, the codes and the words between backticks in a text,
/// each in lower case.
fn named(text: &str) -> BTreeMap<String, Fact> {
    const LEAST: usize = 20;
    const ENDS: [char; 7] = ['.', ':', ';', '!', '?', '-', '|'];
    let (mut inner, mut capitals) = (0, 0);
    let mut found = BTreeMap::new();
    for sentence in text.lines().filter(|line| !is_heading(line)).flat_map(sentences) {
        let (mut starts, mut is_code) = (true, false);
        for token in sentence.split_whitespace() {
            let ends = token.ends_with(ENDS) && !is_title(token);
            let begins = std::mem::replace(&mut starts, ends);
            let begins = begins || !token.starts_with(char::is_alphanumeric);
            is_code |= token.starts_with('`');
            for word in words(token) {
                if is_number(word) {
                    note(&mut found, FactClass::Number, word);
                } else if is_coded(word) || (is_code && word.len() > 3) {
                    note(&mut found, FactClass::Identifier, word);
                }
            }
            is_code &=
                !token.trim_end_matches(|c: char| c != '`' && !c.is_alphanumeric()).ends_with('`');
            // A capital shows a name only inside a sentence, and at the start of a token.
            let Some(word) = words(token).next().filter(|word| !begins && token.starts_with(word))
            else {
                continue;
            };
            inner += 1;
            if is_name(word) {
                capitals += 1;
                note(&mut found, FactClass::Identifier, word);
            }
        }
    }
    if inner >= LEAST && capitals * 5 > inner {
        found.retain(|_, fact| fact.class == FactClass::Number || !is_name(&fact.text));
    }
    found
}

fn note(found: &mut BTreeMap<String, Fact>, class: FactClass, word: &str) {
    let (speaker, positions) = (Speaker::Assistant, Positions::of(0).into_kept());
    let fact = Fact { class, text: word.into(), weight: 1, speaker, positions };
    found.entry(word.to_lowercase()).or_insert(fact);
}

/// Whether a line is a heading or a label, in which every word may have a capital.
fn is_heading(line: &str) -> bool {
    let line = line.trim().trim_end_matches('*');
    line.starts_with('#') || line.ends_with(':')
}

/// Whether a word is a number of three digits or more.
fn is_number(word: &str) -> bool {
    word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word is a code of capitals and digits: `E0425`.
fn is_coded(word: &str) -> bool {
    word.len() > 3
        && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        && word.contains(|c: char| c.is_ascii_digit())
        && word.contains(|c: char| c.is_ascii_uppercase())
}

/// Whether a token is a title before a name, whose point does not end a sentence.
fn is_title(token: &str) -> bool {
    matches!(token, "Dr." | "Mr." | "Mrs." | "Ms." | "Prof." | "Sr." | "Sra.")
}

/// Whether a word has a capital and then only small letters.
fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase)
        && word.chars().count() > 2
        && letters.all(char::is_lowercase)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    // Most text is ASCII, and few characters beyond it are marks.
    let words = text.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric());
    words
        .flat_map(|word| word.split(|c: char| !c.is_alphanumeric() || is_unspaced(c)))
        .filter(|word| !word.is_empty())
}

/// Removes the words that a text has, and returns whether it has any.
fn remove_read(wanted: &mut BTreeMap<String, Fact>, text: &str) -> bool {
    let before = wanted.len();
    for word in words(text) {
        // Lower case costs an allocation, and most words are shorter or longer than all wanted ones.
        if !word.is_ascii() || wanted.keys().any(|other| other.len() == word.len()) {
            wanted.remove(&word.to_lowercase());
        }
    }
    wanted.len() < before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retention::RetentionPolicy;

    #[test]
    fn a_name_inside_of_another_word_is_not_struck() {
        let facts = Facts::of(&[], &RetentionPolicy::default());
        let summary = "They wrote to Ada. It went from Canada to Peru.";
        let thread = [Message::user("They wrote. It went from Canada to Peru.")];
        let found = invented(summary, &facts, &thread);
        assert_eq!(found.iter().map(|fact| fact.text.as_str()).collect::<Vec<_>>(), ["Ada"]);
        assert_eq!(without_invented(summary, &found), "It went from Canada to Peru.");
    }

    #[test]
    fn inventions_are_found_in_codes_commands_long_numbers_and_other_languages() {
        let said = "The vet is Dr. Sommer, phone 555-0199. Run `make check`. \u{79df}\u{91d1}\u{662f}3480\u{5143}\u{3002} It was E0425.";
        let thread = [Message::user(said)];
        let facts = Facts::of(&thread, &RetentionPolicy::default());
        assert_eq!(invented(said, &facts, &thread), []);
        let rows = [
            ("The vet is Dr. Winter.", "Winter"),
            ("Call 555-0300 for details.", "0300"),
            ("Then `make deploy` it.", "deploy"),
            ("\u{79df}\u{91d1}\u{662f}4200\u{5143}\u{3002}", "4200"),
            ("Die Miete ist 1.150 Euro.", "150"),
            ("The error was E0599.", "E0599"),
        ];
        for (summary, expected) in rows {
            let found = invented(summary, &facts, &thread);
            let has = |fact: &Fact| fact.text.as_str().contains(expected);
            assert!(found.iter().any(has), "{summary} {found:?}");
        }
    }
}
