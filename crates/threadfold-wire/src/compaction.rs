//! Compaction by the provider: its own summary replaces earlier messages, in a form that only the
//! provider reads.

use super::json::{Fields, Object};
use threadfold_core::message::{Json, Usage};

/// Marks a compaction block as written by this crate, in the field for the provider's signature. It
/// does not authenticate the text: the client could have changed it.
pub(super) const BY_GATEWAY: &str = "threadfold";

/// The edit of this type in `context_management`.
pub(super) fn edit<'a>(management: &'a Json, list: Option<&str>, kind: &str) -> Option<Fields<'a>> {
    let edits = match list {
        Some(list) => Fields::parse(management.as_str())?.items(list)?,
        None => super::json::Raw::of(management).items()?,
    };
    let mut edits = edits.into_iter().filter_map(Fields::of);
    edits.find(|edit| edit.word("type").is_some_and(|word| word == kind))
}

/// The usage, under the names that both dialects use.
pub(super) fn counts(usage: Usage) -> Object {
    Object::of("input_tokens", usage.input).with("output_tokens", usage.output)
}
