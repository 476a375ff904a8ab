//! What codecs keep in an [`Extra`]: the wire fields that nobody knows, and marks of their own.
//!
//! A wire field stands under its own name. A mark says in which form something came; its name
//! begins with `~`, and a wire field whose name begins so gets a second `~`.

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
    rest.rest().next()?;
    Some((key, raw_object(rest)))
}

/// Returns the fields that nobody took as one object.
pub(super) fn raw_object(rest: &Fields<'_>) -> Json {
    Tree::from(object(rest)).into_json()
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
    json.and_then(|json| Fields::parse(json.as_str())).as_ref().map(object).unwrap_or_default()
}

fn object(fields: &Fields<'_>) -> Object {
    let mut object = Object::default();
    for (key, raw) in fields.rest() {
        object.push(key.to_owned(), Json::from_raw(raw));
    }
    object
}
