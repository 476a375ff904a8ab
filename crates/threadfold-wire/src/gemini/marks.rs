//! The two spellings of field names, and the marks of this codec.
//!
//! An `extra` holds unknown wire fields under their own names. Those inside `functionCall` and the
//! other data of a part are one object under that name. It also holds the codec's marks:
//!
//! | mark | on | meaning |
//! |---|---|---|
//! | `~inline_data` and the other marks of `SNAKE` | all | this field was in snake_case |
//! | `~role` | message | `absent` or `null` if there was none, `function` for the old role of results |
//! | `~beside` | message | the content before it had the same role |
//! | `~placed` | message | its results were after or beside other parts |
//! | `~form` | text | it looks like one of this crate's tags but was read as text, so it is written unchanged |
//! | `~as` | thinking | `text`: an empty text with a signature |
//! | `~as` | result | `response`: the text is the whole `response`, which has other keys than `output` and `error` |
//! | `~as` | server call and result | the name of the data field |
//! | `~no_id` | call, result | it had no id |
//! | `~id` | call, result | the id that was read, if the block has another one |
//! | `~args` | call | `absent` if there were none |
//! | `~parts` | result | its images and documents were within |
//! | `~base64` | image, document | `url` or `url_unpadded`: the alphabet of the data that were read |
//! | `~picture` | image | the media type and the length of its data, or the length of its address |
//! | `~title` | document | it had a `displayName` |
//! | `~group` | tool | the number of its object in `tools` |
//! | `~schema` | tool | the field of its schema; `absent` if there was none |
//! | `~came` | tool | the schema that was read, if the tool has another one |
//! | `~generationConfig`, `~toolConfig` | request | it was empty |
//! | `~maxOutputTokens`, `~temperature` | request | the JSON text of a parameter that this crate would write differently |
//! | `~functionCallingConfig` | request | the whole of it, if it reads as a tool choice |
//! | `~response` | answer | the other fields of the response body |

use crate::kit::*;

/// The name of the dialect.
pub(super) const CODEC: &str = "gemini";

/// The known fields that the provider also accepts in snake_case, each with the mark for a field
/// that was read in it. Only [`camel_case`] and [`respell`] know the second spelling.
#[rustfmt::skip]
const SNAKE: [(&str, &str); 28] = [
    ("allowedFunctionNames", "~allowed_function_names"), ("boolValue", "~bool_value"),
    ("codeExecutionResult", "~code_execution_result"), ("displayName", "~display_name"),
    ("executableCode", "~executable_code"), ("fileData", "~file_data"), ("fileUri", "~file_uri"),
    ("functionCall", "~function_call"), ("functionCallingConfig", "~function_calling_config"),
    ("functionDeclarations", "~function_declarations"), ("functionResponse", "~function_response"),
    ("generationConfig", "~generation_config"), ("inlineData", "~inline_data"),
    ("jsonPath", "~json_path"), ("maxOutputTokens", "~max_output_tokens"),
    ("mimeType", "~mime_type"), ("nullValue", "~null_value"), ("numberValue", "~number_value"),
    ("parametersJsonSchema", "~parameters_json_schema"), ("partialArgs", "~partial_args"),
    ("stringValue", "~string_value"), ("systemInstruction", "~system_instruction"),
    ("thoughtSignature", "~thought_signature"), ("toolCall", "~tool_call"),
    ("toolConfig", "~tool_config"), ("toolResponse", "~tool_response"), ("toolType", "~tool_type"),
    ("willContinue", "~will_continue"),
];

/// Reads an object with its known fields in camelCase; `None` if the value is no object.
pub(super) fn fields(raw: Raw<'_>) -> Option<Fields<'_>> {
    let mut fields = Fields::of(raw)?;
    camel_case(&mut fields);
    Some(fields)
}

/// Renames the known fields to camelCase.
pub(super) fn camel_case(fields: &mut Fields<'_>) {
    fields.respell(&SNAKE);
}

/// Renames the known fields of an object to the spelling in which they were read.
pub(super) fn respell(object: &mut Object, extra: &Extra) {
    object.respell(&SNAKE, extra);
}

/// Returns a part with this data and its unknown fields.
pub(super) fn finish(key: &'static str, mut data: Object, extra: &Extra) -> Tree {
    respell(&mut data, extra);
    beside(Object::of(key, data), extra)
}

/// Returns an object with its unknown fields, each field in the spelling in which it was read.
pub(super) fn beside(mut object: Object, extra: &Extra) -> Tree {
    add_rest(&mut object, extra.of(CODEC));
    respell(&mut object, extra);
    object.into()
}

/// The text of a mark.
pub(super) fn marked(extra: &Extra, key: &str) -> Option<Text> {
    extras::text_mark(CODEC, extra, key)
}

/// Whether a value has this mark.
pub(super) fn has_mark(extra: &Extra, key: &str) -> bool {
    extra.get(CODEC, key).is_some()
}

/// Whether this codec read a value.
pub(super) fn is_own(extra: &Extra) -> bool {
    extra.codec() == Some(CODEC)
}

/// The fields of the provider's own calls and of their results.
pub(super) const SERVER_DATA: [&str; 4] =
    ["executableCode", "codeExecutionResult", "toolCall", "toolResponse"];

/// The field in which one of the provider's own calls, or its result, was read; `None` for other
/// blocks.
pub(super) fn server_data(extra: &Extra) -> Option<&'static str> {
    let named = marked(extra, mark::AS)?;
    SERVER_DATA.into_iter().find(|name| named == *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_goes_back_in_the_spelling_in_which_it_came() {
        let text = r#"{"inline_data":1,"thoughtSignature":"s","file_uri":2,"fileUri":3}"#;
        let mut read = fields(serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(read.take_text("thoughtSignature"), Some("s".into()));
        assert_eq!(read.take("inlineData").map(Raw::get), Some("1"));
        let extra = read.keep(CODEC);
        let written = beside(Object::of("inlineData", 1).with("thoughtSignature", "s"), &extra);
        assert_eq!(written.into_json().as_str(), text);
    }
}
