//! Finding the request body in a file, and its dialect.

use std::borrow::Cow;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use threadfold::{WireFormat, wire::Dialect};

/// The mark that some editors and shells write before a text in UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A request body as text, with its dialect and its model.
pub(crate) struct Input<'a> {
    pub(crate) body: Cow<'a, str>,
    pub(crate) dialect: Dialect,
    #[allow(dead_code, reason = "not every example asks for the model")]
    pub(crate) model: Option<String>,
}

/// Returns the dialect with this codec name; `anthropic` is short for `anthropic-messages`.
pub(crate) fn named(name: &str) -> Result<Dialect, String> {
    let name = if name == "anthropic" { "anthropic-messages" } else { name };
    let found = Dialect::ALL.iter().copied().find(|dialect| dialect.name() == name);
    let names = || Dialect::ALL.iter().map(|dialect| dialect.name()).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("there is no format {name:?}; there are {}", names()))
}

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
    system: Option<IgnoredAny>,
    contents: Option<IgnoredAny>,
    messages: Vec<&'a RawValue>,
    input: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Head<'a> {
    role: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    tool_calls: Option<IgnoredAny>,
    parts: Option<IgnoredAny>,
}

/// The kind of a block.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Kind {
    #[serde(rename = "type")]
    name: String,
}

/// Finds the body: the whole file, a bare array of messages, contents or items, or the `request` of
/// a record.
pub(crate) fn read(bytes: &[u8], format: Option<Dialect>) -> Result<Input<'_>, String> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| format!("not UTF-8: {error}"))?;
    let raw: &RawValue =
        serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let record: Option<Record<'_>> =
        if raw.get().starts_with('{') { serde_json::from_str(raw.get()).ok() } else { None };
    let stated = record.as_ref().and_then(|record| record.format.as_deref());
    let named = stated.map(named).transpose();
    let inner = record.as_ref().and_then(|record| record.request).unwrap_or(raw).get();
    let stated = format.map_or(named, |format| Ok(Some(format)))?;
    let body = if inner.starts_with('[') {
        Cow::Owned(format!("{{\"{}\":{inner}}}", field_of(inner, stated)))
    } else {
        Cow::Borrowed(inner)
    };
    let head: Body<'_> = serde_json::from_str(&body).unwrap_or_default();
    let model = head.model.and_then(|model| serde_json::from_str::<String>(model.get()).ok());
    let dialect = stated.unwrap_or_else(|| guess(&head, model.as_deref()));
    Ok(Input { body, dialect, model })
}

/// Returns the field of a body to which a bare array belongs: contents of Gemini have parts, and
/// items of Responses need no role.
fn field_of(array: &str, stated: Option<Dialect>) -> &'static str {
    let heads: Vec<Head<'_>> = serde_json::from_str(array).unwrap_or_default();
    let is = |dialect, guessed| stated.map_or(guessed, |stated| stated == dialect);
    if is(Dialect::Gemini, heads.iter().any(|head| head.parts.is_some())) {
        "contents"
    } else if is(Dialect::OpenAiResponses, heads.iter().any(|head| head.role.is_none())) {
        "input"
    } else {
        "messages"
    }
}

/// Guesses the dialect. `contents` is Gemini; tool messages, tool calls and system messages are
/// Chat Completions; a system prompt beside the messages, and blocks of tools or thinking, are
/// Anthropic.
fn guess(body: &Body<'_>, model: Option<&str>) -> Dialect {
    let heads = || {
        let messages = body.messages.iter();
        messages.filter_map(|message| serde_json::from_str::<Head<'_>>(message.get()).ok())
    };
    let of_chat = |head: Head<'_>| {
        let role = head.role.map_or("", |role| role.get());
        head.tool_calls.is_some() || ["\"system\"", "\"developer\"", "\"tool\""].contains(&role)
    };
    let of_anthropic = |head: Head<'_>| {
        let blocks = head.content.and_then(|content| serde_json::from_str(content.get()).ok());
        let blocks: Vec<&RawValue> = blocks.unwrap_or_default();
        let mut kinds = blocks.iter().filter_map(|block| serde_json::from_str(block.get()).ok());
        kinds.any(|kind: Kind| {
            let known = ["tool_use", "tool_result", "thinking", "document", "image"];
            known.contains(&kind.name.as_str())
        })
    };
    if body.input.is_some() {
        return Dialect::OpenAiResponses;
    }
    let claude = model.is_some_and(|model| model.contains("claude"));
    if body.contents.is_some() {
        Dialect::Gemini
    } else if heads().any(of_chat) {
        Dialect::OpenAiChat
    } else if body.system.is_some() || claude || heads().any(of_anthropic) {
        Dialect::Anthropic
    } else {
        Dialect::OpenAiChat
    }
}
