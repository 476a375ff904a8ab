//! Checks whether a match is a whole fact, and not part of a longer one.

use super::{class::FactClass, token::is_word};

/// Whether the text between these byte offsets is a whole fact of its class. `12 ms` within `112
/// ms` is not, nor `1.2` within `1.2.3`, nor `cargo test` within `cargo test --all`.
pub(crate) fn is_whole(class: FactClass, text: &str, start: usize, end: usize) -> bool {
    let Some((before, rest)) = text.split_at_checked(start) else { return false };
    let Some(after) = text.get(end..) else { return false };
    !runs_on(class, before, rest.starts_with(is_word)) && !goes_on(class, after)
}

/// Whether the text before a match belongs to it.
fn runs_on(class: FactClass, before: &str, starts_wordy: bool) -> bool {
    let mut chars = before.chars().rev();
    let (last, previous) = (chars.next(), chars.next());
    let wordy = |c: Option<char>| c.is_some_and(is_word);
    let joined = |signs: &str| last.is_some_and(|c| signs.contains(c)) && wordy(previous);
    match class {
        FactClass::Version => {
            let v = matches!(last, Some('v' | 'V')) && !wordy(previous);
            (wordy(last) && !v) || joined(".-+")
        }
        FactClass::Number => wordy(last) || matches!(last, Some('-')) || joined(".,:/"),
        FactClass::Hash => wordy(last) || joined("-"),
        FactClass::Command | FactClass::Quote => (wordy(last) && starts_wordy) || joined("-./\\"),
        FactClass::Identifier => wordy(last) || matches!(last, Some('-')) && !starts_wordy,
        FactClass::Constraint
        | FactClass::Task
        | FactClass::Error
        | FactClass::Path
        | FactClass::Url
        | FactClass::Checkpoint => wordy(last) && starts_wordy,
    }
}

/// Whether the text after a match belongs to it.
fn goes_on(class: FactClass, after: &str) -> bool {
    let mut chars = after.chars();
    let (first, second) = (chars.next(), chars.next());
    let wordy = |c: Option<char>| c.is_some_and(is_word);
    let joined = |signs: &str| first.is_some_and(|c| signs.contains(c)) && wordy(second);
    match class {
        FactClass::Version => wordy(first) || joined(".-+"),
        FactClass::Number => wordy(first) || joined("/"),
        FactClass::Hash => wordy(first) || joined("-"),
        FactClass::Command => wordy(first) || joined("-./\\=:") || has_more_arguments(after),
        FactClass::Quote => wordy(first) || joined("-./\\"),
        FactClass::Identifier => wordy(first) || joined("-"),
        FactClass::Constraint
        | FactClass::Task
        | FactClass::Error
        | FactClass::Path
        | FactClass::Url
        | FactClass::Checkpoint => wordy(first),
    }
}

/// Whether a flag or a shell operator follows on the line.
fn has_more_arguments(after: &str) -> bool {
    let rest = after.trim_start_matches([' ', '\t']);
    let spaced = rest.len() < after.len();
    let flag =
        rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c| is_word(c) || c == '-'));
    spaced && (flag || ["| ", "&& ", "> "].iter().any(|operator| rest.starts_with(operator)))
}
