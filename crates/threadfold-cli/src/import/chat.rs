//! Logs in the shape of Chat Completions: of SWE-agent, mini-swe-agent and inspect.

use serde_json::{Value, json};

use super::lines::{Carried, Imported, Left, items, text};
use threadfold::wire::Dialect;

/// Reads the history of SWE-agent. Without function calling, the output of a command is a message
/// of the user, marked as an observation: it becomes the result of a call.
pub(super) fn read_swe(history: &[Value]) -> Imported {
    in_order(history, "", |entry, at, before| {
        if entry.get("is_demo") == Some(&Value::Bool(true)) {
            return Err("a demonstration");
        }
        Ok(match text(entry, "role") {
            "assistant" if calls(entry).is_empty() => {
                said_and_called(&content(entry), "action", text(entry, "action"), at)
            }
            // The task is an observation too, before the first answer.
            "user" if before.is_answered && text(entry, "message_type") == "observation" => {
                result_of(before.last, entry)
            }
            role => known(role, entry)?,
        })
    })
}

/// Reads the messages of mini-swe-agent. Commands are blocks of code in a text, and their output is
/// a message of the user; newer versions call a tool.
pub(super) fn read_mini(entries: &[Value]) -> Imported {
    in_order(entries, "", |entry, at, before| {
        Ok(match text(entry, "role") {
            "assistant" if calls(entry).is_empty() => {
                let said = content(entry);
                said_and_called(&said, "bash", &command_in(&said), at)
            }
            // After the first answer, only the agent itself writes under the user's role.
            "user" if before.is_answered => result_of(before.last, entry),
            "exit" => return Err("bookkeeping of the agent"),
            role => known(role, entry)?,
        })
    })
}

/// What precedes an entry.
struct Before<'m> {
    last: Option<&'m Carried>,
    /// Whether the agent has answered.
    is_answered: bool,
}

/// Reads entries in their order. `read` returns the message of an entry, or why it is left out.
fn in_order(
    entries: &[Value],
    model: &str,
    read: impl Fn(&Value, usize, Before<'_>) -> Result<Value, &'static str>,
) -> Imported {
    let mut left = Left::default();
    let mut messages: Vec<Carried> = Vec::new();
    let mut is_answered = false;
    for (at, entry) in entries.iter().enumerate() {
        match read(entry, at, Before { last: messages.last(), is_answered }) {
            Ok(value) => {
                is_answered |= text(entry, "role") == "assistant";
                messages.push(Carried { value, lines: vec![at] });
            }
            Err(why) => left.out(why),
        }
    }
    Imported::of(Dialect::OpenAiChat, model, messages, left)
}

fn known(role: &str, entry: &Value) -> Result<Value, &'static str> {
    let is_known = matches!(role, "system" | "user" | "assistant" | "tool");
    if is_known { Ok(plain(role, entry)) } else { Err("an entry without a role") }
}

/// Reads the messages of a sample of inspect.
pub(super) fn read_inspect(entries: &[Value]) -> Imported {
    let named = entries.iter().rev().find_map(|entry| entry.get("model").and_then(Value::as_str));
    in_order(entries, named.unwrap_or(""), |entry, _, _| known(text(entry, "role"), entry))
}

/// A message with the fields of the dialect, and no others.
fn plain(role: &str, entry: &Value) -> Value {
    let mut message = json!({"role": role, "content": content(entry)});
    let Some(fields) = message.as_object_mut() else { return message };
    let calls = calls(entry);
    if role == "assistant" && !calls.is_empty() {
        fields.insert("tool_calls".to_owned(), calls.into());
    }
    if role == "tool" {
        // SWE-agent stores a list with one id.
        let ids = entry.get("tool_call_ids").and_then(|ids| ids.get(0));
        let id = entry.get("tool_call_id").or(ids).cloned().unwrap_or_default();
        fields.insert("tool_call_id".to_owned(), id);
    }
    message
}

/// The calls of an answer. inspect stores the name and the arguments without an envelope.
fn calls(entry: &Value) -> Vec<Value> {
    let call = |call: &Value| match call.get("function") {
        Some(Value::String(name)) => {
            let arguments = call.get("arguments").cloned().unwrap_or_else(|| json!({}));
            json!({"id": text(call, "id"), "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()}})
        }
        _ => call.clone(),
    };
    items(entry, "tool_calls").map(call).collect()
}

/// The texts of a message. Pictures and other parts are named by their kind.
fn content(entry: &Value) -> String {
    let parts = match entry.get("content") {
        Some(Value::String(text)) => return text.clone(),
        Some(Value::Array(parts)) => parts,
        _ => return String::new(),
    };
    let texts = parts.iter().filter_map(|part| match text(part, "type") {
        "text" => Some(text(part, "text").to_owned()),
        "reasoning" => None,
        kind => Some(format!("[{kind}]")),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// An answer with the command in it as a call. Without a command it is a text.
fn said_and_called(said: &str, name: &str, command: &str, at: usize) -> Value {
    if command.trim().is_empty() {
        return json!({"role": "assistant", "content": said});
    }
    let arguments = json!({"command": command}).to_string();
    json!({"role": "assistant", "content": said, "tool_calls": [{"id": format!("command_{at}"),
        "type": "function", "function": {"name": name, "arguments": arguments}}]})
}

/// What an agent wrote under the user's role: the result of the command before it, or else a notice.
fn result_of(before: Option<&Carried>, entry: &Value) -> Value {
    let said = content(entry);
    let call = before.map(|before| calls(&before.value));
    let call =
        call.iter().flatten().map(|call| text(call, "id")).find(|id| id.starts_with("command_"));
    match call {
        Some(id) => json!({"role": "tool", "tool_call_id": id, "content": said}),
        None => json!({"role": "user",
            "content": format!("<system-reminder>\n{said}\n</system-reminder>")}),
    }
}

/// The command in an answer of mini-swe-agent: its only block of code.
fn command_in(said: &str) -> String {
    let mut blocks = said.split("```").skip(1).step_by(2).filter_map(|block| {
        let (language, command) = block.split_once('\n')?;
        matches!(language.trim(), "bash" | "mswea_bash_command").then(|| command.trim().to_owned())
    });
    match (blocks.next(), blocks.next()) {
        (Some(command), None) => command,
        _ => String::new(),
    }
}
