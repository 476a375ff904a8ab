//! Logs of Claude Code: a tree of lines, each with one block of an answer or a message of the user.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::lines::{Carried, Imported, Left, branch, items, mark_account, text};
use threadfold::wire::Dialect;

pub(super) fn read(lines: &[Value]) -> Imported {
    let mut left = Left::default();
    // The file of a subagent holds only its thread.
    let has_main = lines.iter().any(|line| is_message(line) && !is_marked_side(line));
    let is_side = |line: &Value| has_main && is_marked_side(line);
    let is_own = |line: &Value| is_message(line) && !is_side(line);
    let mut chain = branch(lines, lines.iter().rposition(is_own), ("uuid", "parentUuid"), is_own);
    let preserved = Preserved::of(lines, &chain);
    chain.extend(preserved.lines.iter().copied());
    let on_chain = lines.iter().enumerate().filter(|(at, _)| chain.contains(at));
    // Calls of one answer are siblings in the tree, and so are their results.
    let answers: HashSet<&str> =
        on_chain.map(|(_, line)| answer_id(line)).filter(|id| !id.is_empty()).collect();
    let belongs =
        |at: usize, line: &Value| chain.contains(&at) || answers.contains(answer_id(line));
    let kept = lines.iter().enumerate().filter(|(at, line)| belongs(*at, line));
    let calls: HashSet<&str> = kept.flat_map(|(_, line)| ids(line, "tool_use", "id")).collect();

    let (mut messages, mut model): (Vec<Carried>, &str) = (Vec::new(), "");
    let mut last_answer = "";
    for (at, line) in preserved.order(lines) {
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
        if is_synthetic(line) {
            left.out("an error or a notice of the agent, no answer of a model");
            continue;
        }
        let answers_kept = ids(line, "tool_result", "tool_use_id").any(|id| calls.contains(id));
        if !belongs(at, line) && !answers_kept {
            left.out("a branch that was left, or what the agent compacted away");
            continue;
        }
        let message = line.get("message").unwrap_or(&Value::Null);
        let (role, content) = (text(message, "role"), message.get("content"));
        let content = content.cloned().unwrap_or_default();
        if role == "assistant" {
            model = text(message, "model");
        }
        let answer = answer_id(line);
        let continues = !answer.is_empty() && answer == last_answer;
        last_answer = answer;
        if line.get("isCompactSummary") == Some(&Value::Bool(true)) {
            let mut value = json!({"role": role, "content": content});
            mark_account(&mut value);
            messages.push(Carried { value, lines: vec![at] });
            continue;
        }
        let before = messages.last_mut().filter(|_| continues);
        match (before, content) {
            (Some(Carried { value, lines }), Value::Array(more))
                if value.get("content").is_some_and(Value::is_array) =>
            {
                let blocks = value.get_mut("content").and_then(Value::as_array_mut);
                blocks.into_iter().for_each(|blocks| blocks.extend(more.clone()));
                lines.push(at);
            }
            (_, content) => messages.push(Carried {
                value: json!({"role": role, "content": content}),
                lines: vec![at],
            }),
        }
    }
    Imported::of(Dialect::Anthropic, model, messages, left)
}

/// The messages that a compaction kept word for word. Their parents are those before the compaction,
/// so only its boundary names them.
#[derive(Default)]
struct Preserved {
    /// In the order of the boundary.
    lines: Vec<usize>,
    /// The message that they follow: the summary.
    anchor: usize,
}

impl Preserved {
    /// Reads the last boundary of the thread: one that is the ancestor of its last message, or that
    /// a message of the thread has as its anchor.
    fn of(lines: &[Value], chain: &HashSet<usize>) -> Self {
        let boundary = |(at, line): (usize, &Value)| {
            let metadata = line.get("compactMetadata").or_else(|| line.get("compact_metadata"))?;
            let kept = ["preservedMessages", "preserved_messages"];
            let kept = kept.iter().find_map(|field| metadata.get(*field))?;
            let anchor = ["anchorUuid", "anchor_uuid"].iter().find_map(|name| kept.get(*name))?;
            let of_anchor = |line: &Value| line.get("uuid") == Some(anchor);
            let anchor = lines.iter().position(of_anchor).unwrap_or(at);
            chain.contains(&anchor).then(|| (kept.clone(), anchor))
        };
        let Some((named, anchor)) = lines.iter().enumerate().rev().find_map(boundary) else {
            return Self::default();
        };
        let of_id = |id: &Value| lines.iter().position(|line| line.get("uuid") == Some(id));
        let mut kept: Vec<usize> = Vec::new();
        for at in items(&named, "uuids").filter_map(of_id) {
            if !chain.contains(&at) && !kept.contains(&at) {
                kept.push(at);
            }
        }
        Self { lines: kept, anchor }
    }

    /// All lines, with those that were kept after their anchor.
    fn order<'v>(&self, lines: &'v [Value]) -> Vec<(usize, &'v Value)> {
        let mut order = Vec::with_capacity(lines.len());
        let kept: HashSet<usize> = self.lines.iter().copied().collect();
        for (at, line) in lines.iter().enumerate() {
            if !kept.contains(&at) {
                order.push((at, line));
            }
            if at == self.anchor {
                order.extend(self.lines.iter().filter_map(|kept| Some((*kept, lines.get(*kept)?))));
            }
        }
        order
    }
}

/// Whether the agent wrote an answer itself: an error of the API, or "No response requested."
fn is_synthetic(line: &Value) -> bool {
    let model = line.get("message").map_or("", |message| text(message, "model"));
    line.get("isApiErrorMessage") == Some(&Value::Bool(true)) || model == "<synthetic>"
}

fn is_message(line: &Value) -> bool {
    matches!(text(line, "type"), "user" | "assistant") && line.get("message").is_some()
}

/// Whether a line belongs to a subagent.
fn is_marked_side(line: &Value) -> bool {
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
    let blocks = line.get("message").into_iter().flat_map(|message| items(message, "content"));
    blocks.filter(move |block| text(block, "type") == kind).map(move |block| text(block, field))
}
