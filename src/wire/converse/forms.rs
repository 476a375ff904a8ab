//! The name of the codec, and how it remembers the forms in which fields came.
//!
//! A block is an object of one key here, and what it says stands in an object under that key. The
//! unknown fields of the inner object are the `extra` of the block under their own names; what
//! stands beside the key, which the dialect does not foresee, is one note. Texts have no inner
//! object, so theirs stand under their own names.
//!
//! | note | on | says |
//! |---|---|---|
//! | `~beside` | any block or tool but text | the fields beside the one key |
//! | `~json: ""` | text of a result | it came as JSON, not as text |
//! | `~content: []` | result | it came empty |
//! | `~status` | result | `success`, or another word, was spelled out |
//! | `~type` | server call or result | its `type` |
//! | `~format` | text document | it came without a `format` |
//! | `~schema` | tool | its schema, which came without a `type` |
//! | `~role: "system"` | message of the system role | it stood within the thread |
//! | `~answer` | message from a response | the fields of the response that a request has not |
//! | `~temperature`, `~toolChoice` | request | the text, where ours would differ |
//! | `~system`, `~toolConfig`, `~inferenceConfig` | request | `null` or empty was spelled out |
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
pub(super) const NAME: &str = "bedrock-converse";

pub(super) const ANSWER: &str = "~answer";
pub(super) const BESIDE: &str = "~beside";
pub(super) const CONTENT: &str = "~content";
pub(super) const FORMAT: &str = "~format";
pub(super) const INFERENCE: &str = "~inferenceConfig";
pub(super) const JSON: &str = "~json";
pub(super) const ROLE: &str = "~role";
pub(super) const SCHEMA: &str = "~schema";
pub(super) const STATUS: &str = "~status";
pub(super) const SYSTEM: &str = "~system";
pub(super) const TEMPERATURE: &str = "~temperature";
pub(super) const TOOL_CHOICE: &str = "~toolChoice";
pub(super) const TOOLS: &str = "~toolConfig";
pub(super) const TYPE: &str = "~type";

/// Notes on forms, as they are collected while something is read.
#[derive(Debug, Default)]
pub(super) struct Forms(Vec<(Text, Json)>);

impl Forms {
    /// Returns the note on what stands beside the one key of a block.
    pub(super) fn beside(outer: &Fields<'_>) -> Self {
        let mut forms = Self::default();
        if outer.rest().next().is_some() {
            forms.note(BESIDE, raw_object(outer));
        }
        forms
    }

    /// Notes a form, or keeps a field under its own name.
    pub(super) fn note(&mut self, name: &'static str, form: impl Into<Json>) {
        self.0.push((name.into(), form.into()));
    }

    /// Notes a form in its raw text, if there is one.
    pub(super) fn note_raw(&mut self, name: &'static str, raw: Option<&RawValue>) {
        if let Some(raw) = raw {
            self.note(name, Json::from_raw(raw));
        }
    }

    /// The notes and the fields that nobody took, as extra fields.
    pub(super) fn into_extra<'f>(self, rest: impl Into<Option<&'f Fields<'f>>>) -> Extra {
        let rest = rest.into().into_iter().flat_map(Fields::rest);
        let rest = rest.map(|(key, raw)| (kept_name(key), Json::from_raw(raw)));
        Extra::new(NAME, self.0.into_iter().chain(rest))
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

/// Adds the fields of the object that this JSON is; those that are set already win.
pub(super) fn reopen(object: &mut Object, json: Option<&Json>) {
    let fields = json.and_then(|json| Fields::parse(json.as_str()));
    object.extend_unset(fields.iter().map(self::object).flat_map(Object::into_fields));
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
        let body = r#"{"~json":"","a":1,"~~b":2}"#;
        let extra = Forms::default().into_extra(&Fields::parse(body).unwrap());
        assert_eq!(extra.get(NAME, JSON), None);
        let mut object = Object::default();
        add_rest(&mut object, extra.of(NAME));
        assert_eq!(Tree::from(object).into_json().as_str(), body);
    }
}
