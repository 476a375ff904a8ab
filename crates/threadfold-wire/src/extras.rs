//! What codecs keep in an [`Extra`]: the wire fields that no codec knows, and marks of their own.
//!
//! A wire field stands under its own name. A mark says in which form something came; its name
//! begins with `~`, and a wire field whose name begins so gets a second `~`.

use std::borrow::Cow;

use super::{
    fields::Fields,
    notes::{FORM, Notes, is_form},
    raw::Raw,
    tree::{Object, Tree},
};
use threadfold_core::message::{ContentBlock, Extra, Json, Name, Opaque, Text};

/// A field of an `extra`.
pub(super) type Field = (&'static str, Json);

/// Notes on forms, as they are collected while something is read.
#[derive(Debug)]
pub(super) struct Forms {
    codec: &'static str,
    pub(super) notes: Vec<Field>,
}

impl Forms {
    /// Begins the notes of a codec.
    pub(super) fn of(codec: &'static str) -> Self {
        Self { codec, notes: Vec::new() }
    }

    /// Notes a form, or keeps a field under its own name.
    pub(super) fn note(&mut self, name: &'static str, form: impl Into<Json>) {
        self.notes.push((name, form.into()));
    }

    /// Notes a form in its raw text, if there is one.
    pub(super) fn note_raw(&mut self, name: &'static str, raw: Option<Raw<'_>>) {
        self.notes.extend(raw.map(|raw| (name, raw.json())));
    }

    /// The notes and the fields that were not taken, as extra fields.
    pub(super) fn into_extra<'f>(self, rest: impl Into<Option<&'f Fields<'f>>>) -> Extra {
        keep(self.codec, rest, self.notes)
    }
}

/// Returns the fields that were not taken, after these of the codec's own.
pub(super) fn keep<'f>(
    codec: &'static str,
    rest: impl Into<Option<&'f Fields<'f>>>,
    own: Vec<Field>,
) -> Extra {
    let rest = rest.into().filter(|rest| rest.left() > 0);
    let mut fields = Vec::with_capacity(own.len() + rest.map_or(0, Fields::left));
    fields.extend(own.into_iter().map(|(key, json)| (Name::Known(key), json)));
    fields.extend(rest.into_iter().flat_map(Fields::rest).map(|(key, raw)| {
        let key =
            if key.starts_with(FORM) { format!("{FORM}{key}").into() } else { Text::from(key) };
        (Name::Read(key), raw.json())
    }));
    Extra::named(Name::Known(codec), fields)
}

/// Reads an item of a content with this reader. What that cannot read is opaque whole.
pub(super) fn read_item<'a>(
    codec: &'static str,
    item: Raw<'a>,
    read: impl FnOnce(Fields<'a>) -> Option<ContentBlock>,
) -> ContentBlock {
    let whole = || match Fields::of(item) {
        Some(fields) => raw_object(&fields),
        None => item.json(),
    };
    Fields::of(item).and_then(read).unwrap_or_else(|| Opaque::new(codec, whole()).into())
}

/// Returns a mark.
pub(super) fn mark(key: &'static str, word: &str) -> Field {
    (key, Json::text(word))
}

/// Returns the fields of an inner object that were not taken as one field of this name; `None` if
/// there are none.
pub(super) fn inner(key: &'static str, rest: &Fields<'_>) -> Option<Field> {
    (rest.left() > 0).then(|| (key, raw_object(rest)))
}

/// Returns the fields that were not taken as one object.
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
    add_rest(&mut object, notes.own_fields(extra));
    object
}

/// Returns the wire fields of this codec as an object, to which the known ones are added.
pub(super) fn own_object(codec: &str, extra: &Extra) -> Object {
    let mut object = Object::default();
    add_rest(&mut object, extra.of(codec));
    object
}

/// Adds the wire fields among these extra fields; those that are set already win.
pub(super) fn add_rest<'e>(
    object: &mut Object,
    fields: impl IntoIterator<Item = (&'e str, &'e Json)>,
) {
    let wire = fields.into_iter().filter(|(key, _)| !is_form(key));
    object.extend_unset(wire.map(|(key, json)| {
        let key = key.strip_prefix(FORM).unwrap_or(key);
        (Cow::Owned(key.to_owned()), Tree::Raw(json.clone()))
    }));
}

/// Returns the extra fields without the notes of their codec on forms.
pub(super) fn without_forms(extra: &Extra) -> Extra {
    let fields = extra.fields().filter(|(key, _)| !is_form(key));
    let fields = fields.map(|(key, json)| (key, json.clone()));
    Extra::new(extra.codec().unwrap_or_default(), fields)
}

/// Returns the extra fields of this codec but for one.
pub(super) fn without(codec: &'static str, extra: &Extra, key: &str) -> Extra {
    let fields = extra.of(codec).filter(|(name, _)| *name != key);
    Extra::new(codec, fields.map(|(name, json)| (name, json.clone())))
}

/// Returns the object that this JSON is, to be changed; an empty one for other JSON.
pub(super) fn reopen(json: Option<&Json>) -> Object {
    json.and_then(|json| Fields::parse(json.as_str())).as_ref().map(object).unwrap_or_default()
}

/// Returns the fields that were not taken as an object, ready to be written.
pub(super) fn object(rest: &Fields<'_>) -> Object {
    let mut object = Object::default();
    for (key, raw) in rest.rest() {
        object.push(key.to_owned(), raw.json());
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_field_that_looks_like_a_note_comes_back_as_itself() {
        let body = r#"{"~content":"","a":1,"~~b":2}"#;
        let extra = Forms::of("c").into_extra(&Fields::parse(body).unwrap());
        assert_eq!(extra.get("c", "~content"), None);
        let mut object = Object::default();
        add_rest(&mut object, extra.of("c"));
        assert_eq!(Tree::from(object).into_json().as_str(), body);
    }
}
