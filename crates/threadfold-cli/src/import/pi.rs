//! Logs of pi: a tree of entries. The thread is the branch of the last entry.

use serde_json::{Value, json};

use super::lines::{Carried, Imported, Left, branch, mark_account, text};
use threadfold::wire::Dialect;

pub(super) fn read(lines: &[Value]) -> Imported {
    let mut left = Left::default();
    // Entries of the first version have no ids and are in order.
    let is_entry = |line: &Value| text(line, "type") != "session";
    let chain = branch(lines, lines.iter().rposition(is_entry), ("id", "parentId"), is_entry);
    let is_flat =
        lines.iter().filter(|line| is_entry(line)).all(|line| text(line, "id").is_empty());
    let is_compaction =
        |(at, line): &(usize, &Value)| text(line, "type") == "compaction" && chain.contains(at);
    let compaction = lines.iter().enumerate().rfind(is_compaction);
    let first_kept = compaction.map(|(_, line)| text(line, "firstKeptEntryId"));

    let (mut messages, mut model): (Vec<Carried>, &str) = (Vec::new(), "");
    let mut is_kept = first_kept.is_none();
    for (at, line) in lines.iter().enumerate() {
        let kind = text(line, "type");
        is_kept |= first_kept == Some(text(line, "id")) && !is_flat;
        let message = line.get("message").unwrap_or(line);
        let converted = match kind {
            "session" => {
                left.out("the head of the session");
                continue;
            }
            _ if !chain.contains(&at) => {
                left.out("a branch that was left");
                continue;
            }
            "compaction" if compaction.is_some_and(|(own, _)| own == at) => {
                // The summary goes before the kept messages, which are earlier in the file.
                let value = summary(line);
                messages.insert(0, Carried { value, lines: vec![at] });
                is_kept = true;
                continue;
            }
            "message" if !is_kept => {
                left.out("what the agent compacted away");
                continue;
            }
            "message" => converted(message),
            "custom_message" => {
                Some(json!({"role": "user", "content": blocks(line.get("content"))}))
            }
            "branch_summary" => Some(summary(line)),
            _ => None,
        };
        if text(message, "role") == "assistant" {
            model = text(message, "model");
        }
        match converted {
            Some(value) => messages.push(Carried { value, lines: vec![at] }),
            None => left.out("bookkeeping of the agent"),
        }
    }
    Imported::of(Dialect::Anthropic, model, messages, left)
}

/// The message in the Anthropic dialect; `None` for one that no model got.
fn converted(message: &Value) -> Option<Value> {
    let content = blocks(message.get("content"));
    match text(message, "role") {
        role @ ("user" | "assistant") => Some(json!({"role": role, "content": content})),
        "custom" => Some(json!({"role": "user", "content": content})),
        "toolResult" => {
            let is_error = message.get("isError").cloned().unwrap_or(Value::Bool(false));
            Some(json!({"role": "user", "content": [{"type": "tool_result",
                "tool_use_id": text(message, "toolCallId"), "content": content,
                "is_error": is_error}]}))
        }
        "bashExecution" if message.get("excludeFromContext") != Some(&Value::Bool(true)) => {
            let (command, output) = (text(message, "command"), text(message, "output"));
            Some(json!({"role": "user", "content": format!("Ran `{command}`:\n{output}")}))
        }
        "branchSummary" | "compactionSummary" => Some(summary(message)),
        _ => None,
    }
}

/// The message of a summary, of a compaction or of a branch that was left.
fn summary(of: &Value) -> Value {
    let mut message = json!({"role": "user", "content": text(of, "summary")});
    mark_account(&mut message);
    message
}

/// The blocks in the Anthropic dialect.
fn blocks(content: Option<&Value>) -> Value {
    let Some(content) = content else { return Value::Array(Vec::new()) };
    let Some(blocks) = content.as_array() else { return content.clone() };
    let converted = blocks.iter().map(|block| match text(block, "type") {
        "thinking" => json!({"type": "thinking", "thinking": text(block, "thinking"),
            "signature": text(block, "thinkingSignature")}),
        "toolCall" => {
            let input = block.get("arguments").cloned().unwrap_or_else(|| json!({}));
            json!({"type": "tool_use", "id": text(block, "id"), "name": text(block, "name"),
                "input": input})
        }
        "image" => json!({"type": "image", "source": {"type": "base64",
            "media_type": text(block, "mimeType"), "data": text(block, "data")}}),
        _ => block.clone(),
    });
    converted.collect()
}
