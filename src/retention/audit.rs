//! The audit: what was removed, what facts it held, which of them still stand.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    class::FactClass,
    fact::Fact,
    files::Files,
    gather::{Gathered, Mention},
    index::{Phrases, Spelled},
    options::AuditOptions,
    passage::fingerprint,
    report::{Recall, Retention},
};
use crate::message::Message;

/// Returns what a compaction lost: the facts in the messages of `before` that are not in `after`,
/// and which of them nothing in `after` says any more.
///
/// No model is asked. Facts are what can be found again by its words, so a rule that a summary
/// tells in other words counts as missing. What counts as the same:
///
/// - White space and quotation marks do not count, nor does the case of constraints, tasks, errors
///   and hashes. The point that ends a sentence and the `v` of a version do not count either.
/// - Two spellings of a path are one file if one ends with the other at a slash, and no other path
///   before or after does so too. A bare file name stands for a longer path only if nothing longer
///   was known before.
/// - Only wholes count: `src/a.rs` is not in `src/a.rs.bak`, `12 ms` not in `112 ms`, `1.2` not in
///   `1.2.3`, `cargo test` not in `cargo test --all`. A name is found as a part of a longer one
///   only between its dots and colons.
///
/// Reasoning and reminders are no facts, since every compaction strips them. The time it takes is
/// linear in the texts.
///
/// ```
/// use threadfold::{Message, retention::{AuditOptions, FactClass, audit}};
///
/// let before = [Message::user("Fix src/parse.rs. Never touch the lexer.")];
/// let after = [Message::assistant("The user wants `./src/parse.rs` fixed.")];
/// let retention = audit(&before, &after, &AuditOptions::default());
/// assert_eq!(retention.overall.facts, 2);
/// assert_eq!(retention.missing[0].class, FactClass::Constraint);
/// assert_eq!(retention.missing[0].text, "Never touch the lexer.");
/// ```
#[must_use]
pub fn audit(before: &[Message], after: &[Message], options: &AuditOptions) -> Retention {
    audit_counted(before, after, options).0
}

/// The audit, and the steps that its search took.
fn audit_counted(
    before: &[Message],
    after: &[Message],
    options: &AuditOptions,
) -> (Retention, u64) {
    let mut gathered = Gathered::default();
    for index in removed(before, after) {
        if let Some(message) = before.get(index) {
            gathered.read(index, message, options);
        }
    }
    judged(gathered, before.len(), after, options)
}

/// Says which of these facts stand, of a thread of so many messages, and the steps that it took.
pub(super) fn judged(
    mut gathered: Gathered,
    messages: usize,
    after: &[Message],
    options: &AuditOptions,
) -> (Retention, u64) {
    gathered.tidy(options);
    let (too_long, dropped) = (gathered.too_long, gathered.dropped);
    let spelled = Spelled::of(after);
    let files = Files::new(paths(&gathered).chain(spelled.paths.iter().cloned()));
    let mut found = merged(gathered, &files, messages);
    found.sort_by(|one, other| heavier_first(&one.fact, &other.fact));
    let left_out = found.len().saturating_sub(options.most_facts).saturating_add(dropped);
    found.truncate(options.most_facts);
    let (missing, kept, steps) = sorted_out(found, after, &spelled, &files);
    (report(missing, &kept, left_out, too_long), steps)
}

/// A fact, and by what it is looked for.
struct Found {
    fact: Fact,
    /// The key of its class.
    key: String,
    /// Whether nothing longer than a file name is known of it.
    bare: bool,
}

fn heavier_first(one: &Fact, other: &Fact) -> std::cmp::Ordering {
    let order = |fact: &Fact| (u32::MAX - fact.weight, fact.class, fact.positions.first().copied());
    order(one).cmp(&order(other)).then_with(|| one.text.cmp(&other.text))
}

/// The indices of the messages that do not stand after.
fn removed(before: &[Message], after: &[Message]) -> Vec<usize> {
    let mut standing: HashMap<u64, usize> = HashMap::new();
    for message in after {
        *standing.entry(fingerprint(message)).or_default() += 1;
    }
    let is_gone = |message: &Message| match standing.get_mut(&fingerprint(message)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        Some(_) | None => true,
    };
    // From the end: of equal messages, a compaction takes the first.
    let gone: Vec<bool> = before.iter().rev().map(is_gone).collect();
    let indices = gone.iter().rev().enumerate();
    indices.filter(|(_, gone)| **gone).map(|(index, _)| index).collect()
}

fn paths(gathered: &Gathered) -> impl Iterator<Item = String> {
    let keys = gathered.found.keys().filter(|(class, _)| *class == FactClass::Path);
    keys.map(|(_, key)| key.clone())
}

/// The facts, with one for each file, however it was spelled.
fn merged(gathered: Gathered, files: &Files, messages: usize) -> Vec<Found> {
    let mut of_files: BTreeMap<usize, (String, Mention)> = BTreeMap::new();
    let mut found = Vec::new();
    for ((class, key), mention) in gathered.found {
        let file = files.file(&key).filter(|_| class == FactClass::Path);
        let Some(file) = file else {
            found.push(found_of(class, key, mention, messages));
            continue;
        };
        let (known, whole) = of_files.entry(file).or_insert_with(|| (key.clone(), mention.clone()));
        whole.speaker = whole.speaker.max(mention.speaker);
        whole.positions.extend(mention.positions);
        // The longer spelling, and of two as long the one that sorts first.
        if (key.len(), &*known) > (known.len(), &key) {
            (*known, whole.text) = (key, mention.text);
        }
    }
    let of_files = of_files.into_values();
    found.extend(of_files.map(|(key, mention)| found_of(FactClass::Path, key, mention, messages)));
    found
}

fn found_of(class: FactClass, key: String, mention: Mention, messages: usize) -> Found {
    let Mention { text, speaker, positions } = mention;
    let last = positions.last().copied().unwrap_or_default();
    let weight = Fact::weigh(speaker, positions.len(), last, messages);
    let positions = positions.into_iter().collect();
    let fact = Fact { class, text: text.into(), weight, speaker, positions };
    let bare = !key.contains('/');
    Found { fact, key, bare }
}

/// What is missing; class and weight of what stands; the steps that it took.
type SortedOut = (Vec<Fact>, Vec<(FactClass, u32)>, u64);

/// Tells the facts that are missing from those that stand.
fn sorted_out(found: Vec<Found>, after: &[Message], spelled: &Spelled, files: &Files) -> SortedOut {
    let mut phrases = Phrases::new(found.iter().map(|found| {
        let is_word = matches!(found.fact.class, FactClass::Path | FactClass::Url);
        let is_word = is_word && !found.fact.text.contains(' ');
        (found.fact.class, if is_word { "" } else { &*found.fact.text })
    }));
    let standing = phrases.found_in(after);
    let in_folders = |key: &&String| key.contains('/');
    let file = |key: &String| files.file(key);
    let located: HashSet<usize> =
        spelled.paths.iter().filter(in_folders).filter_map(file).collect();
    let named: HashSet<usize> = spelled.paths.iter().filter_map(file).collect();
    let (mut missing, mut kept) = (Vec::new(), Vec::new());
    for (number, Found { fact, key, bare }) in found.into_iter().enumerate() {
        let on = |files: &HashSet<usize>| file(&key).is_some_and(|file| files.contains(&file));
        let path = fact.class == FactClass::Path && (on(&located) || (bare && on(&named)));
        let url = fact.class == FactClass::Url && spelled.urls.contains(&key);
        if path || url || standing.contains(&number) {
            kept.push((fact.class, fact.weight));
        } else {
            missing.push(fact);
        }
    }
    (missing, kept, phrases.steps())
}

fn report(
    missing: Vec<Fact>,
    kept: &[(FactClass, u32)],
    left_out: usize,
    too_long: usize,
) -> Retention {
    let mut classes: BTreeMap<FactClass, Recall> = BTreeMap::new();
    let mut overall = Recall::default();
    for (class, weight) in kept {
        classes.entry(*class).or_default().count(*weight, true);
        overall.count(*weight, true);
    }
    for fact in &missing {
        classes.entry(fact.class).or_default().count(fact.weight, false);
        overall.count(fact.weight, false);
    }
    Retention { overall, classes, missing, left_out, too_long }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread of so many facts, and one that says half of them.
    fn steps(count: usize) -> u64 {
        let rule =
            |n: usize| format!("Never open drawer {n} of the shelf. See src/d{n}/a.rs, `a b`.\n");
        let before: String = (0..count).map(rule).collect();
        let after: String = (0..count / 2).map(|n| rule(n * 2)).collect();
        let (before, after) = ([Message::user(before)], [Message::assistant(after)]);
        audit_counted(&before, &after, &AuditOptions::default()).1
    }

    #[test]
    fn the_work_of_the_search_grows_as_the_texts_do() {
        let (small, large) = (steps(200), steps(1_600));
        assert!(large <= small * 9, "{small} steps, then {large}");
        assert!(small >= 1_000, "{small} steps are too few to tell");
    }
}
