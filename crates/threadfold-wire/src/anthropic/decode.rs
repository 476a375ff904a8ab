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
    params::read(&mut fields, &mut forms, &mut request);
    request.system = Vec::from_iter(read_system(&mut fields, &mut forms)?).into();
    request.tools = read_tools(&mut fields, &mut forms)?.into();
    params::note_lone_choice(&request, &mut forms);
    let read = |fields: Fields<'_>, path: Path<'_>| read_message(fields, path, options.recognise);
    request.messages = messages::take_all(&mut fields, read)?.into();
    request.extra = forms.into_extra(&fields);
    Ok(request)
}

fn read_message(
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
    let raw = fields.take("content").ok_or_else(|| content_path.missing(CONTENT))?;
    let content = read_content(raw, Speaker { codec: NAME, role, recognise }, &mut forms)
        .ok_or_else(|| content_path.mismatch(CONTENT, raw))?;
    // Other codecs must know whose signatures these are.
    let reasons = content.iter().any(ContentBlock::is_reasoning);
    let mut parts = MessageParts::new(role, content);
    parts.origin = reasons.then(|| Origin::new(NAME, None));
    parts.extra = forms.into_extra(&fields);
    Ok(parts.into())
}

const CONTENT: &str = "a string or an array of blocks";

/// Reads a content in either form; `None` if it is in neither.
fn read_content(raw: Raw<'_>, speaker: Speaker, forms: &mut Forms) -> Option<Vec<ContentBlock>> {
    if !fields::is_text(raw) {
        return blocks::read_all(raw, speaker);
    }
    forms::note_string(forms);
    let text = fields::text(raw)?;
    Some(if text.is_empty() { Vec::new() } else { vec![blocks::read_string(text, speaker)] })
}

fn read_system(fields: &mut Fields<'_>, forms: &mut Forms) -> Result<Option<Message>, WireError> {
    let Some(raw) = fields.take("system") else { return Ok(None) };
    let mut own = Forms::of(NAME);
    let speaker = Speaker { codec: NAME, role: Role::System, recognise: Recognise::default() };
    let content = match raw.get() {
        "null" => Vec::new(),
        _ => read_content(raw, speaker, &mut own)
            .ok_or_else(|| Path::Field(&Path::Body, "system").mismatch(CONTENT, raw))?,
    };
    if content.is_empty() {
        forms.note(forms::SYSTEM, raw.json());
        return Ok(None);
    }
    let mut parts = MessageParts::new(Role::System, content);
    parts.extra = own.into_extra(None);
    Ok(Some(parts.into()))
}

fn read_tools(fields: &mut Fields<'_>, forms: &mut Forms) -> Result<Vec<ToolSpec>, WireError> {
    let Some(raw) = fields.take("tools") else { return Ok(Vec::new()) };
    let path = Path::Field(&Path::Body, "tools");
    let items = match raw.get() {
        "null" => Vec::new(),
        _ => fields::items(raw).ok_or_else(|| path.mismatch("an array of tools", raw))?,
    };
    if items.is_empty() {
        forms.note(forms::TOOLS, raw.json());
    }
    let read = |(index, raw)| read_tool(raw, Path::Item(&path, index));
    items.into_iter().enumerate().map(read).collect()
}

/// Reads a tool. One of the provider's own, without a schema, keeps its whole shape as extra
/// fields; its name is a copy for those who look tools up.
fn read_tool(raw: Raw<'_>, path: Path<'_>) -> Result<ToolSpec, WireError> {
    let fields = Fields::read(raw, path)?;
    if let Some(tool) = Fields::of(raw).and_then(read_own_tool) {
        return Ok(tool);
    }
    let named = ["name", "type"].into_iter().find_map(|key| fields.get(key));
    let name = named.and_then(fields::text).unwrap_or_default();
    let extra = Forms::of(NAME).into_extra(&fields);
    Ok(ToolSpec { extra, ..ToolSpec::new(name, "", Json::default()) })
}

/// Reads a tool of the host; `None` if it is not one.
fn read_own_tool(mut fields: Fields<'_>) -> Option<ToolSpec> {
    let mut forms = Forms::of(NAME);
    let name = fields.take_text("name")?;
    let schema = fields.take("input_schema")?;
    let input_schema = Some(schema.json()).filter(Json::is_object)?;
    let note = forms::DESCRIPTION;
    if !is_typed(schema) {
        forms.note(forms::INPUT_SCHEMA, input_schema.clone());
    }
    let description = blocks::take_optional(&mut fields, "description", note, &mut forms)?;
    if description.as_ref().is_some_and(|text| text.is_empty()) {
        forms.note(note, serde_json::Value::from(""));
    }
    let description = description.unwrap_or_default();
    let extra = forms.into_extra(&fields);
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
        let message = |message: &str| {
            format!(r#"{{"messages":[{{"role":"user","content":"a"}},{message}]}}"#)
        };
        let errors = [
            (r#"{"#.to_owned(), "not JSON: EOF while parsing an object at line 1 column 1"),
            ("[]".to_owned(), "body: expected an object, found []"),
            ("{}".to_owned(), "messages: expected an array of messages, found nothing"),
            (r#"{"messages":{}}"#.to_owned(), "messages: expected an array of messages, found {}"),
            (message("5"), "messages[1]: expected an object, found 5"),
            (
                message(r#"{"content":"a"}"#),
                "messages[1].role: expected `user`, `assistant` or `system`, found nothing",
            ),
            (
                message(r#"{"role":"tool","content":"a"}"#),
                "messages[1].role: expected `user`, `assistant` or `system`, found \"tool\"",
            ),
            (
                message(r#"{"role":"user","content":null}"#),
                "messages[1].content: expected a string or an array of blocks, found null",
            ),
            (
                r#"{"messages":[],"system":5}"#.to_owned(),
                "system: expected a string or an array of blocks, found 5",
            ),
            (
                r#"{"messages":[],"tools":[{},"read"]}"#.to_owned(),
                "tools[1]: expected an object, found \"read\"",
            ),
        ];
        for (body, error) in errors {
            assert_eq!(read(&body).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn what_has_a_place_in_the_vocabulary_is_there() {
        let request = read(
            r#"{"model":"claude-x","max_tokens":9,"temperature":0.5,"system":"Be brief.",
                "tool_choice":{"type":"tool","name":"read"},
                "tools":[{"name":"read","description":"Reads.","input_schema":{}},{"type":"bash_1","name":"bash"}],
                "messages":[{"role":"user","content":"hi"}]}"#,
        )
        .unwrap();
        assert_eq!((request.max_output, request.temperature), (Some(9), Some(0.5)));
        assert_eq!(request.tool_choice, Some(ToolChoice::Tool("read".into())));
        assert_eq!(request.system[0].content, [ContentBlock::text("Be brief.")]);
        assert_eq!(request.messages[0].content, [ContentBlock::text("hi")]);
        let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["read", "bash"]);
        let rest: Vec<&str> = request.extra.fields().map(|(key, _)| key).collect();
        assert_eq!(rest, ["model"]);
    }

    #[test]
    fn reasoning_says_whose_it_is() {
        let body = r#"{"messages":[{"role":"assistant","content":[
            {"type":"thinking","thinking":"hm","signature":"c2ln"}]}]}"#;
        assert_eq!(read(body).unwrap().messages[0].origin, Some(Origin::new(NAME, None)));
    }
}
