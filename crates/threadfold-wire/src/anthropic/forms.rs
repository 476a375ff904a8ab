//! The name of the codec, and how it remembers the forms in which fields came.
//!
//! One value often has several spellings on the wire: a content is a string or a list, a flag is
//! absent or `false`. The vocabulary holds the value; the spelling is a note in the `extra` of the
//! message, block, tool or request. The name of a note is that of the field after a `~`:
//!
//! | note | on | says |
//! |---|---|---|
//! | `~content: ""` | message, system prompt, tool result | the content was one string |
//! | `~content: null` | result of a server tool | there was no content |
//! | `~form` | text | it looks like one of our tags but came as text, so it is written unchanged |
//! | `~type` | call of a server tool | the wire's name of the block |
//! | `~role: "system"` | message of the system role | it stood within the thread |
//! | `~answer` | message from a response | the fields of the response that a request has not |
//! | `~is_error`, `~title`, `~context`, `~description`, `~system`, `~tools` | their owners | `false`, `null` or empty was spelled out |
//! | `~input_schema` | tool | its schema, which came without a `type` |
//! | `~tool_choice` | request | a choice that came without the tools that it is about |
//! | `~max_tokens`, `~temperature` | request | the text of the number, where ours would differ |
//!
//! A note counts only while the value is still what it was a note on. A wire field whose own name
//! begins with `~` is kept with a second one.

use crate::kit::*;

/// The name of the codec.
pub(super) const NAME: &str = "anthropic-messages";

/// Whether a block of this type is the answer to a call of the provider's own tool.
pub(super) fn is_server_result(kind: &str) -> bool {
    kind.ends_with("_tool_result")
}

/// Notes that a content came as one string.
pub(super) fn note_string(owner: &mut Fields<'_>) {
    owner.mark("~content", "");
}

/// Whether the content of this message, system prompt or tool result came as one string.
pub(super) fn came_as_string(extra: &Extra) -> bool {
    extra.get(NAME, "~content").is_some_and(|form| form.as_str() == "\"\"")
}

/// Sets a field that is absent in the vocabulary to the value by which the body spelled that out.
pub(super) fn set_spelled(object: &mut Object, extra: &Extra, note: &'static str) {
    let key = json::wire_name(note);
    if let Some(form) = extra.get(NAME, note).filter(|_| object.get(key).is_none()) {
        object.set(key, form.clone());
    }
}
