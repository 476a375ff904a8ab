//! The audit of a compaction: which facts of the removed messages the thread still states.

use std::collections::HashMap;

use super::{facts::Facts, options::RetentionPolicy};
use crate::{message::Message, prose::fingerprint};
use threadfold_core::retention::Retention;

/// Returns the facts that a compaction lost: the facts in the messages of `before` that are not in
/// `after`, and which of these facts no message of `after` states.
///
/// No model is called, so a rule that a summary states in other words counts as missing. Facts are
/// compared as follows:
///
/// - White space and quotation marks do not count, nor does the case of tasks, errors
///   and hashes, the point at the end of a sentence, or the `v` of a version.
/// - Two spellings of a path are one file if one ends with the other at a slash, and no other path
///   in `before` or `after` ends with it too. A bare file name stands for a longer path only if no
///   longer spelling was known before.
/// - A fact is found only as a whole: `src/a.rs` is not in `src/a.rs.bak`, `12 ms` not in `112 ms`,
///   `1.2` not in `1.2.3`, `cargo test` not in `cargo test --all`. A name is found within a longer
///   one only between its dots and colons.
///
/// Reasoning and reminders hold no facts, because every compaction strips them. The time is linear
/// in the length of the texts.
///
/// ```
/// use threadfold::{Message, retention::{RetentionPolicy, FactClass, audit}};
///
/// let before = [Message::user("Fix src/parse.rs. It takes 250 ms.")];
/// let after = [Message::assistant("The user wants `./src/parse.rs` fixed.")];
/// let retention = audit(&before, &after, &RetentionPolicy::default());
/// assert_eq!(retention.overall.facts, 2);
/// assert_eq!(retention.missing[0].class, FactClass::Number);
/// assert_eq!(retention.missing[0].text, "250 ms");
/// ```
#[must_use]
pub fn audit(before: &[Message], after: &[Message], policy: &RetentionPolicy) -> Retention {
    let mut facts = Facts::new(policy);
    facts.messages = before.len();
    for (index, message) in removed(before, after) {
        facts.gathered.read(index, message, &facts.options);
    }
    facts.audit(after)
}

/// Returns the messages of `before` that are not in `after`, with their indices, in order.
fn removed<'a>(before: &'a [Message], after: &[Message]) -> Vec<(usize, &'a Message)> {
    let mut kept: HashMap<u64, usize> = HashMap::new();
    for message in after {
        *kept.entry(fingerprint(message)).or_default() += 1;
    }
    let mut removed = Vec::new();
    // From the end, because a compaction removes the first of equal messages.
    for (index, message) in before.iter().enumerate().rev() {
        match kept.get_mut(&fingerprint(message)) {
            Some(count) if *count > 0 => *count -= 1,
            Some(_) | None => removed.push((index, message)),
        }
    }
    removed.reverse();
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::steps;

    /// Counts the steps of auditing a thread that states `count` things against one with half of them.
    fn steps_of(count: usize) -> u64 {
        let rule =
            |n: usize| format!("Never open drawer {n} of the shelf. See src/d{n}/a.rs, `a b`.\n");
        let before: String = (0..count).map(rule).collect();
        let after: String = (0..count / 2).map(|n| rule(n * 2)).collect();
        let (before, after) = ([Message::user(before)], [Message::assistant(after)]);
        steps::steps(u64::MAX, || drop(audit(&before, &after, &RetentionPolicy::default())))
    }

    #[test]
    fn the_work_of_an_audit_is_linear_in_its_texts() {
        let (small, large) = (steps_of(200), steps_of(1_600));
        assert!(large <= small * 9, "{small} steps, then {large}");
        assert!(small >= 1_000, "{small} steps are too few to tell");
    }
}
