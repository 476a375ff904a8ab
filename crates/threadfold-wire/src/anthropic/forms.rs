//! The name of the codec, and its marks.
//!
//! A value may have several forms on the wire: a content is a string or a list, a flag is absent or
//! `false`. A [`Request`] holds the value; a mark in the `extra` of the message, block, tool or
//! request records its form. The name of a mark is `~` followed by the name of the field:
//!
//! | mark | on | meaning |
//! |---|---|---|
//! | `~content: ""` | message, system prompt, tool result | the content was one string |
//! | `~content: null` | result of a server tool | there was no content |
//! | `~form` | text | it looks like one of this crate's tags but was read as text, so it is written unchanged |
//! | `~picture` | image | the media type and the length of its data, or the length of its address |
//! | `~type` | call of a server tool | the wire's name of the block |
//! | `~role: "system"` | message of the system role | it was within the thread |
//! | `~response` | message from a response | the fields of the response that a request cannot hold |
//! | `~is_error`, `~title`, `~context`, `~description`, `~system`, `~tools` | their owners | `false`, `null` or empty was explicit |
//! | `~input_schema` | tool | its schema, which had no `type` |
//! | `~tool_choice` | request | a choice without the declared tools that it needs |
//! | `~max_tokens`, `~temperature` | request | the JSON text of the number, if this crate would write another one |
//!
//! A mark has an effect only while the value is unchanged. A wire field whose own name begins with
//! `~` gets a second one.

use crate::kit::*;

/// The name of the codec.
pub(super) const NAME: &str = "anthropic-messages";

/// Whether a block of this type is the result of the provider's own tool.
pub(super) fn is_server_result(kind: &str) -> bool {
    kind.ends_with("_tool_result")
}

/// Marks a content that was one string.
pub(super) fn note_string(owner: &mut Fields<'_>) {
    owner.add_word(mark::CONTENT, "");
}

/// Whether the content of this message, system prompt or tool result was read as one string.
pub(super) fn was_string(extra: &Extra) -> bool {
    extra.get(NAME, mark::CONTENT).is_some_and(|form| form.as_str() == "\"\"")
}

/// Sets a field without a value to the form that was read, such as `null` or `false`.
pub(super) fn set_spelled(object: &mut Object, extra: &Extra, note: &'static str) {
    let key = json::wire_name(note);
    if let Some(form) = extra.get(NAME, note).filter(|_| object.get(key).is_none()) {
        object.set(key, form.clone());
    }
}
