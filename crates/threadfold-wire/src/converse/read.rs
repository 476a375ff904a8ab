//! Reading request bodies and answers.
//!
//! Reading a block never fails: a block with an unknown key, with several keys, or with a field of
//! an unexpected shape becomes opaque and is written back unchanged.

use super::{forms::*, media, normal, params};
use crate::kit::*;

/// Reads messages, also in responses. The model made an image in an answer, so the message gets
/// this codec as its origin.
const READER: Reader = Reader {
    codec: NAME,
    expected: "an array of blocks",
    content: |raw, role, _| read_all(raw, role),
    is_cache_point: |block| normal::point(block).is_some(),
    is_made_here: |role, block| {
        let is_painted = role == Role::Assistant && matches!(block, ContentBlock::Image(_));
        block.is_reasoning() || is_painted
    },
};

/// Reads a request body, or a body with messages only.
pub(super) fn request(mut fields: Fields<'_>, options: &DecodeOptions) -> Result<Request> {
    let mut request = Request::default();
    params::read(&mut fields, &mut request);
    request.system = Vec::from_iter(READER.system(&mut fields)?).into();
    params::read_tools(&mut fields, &mut request)?;
    request.messages = READER.messages(&mut fields, *options)?.into();
    request.extra = fields.keep(NAME);
    Ok(request)
}

/// Reads the blocks of a message; `None` if it is no array.
fn read_all(raw: Raw<'_>, role: Role) -> Option<Vec<ContentBlock>> {
    let items = raw.items()?.into_iter();
    Some(items.map(|item| read_item(NAME, item, |fields| read_known(fields, role))).collect())
}

fn read_known(mut fields: Fields<'_>, role: Role) -> Option<ContentBlock> {
    let key = key_of(&fields)?;
    let raw = fields.take(key)?;
    match key {
        "text" => {
            let extra = fields.keep(NAME);
            Some(TextBlock { text: raw.text()?, extra }.into())
        }
        "citationsContent" | "guardContent" => {
            fields.add(key, raw.json());
            let extra = fields.keep(NAME);
            let text = TextBlock { text: media::wrapped_text(key, raw)?, extra };
            // The text stays a text and is written with the same wrapping, even if it looks like
            // one of this crate's tags.
            let reads = markup::form(&text.text).is_some();
            Some(if reads { kept_form(NAME, text) } else { text }.into())
        }
        _ => {
            let inner = within(raw, &fields)?;
            match key {
                "reasoningContent" => read_reasoning(inner),
                "toolUse" => read_tool_use(inner, role),
                "toolResult" if role == Role::Assistant => read_server_result(inner),
                "toolResult" => read_tool_result(inner),
                medium => read_medium(medium, inner),
            }
        }
    }
}

/// Reads a block of a tool result. A result within a result becomes opaque, so the depth is
/// bounded.
fn read_nested(mut fields: Fields<'_>) -> Option<ContentBlock> {
    // Only results may hold JSON blocks.
    let is_json = fields.get("json").is_some() && key_of(&fields).is_none();
    let key = if is_json { "json" } else { key_of(&fields)? };
    let raw = fields.take(key)?;
    match key {
        "text" => {
            let extra = fields.keep(NAME);
            Some(TextBlock { text: raw.text()?, extra }.into())
        }
        "json" => {
            fields.add_word(mark::JSON, "");
            let text = raw.json().as_str().into();
            Some(TextBlock { text, extra: fields.keep(NAME) }.into())
        }
        medium => read_medium(medium, within(raw, &fields)?),
    }
}

fn read_medium(key: &str, mut inner: Fields<'_>) -> Option<ContentBlock> {
    match key {
        "image" => {
            let source = media::read(&mut inner, Medium::Image)?;
            pictures::mark(&mut inner, &source);
            Some(Image { source, extra: inner.keep(NAME) }.into())
        }
        "document" => {
            let source = media::read(&mut inner, Medium::Document)?;
            let title = inner.take_text("name")?;
            if !normal::DOCUMENTS.accept(&title) {
                inner.add_word(mark::NAME, &title);
            }
            let title = Some(title);
            let context = inner.take_text("context");
            Some(Document { source, title, context, extra: inner.keep(NAME) }.into())
        }
        _ => None,
    }
}

fn read_reasoning(mut inner: Fields<'_>) -> Option<ContentBlock> {
    if let Some(data) = inner.take_text("redactedContent") {
        let alone = inner.get("reasoningText").is_none();
        let extra = inner.keep(NAME);
        return alone.then(|| RedactedThinking { data, extra }.into());
    }
    let mut parts = Fields::of(inner.take("reasoningText")?)?;
    let text = parts.take_text("text")?;
    let signature = parts.take_text("signature");
    // Keep its unknown fields under the name of the object.
    inner.add_inner("reasoningText", &parts);
    Some(Thinking { text, signature, extra: inner.keep(NAME) }.into())
}

fn read_tool_use(mut inner: Fields<'_>, role: Role) -> Option<ContentBlock> {
    let (id, name) = (inner.take_text("toolUseId")?, inner.take_text("name")?);
    let input = inner.take_json("input")?;
    let server = inner.get("type").filter(|raw| raw.is_text() && role == Role::Assistant);
    if let Some(kind) = server {
        inner.take("type");
        inner.add(mark::TYPE, kind.json());
        return Some(ServerToolUse { id, name, input, extra: inner.keep(NAME) }.into());
    }
    let input = input.into();
    Some(ToolUse { id, name, input, extra: inner.keep(NAME) }.into())
}

fn read_tool_result(mut inner: Fields<'_>) -> Option<ContentBlock> {
    let tool_use_id = inner.take_text("toolUseId")?;
    let items = inner.take("content")?.items()?;
    if items.is_empty() {
        inner.add(mark::CONTENT, Json::from_compact("[]"));
    }
    let content = items.into_iter().map(|item| read_item(NAME, item, read_nested)).collect();
    let status = inner.take("status");
    let is_error = status.is_some_and(|status| status.get() == "\"error\"");
    if let Some(status) = status.filter(|_| !is_error) {
        inner.add(mark::STATUS, status.json());
    }
    let extra = inner.keep(NAME);
    Some(ToolResult { tool_use_id, content, is_error, usage: None, extra }.into())
}

/// Reads a result in an answer, whose tool the provider ran itself.
fn read_server_result(mut inner: Fields<'_>) -> Option<ContentBlock> {
    let tool_use_id = inner.take_text("toolUseId")?;
    let content = inner.take_json("content")?;
    let kind = inner.take_text("type");
    if let Some(kind) = &kind {
        inner.add_word(mark::TYPE, kind);
    }
    let kind = kind.unwrap_or_else(|| RESULT.into());
    let extra = inner.keep(NAME);
    Some(ServerToolResult { tool_use_id, kind, content, extra }.into())
}

/// Reads a response body.
pub(super) fn answer(mut fields: Fields<'_>) -> Result<Answer> {
    const OUTPUT: &str = "an answer with its `output`";
    const MESSAGE: &str = "a message";
    let path = Path::Field(&Path::Body, "output");
    let mut output = match (fields.take("output"), fields.get("message")) {
        (Some(raw), _) => Fields::read(raw, path)?,
        // Errors have a message instead of an output.
        (None, Some(error)) => return Err(Path::Body.mismatch(OUTPUT, error)),
        (None, None) => return Err(path.missing(OUTPUT)),
    };
    let path = Path::Field(&path, "message");
    let raw = output.take("message").ok_or_else(|| path.missing(MESSAGE))?;
    let mut message = READER.message(Fields::read(raw, path)?, path, DecodeOptions::default())?;
    if message.role != Role::Assistant {
        return Err(Path::Field(&path, "role").mismatch("`assistant`", raw));
    }
    let usage = fields.get("usage").and_then(|raw| USAGE.read(raw));
    let stop_reason = stop_reason(fields.take_text("stopReason"));
    let parts = message.make_mut();
    parts.origin = Some(Origin::new(NAME, None));
    // The other fields of the response, which a request cannot hold.
    parts.extra = parts.extra.with(NAME, mark::RESPONSE, fields.json());
    Ok(Answer::new(message, stop_reason, usage))
}

fn stop_reason(reason: Option<Text>) -> StopReason {
    match reason.as_ref().map(Text::as_str) {
        Some("guardrail_intervened" | "content_filtered") => StopReason::Refusal,
        Some(reason) => StopReason::from(reason),
        None => StopReason::Other("unknown".into()),
    }
}

/// The fields of the usage. The provider counts the cached part of the prompt separately.
pub(super) const USAGE: Counts = Counts {
    input: &["inputTokens", "cacheWriteInputTokens", "cacheReadInputTokens"],
    output: &["outputTokens"],
    cache_read: &["cacheReadInputTokens"],
    cache_write: "cacheWriteInputTokens",
    ..Counts::NONE
};

#[cfg(test)]
mod tests_of_decode {
    use super::*;
    use threadfold_core::message::ToolChoice;

    fn read(body: &str) -> Result<Request, WireError> {
        crate::Dialect::BedrockConverse.decode_slice(body.as_bytes(), &DecodeOptions::default())
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

#[cfg(test)]
mod tests_of_blocks {
    use super::*;
    use crate::options::DecodeOptions;
    use threadfold_core::message::{Opaque, Text};

    fn read(text: &str, role: Role, recognise: DecodeOptions) -> Vec<ContentBlock> {
        let raw = serde_json::from_str(text).unwrap();
        READER.blocks(raw, role, recognise, &mut Fields::default()).unwrap()
    }

    #[test]
    fn what_is_malformed_or_unknown_is_opaque_whole() {
        for text in [
            r#"{"text":5}"#,
            r#"{"new":{"a":1}}"#,
            r#"{"text":"a","image":{}}"#,
            r#"{"toolUse":{"toolUseId":"t1","input":{}}}"#,
            r#"{"toolResult":{"toolUseId":"t1","content":"a"}}"#,
            r#"{"document":{"source":{"text":"a"}}}"#,
            r#"{"image":{"source":"a.png"}}"#,
            r#"{"reasoningContent":{"redactedContent":"AA==","reasoningText":{}}}"#,
            r#"{"cachePoint":{"type":"default"}}"#,
            r#"{"citationsContent":{"content":[{"text":" "}]}}"#,
            r#""text""#,
        ] {
            let opaque = Opaque::new(NAME, Json::parse(text).unwrap());
            let read = read(&format!("[{text}]"), Role::User, DecodeOptions::default());
            assert_eq!(read, [opaque.into()]);
        }
    }

    #[test]
    fn a_checkpoint_is_one_at_the_end_of_a_user_message_and_before_a_cache_point() {
        let text = r#"[{"text":"<checkpoint:a1b2c3>"},{"cachePoint":{"type":"default"}}]"#;
        let first = |role| read(text, role, DecodeOptions::default()).swap_remove(0);
        assert_eq!(first(Role::User), ContentBlock::checkpoint("a1b2c3".parse().unwrap()));
        assert_eq!(first(Role::Assistant), ContentBlock::text("<checkpoint:a1b2c3>"));
    }

    #[test]
    fn json_and_wrapped_texts_are_texts() {
        let all = r#"[{"guardContent":{"text":{"text":"hi","qualifiers":["query"]}}},
            {"toolResult":{"toolUseId":"t1","content":[{"json":{"b":1.0,"a":2}}]}}]"#;
        let blocks = read(all, Role::User, DecodeOptions::default());
        assert_eq!(blocks[0].as_text(), Some(&Text::from("hi")));
        let ContentBlock::ToolResult(result) = &blocks[1] else { panic!("{:?}", blocks[1]) };
        assert_eq!(result.content[0].as_text(), Some(&Text::from(r#"{"b":1.0,"a":2}"#)));
        let cited =
            r#"[{"citationsContent":{"content":[{"text":"a"},{"text":"b"}],"citations":[]}}]"#;
        let blocks = read(cited, Role::Assistant, DecodeOptions::default());
        assert_eq!(blocks[0].as_text(), Some(&Text::from("ab")));
    }
}

#[cfg(test)]
mod tests_of_response {
    use super::*;
    use threadfold_core::message::{ContentBlock, Usage};

    fn answer(body: &[u8]) -> Result<Answer> {
        crate::Dialect::BedrockConverse.decode_response(body)
    }

    #[test]
    fn an_answer_is_read_with_its_usage_and_origin() {
        let body = r#"{"output":{"message":{"role":"assistant","content":[{"text":"yes"}]}},
            "stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":7,"totalTokens":10,
            "cacheReadInputTokens":100,"cacheWriteInputTokens":20},"metrics":{"latencyMs":5}}"#;
        let answer = answer(body.as_bytes()).unwrap();
        let usage = Usage { input: 123, output: 7, cache_read: 100, cache_write: 20, reasoning: 0 };
        assert_eq!((answer.usage, answer.message.usage), (Some(usage), Some(usage)));
        assert_eq!(answer.stop_reason, StopReason::EndTurn);
        assert_eq!(answer.message.content, [ContentBlock::text("yes")]);
        assert_eq!(answer.message.origin, Some(Origin::new(NAME, None)));
        let rest = answer.message.extra.get(NAME, mark::RESPONSE).map(Json::as_str).unwrap();
        assert!(rest.ends_with(r#","metrics":{"latencyMs":5}}"#), "{rest}");
    }

    #[test]
    fn stop_reasons_are_mapped_and_unknown_ones_kept() {
        let rows = [
            ("tool_use", StopReason::ToolUse),
            ("max_tokens", StopReason::MaxTokens),
            ("stop_sequence", StopReason::StopSequence),
            ("guardrail_intervened", StopReason::Refusal),
            ("content_filtered", StopReason::Refusal),
            ("model_context_window_exceeded", StopReason::ContextWindowExceeded),
            ("malformed_tool_use", StopReason::Other("malformed_tool_use".into())),
        ];
        for (word, reason) in rows {
            let body = format!(
                r#"{{"output":{{"message":{{"role":"assistant","content":[]}}}},"stopReason":"{word}"}}"#
            );
            let answer = answer(body.as_bytes()).unwrap();
            assert_eq!((answer.stop_reason, answer.usage), (reason, None));
        }
    }

    #[test]
    fn an_error_body_is_no_answer() {
        let error = answer(br#"{"message":"Too many requests"}"#).unwrap_err().to_string();
        assert_eq!(
            error,
            "body: expected an answer with its `output`, found \"Too many requests\""
        );
    }
}
