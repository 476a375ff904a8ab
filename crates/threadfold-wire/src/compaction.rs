//! Compaction by the provider itself: its own summary in the place of the messages before it, in a
//! form that only it reads.

use super::json::{Fields, Object};
use threadfold_core::message::{Json, Usage};

/// The proof in a block that this crate made it, where a provider has its signature. It proves
/// nothing about the text, which is the client's own.
pub(super) const BY_GATEWAY: &str = "threadfold";

/// The edit of `context_management` of this type.
pub(super) fn edit<'a>(management: &'a Json, list: Option<&str>, kind: &str) -> Option<Fields<'a>> {
    let edits = match list {
        Some(list) => Fields::parse(management.as_str())?.items(list)?,
        None => super::json::Raw::of(management).items()?,
    };
    let mut edits = edits.into_iter().filter_map(Fields::of);
    edits.find(|edit| edit.word("type").is_some_and(|word| word == kind))
}

/// A usage under the names that both dialects give to the counts.
pub(super) fn counts(usage: Usage) -> Object {
    Object::of("input_tokens", usage.input).with("output_tokens", usage.output)
}
