//! Reading request bodies.

use super::{
    blocks,
    forms::{self, NAME, within},
    params,
};
use crate::{
    contract::{DecodeOptions, WireError},
    json::{Fields, Path, Scanned},
    messages::{self, Reader},
    schemas::is_typed,
};
use threadfold_core::message::{ContentBlock, Json, Request, Role, ToolSpec};

/// Reads messages, in responses too. A picture in an answer was made by the model, which the origin
/// records.
pub(super) const READER: Reader = Reader {
    codec: NAME,
    expected: "an array of blocks",
    content: |raw, speaker, _| blocks::read_all(raw, speaker),
    is_made_here: |role, block| {
        let is_painted = role == Role::Assistant && matches!(block, ContentBlock::Image(_));
        block.is_reasoning() || is_painted
    },
};

/// Reads a request body, or one that has nothing but messages.
pub(super) fn request(body: &[u8], options: &DecodeOptions) -> Result<Request, WireError> {
    let scanned = Scanned::new(body);
    let mut fields = Fields::body(&scanned)?;
    let mut request = Request::default();
    params::read(&mut fields, &mut request)?;
    request.system = Vec::from_iter(READER.system(&mut fields)?).into();
    request.tools = read_tools(&mut fields, &mut request)?.into();
    request.messages = READER.messages(&mut fields, options.recognise)?.into();
    request.extra = fields.keep(NAME);
    Ok(request)
}

/// Reads the tools, and the choice among them.
fn read_tools(fields: &mut Fields<'_>, request: &mut Request) -> Result<Vec<ToolSpec>, WireError> {
    let config_path = Path::Field(&Path::Body, "toolConfig");
    let path = Path::Field(&config_path, "tools");
    let Some(raw) = fields.take("toolConfig") else { return Ok(Vec::new()) };
    if raw.get() == "null" {
        fields.note(forms::TOOLS, Json::default());
        return Ok(Vec::new());
    }
    let mut config = Fields::read(raw, config_path)?;
    params::read_choice(&mut config, fields, request);
    let items = config.take_items("tools", config_path, "an array of tools")?;
    fields.note_inner("toolConfig", &config);
    // A cache point among the tools is read as a tool of the provider's own too.
    messages::tools(NAME, (items, path), read_tool, |fields| {
        let (key, raw) = fields.rest().next()?;
        let name = Fields::of(raw).and_then(|inner| inner.text("name"));
        Some(name.unwrap_or_else(|| key.into()))
    })
}

/// Reads a tool of the host; `None` if it is not one.
fn read_tool(mut fields: Fields<'_>) -> Option<ToolSpec> {
    let mut inner = within(fields.take("toolSpec")?, &fields)?;
    let name = inner.take_text("name")?;
    let mut wrapped = Fields::of(inner.take("inputSchema")?)?;
    let schema = wrapped.take("json").filter(|_| wrapped.left() == 0)?;
    let input_schema = Some(schema.json()).filter(Json::is_object)?;
    if !is_typed(schema) {
        inner.note(forms::SCHEMA, input_schema.clone());
    }
    let description = inner.take_text("description").unwrap_or_default();
    let tool = ToolSpec::new(name, description, input_schema);
    Some(ToolSpec { extra: inner.keep(NAME), ..tool })
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadfold_core::message::ToolChoice;

    fn read(body: &str) -> Result<Request, WireError> {
        request(body.as_bytes(), &DecodeOptions::default())
    }

    #[test]
    fn an_error_says_where_what_was_expected() {
        let message =
            |message: &str| format!(r#"{{"messages":[{{"role":"user","content":[]}},{message}]}}"#);
        let errors = [
            (r#"{"#.to_owned(), "not JSON: EOF while parsing an object at line 1 column 1"),
            ("[]".to_owned(), "body: expected an object, found []"),
            ("{}".to_owned(), "messages: expected an array of messages, found nothing"),
            (message("5"), "messages[1]: expected an object, found 5"),
            (
                message(r#"{"role":"tool","content":[]}"#),
                "messages[1].role: expected `user`, `assistant` or `system`, found \"tool\"",
            ),
            (
                message(r#"{"role":"user","content":"a"}"#),
                "messages[1].content: expected an array of blocks, found \"a\"",
            ),
            (
                r#"{"messages":[],"system":"a"}"#.to_owned(),
                "system: expected an array of blocks, found \"a\"",
            ),
            (
                r#"{"messages":[],"toolConfig":{"tools":[{},"read"]}}"#.to_owned(),
                "toolConfig.tools[1]: expected an object, found \"read\"",
            ),
            (
                r#"{"messages":[],"inferenceConfig":[]}"#.to_owned(),
                "inferenceConfig: expected an object, found []",
            ),
        ];
        for (body, error) in errors {
            assert_eq!(read(&body).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn what_has_a_place_in_the_vocabulary_is_there() {
        let request = read(
            r#"{"modelId":"m","inferenceConfig":{"maxTokens":9,"temperature":0.5,"topP":0.9},
                "system":[{"text":"Be brief."}],"toolConfig":{"toolChoice":{"tool":{"name":"read"}},
                "tools":[{"toolSpec":{"name":"read","description":"Reads.","inputSchema":{"json":{}}}},
                {"systemTool":{"name":"nova_grounding"}},{"cachePoint":{"type":"default"}}]},
                "messages":[{"role":"user","content":[{"text":"hi"}]}]}"#,
        )
        .unwrap();
        assert_eq!((request.max_output, request.temperature), (Some(9), Some(0.5)));
        assert_eq!(request.tool_choice, Some(ToolChoice::Tool("read".into())));
        assert_eq!(request.system[0].content, [ContentBlock::text("Be brief.")]);
        assert_eq!(request.messages[0].content, [ContentBlock::text("hi")]);
        let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["read", "nova_grounding", "cachePoint"]);
        let rest: Vec<(&str, &str)> =
            request.extra.fields().map(|(key, json)| (key, json.as_str())).collect();
        assert_eq!(rest, [("inferenceConfig", r#"{"topP":0.9}"#), ("modelId", "\"m\"")]);
    }
}
