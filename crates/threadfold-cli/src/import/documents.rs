//! Logs that are one document of JSON, and the agents that write them.

use serde_json::Value;

use super::lines::text;
use crate::args::StoredBy;

/// The entries of a document, in their order.
pub(super) struct Document {
    pub(super) by: StoredBy,
    pub(super) entries: Vec<Value>,
    /// Entries of other threads in the same document.
    pub(super) others: usize,
}

/// Returns the entries of a document if an agent is known that writes such ones.
pub(super) fn entries(document: Value) -> Option<Document> {
    let own = |by, entries| Some(Document { by, entries, others: 0 });
    let has = |field: &str| document.get(field).is_some_and(Value::is_array);
    if has("samples") && document.get("eval").is_some() {
        return inspect(document);
    }
    match document {
        Value::Array(entries) if entries.iter().any(is_open_hands) => {
            own(StoredBy::OpenHands, entries)
        }
        Value::Object(mut fields) => {
            let mut take = |field: &str| match fields.remove(field) {
                Some(Value::Array(entries)) => Some(entries),
                Some(_) | None => None,
            };
            if let (Some(history), Some(_)) = (take("history"), take("trajectory")) {
                return own(StoredBy::SweAgent, history);
            }
            if let Some(events) = take("events") {
                let is_adk = events.iter().any(|event| event.get("author").is_some());
                return if is_adk { own(StoredBy::Adk, events) } else { None };
            }
            let messages = take("messages")?;
            let has = |field: &str| fields.get(field).is_some();
            let by = if has("sessionId") && has("projectHash") {
                StoredBy::GeminiCli
            } else if has("info") && messages.iter().any(|message| message.get("parts").is_some()) {
                StoredBy::OpenCode
            } else if fields
                .get("trajectory_format")
                .and_then(Value::as_str)
                .is_some_and(|format| format.starts_with("mini-swe-agent"))
                || fields.get("info").is_some_and(|info| info.get("mini_version").is_some())
            {
                StoredBy::MiniSweAgent
            } else if has("input") && has("target") && has("scores") {
                StoredBy::Inspect
            } else {
                return None;
            };
            own(by, messages)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}

/// The first sample with messages. Each sample is a thread of its own.
fn inspect(mut document: Value) -> Option<Document> {
    let samples = document.get_mut("samples")?.as_array_mut()?;
    let mut threads = samples.iter_mut().filter_map(|sample| {
        let messages = sample.get_mut("messages")?.as_array_mut().map(std::mem::take);
        messages.filter(|messages| !messages.is_empty())
    });
    let entries = threads.next()?;
    let others = threads.map(|messages| messages.len()).sum();
    Some(Document { by: StoredBy::Inspect, entries, others })
}

/// Whether an event is of OpenHands, of its first or its second form.
fn is_open_hands(event: &Value) -> bool {
    let first = event.get("action").is_some() || event.get("observation").is_some();
    let second = text(event, "kind").ends_with("Event");
    event.get("source").is_some() && (first || second)
}
