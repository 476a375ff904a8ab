//! Reading request bodies.

use super::{
    blocks,
    forms::{self, NAME},
    params,
};
use crate::{
    contract::{DecodeOptions, WireError},
    json::{Fields, Path, Raw, Scanned},
    messages::{self, Reader},
    schemas::is_typed,
    texts::Speaker,
};
use threadfold_core::message::{ContentBlock, Json, Request, ToolSpec};

const READER: Reader = Reader {
    codec: NAME,
    expected: "a string or an array of blocks",
    content: read_content,
    is_made_here: |_, block| block.is_reasoning(),
};

/// Reads a request body, or one that has nothing but messages.
pub(super) fn request(body: &[u8], options: &DecodeOptions) -> Result<Request, WireError> {
    let scanned = Scanned::new(body);
    let mut fields = Fields::body(&scanned)?;
    let mut request = Request::default();
    params::read(&mut fields, &mut request);
    request.system = Vec::from_iter(READER.system(&mut fields)?).into();
    request.tools = read_tools(&mut fields)?.into();
    params::note_lone_choice(&request, &mut fields);
    request.messages = READER.messages(&mut fields, options.recognise)?.into();
    request.extra = fields.keep(NAME);
    Ok(request)
}

/// Reads a content: a string, or an array of blocks.
fn read_content(
    raw: Raw<'_>,
    speaker: Speaker,
    owner: &mut Fields<'_>,
) -> Option<Vec<ContentBlock>> {
    if !raw.is_text() {
        return blocks::read_all(raw, speaker);
    }
    forms::note_string(owner);
    let text = raw.text()?;
    Some(if text.is_empty() { Vec::new() } else { vec![blocks::read_string(text, speaker)] })
}

fn read_tools(fields: &mut Fields<'_>) -> Result<Vec<ToolSpec>, WireError> {
    let Some(raw) = fields.take("tools") else { return Ok(Vec::new()) };
    let path = Path::Field(&Path::Body, "tools");
    let items = match raw.get() {
        "null" => Vec::new(),
        _ => raw.items().ok_or_else(|| path.mismatch("an array of tools", raw))?,
    };
    if items.is_empty() {
        fields.note(forms::TOOLS, raw.json());
    }
    messages::tools(NAME, (items, path), read_tool, |fields| {
        fields.get("name").or_else(|| fields.get("type"))?.text()
    })
}

/// Reads a tool of the host; `None` if it is not one.
fn read_tool(mut fields: Fields<'_>) -> Option<ToolSpec> {
    let name = fields.take_text("name")?;
    let schema = fields.take("input_schema")?;
    let input_schema = Some(schema.json()).filter(Json::is_object)?;
    if !is_typed(schema) {
        fields.note(forms::INPUT_SCHEMA, input_schema.clone());
    }
    let description = blocks::take_optional(&mut fields, "description", forms::DESCRIPTION)?;
    if description.as_ref().is_some_and(|text| text.is_empty()) {
        fields.mark(forms::DESCRIPTION, "");
    }
    let tool = ToolSpec::new(name, description.unwrap_or_default(), input_schema);
    Some(ToolSpec { extra: fields.keep(NAME), ..tool })
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
        assert_eq!(
            read(body).unwrap().messages[0].origin,
            Some(threadfold_core::message::Origin::new(NAME, None))
        );
    }
}
