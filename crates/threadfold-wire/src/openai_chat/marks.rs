//! The marks and opaque blocks of this codec, in the `extra` of requests, messages, blocks and
//! tools.
//!
//! An `extra` holds unknown wire fields under their own names. The unknown fields inside
//! `image_url`, `file`, `function` and `custom` are one object under that name. It also holds the
//! codec's marks, whose names begin with `~`; a wire field whose name begins with `~` gets a second
//! one.
//!
//! | mark | on | meaning |
//! |---|---|---|
//! | `~role` | system message | `developer`, if that was its role |
//! | `~content` | message, result | the form of the content if it is not the usual one: `array`, `empty_array`, `empty`, `null`, `absent` |
//! | `~as` | text | `refusal` for the field of the message, `refusal_part` for the part |
//! | `~blank` | text of a result | it was blank |
//! | `~form` | text | it looks like one of this crate's tags but was read as text, so it is written unchanged |
//! | `~as` | thinking | the field of the message in which it was read; `thinking_part` for a part of the content |
//! | `~as` | call | `custom`, or `function_call` for the deprecated field |
//! | `~as` | result | `function` for the deprecated role |
//! | `~raw` | call | the whole item, if its form is unknown |
//! | `~picture` | image | the media type and the length of its data, or the length of its address |
//! | `~id` | result | `absent` if the message named no call |
//! | `~parameters` | tool | `absent` if the function had none |
//! | `~temperature`, `~tool_choice`, `~max_completion_tokens`, `~max_tokens` | request | the JSON text of a parameter that this crate would write differently |
//! | `~response` | answer | the other fields of the response body |
//!
//! An opaque block is a part of the content as it was read (or a JSON string, for a whole content
//! of blank text). The exception is `{"~field": name, "value": ..}`: a field of the message, the
//! part itself if `name` is `content`, and the message itself if it is `message`.

use crate::kit::*;

/// The name of the dialect.
pub(super) const CODEC: &str = "openai-chat";

/// The fields of a message that hold reasoning on compatible servers.
pub(super) const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

/// The mark of reasoning that is a part of the content, as Mistral has it.
pub(super) const THINKING_PART: &str = "thinking_part";

/// The text of a mark.
pub(super) fn marked(extra: &Extra, key: &str) -> Option<Text> {
    extras::text_mark(CODEC, extra, key)
}

/// Returns an opaque block for a part of the content.
pub(super) fn opaque_part(raw: Raw<'_>) -> ContentBlock {
    let value = raw.json();
    if value.as_str().starts_with(FIELD) || raw.is_text() {
        return opaque_field("content", raw);
    }
    Opaque::new(CODEC, value).into()
}

/// Returns an opaque block for a field of a message.
pub(super) fn opaque_field(name: &'static str, raw: Raw<'_>) -> ContentBlock {
    let object = Object::of(mark::FIELD, name).with("value", raw.json());
    Opaque::new(CODEC, object.into_json()).into()
}

/// The name and the value of an opaque block that holds a field of a message, or a whole message.
pub(super) fn message_field(block: &Opaque) -> Option<(Text, Json)> {
    read_field(&block.value).filter(|(name, _)| block.codec == CODEC && name != "content")
}

/// The value of an opaque block that holds a part of a content, or a whole content.
pub(super) fn opaque_value(block: &Opaque) -> Json {
    read_field(&block.value).map_or_else(|| block.value.clone(), |(_, value)| value)
}

fn read_field(value: &Json) -> Option<(Text, Json)> {
    if !value.as_str().starts_with(FIELD) {
        return None;
    }
    let mut fields = Fields::parse(value.as_str())?;
    let name = fields.text(mark::FIELD)?;
    Some((name, fields.take_json("value")?))
}

/// The beginning of an opaque block that is not a part of the content.
const FIELD: &str = "{\"~field\":";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes;

    #[test]
    fn marks_and_wire_fields_of_the_same_name_stay_apart() {
        let mut fields = Fields::parse(r#"{"~as":1,"~~x":2,"name":"n"}"#).unwrap();
        fields.add_word(mark::AS, "custom");
        let extra = fields.keep(CODEC);
        assert_eq!(marked(&extra, mark::AS), Some(Text::from("custom")));
        let (_, mut notes) = notes::prepare(&[], CODEC);
        let written = Tree::from(extras::wire_fields(&extra, &mut notes)).into_json();
        assert_eq!(written.as_str(), r#"{"~as":1,"~~x":2,"name":"n"}"#);
    }

    #[test]
    fn a_part_that_looks_like_a_field_is_still_a_part() {
        let raw: Raw<'_> = serde_json::from_str(r#"{"~field":"audio","value":1}"#).unwrap();
        let ContentBlock::Opaque(block) = opaque_part(raw) else { panic!("not opaque") };
        let (name, value) = read_field(&block.value).unwrap();
        assert_eq!((name.as_str(), value.as_str()), ("content", raw.get()));
    }
}
