//! Logs of Claude Code: a tree of lines, each with one block of an answer or a message of the user.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::lines::{Imported, Left, branch, text};
use crate::input::Dialect;

pub(super) fn read(lines: &[Value], mut left: Left) -> Imported {
    let leaf = lines.iter().rfind(|line| is_message(line) && !is_side(line));
    let chain = branch(lines, leaf, ("uuid", "parentUuid"));
    let on_chain = lines.iter().filter(|line| chain.contains(text(line, "uuid")));
    // Calls of one answer are siblings in the tree, and so are their results.
    let answers: HashSet<&str> = on_chain.map(answer_id).filter(|id| !id.is_empty()).collect();
    let belongs =
        |line: &Value| chain.contains(text(line, "uuid")) || answers.contains(answer_id(line));
    let kept = lines.iter().filter(|line| belongs(line));
    let calls: HashSet<&str> = kept.flat_map(|line| ids(line, "tool_use", "id")).collect();

    let (mut messages, mut carried, mut model): (Vec<Value>, usize, &str) = (Vec::new(), 0, "");
    let mut last_answer = "";
    for line in lines {
        if !is_message(line) {
            left.out(if text(line, "type") == "system" {
                "a notice of the agent"
            } else {
                "bookkeeping of the agent"
            });
            continue;
        }
        if is_side(line) {
            left.out("a subagent's thread");
            continue;
        }
        let answers_kept = ids(line, "tool_result", "tool_use_id").any(|id| calls.contains(id));
        if !belongs(line) && !answers_kept {
            left.out("a branch that was left, or what the agent compacted away");
            continue;
        }
        carried += 1;
        let message = line.get("message").unwrap_or(&Value::Null);
        let (role, content) = (text(message, "role"), message.get("content"));
        let content = content.cloned().unwrap_or_default();
        if role == "assistant" {
            model =
                Some(text(message, "model")).filter(|name| !name.starts_with('<')).unwrap_or(model);
        }
        let answer = answer_id(line);
        let continues = !answer.is_empty() && answer == last_answer;
        last_answer = answer;
        let before = messages.last_mut().and_then(|message| message.get_mut("content"));
        match (before.and_then(Value::as_array_mut), content) {
            (Some(blocks), Value::Array(more)) if continues => blocks.extend(more),
            (_, content) => messages.push(json!({"role": role, "content": content})),
        }
    }
    let body = json!({"model": model, "max_tokens": 8192, "messages": messages});
    Imported { body, dialect: Dialect::Anthropic, carried, left }
}

fn is_message(line: &Value) -> bool {
    matches!(text(line, "type"), "user" | "assistant") && line.get("message").is_some()
}

/// Whether a line belongs to a subagent.
fn is_side(line: &Value) -> bool {
    line.get("isSidechain") == Some(&Value::Bool(true))
}

fn answer_id(line: &Value) -> &str {
    line.get("message").map_or("", |message| text(message, "id"))
}

/// The ids in blocks of this type.
fn ids<'v>(
    line: &'v Value,
    kind: &'static str,
    field: &'static str,
) -> impl Iterator<Item = &'v str> {
    let content = line.get("message").and_then(|message| message.get("content"));
    let blocks = content.and_then(Value::as_array).into_iter().flatten();
    blocks.filter(move |block| text(block, "type") == kind).map(move |block| text(block, field))
}
