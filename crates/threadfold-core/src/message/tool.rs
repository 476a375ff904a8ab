//! Tools, tool calls and their results.

use serde::{Deserialize, Serialize};

use super::{
    extra::Extra,
    invalid::InvalidValue,
    json::{self, Json},
    text::Text,
};

/// The description of a tool for a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name: 1 to 64 characters of `a` to `z`, `A` to `Z`, `0` to `9`, `_` and `-`, which every
    /// provider accepts.
    pub name: Text,
    /// What the tool does and when to use it, written for the model.
    #[serde(default)]
    pub description: Text,
    /// The JSON schema of its input. Providers require a schema of an object.
    pub input_schema: Json,
    /// Unknown wire fields. A provider's built-in tool keeps its whole definition here.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// Which tools the model may call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model may call any tool, or none.
    Auto,
    /// The model must call at least one tool and chooses which.
    Required,
    /// The model must call no tool.
    None,
    /// The model must call the tool with this name.
    Tool(Text),
}

/// A tool call of the model that the host answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ToolUseForm", into = "ToolUseForm")]
pub struct ToolUse {
    /// The id that the result refers to. Unique within an answer.
    pub id: Text,
    /// The name of the tool.
    pub name: Text,
    /// The input of the tool.
    pub input: ToolInput,
    /// Unknown wire fields.
    pub extra: Extra,
}

/// The input of a tool call, in the form in which it was received.
///
/// Anthropic, Gemini and Bedrock send JSON. OpenAI sends a text that should contain JSON and
/// sometimes does not; the text is kept unchanged, and [`json`](Self::json) parses it on each call.
///
/// ```
/// use threadfold::message::{Json, ToolInput};
///
/// assert_eq!(ToolInput::from_text(r#"{"a":1}"#).json()?, Json::parse(r#"{"a":1}"#)?);
/// assert!(ToolInput::from_text("{\"a\":").json().is_err());
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolInput {
    /// Received as JSON.
    Json(Json),
    /// Received as text.
    Text(Text),
}

/// A tool call that the provider answers itself, such as a web search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerToolUse {
    /// The id that the result refers to.
    pub id: Text,
    /// The name of the provider's tool.
    pub name: Text,
    /// The input of the tool.
    pub input: Json,
    /// Unknown wire fields, and the wire name of the block if a provider has several.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// The provider's result of its own tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerToolResult {
    /// The id of the tool call.
    pub tool_use_id: Text,
    /// The wire name of this kind of result, such as `web_search_tool_result`.
    pub kind: Text,
    /// The output of the provider's tool as JSON, as it was received.
    pub content: Json,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl ToolSpec {
    /// Returns a tool with this name, description and JSON schema of its input, without extra
    /// fields.
    ///
    /// ```
    /// use serde_json::json;
    /// use threadfold::message::ToolSpec;
    ///
    /// let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    /// let read = ToolSpec::new("read", "Reads a file.", schema);
    /// assert_eq!(read.name, "read");
    /// ```
    #[must_use]
    pub fn new(
        name: impl Into<Text>,
        description: impl Into<Text>,
        input_schema: impl Into<Json>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema: input_schema.into(),
            extra: Extra::default(),
        }
    }
}

impl ToolUse {
    /// Returns a tool call without extra fields.
    ///
    /// ```
    /// use threadfold::message::ToolUse;
    ///
    /// let call = ToolUse::new("call_1", "read", serde_json::json!({"path": "a.rs"}));
    /// assert_eq!((call.name.as_str(), call.input.as_str()), ("read", r#"{"path":"a.rs"}"#));
    /// ```
    #[must_use]
    pub fn new(id: impl Into<Text>, name: impl Into<Text>, input: impl Into<ToolInput>) -> Self {
        Self { id: id.into(), name: name.into(), input: input.into(), extra: Extra::default() }
    }
}

impl ToolInput {
    /// Returns an input that was received as text.
    #[must_use]
    pub fn from_text(text: impl Into<Text>) -> Self {
        Self::Text(text.into())
    }

    /// The input as it was received: JSON text, or the text that the model wrote instead.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Json(json) => json.as_str(),
            Self::Text(text) => text,
        }
    }

    /// Returns the input as a JSON object. A blank text means no arguments and returns `{}`.
    ///
    /// ```
    /// use threadfold::message::ToolInput;
    ///
    /// assert_eq!(ToolInput::from_text("").json()?.as_str(), "{}");
    /// assert!(ToolInput::from_text("{\"path\": \"a.rs").json().is_err());
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if a text is not JSON, or if the JSON is not an object.
    pub fn json(&self) -> Result<Json, InvalidValue> {
        let json = match self {
            Self::Json(json) => json.clone(),
            Self::Text(text) if text.is_blank() => Json::parse("{}")?,
            Self::Text(text) => Json::parse(text)?,
        };
        match json.is_object() {
            true => Ok(json),
            false => Err(json::refused(json.as_str(), "expected a JSON object")),
        }
    }
}

impl<J: Into<Json>> From<J> for ToolInput {
    fn from(json: J) -> Self {
        Self::Json(json.into())
    }
}

impl ServerToolUse {
    /// Returns a tool call without extra fields.
    #[must_use]
    pub fn new(id: impl Into<Text>, name: impl Into<Text>, input: impl Into<Json>) -> Self {
        Self { id: id.into(), name: name.into(), input: input.into(), extra: Extra::default() }
    }
}

impl ServerToolResult {
    /// Returns a result without extra fields.
    #[must_use]
    pub fn new(
        tool_use_id: impl Into<Text>,
        kind: impl Into<Text>,
        content: impl Into<Json>,
    ) -> Self {
        Self {
            tool_use_id: tool_use_id.into(),
            kind: kind.into(),
            content: content.into(),
            extra: Extra::default(),
        }
    }
}

/// The serde form of a tool call. The name of the input field states in which form the input was
/// received.
#[derive(Serialize, Deserialize)]
struct ToolUseForm {
    id: Text,
    name: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input_text: Option<Text>,
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    extra: Extra,
}

impl From<ToolUseForm> for ToolUse {
    fn from(form: ToolUseForm) -> Self {
        let input = match form.input_text {
            Some(text) => ToolInput::Text(text),
            None => ToolInput::Json(form.input.unwrap_or_default()),
        };
        Self { id: form.id, name: form.name, input, extra: form.extra }
    }
}

impl From<ToolUse> for ToolUseForm {
    fn from(call: ToolUse) -> Self {
        let (input, input_text) = match call.input {
            ToolInput::Json(json) => (Some(json), None),
            ToolInput::Text(text) => (None, Some(text)),
        };
        Self { id: call.id, name: call.name, input, input_text, extra: call.extra }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serde_keeps_the_form_in_which_the_input_was_received() {
        for input in [ToolInput::from_text("{oops"), ToolInput::from(Json::default())] {
            let call = ToolUse::new("t1", "read", input);
            let text = serde_json::to_string(&call).unwrap();
            assert_eq!(serde_json::from_str::<ToolUse>(&text).unwrap(), call, "{text}");
        }
    }

    #[test]
    fn an_empty_text_stands_for_no_arguments() {
        assert_eq!(ToolInput::from_text(" ").json().unwrap().as_str(), "{}");
    }

    #[test]
    fn an_input_that_is_no_object_is_refused() {
        let rows = [
            ("[1]", "\"3 bytes beginning with [\" is not usable JSON; expected a JSON object"),
            (
                "{\"path\"",
                "\"7 bytes beginning with {\" is not usable JSON; EOF while parsing an object at \
                 line 1 column 7",
            ),
        ];
        for (input, expected) in rows {
            assert_eq!(ToolInput::from_text(input).json().unwrap_err().to_string(), expected);
        }
        let nothing = Json::parse(" ").unwrap_err().to_string();
        assert!(nothing.starts_with("\"nothing\" is not usable JSON; EOF"), "{nothing}");
    }
}
