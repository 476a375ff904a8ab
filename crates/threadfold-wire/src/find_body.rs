//! Finding the request body in a file, and its dialect.

use std::borrow::Cow;

use crate::{
    contract::WireError,
    dialect::Dialect,
    json::{Fields, Raw, not_json, read_whole},
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
    let text = std::str::from_utf8(text).map_err(not_json)?;
    let (dialect, model, wrapped) = read_whole(text.as_bytes(), |whole| {
        let record = Fields::of(whole).unwrap_or_default();
        let named = || Some(record.value("format")?.word()?.parse());
        let stated = dialect.map(Ok).or_else(named).transpose()?;
        let inner = record.value("request").unwrap_or(whole);
        let (items, fields) = (inner.items(), Fields::of(inner).unwrap_or_default());
        let name = match (stated, &items) {
            (Some(stated), _) => stated.name(),
            (None, Some(items)) => guess_of_array(items),
            (None, None) => guess(&fields),
        };
        let model = fields.word("model").map(Cow::into_owned);
        Ok((stated.map_or_else(|| name.parse(), Ok)?, model, items.map(|_| wrapped(inner, name))))
    })?;
    let whole_or_request = || {
        let request = Fields::parse(text).and_then(|record| record.value("request"));
        request.map_or(text.trim(), Raw::get)
    };
    let body = wrapped.map_or_else(|| Cow::Borrowed(whole_or_request()), Cow::Owned);
    Ok(FoundBody { body, dialect, model })
}

// The names of the codecs, some of which may not be compiled.
const ANTHROPIC: &str = "anthropic-messages";
const CHAT: &str = "openai-chat";
const CONVERSE: &str = "bedrock-converse";
const GEMINI: &str = "gemini";
const RESPONSES: &str = "openai-responses";

/// Dialects, each with the fields that only this one has. The first decides.
type Telling = [(&'static str, &'static [&'static str])];

/// The fields of a body that decide before its tools.
const FIRST: &Telling = &[
    (RESPONSES, &["input"]),
    (GEMINI, &["contents"]),
    (CONVERSE, &["inferenceConfig", "toolConfig", "modelId"]),
];

const OF_TOOL: &Telling = &[(CHAT, &["function"]), (ANTHROPIC, &["input_schema"])];

/// The fields of a body that decide after its tools.
const LAST: &Telling = &[
    (ANTHROPIC, &["stop_sequences", "anthropic_version"]),
    (
        CHAT,
        &[
            "max_completion_tokens",
            "stream_options",
            "reasoning_effort",
            "response_format",
            "frequency_penalty",
            "presence_penalty",
        ],
    ),
];

/// The fields of a block without a type.
const OF_BLOCK: &Telling = &[(
    CONVERSE,
    &["text", "image", "document", "toolUse", "toolResult", "reasoningContent", "cachePoint"],
)];

/// The body of a bare array, which belongs to the field that this dialect has for it.
fn wrapped(array: Raw<'_>, dialect: &str) -> String {
    let field = match dialect {
        GEMINI => "contents",
        RESPONSES => "input",
        _ => "messages",
    };
    format!("{{\"{field}\":{}}}", array.get())
}

/// Guesses the name of the dialect of a bare array: contents of Gemini have parts, and items of
/// Responses need no role.
fn guess_of_array(items: &[Raw<'_>]) -> &'static str {
    let fields: Vec<Fields<'_>> = items.iter().filter_map(|item| Fields::of(*item)).collect();
    if fields.iter().any(|item| item.value("parts").is_some()) {
        GEMINI
    } else if fields.iter().any(|item| item.value("role").is_none()) {
        RESPONSES
    } else {
        fields.iter().find_map(of_message).unwrap_or(CHAT)
    }
}

/// Guesses the name of the dialect: the first field, tool, message or block that only one of the
/// dialects has decides.
fn guess(body: &Fields<'_>) -> &'static str {
    let of_tools = || of_items(body.value("tools")?, |tool| told_by(&Fields::of(tool)?, OF_TOOL));
    let of_messages = || of_items(body.value("messages")?, |raw| of_message(&Fields::of(raw)?));
    // A system prompt beside the messages: a string or blocks with types are Anthropic's.
    let of_system = || Some(of_items(body.value("system")?, of_block).unwrap_or(ANTHROPIC));
    told_by(body, FIRST)
        .or_else(of_tools)
        .or_else(|| told_by(body, LAST))
        .or_else(of_messages)
        .or_else(of_system)
        .unwrap_or(CHAT)
}

fn told_by(fields: &Fields<'_>, telling: &Telling) -> Option<&'static str> {
    let has = |key: &&str| fields.value(key).is_some();
    telling.iter().find(|(_, keys)| keys.iter().any(has)).map(|(dialect, _)| *dialect)
}

/// The first dialect that this function finds for an item of an array.
fn of_items<'a>(
    array: Raw<'a>,
    of_item: impl FnMut(Raw<'a>) -> Option<&'static str>,
) -> Option<&'static str> {
    array.items()?.into_iter().find_map(of_item)
}

fn of_message(message: &Fields<'_>) -> Option<&'static str> {
    let role = message.word("role").unwrap_or_default();
    if message.value("tool_calls").is_some()
        || ["system", "developer", "tool", "function"].contains(&role.as_ref())
    {
        return Some(CHAT);
    }
    of_items(message.value("content")?, of_block)
}

/// The dialect of a block; `None` if several dialects have it.
fn of_block(block: Raw<'_>) -> Option<&'static str> {
    let block = Fields::of(block)?;
    let Some(kind) = block.value("type") else { return told_by(&block, OF_BLOCK) };
    match kind.word()?.as_ref() {
        "image_url" | "input_audio" | "file" | "refusal" | "video_url" => Some(CHAT),
        "tool_use" | "tool_result" | "redacted_thinking" | "document" | "image" => Some(ANTHROPIC),
        "server_tool_use" | "mcp_tool_use" | "search_result" | "container_upload" => {
            Some(ANTHROPIC)
        }
        // Mistral's Chat Completions have a list of texts under this type.
        "thinking" => Some(ANTHROPIC),
        _ => None,
    }
}
