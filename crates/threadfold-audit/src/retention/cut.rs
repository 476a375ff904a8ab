//! Cuts the clauses out of a statement that a later statement replaces. The rest of the statement
//! stays.

use crate::{
    ledger,
    message::slice,
    prose::{Subject, refers_back, sentences},
};

/// The minimum number of words and values that the rest of a sentence needs to make sense alone.
const MIN_TERMS: usize = 2;

/// The separators before which a clause begins. The first one that matches is used.
const SEPARATORS: [&str; 12] = [
    ", and ", ", but ", ", ", "; ", " and ", " but ", " so ", " und ", " aber ", " y ", " et ",
    "\u{ff0c}",
];

/// Returns the rest of a statement after a later one replaced these values in it: the sentences and
/// clauses that state none of the values and make sense alone.
pub(super) fn rest(statement: &str, values: &[&str], by: &Subject) -> String {
    let mut kept: Vec<String> = Vec::new();
    let mut follows_cut = false;
    for sentence in sentences(statement) {
        let states = states_any(sentence, values);
        let depends = follows_cut && ledger::lacks_subject(sentence);
        follows_cut |= states || depends;
        if states {
            kept.extend(without_clauses(sentence, values, by));
        } else if !depends {
            kept.push(sentence.to_owned());
        }
    }
    kept.join(" ")
}

/// Returns a sentence without those clauses that state one of these values and have most in common
/// with the later statement.
fn without_clauses(sentence: &str, values: &[&str], by: &Subject) -> Option<String> {
    let clauses = clauses(sentence);
    let states = clauses.iter().copied().filter(|clause| states_any(clause, values));
    let weighed: Vec<(usize, &str)> = states.map(|clause| (by.weight_in(clause), clause)).collect();
    let most = weighed.iter().map(|(weight, _)| *weight).max()?;
    let gone: Vec<&str> = weighed
        .into_iter()
        .filter(|(weight, _)| *weight == most)
        .map(|(_, clause)| clause)
        .collect();
    let rest: String = clauses.into_iter().filter(|clause| !gone.contains(clause)).collect();
    let separator = SEPARATORS
        .iter()
        .map(|separator| separator.trim_start())
        .find(|separator| rest.trim_start().starts_with(separator));
    let rest = rest.trim_start();
    let rest = separator.and_then(|separator| rest.strip_prefix(separator)).unwrap_or(rest);
    let says = Subject::of(rest).words_beside(by) >= MIN_TERMS && !refers_back(rest);
    says.then(|| rest.to_owned())
}

/// Returns the clauses of a sentence, each with the separator before it.
fn clauses(sentence: &str) -> Vec<&str> {
    let (mut clauses, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(c) = slice(sentence, at..).chars().next() {
        let separator =
            SEPARATORS.iter().find(|separator| slice(sentence, at..).starts_with(**separator));
        if separator.is_some() && at > start {
            clauses.push(slice(sentence, start..at));
            start = at;
        }
        at += separator.map_or(c.len_utf8(), |separator| separator.len());
    }
    clauses.push(slice(sentence, start..));
    clauses
}

fn states_any(text: &str, values: &[&str]) -> bool {
    let lower = text.to_lowercase();
    values.iter().any(|value| lower.contains(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_clause_with_the_replaced_value_is_removed() {
        let rows = [
            (
                "For the fair we need 12 tables, 40 chairs and 3 tents.",
                "We need 50 chairs now.",
                "For the fair we need 12 tables and 3 tents.",
            ),
            (
                "The budget is 1,900 for flour and Ines keeps the receipts.",
                "The budget is 2,100 now.",
                "Ines keeps the receipts.",
            ),
            (
                "our spec is a 2019 laptop and we go with fixed timestep 0.02",
                "make the timestep 0.01 instead",
                "our spec is a 2019 laptop",
            ),
            (
                "Meet Kaarina at nine and Joonas at ten.",
                "Meet Joonas at eleven instead.",
                "Meet Kaarina at nine",
            ),
            ("The date is 2031-04-18 and does not move.", "The date is now 2031-05-02.", ""),
            (
                "Tea is at noon. The fee is $30. Never raise it.",
                "The fee is $40.",
                "Tea is at noon.",
            ),
        ];
        for (old, new, stays) in rows {
            let (old_subject, new) = (Subject::of(old), Subject::of(new));
            assert_eq!(rest(old, &new.replaced_values(&old_subject), &new), stays, "{old}");
        }
    }
}
