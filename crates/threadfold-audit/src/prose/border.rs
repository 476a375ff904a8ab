//! Checks that a match is a whole fact and not part of a longer one.

use super::{class::FactClass, token::is_word};

/// Whether the text between these byte offsets is a whole fact of its class. `12 ms` within `112
/// ms` is not, nor `1.2` within `1.2.3`, nor `cargo test` within `cargo test --all`.
pub(crate) fn is_whole(class: FactClass, text: &str, start: usize, end: usize) -> bool {
    let Some((before, rest)) = text.split_at_checked(start) else { return false };
    let Some(after) = text.get(end..) else { return false };
    let (joins_before, joins_after) = joints(class);
    let is_joined = joins(joins_before, before.chars().rev()) || joins(joins_after, after.chars());
    let has_more = class == FactClass::Command && has_more_arguments(after);
    let runs_on = runs_on(class, before, rest.starts_with(is_word)) || after.starts_with(is_word);
    !is_joined && !has_more && !runs_on
}

/// Returns the characters that join a fact of this class to a word before it, and those that join
/// it to a word after it.
fn joints(class: FactClass) -> (&'static str, &'static str) {
    match class {
        FactClass::Version => (".-+", ".-+"),
        FactClass::Number => (".,:/", "/"),
        FactClass::Hash => ("-", "-"),
        FactClass::Command => ("-./\\", "-./\\=:"),
        FactClass::Quote => ("-./\\", "-./\\"),
        FactClass::Identifier => ("", "-"),
        FactClass::Task | FactClass::Error | FactClass::Path | FactClass::Url => ("", ""),
    }
}

/// Whether the characters next to a fact, the nearest first, are one of these signs and a character
/// of a word.
fn joins(signs: &str, mut next: impl Iterator<Item = char>) -> bool {
    next.next().is_some_and(|c| signs.contains(c)) && next.next().is_some_and(is_word)
}

/// Whether the word or sign directly before a match belongs to the same fact.
fn runs_on(class: FactClass, before: &str, starts_wordy: bool) -> bool {
    let is_wordy = before.ends_with(is_word);
    match class {
        // The `v` of a version is not part of a word.
        FactClass::Version => {
            is_wordy && before.strip_suffix(['v', 'V']).is_none_or(|rest| rest.ends_with(is_word))
        }
        FactClass::Number => is_wordy || before.ends_with('-'),
        FactClass::Hash => is_wordy,
        FactClass::Identifier => is_wordy || (before.ends_with('-') && !starts_wordy),
        FactClass::Task
        | FactClass::Error
        | FactClass::Path
        | FactClass::Url
        | FactClass::Command
        | FactClass::Quote => is_wordy && starts_wordy,
    }
}

/// Whether a flag or a shell operator follows on the line.
fn has_more_arguments(after: &str) -> bool {
    let rest = after.trim_start_matches([' ', '\t']);
    let after_dash = rest.strip_prefix('-');
    rest.len() < after.len()
        && (after_dash.is_some_and(|name| name.starts_with(|c| is_word(c) || c == '-'))
            || ["| ", "&& ", "> "].iter().any(|operator| rest.starts_with(operator)))
}
