//! A fast check that excludes most rules before a sentence is compared with them. It is needed
//! because a thread may have a thousand rules and comparing two subjects takes long.

use std::cmp::Ordering;

use super::rule::hash_of;
use crate::prose::Subject;

/// The terms of a subject, as sorted hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Terms {
    words: Vec<u64>,
    identifiers: Vec<u64>,
    defines: bool,
}

impl Terms {
    pub(super) fn of(subject: &Subject) -> Self {
        Self {
            words: hashes(subject.terms()),
            identifiers: hashes(subject.identifiers()),
            defines: subject.defines(),
        }
    }

    /// Whether a subject with these terms may replace another one. `false` is certain, `true` is
    /// not.
    pub(super) fn may_replace(&self, old: &Self) -> bool {
        let (one, two) = (&self.identifiers, &old.identifiers);
        let both_define = self.defines && old.defines;
        let may_be_same = one.is_empty() || two.is_empty() || share(one, two);
        both_define || (may_be_same && share(&self.words, &old.words))
    }
}

fn hashes<'a>(terms: impl Iterator<Item = &'a str>) -> Vec<u64> {
    let mut hashes: Vec<u64> = terms.map(hash_of).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// Whether two sorted lists share an element.
fn share(one: &[u64], two: &[u64]) -> bool {
    let (mut one, mut two) = (one.iter().peekable(), two.iter().peekable());
    while let (Some(left), Some(right)) = (one.peek(), two.peek()) {
        match left.cmp(right) {
            Ordering::Less => drop(one.next()),
            Ordering::Greater => drop(two.next()),
            Ordering::Equal => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ledger::Ledger,
        message::{Message, steps::steps},
    };

    #[test]
    fn terms_exclude_only_what_does_not_replace() {
        let statements = [
            "The port of the proxy is 8443.",
            "The port of the proxy is 8080.",
            "Seats are now limited to 40 for the pilot.",
            "The pilot is limited to 25 seats.",
            "The owner of the pilot is Ada Byron.",
            "Pilot owner: Grace Hopper",
            "The owner is now Grace Hopper.",
            "It is no longer Ada Byron's.",
            "TODO: the fee is $40 a seat",
            "NOTE: the fee is $30 a seat",
            "The fee is now free.",
            "Der Port des Servers ist jetzt 8443.",
            "Der Port des Servers ist 8080.",
            "\u{7aef}\u{53e3}\u{662f} 8443",
            "\u{7aef}\u{53e3}\u{662f} 8080",
            "The next stop is a long walk.",
            "Next: the old pier",
            "After lunch, the next stop is the old pier.",
            "Room 12 is free.",
            "Room 12 is now taken by Ada.",
            "Room 14 is taken.",
            "We now meet on Monday.",
            "We meet on Friday.",
            "Leo is 7.",
            "Leo is now 8.",
            "Never tell Ada the code 4471.",
            "Never tell anyone the code 4472.",
            "Use tea instead of coffee.",
            "We drink coffee at noon.",
        ];
        let subjects = statements.map(Subject::of);
        let mut replaced = 0;
        for new in &subjects {
            for old in &subjects {
                let may = Terms::of(new).may_replace(&Terms::of(old));
                assert!(may || !new.replaces(old), "{new:?} {old:?}");
                replaced += usize::from(new.replaces(old));
            }
        }
        assert!(replaced >= 10, "{replaced}");
    }

    #[test]
    fn twice_as_many_rules_about_other_things_take_about_twice_the_steps() {
        let forms: [fn(usize) -> String; 2] = [
            |number| format!("X{number} must be Y{number}.\n"),
            |number| format!("Item {number} must be blue.\n"),
        ];
        for form in forms {
            let steps_of = |count| {
                let rules: String = (0..count).map(form).collect();
                let message = Message::user(rules);
                steps(u64::MAX, || Ledger::default().read(0, &message))
            };
            let (few, many) = (steps_of(200), steps_of(400));
            // A comparison is one step. Comparing each rule with each other one would take 40,000
            // more steps.
            assert!(many <= few * 2 + 10_000, "{few} steps, then {many}: {}", form(1));
        }
    }
}
