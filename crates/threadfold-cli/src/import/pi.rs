//! Logs of pi: a tree of entries. The thread is the branch of the last entry.

use serde_json::{Value, json};

use super::lines::{Imported, Left, branch, text};
use crate::input::Dialect;

pub(super) fn read(lines: &[Value], mut left: Left) -> Imported {
    let leaf = lines.iter().rfind(|line| text(line, "type") != "session");
    let chain = branch(lines, leaf, ("id", "parentId"));
    // Entries of the first version have no ids and are in order.
    let is_flat = chain.iter().all(|id| id.is_empty());
    let on_branch = |line: &Value| is_flat || chain.contains(text(line, "id"));
    let compaction =
        lines.iter().rfind(|line| text(line, "type") == "compaction" && on_branch(line));
    let first_kept = compaction.map(|line| text(line, "firstKeptEntryId"));

    let (mut messages, mut carried, mut model) = (Vec::new(), 0, "");
    let mut is_kept = first_kept.is_none();
    for line in lines {
        let kind = text(line, "type");
        is_kept |= first_kept == Some(text(line, "id")) && !is_flat;
        let message = line.get("message").unwrap_or(line);
        let converted = match kind {
            "session" => {
                left.out("the head of the session");
                continue;
            }
            _ if !on_branch(line) => {
                left.out("a branch that was left");
                continue;
            }
            "compaction" if compaction == Some(line) => {
                // The summary goes before the kept messages, which are earlier in the file.
                carried += 1;
                let summary = text(line, "summary");
                messages.insert(0, json!({"role": "user", "content": summary}));
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
            "branch_summary" => Some(json!({"role": "user", "content": text(line, "summary")})),
            _ => None,
        };
        if text(message, "role") == "assistant" {
            model = text(message, "model");
        }
        match converted {
            Some(converted) => {
                carried += 1;
                messages.push(converted);
            }
            None => left.out("bookkeeping of the agent"),
        }
    }
    let body = json!({"model": model, "max_tokens": 8192, "messages": messages});
    Imported { body, dialect: Dialect::Anthropic, carried, left }
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
        "branchSummary" | "compactionSummary" => {
            Some(json!({"role": "user", "content": text(message, "summary")}))
        }
        _ => None,
    }
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
