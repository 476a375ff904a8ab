//! Logs of Codex: items of the Responses dialect, and events for its user interface.
//!
//! The thread is the one with which Codex itself resumes: turns that the user rolled back are left
//! out, together with the compactions in them; a compaction replaces the items before it by its
//! history, or by the user's messages and its summary if it has none. The first form of these logs
//! has the items themselves, without an envelope.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::lines::{Carried, Imported, Left, items, mark_account, text};
use threadfold::wire::Dialect;

/// The bytes of the user's messages that Codex keeps beside the summary of a compaction: 20,000
/// tokens of four bytes.
const KEPT_BYTES: usize = 80_000;

pub(super) fn read(lines: &[Value]) -> Imported {
    let (mut input, mut model, mut instructions): (Vec<Carried>, &str, &str) = (Vec::new(), "", "");
    let mut left = Left::default();
    let rolled_back = rolled_back(lines);
    let mut summaries: Vec<&str> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let payload = line.get("payload").unwrap_or(&Value::Null);
        let kind = text(line, "type");
        if rolled_back.contains(&at) {
            left.out("a turn that the user rolled back");
            continue;
        }
        if let Some(item) = item(line) {
            if text(item, "type") == "ghost_snapshot" {
                left.out("a snapshot for undo");
            } else {
                input.push(Carried { value: item.clone(), lines: vec![at] });
            }
            continue;
        }
        if kind == "compacted" {
            input = compacted(input, payload, (at, &summaries), &mut left);
            summaries.push(text(payload, "message"));
            continue;
        }
        match kind {
            // A fork has the head of the session that it is of, too; its own is the first.
            "session_meta" if instructions.is_empty() => {
                let base = payload.get("base_instructions").map_or("", |base| text(base, "text"));
                let own = Some(text(payload, "instructions")).filter(|own| !own.is_empty());
                instructions = own.unwrap_or(base);
            }
            "turn_context" => model = text(payload, "model"),
            "" if instructions.is_empty() => instructions = text(line, "instructions"),
            _ => {}
        }
        left.out(match kind {
            "event_msg" => "an event for the screen, which repeats the thread",
            "turn_context" => "settings of a turn",
            "session_meta" => "the head of the session",
            _ => "bookkeeping of the agent",
        });
    }
    let mut imported = Imported::of(Dialect::OpenAiResponses, model, input, left);
    if !instructions.is_empty() {
        imported.set_system(instructions.to_owned());
    }
    imported
}

/// The item of the thread in a line.
fn item(line: &Value) -> Option<&Value> {
    match text(line, "type") {
        "response_item" => line.get("payload"),
        "message"
        | "reasoning"
        | "function_call"
        | "function_call_output"
        | "custom_tool_call"
        | "custom_tool_call_output"
        | "local_shell_call"
        | "web_search_call" => Some(line),
        _ => None,
    }
}

/// The history after a compaction in this line. The summaries are those of the compactions before,
/// which do not count as words of the user.
fn compacted(
    input: Vec<Carried>,
    payload: &Value,
    (at, summaries): (usize, &[&str]),
    left: &mut Left,
) -> Vec<Carried> {
    let mut out = |message: &Carried| {
        message.lines.iter().for_each(|_| left.out("what the agent compacted away"));
    };
    if let Some(history) = payload.get("replacement_history").and_then(Value::as_array) {
        input.iter().for_each(&mut out);
        // All items of the history are of one line, which counts once.
        let items = history.iter().filter(|item| text(item, "type") != "ghost_snapshot");
        let mut items: Vec<Carried> =
            items.map(|item| Carried { value: item.clone(), lines: Vec::new() }).collect();
        let summary = text(payload, "message");
        let is_summary = |item: &Carried| said(&item.value).any(|said| said == summary);
        if let Some(item) = items.iter_mut().rfind(|item| is_summary(item)) {
            mark_account(&mut item.value);
        }
        match items.first_mut() {
            Some(first) => first.lines.push(at),
            None => left.out("a compaction that left nothing"),
        }
        return items;
    }
    let mut room = KEPT_BYTES;
    let mut kept: Vec<Carried> = Vec::new();
    for message in input.into_iter().rev() {
        let bytes = said(&message.value).map(str::len).sum::<usize>();
        let is_summary = said(&message.value).any(|words| summaries.contains(&words));
        if is_of_user(&message.value) && !is_summary && bytes <= room {
            room -= bytes;
            kept.push(message);
        } else {
            out(&message);
        }
    }
    kept.reverse();
    let summary = Some(text(payload, "message")).filter(|summary| !summary.is_empty());
    let summary = summary.unwrap_or("(no summary available)");
    let content = json!([{"type": "input_text", "text": summary}]);
    let mut value = json!({"type": "message", "role": "user", "content": content});
    mark_account(&mut value);
    kept.push(Carried { value, lines: vec![at] });
    kept
}

/// The positions of the lines in turns that the user rolled back. A turn begins with a message of
/// the user and takes with it everything up to the line that rolls it back.
fn rolled_back(lines: &[Value]) -> HashSet<usize> {
    let (mut begun, mut gone) = (Vec::new(), HashSet::new());
    for (at, line) in lines.iter().enumerate() {
        let payload = line.get("payload").unwrap_or(&Value::Null);
        if item(line).is_some_and(is_of_user) {
            begun.push(at);
        } else if text(line, "type") == "event_msg" && text(payload, "type") == "thread_rolled_back"
        {
            let turns = payload.get("num_turns").and_then(Value::as_u64).unwrap_or(0);
            let turns = usize::try_from(turns).unwrap_or(usize::MAX);
            let remaining = begun.len().saturating_sub(turns);
            if let Some(first) = begun.get(remaining) {
                gone.extend(*first..at);
            }
            begun.truncate(remaining);
        }
    }
    gone
}

/// Whether an item is a message that the user wrote. Codex adds messages of its own under the same
/// role, which describe the environment and the instructions.
fn is_of_user(item: &Value) -> bool {
    const OWN: [&str; 5] = [
        "<environment_context>",
        "<user_instructions>",
        "<turn_aborted>",
        "<permissions",
        "# AGENTS.md instructions",
    ];
    let is_own = |words: &str| OWN.iter().any(|start| words.trim_start().starts_with(start));
    text(item, "type") == "message" && text(item, "role") == "user" && !said(item).any(is_own)
}

/// The texts of a message.
fn said(item: &Value) -> impl Iterator<Item = &str> {
    let whole = item.get("content").and_then(Value::as_str).into_iter();
    whole.chain(items(item, "content").map(|part| text(part, "text")))
}
