//! Writing back the contents of an [`Extra`]: the wire fields that the codec does not know, and the
//! codec's own marks.

use std::borrow::Cow;

use super::{
    json::{Fields, Object, Raw, Tree, is_mark, wire_name},
    notes::Notes,
};
use threadfold_core::message::{ContentBlock, Extra, Json, Opaque, Text};

/// Reads an item of a content with this function. An item that it cannot read becomes an opaque
/// block.
pub(super) fn read_item<'a>(
    codec: &'static str,
    item: Raw<'a>,
    read: impl FnOnce(Fields<'a>) -> Option<ContentBlock>,
) -> ContentBlock {
    Fields::of(item).and_then(read).unwrap_or_else(|| {
        let whole = Fields::of(item).map_or_else(|| item.json(), |fields| fields.json());
        Opaque::new(codec, whole).into()
    })
}

/// The text of a mark.
pub(super) fn text_mark(codec: &str, extra: &Extra, key: &str) -> Option<Text> {
    Raw::of(extra.get(codec, key)?).text()
}

/// Returns the unknown wire fields as an object, to which the caller adds the known ones. Fields of
/// another codec are reported as left out.
pub(super) fn wire_fields(extra: &Extra, notes: &mut Notes) -> Object {
    let mut object = Object::default();
    add_rest(&mut object, notes.own_fields(extra));
    object
}

/// Returns the unknown wire fields of this codec as an object, to which the known ones are added.
pub(super) fn own_object(codec: &str, extra: &Extra) -> Object {
    let mut object = Object::default();
    add_rest(&mut object, extra.of(codec));
    object
}

/// Adds the wire fields among these extra fields, unless they are set already.
pub(super) fn add_rest<'e>(
    object: &mut Object,
    fields: impl IntoIterator<Item = (&'e str, &'e Json)>,
) {
    let wire = fields.into_iter().filter(|(key, _)| !is_mark(key));
    object.extend_unset(
        wire.map(|(key, json)| (Cow::Owned(wire_name(key).to_owned()), Tree::Raw(json.clone()))),
    );
}

/// Returns the extra fields without the codec's marks.
pub(super) fn without_forms(extra: &Extra) -> Extra {
    let fields = extra.fields().filter(|(key, _)| !is_mark(key));
    let fields = fields.map(|(key, json)| (key, json.clone()));
    Extra::new(extra.codec().unwrap_or_default(), fields)
}

/// Sets or removes an extra field of this codec.
pub(super) fn set_field(extra: &mut Extra, codec: &'static str, key: &str, json: Option<Json>) {
    let others = extra.of(codec).filter(|(name, _)| *name != key);
    let others = others.map(|(name, json)| (name, json.clone()));
    *extra = Extra::new(codec, others.chain(json.map(|json| (key, json))));
}

/// Returns the object in this JSON, so that it can be changed; an empty object for other JSON.
pub(super) fn reopen(json: Option<&Json>) -> Object {
    json.and_then(|json| Fields::parse(json.as_str()))
        .map(|fields| fields.tree())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_field_that_looks_like_a_note_comes_back_as_itself() {
        let body = r#"{"~content":"","a":1,"~~b":2}"#;
        let extra = Fields::parse(body).unwrap().keep("c");
        assert_eq!(extra.get("c", "~content"), None);
        let mut object = Object::default();
        add_rest(&mut object, extra.of("c"));
        assert_eq!(object.into_json().as_str(), body);
    }
}
