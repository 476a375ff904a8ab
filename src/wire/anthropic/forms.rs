//! The name of the codec, and how it remembers the forms in which fields came.
//!
//! One value often has several spellings on the wire: a content is a string or a list, a flag is
//! absent or `false`. The vocabulary holds the value; the spelling is a note in the `extra` of the
//! message, block, tool or request. The name of a note is that of the field behind a `~`:
//!
//! | note | on | says |
//! |---|---|---|
//! | `~content: ""` | message, system prompt, tool result | the content was one string |
//! | `~content: null` | result of a server tool | there was no content |
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

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::{
    message::{Extra, Json, Text},
    wire::{
        fields::Fields,
        notes::{FORM, is_form},
        tree::{Object, Tree},
    },
};

/// The name of the codec.
pub(super) const NAME: &str = "anthropic-messages";

pub(super) const ANSWER: &str = "~answer";
pub(super) const CONTENT: &str = "~content";
pub(super) const CONTEXT: &str = "~context";
pub(super) const DESCRIPTION: &str = "~description";
pub(super) const INPUT_SCHEMA: &str = "~input_schema";
pub(super) const IS_ERROR: &str = "~is_error";
pub(super) const MAX_TOKENS: &str = "~max_tokens";
pub(super) const ROLE: &str = "~role";
pub(super) const SYSTEM: &str = "~system";
pub(super) const TEMPERATURE: &str = "~temperature";
pub(super) const TITLE: &str = "~title";
pub(super) const TOOL_CHOICE: &str = "~tool_choice";
pub(super) const TOOLS: &str = "~tools";
pub(super) const TYPE: &str = "~type";

/// Notes on forms, as they are collected while something is read.
#[derive(Debug, Default)]
pub(super) struct Forms(Vec<(Text, Json)>);

impl Forms {
    /// Notes a form.
    pub(super) fn note(&mut self, name: &'static str, form: impl Into<Json>) {
        self.0.push((name.into(), form.into()));
    }

    /// Notes that a content came as one string.
    pub(super) fn note_string(&mut self) {
        self.note(CONTENT, serde_json::Value::from(""));
    }

    /// The notes and the fields that nobody took, as extra fields.
    pub(super) fn into_extra<'f>(self, rest: impl Into<Option<&'f Fields<'f>>>) -> Extra {
        let rest = rest.into().into_iter().flat_map(Fields::rest);
        let rest = rest.map(|(key, raw)| (kept_name(key), Json::from_raw(raw)));
        Extra::new(NAME, self.0.into_iter().chain(rest))
    }
}

/// Whether the content of this message, system prompt or tool result came as one string.
pub(super) fn came_as_string(extra: &Extra) -> bool {
    extra.get(NAME, CONTENT).is_some_and(|form| form.as_str() == "\"\"")
}

/// Sets a field that the vocabulary says is absent, if its absence was spelled out.
pub(super) fn set_spelled(
    object: &mut Object,
    extra: &Extra,
    key: &'static str,
    note: &'static str,
) {
    if let Some(form) = extra.get(NAME, note).filter(|_| object.get(key).is_none()) {
        object.set(key, form.clone());
    }
}

/// Adds the wire fields among these extra fields; those that are set already win.
pub(super) fn add_rest<'e>(
    object: &mut Object,
    fields: impl IntoIterator<Item = (&'e str, &'e Json)>,
) {
    let wire = fields.into_iter().filter(|(key, _)| !is_form(key));
    object.extend_unset(wire.map(|(key, json)| (wire_name(key), Tree::Raw(json.clone()))));
}

/// Returns raw fields as the object that they came from, ready to be written.
pub(super) fn object(fields: &Fields<'_>) -> Object {
    let raw = |(key, raw): (&str, &RawValue)| {
        (Cow::Owned(key.to_owned()), Tree::Raw(Json::from_raw(raw)))
    };
    let mut object = Object::default();
    object.extend_unset(fields.rest().map(raw));
    object
}

/// Returns raw fields as the JSON that they came from.
pub(super) fn raw_object(fields: &Fields<'_>) -> Json {
    Tree::from(object(fields)).into_json()
}

fn kept_name(key: &str) -> Text {
    if key.starts_with(FORM) { format!("{FORM}{key}").into() } else { key.into() }
}

fn wire_name(key: &str) -> Cow<'static, str> {
    Cow::Owned(key.strip_prefix(FORM).unwrap_or(key).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_field_that_looks_like_a_note_comes_back_as_itself() {
        let body = r#"{"~content":"","a":1,"~~b":2}"#;
        let extra = Forms::default().into_extra(&Fields::parse(body).unwrap());
        assert!(!came_as_string(&extra));
        let mut object = Object::default();
        add_rest(&mut object, extra.of(NAME));
        assert_eq!(Tree::from(object).into_json().as_str(), body);
    }
}
