//! Logs in the shape of Gemini's contents: of Gemini CLI, of Qwen Code, and of Google's Agent
//! Development Kit.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::lines::{Carried, Imported, Left, branch, items, mark_account, text};
use threadfold::wire::Dialect;

/// Reads a log of Gemini CLI, as one document or as lines.
///
/// As the CLI itself resumes: a line with `$rewindTo` takes back this message and all after it, or
/// everything if it is unknown; `$set` with messages replaces all; a message that is written again
/// replaces its earlier form. Results stand in the message with their calls, and since 0.61.0 in a
/// message of the user too, which is what the model got. Source: its class `ChatRecordingService`,
/// 0.61.0.
pub(super) fn read_cli(lines: &[Value]) -> Imported {
    let mut left = Left::default();
    let mut found: Vec<(usize, &Value)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let set = line.get("$set").and_then(|set| set.get("messages")).and_then(Value::as_array);
        if let Some(id) = line.get("$rewindTo") {
            let first = found.iter().position(|(_, message)| message.get("id") == Some(id));
            found.drain(first.unwrap_or(0)..).for_each(|_| left.out("a turn that was taken back"));
            left.out("bookkeeping of the agent");
        } else if let Some(messages) = set {
            found.drain(..).for_each(|_| left.out("what the agent compacted away or replaced"));
            found.extend(messages.iter().map(|message| (at, message)));
            if messages.is_empty() {
                left.out("bookkeeping of the agent");
            }
        } else if line.get("type").is_some() {
            let id = line.get("id").filter(|id| !id.is_null());
            let same = found.iter_mut().find(|(_, other)| id.is_some() && other.get("id") == id);
            match same {
                Some(earlier) => {
                    *earlier = (at, line);
                    left.out("an earlier form of a message");
                }
                None => found.push((at, line)),
            }
        } else {
            left.out("bookkeeping of the agent");
        }
    }
    let of_user = found.iter().filter(|(_, message)| text(message, "type") == "user");
    let sent: HashSet<&str> = of_user
        .flat_map(|(_, message)| items(message, "content"))
        .filter_map(|part| Some(text(part.get("functionResponse")?, "id")))
        .filter(|id| !id.is_empty())
        .collect();
    let (mut messages, mut model, mut carried) = (Vec::new(), "", HashSet::new());
    for (at, message) in found {
        // The messages of a `$set` are of one line, which counts once.
        let own: Vec<usize> = carried.insert(at).then_some(at).into_iter().collect();
        match text(message, "type") {
            "user" => {
                let value = json!({"role": "user", "parts": parts(message.get("content"))});
                messages.push(Carried { value, lines: own });
            }
            "gemini" => {
                model = message.get("model").and_then(Value::as_str).unwrap_or(model);
                answer(message, own, &sent, &mut messages);
            }
            _ => own.iter().for_each(|_| left.out("a notice of the agent")),
        }
    }
    Imported::of(Dialect::Gemini, model, messages, left)
}

/// An answer with its calls, and their results but for those that a message of the user sent.
fn answer(message: &Value, lines: Vec<usize>, sent: &HashSet<&str>, messages: &mut Vec<Carried>) {
    let mut said = parts(message.get("content"));
    let mut results = Vec::new();
    for call in items(message, "toolCalls") {
        let (id, name) = (text(call, "id"), text(call, "name"));
        let args = call.get("args").cloned().unwrap_or_else(|| json!({}));
        said.push(json!({"functionCall": {"id": id, "name": name, "args": args}}));
        if sent.contains(id) {
            continue;
        }
        let result = parts(call.get("result"));
        if result.is_empty() {
            let response = json!({"error": format!("no result: {}", text(call, "status"))});
            results
                .push(json!({"functionResponse": {"id": id, "name": name, "response": response}}));
        }
        results.extend(result);
    }
    messages.push(Carried { value: json!({"role": "model", "parts": said}), lines });
    if !results.is_empty() {
        let value = json!({"role": "user", "parts": results});
        messages.push(Carried { value, lines: Vec::new() });
    }
}

/// The parts of a content: a text, a part, or a list of both.
fn parts(content: Option<&Value>) -> Vec<Value> {
    match content {
        Some(Value::String(text)) if text.is_empty() => Vec::new(),
        Some(Value::String(text)) => vec![json!({"text": text})],
        Some(Value::Array(parts)) => {
            parts.iter().flat_map(|part| self::parts(Some(part))).collect()
        }
        Some(part @ Value::Object(_)) => vec![part.clone()],
        _ => Vec::new(),
    }
}

/// Reads a log of Qwen Code.
///
/// As the agent itself resumes: the branch of the last line is the thread, and a compression holds the
/// history that replaces what was before it. Source: `SessionService` and
/// `buildApiHistoryFromConversation` of @qwen-code/qwen-code 0.15.10.
pub(super) fn read_qwen(lines: &[Value]) -> Imported {
    let mut left = Left::default();
    let has_message = |line: &Value| line.get("message").is_some();
    let leaf = lines.iter().rposition(|line| !text(line, "uuid").is_empty());
    let chain = branch(lines, leaf, ("uuid", "parentUuid"), has_message);
    let history = |at: usize| {
        let payload = lines.get(at)?.get("systemPayload")?;
        items(payload, "compressedHistory").next()?;
        Some((at, items(payload, "compressedHistory")))
    };
    let compressed = chain.iter().filter_map(|at| history(*at)).max_by_key(|(at, _)| *at);
    let start = compressed.as_ref().map_or(0, |(at, _)| *at);
    let mut messages: Vec<Carried> = Vec::new();
    if let Some((at, history)) = compressed {
        messages.extend(history.map(|value| Carried { value: value.clone(), lines: Vec::new() }));
        messages.iter_mut().take(1).for_each(|first| first.lines.push(at));
    }
    let (is_compressed, mut model) = (!messages.is_empty(), "");
    for (at, line) in lines.iter().enumerate() {
        match line.get("message") {
            None if is_compressed && at == start => {}
            None => left.out("bookkeeping of the agent"),
            Some(_) if !chain.contains(&at) => left.out("a branch that was left"),
            Some(_) if at < start => left.out("what the agent compacted away"),
            Some(message) => {
                model = line.get("model").and_then(Value::as_str).unwrap_or(model);
                messages.push(Carried { value: message.clone(), lines: vec![at] });
            }
        }
    }
    Imported::of(Dialect::Gemini, model, messages, left)
}

/// Reads the events of a session of the Agent Development Kit.
///
/// As the kit itself builds a request: events of invocations that were rewound are left out, a
/// compaction replaces the events of its time, and pieces of a stream are followed by the whole.
/// Source: `events/_rewind_events.py`, `events/event_actions.py` and
/// `flows/llm_flows/context/_compaction.py` of google-adk 2.13.0.
pub(super) fn read_adk(events: &[Value]) -> Imported {
    let mut left = Left::default();
    let mut kept: Vec<(usize, Value)> = Vec::new();
    let rewound = rewound(events);
    let compactions: Vec<&Value> =
        events.iter().filter_map(|event| action(event, "compaction")).collect();
    for (at, event) in events.iter().enumerate() {
        let compaction = action(event, "compaction");
        let content = compaction.map_or_else(
            || event.get("content"),
            |compaction| either(compaction, "compactedContent", "compacted_content"),
        );
        if rewound.contains(&at) {
            left.out("a turn that was taken back");
        } else if event.get("partial") == Some(&Value::Bool(true)) {
            left.out("a piece of an answer that follows as a whole");
        } else if compaction.is_none() && compactions.iter().any(|range| covers(range, event)) {
            left.out("what the agent compacted away");
        } else if let Some(content) = content.filter(|content| has_parts(content)) {
            let mut content = with_role(content, event, compaction.is_some());
            if compaction.is_some() {
                mark_account(&mut content);
            }
            kept.push((at, content));
        } else {
            left.out("an event without content");
        }
    }
    let messages = kept.into_iter().map(|(at, value)| Carried { value, lines: vec![at] });
    let messages = messages.collect();
    let model = events
        .iter()
        .rev()
        .find_map(|event| either(event, "modelVersion", "model_version").and_then(Value::as_str));
    Imported::of(Dialect::Gemini, model.unwrap_or(""), messages, left)
}

/// The positions of events that a rewind took back: from the first event of the invocation to the
/// rewind itself.
fn rewound(events: &[Value]) -> HashSet<usize> {
    let mut gone = HashSet::new();
    for (at, event) in events.iter().enumerate() {
        let Some(invocation) = action(event, "rewindBeforeInvocationId") else { continue };
        let is_of =
            |event: &Value| either(event, "invocationId", "invocation_id") == Some(invocation);
        if let Some(first) = events.iter().take(at).position(is_of) {
            gone.extend(first..=at);
        }
    }
    gone
}

/// The value of an action, by its name in camel case.
fn action<'v>(event: &'v Value, name: &'static str) -> Option<&'v Value> {
    let snake = if name == "compaction" { "compaction" } else { "rewind_before_invocation_id" };
    either(event.get("actions")?, name, snake)
}

fn covers(compaction: &Value, event: &Value) -> bool {
    let time = |value: &Value, camel, snake| either(value, camel, snake).and_then(Value::as_f64);
    let (start, end) = (
        time(compaction, "startTimestamp", "start_timestamp"),
        time(compaction, "endTimestamp", "end_timestamp"),
    );
    let at = event.get("timestamp").and_then(Value::as_f64);
    matches!((start, at, end), (Some(start), Some(at), Some(end)) if start <= at && at <= end)
}

fn has_parts(content: &Value) -> bool {
    items(content, "parts").next().is_some()
}

/// The content with the names of the API's JSON, and with a role. The author of a summary is the
/// agent, and results of tools are the user's in this dialect.
fn with_role(content: &Value, event: &Value, is_summary: bool) -> Value {
    const NAMES: [(&str, &str); 5] = [
        ("function_call", "functionCall"),
        ("function_response", "functionResponse"),
        ("inline_data", "inlineData"),
        ("file_data", "fileData"),
        ("thought_signature", "thoughtSignature"),
    ];
    let parts: Vec<Value> = items(content, "parts")
        .map(|part| {
            let fields =
                part.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
            let renamed = fields.map(|(name, value)| {
                let name = NAMES
                    .iter()
                    .find(|(snake, _)| snake == name)
                    .map_or(name.as_str(), |(_, camel)| camel);
                (name.to_owned(), value.clone())
            });
            Value::Object(renamed.collect())
        })
        .collect();
    let has_result = parts.iter().any(|part| part.get("functionResponse").is_some());
    let is_of_user = text(event, "author") == "user" || has_result || is_summary;
    json!({"role": if is_of_user { "user" } else { "model" }, "parts": parts})
}

/// A field in camel case, as in JSON of the API, or in snake case, as Python writes it.
fn either<'v>(value: &'v Value, camel: &str, snake: &str) -> Option<&'v Value> {
    value.get(camel).or_else(|| value.get(snake)).filter(|value| !value.is_null())
}
