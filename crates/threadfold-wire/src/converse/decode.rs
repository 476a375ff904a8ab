//! Reading request bodies.

use super::{
    blocks,
    forms::{self, Forms, NAME},
    params,
};
use crate::{
    contract::{DecodeOptions, Recognise, WireError},
    fields::{self, Fields, Path},
    messages,
    raw::{Raw, Scanned},
    schemas::is_typed,
    texts::Speaker,
};
use threadfold_core::message::{
    ContentBlock, Json, Message, MessageParts, Origin, Request, Role, ToolSpec,
};

/// Reads a request body, or one that has nothing but messages.
pub(super) fn request(body: &[u8], options: &DecodeOptions) -> Result<Request, WireError> {
    let scanned = Scanned::new(body);
    let mut fields = Fields::body(&scanned)?;
    let mut forms = Forms::of(NAME);
    let mut request = Request::default();
    params::read(&mut fields, &mut forms, &mut request)?;
    request.system = Vec::from_iter(read_system(&mut fields, &mut forms)?).into();
    request.tools = read_tools(&mut fields, &mut forms, &mut request)?.into();
    let read = |fields: Fields<'_>, path: Path<'_>| read_message(fields, path, options.recognise);
    request.messages = messages::take_all(&mut fields, read)?.into();
    request.extra = forms.into_extra(&fields);
    Ok(request)
}

/// Reads a message, one of a response too.
pub(super) fn read_message(
    mut fields: Fields<'_>,
    path: Path<'_>,
    recognise: Recognise,
) -> Result<Message, WireError> {
    let mut forms = Forms::of(NAME);
    let role = messages::take_role(&mut fields, path)?;
    if role == Role::System {
        forms.note(forms::ROLE, serde_json::Value::from("system"));
    }
    let content_path = Path::Field(&path, "content");
    let raw = fields.take("content").ok_or_else(|| content_path.missing(BLOCKS))?;
    let content = blocks::read_all(raw, Speaker { codec: NAME, role, recognise })
        .ok_or_else(|| content_path.mismatch(BLOCKS, raw))?;
    // Other codecs must know whose signatures these are, and this one that the model paints.
    let paints = |block| role == Role::Assistant && matches!(block, &ContentBlock::Image(_));
    let made_here = content.iter().any(|block| block.is_reasoning() || paints(block));
    let mut parts = MessageParts::new(role, content);
    parts.origin = made_here.then(|| Origin::new(NAME, None));
    parts.extra = forms.into_extra(&fields);
    Ok(parts.into())
}

const BLOCKS: &str = "an array of blocks";

fn read_system(fields: &mut Fields<'_>, forms: &mut Forms) -> Result<Option<Message>, WireError> {
    let Some(raw) = fields.take("system") else { return Ok(None) };
    let speaker = Speaker { codec: NAME, role: Role::System, recognise: Recognise::default() };
    let content = match raw.get() {
        "null" => Vec::new(),
        _ => blocks::read_all(raw, speaker)
            .ok_or_else(|| Path::Field(&Path::Body, "system").mismatch(BLOCKS, raw))?,
    };
    if content.is_empty() {
        forms.note(forms::SYSTEM, raw.json());
        return Ok(None);
    }
    Ok(Some(Message::new(Role::System, content)))
}

/// Reads the tools, and the choice among them.
fn read_tools(
    fields: &mut Fields<'_>,
    forms: &mut Forms,
    request: &mut Request,
) -> Result<Vec<ToolSpec>, WireError> {
    const TOOLS: &str = "an array of tools";
    let config_path = Path::Field(&Path::Body, "toolConfig");
    let path = Path::Field(&config_path, "tools");
    let Some(raw) = fields.take("toolConfig") else { return Ok(Vec::new()) };
    if raw.get() == "null" {
        forms.note(forms::TOOLS, Json::default());
        return Ok(Vec::new());
    }
    let mut config = Fields::read(raw, config_path)?;
    params::read_choice(&mut config, forms, request);
    let tools = config.take("tools").ok_or_else(|| path.missing(TOOLS))?;
    let items = fields::items(tools).ok_or_else(|| path.mismatch(TOOLS, tools))?;
    if config.left() > 0 {
        forms.note("toolConfig", forms::raw_object(&config));
    }
    let read = |(index, raw)| read_tool(raw, Path::Item(&path, index));
    items.into_iter().enumerate().map(read).collect()
}

/// Reads a tool. One of the provider's own, without a schema, keeps its whole shape as extra
/// fields, and so does a cache point among the tools; its name is a copy for those who look
/// tools up.
fn read_tool(raw: Raw<'_>, path: Path<'_>) -> Result<ToolSpec, WireError> {
    let fields = Fields::read(raw, path)?;
    if let Some(tool) = Fields::of(raw).and_then(read_own_tool) {
        return Ok(tool);
    }
    let inner = fields.rest().next().map(|(key, raw)| {
        let name = Fields::of(raw).and_then(|mut inner| inner.take_text("name"));
        name.unwrap_or_else(|| key.into())
    });
    let extra = Forms::of(NAME).into_extra(&fields);
    Ok(ToolSpec { extra, ..ToolSpec::new(inner.unwrap_or_default(), "", Json::default()) })
}

/// Reads a tool of the host; `None` if it is not one.
fn read_own_tool(mut fields: Fields<'_>) -> Option<ToolSpec> {
    let raw = fields.take("toolSpec")?;
    let mut inner = Fields::of(raw)?;
    let mut forms = forms::beside(&fields);
    let name = inner.take_text("name")?;
    let mut wrapped = Fields::of(inner.take("inputSchema")?)?;
    let schema = wrapped.take("json")?;
    let input_schema = Some(schema.json()).filter(Json::is_object)?;
    if wrapped.left() > 0 {
        return None;
    }
    if !is_typed(schema) {
        forms.note(forms::SCHEMA, input_schema.clone());
    }
    let description = inner.take_text("description").unwrap_or_default();
    let extra = forms.into_extra(&inner);
    Some(ToolSpec { extra, ..ToolSpec::new(name, description, input_schema) })
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
