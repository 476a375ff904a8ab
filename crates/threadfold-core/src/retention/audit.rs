//! The audit: what was removed, what facts it held, which of them still stand.

use std::collections::HashMap;

use super::{gather::Gathered, options::AuditOptions, report::Retention, search::Search};
use crate::{message::Message, prose::fingerprint};

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
    let mut gathered = Gathered::default();
    for index in removed(before, after) {
        if let Some(message) = before.get(index) {
            gathered.read(index, message, options);
        }
    }
    let mut search = Search::new(&gathered, before.len(), options);
    after.iter().for_each(|message| search.read(message));
    search.retention()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::steps;

    /// A thread of so many facts, and one that says half of them.
    fn steps_of(count: usize) -> u64 {
        let rule =
            |n: usize| format!("Never open drawer {n} of the shelf. See src/d{n}/a.rs, `a b`.\n");
        let before: String = (0..count).map(rule).collect();
        let after: String = (0..count / 2).map(|n| rule(n * 2)).collect();
        let (before, after) = ([Message::user(before)], [Message::assistant(after)]);
        steps::steps(u64::MAX, || drop(audit(&before, &after, &AuditOptions::default())))
    }

    #[test]
    fn the_work_of_the_search_grows_as_the_texts_do() {
        let (small, large) = (steps_of(200), steps_of(1_600));
        assert!(large <= small * 9, "{small} steps, then {large}");
        assert!(small >= 1_000, "{small} steps are too few to tell");
    }
}
