//! What codecs keep in the `extra` of requests, messages, blocks and tools: wire fields that nobody
//! took, under their own names, and marks of the codec's own, whose names begin with `~`. A wire
//! field whose name begins so gets a second `~`.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    fields::Fields,
    notes::{FORM, Notes},
    tree::{Object, Tree},
};
use crate::message::{Extra, Json, Text};

/// A field of an `extra`.
pub(super) type Field = (&'static str, Json);

/// Returns the fields that nobody took, behind these of the codec's own.
pub(super) fn keep(codec: &'static str, rest: &Fields<'_>, own: Vec<Field>) -> Extra {
    let own = own.into_iter().map(|(key, json)| (Text::from(key), json));
    let rest = rest.rest().map(|(key, raw)| {
        let key =
            if key.starts_with(FORM) { format!("{FORM}{key}").into() } else { Text::from(key) };
        (key, Json::from_raw(raw))
    });
    Extra::new(codec, own.chain(rest))
}

/// Returns a mark.
pub(super) fn mark(key: &'static str, word: &str) -> Field {
    (key, Json::from(Value::from(word)))
}

/// Returns what nobody took of an inner object, as a field of this name; nothing if that is nothing.
pub(super) fn inner(key: &'static str, rest: &Fields<'_>) -> Option<Field> {
    let mut object = Object::default();
    for (key, raw) in rest.rest() {
        object.push(key.to_owned(), Json::from_raw(raw));
    }
    (rest.rest().next().is_some()).then(|| (key, Tree::from(object).into_json()))
}

/// The word of a mark.
pub(super) fn marked(codec: &str, extra: &Extra, key: &str) -> Option<Text> {
    serde_json::from_str(extra.get(codec, key)?.as_str()).ok()
}

/// Returns the wire fields as an object, to which the known ones are added. Another codec's are
/// noted as left out.
pub(super) fn wire_fields(extra: &Extra, notes: &mut Notes) -> Object {
    let mut object = Object::default();
    for (key, json) in notes.own_fields(extra) {
        let key = match key.strip_prefix(FORM) {
            None => key,
            Some(escaped) if escaped.starts_with(FORM) => escaped,
            Some(_) => continue,
        };
        object.push(Cow::Owned(key.to_owned()), json.clone());
    }
    object
}

/// Returns the object that this JSON is, to be changed; an empty one for other JSON.
pub(super) fn reopen(json: Option<&Json>) -> Object {
    let mut object = Object::default();
    let fields = json.and_then(|json| Fields::parse(json.as_str()));
    for (key, raw) in fields.iter().flat_map(Fields::rest) {
        object.push(key.to_owned(), Json::from_raw(raw));
    }
    object
}
