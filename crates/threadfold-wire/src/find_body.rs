//! Finding the request body in a file, and its dialect.

use std::borrow::Cow;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use crate::{
    contract::{WireError, WireFormat},
    dialect::Dialect,
};

/// A request body that was found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundBody<'a> {
    /// The body, borrowed from the file unless only its messages are in there.
    pub body: Cow<'a, str>,
    /// Its dialect.
    pub dialect: Dialect,
    /// The model that it names.
    pub model: Option<String>,
}

/// Finds the request body in a file: the whole file, a bare array of messages, contents or items, or
/// the field `request` of a record, whose `format` names the dialect. A byte order mark is skipped.
///
/// Without `dialect` and `format` the dialect is guessed by the shape of the body, never by the name
/// of the model, because gateways serve every model in every dialect. A body that is valid in several
/// dialects is read as Chat Completions.
///
/// ```
/// use threadfold::wire::{Dialect, find_body};
///
/// let file = br#"{"model": "m", "system": "Be brief.", "messages": []}"#;
/// let found = find_body(file, None)?;
/// assert_eq!((found.dialect, found.model.as_deref()), (Dialect::Anthropic, Some("m")));
/// let found = find_body(br#"[{"role": "user", "content": "hi"}]"#, None)?;
/// assert_eq!(found.dialect, Dialect::OpenAiChat);
/// assert_eq!(found.body, r#"{"messages":[{"role": "user", "content": "hi"}]}"#);
/// # Ok::<(), threadfold::wire::WireError>(())
/// ```
///
/// # Errors
///
/// [`WireError::NotJson`], also for bytes that are not UTF-8, and [`WireError::UnknownDialect`] for a
/// dialect whose feature is not enabled or that `format` misspells.
pub fn find_body(file: &[u8], dialect: Option<Dialect>) -> Result<FoundBody<'_>, WireError> {
    let text = file.strip_prefix("\u{feff}".as_bytes()).unwrap_or(file);
    let text = std::str::from_utf8(text).map_err(|error| not_json(&error))?;
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| not_json(&error))?;
    let record: Option<Record<'_>> =
        if raw.get().starts_with('{') { serde_json::from_str(raw.get()).ok() } else { None };
    let named = || record.as_ref()?.format.as_deref().map(str::parse);
    let stated = dialect.map(Ok).or_else(named).transpose()?;
    let inner = record.as_ref().and_then(|record| record.request).unwrap_or(raw).get();
    let body = if inner.starts_with('[') {
        Cow::Owned(format!("{{\"{}\":{inner}}}", field_of(inner, stated)))
    } else {
        Cow::Borrowed(inner)
    };
    let head: Body<'_> = serde_json::from_str(&body).unwrap_or_default();
    let model = head.model.and_then(|model| serde_json::from_str::<String>(model.get()).ok());
    let dialect = stated.map_or_else(|| guess(&head).parse(), Ok)?;
    Ok(FoundBody { body, dialect, model })
}

fn not_json(error: &dyn std::fmt::Display) -> WireError {
    WireError::NotJson { reason: error.to_string() }
}

// The names of the codecs, some of which may not be compiled.
const ANTHROPIC: &str = "anthropic-messages";
const CHAT: &str = "openai-chat";
const CONVERSE: &str = "bedrock-converse";
const GEMINI: &str = "gemini";
const RESPONSES: &str = "openai-responses";

/// A record around a body.
#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    request: Option<&'a RawValue>,
    format: Option<String>,
}

/// The fields that distinguish dialects. Everything else stays unread.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Body<'a> {
    model: Option<&'a RawValue>,
    system: Option<&'a RawValue>,
    contents: Option<IgnoredAny>,
    messages: Vec<&'a RawValue>,
    input: Option<IgnoredAny>,
    tools: Option<&'a RawValue>,
    // Converse has these fields.
    #[serde(rename = "inferenceConfig")]
    inference: Option<IgnoredAny>,
    #[serde(rename = "toolConfig")]
    tool_config: Option<IgnoredAny>,
    #[serde(rename = "modelId")]
    model_id: Option<IgnoredAny>,
    // Anthropic has these.
    stop_sequences: Option<IgnoredAny>,
    anthropic_version: Option<IgnoredAny>,
    // Chat Completions has these.
    max_completion_tokens: Option<IgnoredAny>,
    stream_options: Option<IgnoredAny>,
    reasoning_effort: Option<IgnoredAny>,
    response_format: Option<IgnoredAny>,
    frequency_penalty: Option<IgnoredAny>,
    presence_penalty: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Head<'a> {
    role: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    tool_calls: Option<IgnoredAny>,
    parts: Option<IgnoredAny>,
}

/// The fields of a block or a tool that distinguish dialects.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Part {
    #[serde(rename = "type")]
    kind: Option<String>,
    text: Option<IgnoredAny>,
    image: Option<IgnoredAny>,
    document: Option<IgnoredAny>,
    #[serde(rename = "toolUse")]
    tool_use: Option<IgnoredAny>,
    #[serde(rename = "toolResult")]
    tool_result: Option<IgnoredAny>,
    #[serde(rename = "reasoningContent")]
    reasoning: Option<IgnoredAny>,
    #[serde(rename = "cachePoint")]
    cache_point: Option<IgnoredAny>,
    input_schema: Option<IgnoredAny>,
    function: Option<IgnoredAny>,
}

/// Returns the field of a body to which a bare array belongs: contents of Gemini have parts, and
/// items of Responses need no role.
fn field_of(array: &str, stated: Option<Dialect>) -> &'static str {
    let heads: Vec<Head<'_>> = serde_json::from_str(array).unwrap_or_default();
    let is = |name, guessed| stated.map_or(guessed, |stated: Dialect| stated.name() == name);
    if is(GEMINI, heads.iter().any(|head| head.parts.is_some())) {
        "contents"
    } else if is(RESPONSES, heads.iter().any(|head| head.role.is_none())) {
        "input"
    } else {
        "messages"
    }
}

/// The dialects of bodies with `messages`.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Converse,
    Chat,
    Anthropic,
}

/// Guesses the name of the dialect. `contents` is Gemini, and `input` Responses; the first field,
/// message, block or tool that only one of the other dialects has decides between them.
fn guess(body: &Body<'_>) -> &'static str {
    if body.input.is_some() {
        return RESPONSES;
    }
    if body.contents.is_some() {
        return GEMINI;
    }
    let shape = of_fields(body).or_else(|| body.messages.iter().find_map(|raw| of_message(raw)));
    // A system prompt beside the messages: a string or blocks with types are Anthropic's.
    let of_system = || match body.system {
        Some(raw) if !raw.get().starts_with('[') => Some(Shape::Anthropic),
        Some(raw) => parts(raw).iter().find_map(of_part).or(Some(Shape::Anthropic)),
        None => None,
    };
    match shape.or_else(of_system) {
        Some(Shape::Converse) => CONVERSE,
        Some(Shape::Anthropic) => ANTHROPIC,
        Some(Shape::Chat) | None => CHAT,
    }
}

fn of_fields(body: &Body<'_>) -> Option<Shape> {
    let has = |fields: &[&Option<IgnoredAny>]| fields.iter().any(|field| field.is_some());
    if has(&[&body.inference, &body.tool_config, &body.model_id]) {
        return Some(Shape::Converse);
    }
    let tools = body.tools.map(parts).unwrap_or_default();
    if tools.iter().any(|tool| tool.function.is_some()) {
        return Some(Shape::Chat);
    }
    if tools.iter().any(|tool| tool.input_schema.is_some())
        || has(&[&body.stop_sequences, &body.anthropic_version])
    {
        return Some(Shape::Anthropic);
    }
    let of_chat = [
        &body.max_completion_tokens,
        &body.stream_options,
        &body.reasoning_effort,
        &body.response_format,
        &body.frequency_penalty,
        &body.presence_penalty,
    ];
    has(&of_chat).then_some(Shape::Chat)
}

fn of_message(raw: &RawValue) -> Option<Shape> {
    let head: Head<'_> = serde_json::from_str(raw.get()).ok()?;
    let role = head.role.map_or("", |role| role.get());
    if head.tool_calls.is_some()
        || ["\"system\"", "\"developer\"", "\"tool\"", "\"function\""].contains(&role)
    {
        return Some(Shape::Chat);
    }
    parts(head.content?).iter().find_map(of_part)
}

/// The dialect of a block; `None` if several dialects have it.
fn of_part(part: &Part) -> Option<Shape> {
    let of_converse = [
        &part.text,
        &part.image,
        &part.document,
        &part.tool_use,
        &part.tool_result,
        &part.reasoning,
        &part.cache_point,
    ];
    match part.kind.as_deref() {
        None => of_converse.iter().any(|field| field.is_some()).then_some(Shape::Converse),
        Some("image_url" | "input_audio" | "file" | "refusal" | "video_url") => Some(Shape::Chat),
        Some("tool_use" | "tool_result" | "redacted_thinking" | "document" | "image") => {
            Some(Shape::Anthropic)
        }
        Some("server_tool_use" | "mcp_tool_use" | "search_result" | "container_upload") => {
            Some(Shape::Anthropic)
        }
        // Mistral's Chat Completions have a list of texts under this type.
        Some("thinking") => Some(Shape::Anthropic),
        Some(_) => None,
    }
}

fn parts(raw: &RawValue) -> Vec<Part> {
    serde_json::from_str(raw.get()).unwrap_or_default()
}
