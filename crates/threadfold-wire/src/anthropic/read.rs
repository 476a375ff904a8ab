//! Reading request bodies and answers.
//!
//! Reading a block never fails: a block of an unknown type, or with a field of an unexpected shape,
//! becomes opaque and is written back unchanged.

use super::{compaction, forms, forms::NAME, media, params};
use crate::kit::*;

const READER: Reader = Reader {
    codec: NAME,
    expected: "a string or an array of blocks",
    content: read_content,
    is_cache_point: |_| false,
    is_made_here: |_, block| block.is_reasoning(),
};

/// Reads a request body, or a body with messages only.
pub(super) fn request(mut fields: Fields<'_>, options: &DecodeOptions) -> Result<Request> {
    let mut request = Request::default();
    params::read(&mut fields, &mut request);
    request.system = Vec::from_iter(READER.system(&mut fields)?).into();
    request.tools = read_tools(&mut fields)?.into();
    params::note_lone_choice(&request, &mut fields);
    request.messages = READER.messages(&mut fields, *options)?.into();
    request.extra = fields.keep(NAME);
    Ok(request)
}

/// Reads a content: a string, or an array of blocks.
fn read_content(raw: Raw<'_>, _: Role, owner: &mut Fields<'_>) -> Option<Vec<ContentBlock>> {
    if !raw.is_text() {
        return read_all(raw);
    }
    forms::note_string(owner);
    let text = raw.text()?;
    Some(if text.is_empty() { Vec::new() } else { vec![ContentBlock::text(text)] })
}

fn read_tools(fields: &mut Fields<'_>) -> Result<Vec<ToolSpec>> {
    let Some(raw) = fields.take("tools") else { return Ok(Vec::new()) };
    let path = Path::Field(&Path::Body, "tools");
    let items = match raw.get() {
        "null" => Vec::new(),
        _ => raw.items().ok_or_else(|| path.mismatch("an array of tools", raw))?,
    };
    if items.is_empty() {
        fields.add(mark::TOOLS, raw.json());
    }
    messages::tools(NAME, (items, path), read_tool, |fields| {
        fields.get("name").or_else(|| fields.get("type"))?.text()
    })
}

/// Reads a function of the host; `None` for any other tool.
fn read_tool(mut fields: Fields<'_>) -> Option<ToolSpec> {
    let name = fields.take_text("name")?;
    let schema = fields.take("input_schema")?;
    let input_schema = Some(schema.json()).filter(Json::is_object)?;
    if !is_typed(schema) {
        fields.add(mark::INPUT_SCHEMA, input_schema.clone());
    }
    let description = take_optional(&mut fields, mark::DESCRIPTION)?;
    if description.as_ref().is_some_and(|text| text.is_empty()) {
        fields.add_word(mark::DESCRIPTION, "");
    }
    let tool = ToolSpec::new(name, description.unwrap_or_default(), input_schema);
    Some(ToolSpec { extra: fields.keep(NAME), ..tool })
}

/// Reads the blocks of a message; `None` if it is no array.
fn read_all(raw: Raw<'_>) -> Option<Vec<ContentBlock>> {
    let items = raw.items()?.into_iter();
    Some(items.map(|item| read_item(NAME, item, read_known)).collect())
}

fn read_known(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let kind = fields.take_word("type")?;
    match kind.as_ref() {
        "text" => Some(read_plain(fields)?.into()),
        "thinking" => read_thinking(fields),
        "redacted_thinking" => {
            let data = fields.take_text("data")?;
            Some(RedactedThinking { data, extra: fields.keep(NAME) }.into())
        }
        "tool_use" => read_tool_use(fields),
        "compaction" => compaction::by_gateway(fields),
        "tool_result" => read_tool_result(fields),
        "server_tool_use" | "mcp_tool_use" => read_server_tool_use(&kind, fields),
        server if forms::is_server_result(server) => read_server_result(server.into(), fields),
        medium => read_medium(medium, fields),
    }
}

/// Reads a block of a tool result. A result within a result becomes opaque, so the depth is
/// bounded.
fn read_nested(mut fields: Fields<'_>) -> Option<ContentBlock> {
    match fields.take_word("type")?.as_ref() {
        "text" => Some(read_plain(fields)?.into()),
        medium => read_medium(medium, fields),
    }
}

fn read_plain(mut fields: Fields<'_>) -> Option<TextBlock> {
    let text = fields.take_text("text")?;
    Some(TextBlock { text, extra: fields.keep(NAME) })
}

fn read_medium(kind: &str, mut fields: Fields<'_>) -> Option<ContentBlock> {
    match kind {
        "image" => {
            let source = media::read(fields.take("source")?, Medium::Image)?;
            pictures::mark(&mut fields, &source);
            Some(Image { source, extra: fields.keep(NAME) }.into())
        }
        "document" => {
            let source = media::read(fields.take("source")?, Medium::Document)?;
            let title = take_optional(&mut fields, mark::TITLE)?;
            let context = take_optional(&mut fields, mark::CONTEXT)?;
            let extra = fields.keep(NAME);
            Some(Document { source, title, context, extra }.into())
        }
        _ => None,
    }
}

fn read_thinking(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let text = fields.take_text("thinking")?;
    let signature = match fields.get("signature") {
        Some(_) => Some(fields.take_text("signature")?),
        None => None,
    };
    Some(Thinking { text, signature, extra: fields.keep(NAME) }.into())
}

fn read_tool_use(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let (id, name) = (fields.take_text("id")?, fields.take_text("name")?);
    let input = fields.take_json("input")?.into();
    Some(ToolUse { id, name, input, extra: fields.keep(NAME) }.into())
}

fn read_tool_result(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let tool_use_id = fields.take_text("tool_use_id")?;
    let content = match fields.take("content") {
        None => Vec::new(),
        Some(raw) if raw.get() == "null" => Vec::new(),
        Some(raw) if raw.is_text() => {
            forms::note_string(&mut fields);
            vec![ContentBlock::text(raw.text()?)]
        }
        Some(raw) => {
            raw.items()?.into_iter().map(|item| read_item(NAME, item, read_nested)).collect()
        }
    };
    let spelled = fields.take("is_error");
    let is_error = match spelled.map(Raw::get) {
        None | Some("false" | "null") => false,
        Some("true") => true,
        Some(_) => return None,
    };
    if let Some(spelled) = spelled.filter(|_| !is_error) {
        fields.add(mark::IS_ERROR, spelled.json());
    }
    let extra = fields.keep(NAME);
    Some(ToolResult { tool_use_id, content, is_error, usage: None, extra }.into())
}

fn read_server_tool_use(kind: &str, mut fields: Fields<'_>) -> Option<ContentBlock> {
    let (id, name) = (fields.take_text("id")?, fields.take_text("name")?);
    let input = fields.take_json("input")?;
    // Always set, because it also names the server of the call.
    fields.add_word(mark::TYPE, kind);
    Some(ServerToolUse { id, name, input, extra: fields.keep(NAME) }.into())
}

fn read_server_result(kind: Text, mut fields: Fields<'_>) -> Option<ContentBlock> {
    let tool_use_id = fields.take_text("tool_use_id")?;
    let content = fields.take_json("content");
    if content.is_none() {
        fields.add(mark::CONTENT, Json::default());
    }
    let content = content.unwrap_or_default();
    let extra = fields.keep(NAME);
    Some(ServerToolResult { tool_use_id, kind, content, extra }.into())
}

/// Removes and returns an optional text, and marks a `null`. `None` if the value is something else.
fn take_optional(fields: &mut Fields<'_>, note: &'static str) -> Option<Option<Text>> {
    let key = json::wire_name(note);
    match fields.get(key).map(Raw::get) {
        None => Some(None),
        Some("null") => {
            fields.take(key);
            fields.add(note, Json::default());
            Some(None)
        }
        Some(_) => fields.take_text(key).map(Some),
    }
}

/// Reads a response body.
pub(super) fn answer(mut fields: Fields<'_>) -> Result<Answer> {
    if let Some(raw) = fields.get("type").filter(|raw| raw.get() != "\"message\"") {
        let path = Path::Field(&Path::Body, "type");
        return Err(path.mismatch("a response of type `message`", raw));
    }
    let path = Path::Field(&Path::Body, "content");
    let raw = fields.take("content").ok_or_else(|| path.missing(CONTENT))?;
    let content = read_all(raw).ok_or_else(|| path.mismatch(CONTENT, raw))?;
    let usage = fields.get("usage").and_then(usage);
    let stop_reason = match fields.take_text("stop_reason").as_deref() {
        // After its own compaction, the provider continues the answer when the host sends the
        // thread again.
        Some("compaction") => StopReason::PauseTurn,
        Some(reason) => StopReason::from(reason),
        None => StopReason::Other("unknown".into()),
    };
    let mut parts = MessageParts::new(Role::Assistant, content);
    parts.origin = Some(Origin::new(NAME, fields.take_text("model")));
    fields.take("role");
    // The other fields of the response, which a request cannot hold.
    let withheld = fields.items("input_transformations").unwrap_or_default();
    let withheld = withheld.into_iter().filter_map(Fields::of).filter_map(withheld_block).collect();
    parts.extra = Extra::default().with(NAME, mark::RESPONSE, fields.json());
    let mut answer = Answer::new(parts.into(), stop_reason, usage);
    answer.withheld = withheld;
    Ok(answer)
}

/// Reads an entry of `input_transformations`; `None` for a type that this crate does not know.
fn withheld_block(entry: Fields<'_>) -> Option<Withheld> {
    let shown = match entry.word("type")?.as_ref() {
        "thinking_dropped" => false,
        "thinking_mismatch_allowed" => true,
        _ => return None,
    };
    let reason = WithheldReason::from(entry.text("reason")?.as_str());
    Some(Withheld { at: entry.text("path").unwrap_or_default(), reason, shown })
}

const CONTENT: &str = "an array of blocks";

/// Reads a usage. The tokens of the provider's own compaction are not in the counts but in a list
/// beside them, `iterations` (SDK anthropic 2.14). Its prompt is not that of the answer, from which
/// the size of the context follows, so the list only counts if there was no answer.
pub(super) fn usage(raw: Raw<'_>) -> Option<Usage> {
    let usage = USAGE.read(raw)?;
    if !usage.is_zero() {
        return Some(usage);
    }
    let passes = Fields::of(raw).and_then(|fields| fields.items("iterations"));
    let passes = passes.unwrap_or_default().into_iter().filter_map(|pass| USAGE.read(pass));
    Some(passes.fold(usage, |sum, pass| sum + pass))
}

/// The fields of the usage. The provider counts the cached part of the prompt separately.
pub(super) const USAGE: Counts = Counts {
    input: &["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"],
    output: &["output_tokens"],
    cache_read: &["cache_read_input_tokens"],
    cache_write: "cache_creation_input_tokens",
    reasoning: "output_tokens_details.thinking_tokens",
};

#[cfg(test)]
mod tests_of_decode {
    use super::*;
    use threadfold_core::message::ToolChoice;

    fn read(body: &str) -> Result<Request, WireError> {
        crate::Dialect::Anthropic.decode_slice(body.as_bytes(), &DecodeOptions::default())
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

#[cfg(test)]
mod tests_of_blocks {
    use super::*;
    use crate::options::DecodeOptions;
    use threadfold_core::message::{Opaque, Role};

    fn read(text: &str, role: Role, recognise: DecodeOptions) -> ContentBlock {
        let list = format!("[{text}]");
        let raw = serde_json::from_str(&list).unwrap();
        let blocks = READER.blocks(raw, role, recognise, &mut Fields::default()).unwrap();
        blocks.into_iter().next().unwrap()
    }

    #[test]
    fn a_known_type_with_a_malformed_field_is_opaque_whole() {
        for text in [
            r#"{"type":"text","text":5}"#,
            r#"{"type":"tool_use","id":"t1","input":{}}"#,
            r#"{"type":"tool_result","tool_use_id":"t1","is_error":"no"}"#,
            r#"{"type":"document","source":{},"title":[]}"#,
            r#"{"type":"image","source":"a.png"}"#,
            r#""text""#,
        ] {
            let opaque = Opaque::new(NAME, Json::parse(text).unwrap());
            assert_eq!(read(text, Role::User, DecodeOptions::default()), opaque.into());
        }
    }

    #[test]
    fn a_checkpoint_is_one_only_at_the_end_of_a_user_message() {
        let text = r#"{"type":"text","text":"<checkpoint:a1b2c3>"}"#;
        let block = |role| read(text, role, DecodeOptions::default());
        assert_eq!(block(Role::User), ContentBlock::checkpoint("a1b2c3".parse().unwrap()));
        assert_eq!(block(Role::Assistant), ContentBlock::text("<checkpoint:a1b2c3>"));
    }

    #[test]
    fn reminders_and_summaries_are_read_when_asked() {
        let all = DecodeOptions {
            checkpoints: true,
            reminders: true,
            summaries: true,
            limits: crate::DecodeLimits::DEFAULT,
        };
        let reminder = r#"{"type":"text","text":"<system-reminder>\nhi\n</system-reminder>"}"#;
        assert_eq!(read(reminder, Role::User, all), ContentBlock::reminder("hi"));
        assert_eq!(read(reminder, Role::User, DecodeOptions::default()).kind(), "text");
        let blank = r#"{"type":"text","text":"<system-reminder>\n \n</system-reminder>"}"#;
        assert_eq!(read(blank, Role::User, all).kind(), "text");
    }
}

#[cfg(test)]
mod tests_of_response {
    use super::*;
    use threadfold_core::message::{ContentBlock, Json};

    fn answer(body: &[u8]) -> Result<Answer> {
        crate::Dialect::Anthropic.decode_response(body)
    }

    #[test]
    fn an_answer_is_read_with_its_usage_and_origin() {
        let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-x",
            "content":[{"type":"text","text":"yes"}],"stop_reason":"end_turn","stop_sequence":null,
            "usage":{"input_tokens":3,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,
            "output_tokens":7,"output_tokens_details":{"thinking_tokens":5}}}"#;
        let answer = answer(body.as_bytes()).unwrap();
        let usage = Usage { input: 123, output: 7, cache_read: 100, cache_write: 20, reasoning: 5 };
        assert_eq!((answer.usage, answer.message.usage), (Some(usage), Some(usage)));
        assert_eq!(answer.stop_reason, StopReason::EndTurn);
        assert_eq!(answer.message.content, [ContentBlock::text("yes")]);
        assert_eq!(answer.message.origin, Some(Origin::new(NAME, Some("claude-x".into()))));
        let rest = answer.message.extra.get(NAME, mark::RESPONSE).map(Json::as_str).unwrap();
        assert!(rest.starts_with(r#"{"id":"msg_1","type":"message","stop_sequence":null,"#));
    }

    #[test]
    fn missing_counts_are_zero_and_a_missing_usage_is_none() {
        let body = |usage| format!(r#"{{"content":[],"stop_reason":"odd"{usage}}}"#);
        let counted = answer(body(r#","usage":{"input_tokens":null}"#).as_bytes()).unwrap();
        assert_eq!(counted.usage, Some(Usage::default()));
        assert_eq!(counted.stop_reason, StopReason::Other("odd".into()));
        assert_eq!(answer(body("").as_bytes()).unwrap().usage, None);
    }

    #[test]
    fn an_error_body_is_no_answer() {
        let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        let error = answer(body.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            error,
            "error: expected an answer without an error, found \
             {\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}"
        );
    }
}
