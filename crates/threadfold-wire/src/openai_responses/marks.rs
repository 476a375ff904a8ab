//! The marks and opaque blocks of this codec, in the `extra` of requests, messages, blocks and
//! tools.
//!
//! An `extra` holds unknown wire fields under their own names, and the codec's marks, whose names
//! begin with `~`; a wire field whose name begins with `~` gets a second one.
//!
//! | mark | on | meaning |
//! |---|---|---|
//! | `~item` | message, first text of an item, thinking, call, result | the `type`, `id` and `status` that the item had |
//! | `item` (no `~`, so other codecs report it as left out) | first text of an item | the other fields of the item, such as `phase` |
//! | `~joins` | text | it is a further part of the previous item |
//! | `~content` | message, text, result | the form of the content if it is not the usual one |
//! | `~input` | message, request | `string` if the input was one text, `absent` if there was none |
//! | `~role` | system message | `developer`, if that was its role |
//! | `~as` | system message | `instructions` for the parameter, `item` for an item before the thread |
//! | `~as` | text | `refusal`, `input_text`: the type of an answer's part if it is not the usual one |
//! | `~form` | text | it looks like one of this crate's tags but was read as text, so it is written unchanged |
//! | `~as` | call, result | the type of the item if it is not a function's |
//! | `~as` | summary | `text`: it was read as text, so it is no compaction of this thread |
//! | `~named` | result | `id`, if that field names the call |
//! | `~blank` | text of a result | it was blank |
//! | `~signed` | thinking | it had `encrypted_content` |
//! | `~next` | thinking | the identity of the item after it |
//! | `~led` | text, call | the id of the reasoning that led to it; empty if that had none |
//! | `~picture` | image | the media type and the length of its data, or the length of its address |
//! | `~detail` | image | `absent` if it had no detail |
//! | `~annotations` | text | it had an empty list |
//! | `~parameters`, `~strict` | tool | `absent` if the function had none |
//! | `~temperature`, `~tool_choice`, `~max_output_tokens` | request | the JSON text of a parameter that this crate would write differently |
//! | `~response` | answer | the other fields of the response body |
//!
//! An opaque block is an item as it was read, except that `{"~item": .., "~led": ..}` is an item
//! with the reasoning that led to it, and `{"~part": ..}` is a part of a content.

use crate::kit::*;

/// The name of the dialect.
pub(super) const CODEC: &str = "openai-responses";

/// The text of a mark.
pub(super) fn marked(extra: &Extra, key: &str) -> Option<Text> {
    extras::text_mark(CODEC, extra, key)
}

/// Removes the fields that identify an item for the provider, and keeps them as a mark, because
/// they mean nothing to other codecs. Returns whether there were any.
pub(super) fn note_identity(fields: &mut Fields<'_>) -> bool {
    let mut identity = Object::default();
    for key in ["type", "id", "status"] {
        identity.set_some(key, fields.take_json(key));
    }
    let any = identity.len() > 0;
    if any {
        fields.add(mark::ITEM, identity.into_json());
    }
    any
}

/// Returns the fields that [`note_identity`] removed and the unknown fields, to which the known
/// ones are added.
pub(super) fn item_fields(extra: &Extra) -> Object {
    reopen(extra.get(CODEC, mark::ITEM)).and(own_object(CODEC, extra))
}

/// Returns an opaque block for an item.
pub(super) fn opaque_item(raw: Raw<'_>, led: Option<&Text>) -> ContentBlock {
    let value = raw.json();
    if led.is_none() && !value.as_str().starts_with(WRAPPED) {
        return Opaque::new(CODEC, value).into();
    }
    let mut object = Object::of(mark::ITEM, value);
    object.set_some(mark::LED, led.cloned());
    Opaque::new(CODEC, object.into_json()).into()
}

/// Returns an opaque block for a part of a content, or for a whole content.
pub(super) fn opaque_part(raw: Raw<'_>) -> ContentBlock {
    let object = Object::of(mark::PART, raw.json());
    Opaque::new(CODEC, object.into_json()).into()
}

/// The part of a content that an opaque value holds, or a whole content; `None` for an item.
pub(super) fn kept_part(value: &Json) -> Option<Json> {
    unwrapped(value)?.take_json(mark::PART)
}

/// The item that an opaque value holds, and the id of the reasoning that led to it; `None` for a
/// part.
pub(super) fn kept_item(value: &Json) -> Option<(Json, Option<Text>)> {
    let mut fields = unwrapped(value).unwrap_or_default();
    if fields.get(mark::PART).is_some() {
        return None;
    }
    Some((fields.take_json(mark::ITEM).unwrap_or_else(|| value.clone()), fields.text(mark::LED)))
}

/// The fields around an opaque value that is not the item itself.
fn unwrapped(value: &Json) -> Option<Fields<'_>> {
    Fields::parse(value.as_str()).filter(|_| value.as_str().starts_with(WRAPPED))
}

/// The extra of a block that holds a whole item: its type, and the id of the reasoning that led to
/// it.
pub(super) fn whole_item(kind: &str, led: Option<&Text>) -> Extra {
    let mut marks = Fields::default();
    marks.add_word(mark::AS, kind);
    led.into_iter().for_each(|led| marks.add_word(mark::LED, led));
    marks.keep(CODEC)
}

/// The beginning of an opaque value that is not the item itself.
const WRAPPED: &str = "{\"~";

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw<'_> {
        serde_json::from_str(text).unwrap()
    }

    fn value(block: ContentBlock) -> Json {
        let ContentBlock::Opaque(opaque) = block else { panic!("not opaque") };
        opaque.value
    }

    #[test]
    fn an_item_that_looks_like_a_part_is_still_an_item() {
        let text = r#"{"~part":1,"type":"x"}"#;
        let (item, part) = (value(opaque_item(raw(text), None)), value(opaque_part(raw(text))));
        let came = Json::parse(text).unwrap();
        assert_eq!((kept_item(&item), kept_part(&item)), (Some((came.clone(), None)), None));
        assert_eq!((kept_item(&part), kept_part(&part)), (None, Some(came)));
    }

    #[test]
    fn an_item_remembers_what_led_to_it() {
        let led = Text::from("rs_1");
        let item = value(opaque_item(raw(r#"{"type":"x"}"#), Some(&led)));
        let expected = (Json::parse(r#"{"type":"x"}"#).unwrap(), Some(led));
        assert_eq!((kept_item(&item), kept_part(&item)), (Some(expected), None));
    }
}
