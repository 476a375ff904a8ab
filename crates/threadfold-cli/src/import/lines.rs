//! What the readers of all agents share: their result, the lines that they leave out, and fields.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value, json};

use threadfold::{
    Message,
    message::{ContentBlock, Extra, Json, Summary},
    wire::Dialect,
};

/// The content of an agent's log.
#[derive(Debug)]
pub(super) struct Imported {
    /// A request body without the thread.
    pub(super) body: Map<String, Value>,
    pub(super) dialect: Dialect,
    /// The messages or items of the thread.
    pub(super) messages: Vec<Carried>,
    pub(super) left: Left,
}

impl Imported {
    pub(super) fn of(dialect: Dialect, model: &str, messages: Vec<Carried>, left: Left) -> Self {
        let mut body = Map::new();
        if !model.is_empty() {
            body.insert("model".to_owned(), model.into());
        }
        if dialect == Dialect::Anthropic {
            body.insert("max_tokens".to_owned(), 8192.into());
        }
        Self { body, dialect, messages, left }
    }

    /// Sets the system prompt, as the dialect has it.
    pub(super) fn set_system(&mut self, text: String) {
        match self.dialect {
            Dialect::OpenAiResponses => self.body.insert("instructions".to_owned(), text.into()),
            Dialect::Gemini => {
                self.body.insert("systemInstruction".to_owned(), json!({"parts": [{"text": text}]}))
            }
            Dialect::OpenAiChat => {
                let value = json!({"role": "system", "content": text});
                self.messages.insert(0, Carried { value, lines: Vec::new() });
                None
            }
            Dialect::Anthropic | Dialect::BedrockConverse | _ => {
                self.body.insert("system".to_owned(), text.into())
            }
        };
    }
}

/// A message or an item of the thread.
#[derive(Debug)]
pub(super) struct Carried {
    pub(super) value: Value,
    /// The positions of its lines in the log; none for a message that the agent's log implies.
    pub(super) lines: Vec<usize>,
}

/// The field that marks a text as the agent's account of what it compacted away, until the body is
/// decoded.
const ACCOUNT: &str = "threadfold_account";

/// Marks the texts of a message of any dialect as the agent's account of what it compacted away. A
/// content that is one text becomes a list, as in the dialect of Anthropic.
pub(super) fn mark_account(message: &mut Value) {
    let content = if message.get("parts").is_some() { "parts" } else { "content" };
    let Some(content) = message.get_mut(content) else { return };
    if content.is_string() {
        *content = json!([{"type": "text", "text": content.take()}]);
    }
    let parts = content.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut);
    for part in parts.filter(|part| !part.get("text").is_none_or(|text| text == "")) {
        part.insert(ACCOUNT.to_owned(), true.into());
    }
}

/// Returns a decoded message with its marked texts as summaries.
pub(super) fn with_accounts(mut message: Message) -> Message {
    for at in 0..message.content.len() {
        let Some(ContentBlock::Text(text)) = message.content.get(at) else { continue };
        let is_mark = |(key, _): &(&str, &Json)| *key == ACCOUNT;
        if text.text.is_blank() || !text.extra.fields().any(|field| is_mark(&field)) {
            continue;
        }
        let fields = text.extra.fields().filter(|field| !is_mark(field));
        let fields = fields.map(|(key, json)| (key, json.clone()));
        let extra = Extra::new(text.extra.codec().unwrap_or_default(), fields);
        let summary = Summary { extra, ..Summary::new(text.text.clone()) };
        if let Some(block) = message.make_mut().content.get_mut(at) {
            *block = summary.into();
        }
    }
    message
}

/// The number of lines outside the thread, by reason.
#[derive(Debug, Default)]
pub(super) struct Left(pub(super) BTreeMap<&'static str, usize>);

impl Left {
    pub(super) fn out(&mut self, reason: &'static str) {
        *self.0.entry(reason).or_default() += 1;
    }
}

/// Returns the positions of an entry and of all its ancestors. `fields` are the names of the fields
/// that hold the id of an entry and of its parent. The parent of an entry that names one which is
/// not in the log, or that has no such field, is the last entry before it for which `may_precede`
/// holds. Each entry is visited once, because wrong parents may form a cycle.
pub(super) fn branch(
    lines: &[Value],
    leaf: Option<usize>,
    (id, parent): (&str, &str),
    may_precede: impl Fn(&Value) -> bool,
) -> HashSet<usize> {
    let ids = lines.iter().enumerate().filter(|(_, line)| !text(line, id).is_empty());
    let by_id: HashMap<&str, usize> = ids.map(|(at, line)| (text(line, id), at)).collect();
    let (mut branch, mut next) = (HashSet::new(), leaf);
    while let Some(at) = next.filter(|at| branch.insert(*at)) {
        let before = || lines.get(..at)?.iter().rposition(&may_precede);
        let named = lines.get(at).and_then(|line| line.get(parent));
        next = match named.map(|named| named.as_str().unwrap_or_default()) {
            Some("") => None,
            Some(named) => by_id.get(named).copied().or_else(before),
            None => before(),
        };
    }
    branch
}

/// The text of a field; empty if there is none.
pub(super) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The items of an array in a field; none if there is no array.
pub(super) fn items<'v>(
    value: &'v Value,
    field: &str,
) -> impl Iterator<Item = &'v Value> + use<'v> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}
