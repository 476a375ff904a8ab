//! Converting a body of Anthropic Messages to genai's types.
//!
//! genai's adapter for Anthropic sends custom parts unchanged, in every role. Blocks that its own
//! types cannot represent (a failed result, an image in a result, citations, cache marks) become
//! such parts.

use genai::chat::{
    CacheControl, ChatMessage, ChatRequest, ContentPart, MessageContent, MessageOptions, ToolCall,
};
use serde_json::{Map, Value};
use threadfold::wire::Change;

use crate::notes::{Notes, array, object, take_text, text};

/// The codec name of this dialect.
const CODEC: &str = "anthropic-messages";

pub(crate) fn request(
    system: Option<Value>,
    messages: Vec<Value>,
    notes: &mut Notes,
) -> ChatRequest {
    let mut request = ChatRequest::default();
    match system {
        Some(Value::String(text)) => request.system = Some(text),
        Some(blocks) => system_blocks(array(Some(blocks)), &mut request, notes),
        None => {}
    }
    for message in messages {
        request.messages.push(lift(object(message), notes));
    }
    request
}

/// Converts the blocks of the system prompt. With cache marks each becomes a message, because genai
/// marks messages. Without marks they become one text, as genai would join them.
fn system_blocks(blocks: Vec<Value>, request: &mut ChatRequest, notes: &mut Notes) {
    let mut messages = Vec::new();
    for block in blocks {
        let mut fields = object(block);
        let mark = fields.remove("cache_control").and_then(|mark| cache_control(&mark));
        fields.remove("type");
        if let Some(text) = take_text(&mut fields, "text") {
            let mut message = ChatMessage::system(text);
            message.options = mark.map(MessageOptions::from);
            messages.push(message);
        }
        notes.drop_fields(CODEC, &fields);
    }
    if messages.iter().any(|message| message.options.is_some()) {
        request.messages = messages;
    } else {
        let texts: Vec<String> = messages
            .into_iter()
            .filter_map(|message| message.content.into_joined_texts())
            .collect();
        request.system = (!texts.is_empty()).then(|| texts.join("\n\n"));
    }
}

pub(crate) fn cache_control(mark: &Value) -> Option<CacheControl> {
    mark.as_object()?;
    Some(match text(mark, "ttl") {
        Some("1h") => CacheControl::Ephemeral1h,
        Some(_) => CacheControl::Ephemeral5m,
        None => CacheControl::Ephemeral,
    })
}

fn lift(mut message: Map<String, Value>, notes: &mut Notes) -> ChatMessage {
    let assistant = message.get("role").and_then(Value::as_str) == Some("assistant");
    let content = message.remove("content");
    message.remove("role");
    notes.drop_fields(CODEC, &message);
    let blocks = match content {
        Some(Value::String(text)) => vec![ContentPart::Text(text)],
        content if assistant => answer(array(content), notes),
        content => said(array(content)),
    };
    let content = MessageContent::from_parts(blocks);
    if assistant { ChatMessage::assistant(content) } else { ChatMessage::user(content) }
}

/// Converts the content of a user message. genai joins adjacent texts, so several blocks become
/// custom parts.
fn said(mut blocks: Vec<Value>) -> Vec<ContentPart> {
    if let [block] = blocks.as_mut_slice()
        && let Some(text) = plain_text(block)
    {
        return vec![ContentPart::Text(text)];
    }
    blocks.into_iter().map(raw).collect()
}

fn answer(blocks: Vec<Value>, notes: &mut Notes) -> Vec<ContentPart> {
    let leading = blocks.iter().take_while(is_thought).count();
    for _ in blocks.iter().skip(leading).filter(is_thought) {
        let reason = "genai puts reasoning first";
        notes.note(Change::BlockMoved { kind: "thinking".into(), reason: reason.into() });
    }
    blocks.into_iter().flat_map(part).collect()
}

fn is_thought(block: &&Value) -> bool {
    matches!(text(block, "type"), Some("thinking" | "redacted_thinking"))
}

/// Converts a block to genai's own types if nothing is lost, else to a custom part.
fn part(mut block: Value) -> Vec<ContentPart> {
    if let Some(text) = plain_text(&mut block) {
        return vec![ContentPart::Text(text)];
    }
    if let Some((thought, signature)) = plain_thought(&block) {
        return vec![
            ContentPart::ThoughtSignature(signature),
            ContentPart::ReasoningContent(thought),
        ];
    }
    match plain_call(&block) {
        Some(call) => vec![ContentPart::ToolCall(call)],
        None => vec![raw(block)],
    }
}

fn raw(block: Value) -> ContentPart {
    ContentPart::from_custom(block, None)
}

/// Removes and returns the text of a block without other fields.
fn plain_text(block: &mut Value) -> Option<String> {
    let fields = block.as_object_mut()?;
    let plain = fields.len() == 2 && fields.get("type").and_then(Value::as_str) == Some("text");
    if plain { take_text(fields, "text") } else { None }
}

fn plain_thought(block: &Value) -> Option<(String, String)> {
    block.as_object().filter(|fields| fields.len() == 3)?;
    text(block, "type").filter(|kind| *kind == "thinking")?;
    Some((text(block, "thinking")?.to_owned(), text(block, "signature")?.to_owned()))
}

fn plain_call(block: &Value) -> Option<ToolCall> {
    block.as_object().filter(|fields| fields.len() == 4)?;
    text(block, "type").filter(|kind| *kind == "tool_use")?;
    Some(ToolCall {
        call_id: text(block, "id")?.to_owned(),
        fn_name: text(block, "name")?.to_owned(),
        fn_arguments: block.get("input")?.clone(),
        thought_signatures: None,
    })
}
