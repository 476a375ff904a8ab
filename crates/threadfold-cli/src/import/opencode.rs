//! Sessions of OpenCode, as `opencode export` writes them: messages with their parts.

use serde_json::{Value, json};

use super::lines::{Carried, Imported, Left, items, mark_account, text};
use threadfold::wire::Dialect;

/// The words that OpenCode 1.18.33 sends in the place of a result that it has cleared.
const CLEARED: &str = "[Old tool result content cleared]";

pub(super) fn read(entries: &[Value]) -> Imported {
    let mut left = Left::default();
    let mut messages: Vec<Carried> = Vec::new();
    let mut model = "";
    let start = since_summary(entries);
    for (at, entry) in entries.iter().enumerate() {
        let info = entry.get("info").unwrap_or(&Value::Null);
        if at < start {
            left.out("what the agent compacted away");
            continue;
        }
        let is_answer = text(info, "role") == "assistant";
        if is_answer {
            model = text(info, "modelID");
        }
        let content = items(entry, "parts").filter_map(|part| block(part, is_answer));
        let content: Vec<Value> = content.collect();
        if content.is_empty() {
            left.out("a message without content");
            continue;
        }
        let role = if is_answer { "assistant" } else { "user" };
        let mut value = json!({"role": role, "content": content});
        if is_answer && info.get("summary") == Some(&Value::Bool(true)) {
            mark_account(&mut value);
        }
        messages.push(Carried { value, lines: vec![at] });
        let results: Vec<Value> = items(entry, "parts").filter_map(result).collect();
        if !results.is_empty() {
            let value = json!({"role": "user", "content": results});
            messages.push(Carried { value, lines: Vec::new() });
        }
    }
    Imported::of(Dialect::Anthropic, model, messages, left)
}

/// The position of the request for the last finished summary: what is before it is not sent.
fn since_summary(entries: &[Value]) -> usize {
    let is_summary = |entry: &Value| {
        let info = entry.get("info").unwrap_or(&Value::Null);
        info.get("summary") == Some(&Value::Bool(true)) && info.get("error").is_none()
    };
    let Some(summary) = entries.iter().rposition(is_summary) else { return 0 };
    let asks = |entry: &Value| items(entry, "parts").any(|part| text(part, "type") == "compaction");
    let before = entries.get(..summary).unwrap_or_default();
    before.iter().rposition(asks).unwrap_or(summary)
}

/// A part in the Anthropic dialect; none for what no model got.
fn block(part: &Value, is_answer: bool) -> Option<Value> {
    let said = || Some(text(part, "text")).filter(|text| !text.trim().is_empty());
    let is_ignored = part.get("ignored") == Some(&Value::Bool(true));
    match text(part, "type") {
        "text" if is_ignored => None,
        "text" => said().map(|text| {
            // OpenCode marks what it wrote itself under the user's role.
            match part.get("synthetic") == Some(&Value::Bool(true)) && !is_answer {
                true => json!({"type": "text",
                    "text": format!("<system-reminder>\n{text}\n</system-reminder>")}),
                false => json!({"type": "text", "text": text}),
            }
        }),
        "reasoning" if is_answer => {
            said().map(|text| json!({"type": "thinking", "thinking": text, "signature": ""}))
        }
        "tool" if is_answer => {
            let state = part.get("state").unwrap_or(&Value::Null);
            let input = state.get("input").cloned().unwrap_or_else(|| json!({}));
            Some(json!({"type": "tool_use", "id": text(part, "callID"), "name": text(part, "tool"),
                "input": input}))
        }
        "compaction" => Some(json!({"type": "text", "text": "What did we do so far?"})),
        "file" => {
            let name = text(part, "filename");
            Some(json!({"type": "text", "text": format!("[file {name}, {}]", text(part, "mime"))}))
        }
        _ => None,
    }
}

/// The result of a call, which OpenCode stores with it.
fn result(part: &Value) -> Option<Value> {
    if text(part, "type") != "tool" {
        return None;
    }
    let state = part.get("state")?;
    let is_cleared = state.get("time").is_some_and(|time| time.get("compacted").is_some());
    let (content, is_error) = match text(state, "status") {
        "completed" if is_cleared => (CLEARED, false),
        "completed" => (text(state, "output"), false),
        "error" => (text(state, "error"), true),
        _ => ("[the call was interrupted]", true),
    };
    Some(json!({"type": "tool_result", "tool_use_id": text(part, "callID"), "content": content,
        "is_error": is_error}))
}
