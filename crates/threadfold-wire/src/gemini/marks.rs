//! The names of fields in both spellings, and what this codec keeps in an `extra`.
//!
//! Unknown wire fields stand there under their own names, those inside `functionCall` and the other
//! data of a part as one object under that name. Beside them stand the codec's marks:
//!
//! | mark | on | says |
//! |---|---|---|
//! | `~snake` | all | which known fields came in snake_case |
//! | `~role` | message | `absent` or `null` where there was none, `function` for the old role of results |
//! | `~beside` | message | it came directly after another one of its role |
//! | `~placed` | message | its results came after or beside other parts |
//! | `~form` | text | it reads as a tag of ours and came so, so it goes out as it is |
//! | `~as` | thinking | `text`: a text that is empty but for its signature |
//! | `~as` | result | `response`: the text is the whole `response`, which has other keys than `output` and `error` |
//! | `~as` | server call and result | the name of the data field |
//! | `~no_id` | call, result | it came without an id |
//! | `~id` | call, result | the id as it came, where ours is another |
//! | `~args` | call | `absent` where there were none |
//! | `~parts` | result | its pictures and documents came within |
//! | `~base64` | picture, document | `url` or `url_unpadded`: the alphabet in which the data came |
//! | `~title` | document | it came with a `displayName` |
//! | `~group` | tool | the number of the object of `tools` that it came in |
//! | `~schema` | tool | the field in which its schema came; `absent` where there was none |
//! | `~came` | tool | its schema as it came, where ours is another |
//! | `~generationConfig`, `~toolConfig` | request | the whole of it, where the fields of the request say all of it |
//! | `~response` | answer | what the response body says beside the answer |

use crate::kit::*;
use serde_json::Value;

/// The name of the dialect.
pub(super) const CODEC: &str = "gemini";

/// The name of a field, in the spelling of REST and in the one that is accepted too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spelled {
    pub(super) camel: &'static str,
    pub(super) snake: &'static str,
}

macro_rules! names {
    ($($name:ident = $camel:literal, $snake:literal;)+) => {$(
        pub(super) const $name: Spelled = Spelled { camel: $camel, snake: $snake };
    )+};
}

names! {
    ALLOWED_NAMES = "allowedFunctionNames", "allowed_function_names";
    CODE_RESULT = "codeExecutionResult", "code_execution_result";
    DECLARATIONS = "functionDeclarations", "function_declarations";
    DISPLAY_NAME = "displayName", "display_name";
    EXECUTABLE_CODE = "executableCode", "executable_code";
    FILE_DATA = "fileData", "file_data";
    FILE_URI = "fileUri", "file_uri";
    FUNCTION_CALL = "functionCall", "function_call";
    FUNCTION_CALLING = "functionCallingConfig", "function_calling_config";
    FUNCTION_RESPONSE = "functionResponse", "function_response";
    GENERATION_CONFIG = "generationConfig", "generation_config";
    INLINE_DATA = "inlineData", "inline_data";
    JSON_SCHEMA = "parametersJsonSchema", "parameters_json_schema";
    MAX_OUTPUT = "maxOutputTokens", "max_output_tokens";
    MIME_TYPE = "mimeType", "mime_type";
    PARAMETERS = "parameters", "parameters";
    SIGNATURE = "thoughtSignature", "thought_signature";
    INSTRUCTION = "systemInstruction", "system_instruction";
    TEMPERATURE = "temperature", "temperature";
    TEXT = "text", "text";
    TOOL_CALL = "toolCall", "tool_call";
    TOOL_CONFIG = "toolConfig", "tool_config";
    TOOL_RESPONSE = "toolResponse", "tool_response";
}

impl Spelled {
    /// The spelling in which some fields have it, if they do.
    pub(super) fn in_fields(self, fields: &Fields<'_>) -> Option<&'static str> {
        [self.camel, self.snake].into_iter().find(|key| fields.get(key).is_some())
    }

    /// The value that some fields have under it.
    pub(super) fn get<'a>(self, fields: &Fields<'a>) -> Option<Raw<'a>> {
        fields.get(self.in_fields(fields)?)
    }

    /// The spelling in which an object has it, if it does.
    pub(super) fn in_object(self, object: &Object) -> Option<&'static str> {
        [self.camel, self.snake].into_iter().find(|key| object.get(key).is_some())
    }

    /// Whether a key is this name.
    pub(super) fn is(self, key: &str) -> bool {
        key == self.camel || key == self.snake
    }
}

/// Which known fields of one value came in snake_case.
#[derive(Clone, Debug, Default)]
pub(super) struct Spelling(Vec<Text>);

impl Spelling {
    /// The spelling of a value that was read; camelCase for every field of another.
    pub(super) fn of(extra: &Extra) -> Self {
        let names = extra.get(CODEC, "~snake");
        Self(names.and_then(|names| serde_json::from_str(names.as_str()).ok()).unwrap_or_default())
    }

    /// The key under which a field is written.
    pub(super) fn key(&self, name: Spelled) -> &'static str {
        if self.0.iter().any(|snake| *snake == name.camel) { name.snake } else { name.camel }
    }

    /// Takes a field out, and notes how it was spelled.
    pub(super) fn take<'a>(&mut self, fields: &mut Fields<'a>, name: Spelled) -> Option<Raw<'a>> {
        let key = name.in_fields(fields)?;
        self.note(name, key);
        fields.take(key)
    }

    /// Takes a text out. Of another shape it stays.
    pub(super) fn take_text(&mut self, fields: &mut Fields<'_>, name: Spelled) -> Option<Text> {
        let key = name.in_fields(fields)?;
        let text = fields.take_text(key)?;
        self.note(name, key);
        Some(text)
    }

    /// Notes in which spelling a field came.
    pub(super) fn note(&mut self, name: Spelled, key: &str) {
        if key != name.camel {
            self.0.push(name.camel.into());
        }
    }

    /// Whether every field came in camelCase.
    pub(super) fn is_usual(&self) -> bool {
        self.0.is_empty()
    }

    /// What becomes of the fields that were not taken and their marks, with a mark of the spelling.
    pub(super) fn keep(&self, mut rest: Fields<'_>) -> Extra {
        if !self.is_usual() {
            let names: Vec<&str> = self.0.iter().map(Text::as_str).collect();
            rest.note("~snake", Value::from(names));
        }
        rest.keep(CODEC)
    }
}

/// The word of a mark.
pub(super) fn marked(extra: &Extra, key: &str) -> Option<Text> {
    extras::marked(CODEC, extra, key)
}

/// Whether a value has a mark.
pub(super) fn has_mark(extra: &Extra, key: &str) -> bool {
    extra.get(CODEC, key).is_some()
}

/// Marks a value, without a word.
pub(super) fn flag(fields: &mut Fields<'_>, key: &'static str) {
    fields.note(key, Json::from_compact("true"));
}

/// Whether this codec read a value.
pub(super) fn is_own(extra: &Extra) -> bool {
    extra.codec() == Some(CODEC)
}

/// The field of the provider's own calls and their results that a block came in, if it is one.
pub(super) fn server_data(extra: &Extra) -> Option<Spelled> {
    let named = marked(extra, "~as")?;
    SERVER_DATA.into_iter().find(|name| named == name.camel)
}

/// The fields of the provider's own calls and their results.
pub(super) const SERVER_DATA: [Spelled; 4] =
    [EXECUTABLE_CODE, CODE_RESULT, TOOL_CALL, TOOL_RESPONSE];

/// Takes the unknown fields of a part's data out of those of the part, to be completed.
pub(super) fn take_inner(part: &mut Object, name: Spelled) -> Object {
    if let Some(Tree::Raw(json)) = part.remove(name.camel) {
        return reopen(Some(&json));
    }
    Object::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_goes_back_in_the_spelling_in_which_it_came() {
        let mut fields = Fields::parse(r#"{"inline_data":1,"thoughtSignature":"s"}"#).unwrap();
        let mut spelling = Spelling::default();
        spelling.take(&mut fields, INLINE_DATA);
        spelling.take(&mut fields, SIGNATURE);
        let read = Spelling::of(&spelling.keep(fields));
        assert_eq!(read.key(INLINE_DATA), "inline_data");
        assert_eq!(read.key(SIGNATURE), "thoughtSignature");
    }
}
