//! Trajectories of OpenHands: events of the first form, with `action` and `observation`, and of the
//! second, with `kind`.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::lines::{Carried, Imported, Left, items, mark_account, text};
use threadfold::wire::Dialect;

/// What an event is for the thread.
enum Part {
    System(String),
    User(String),
    /// The agent's summary of what it compacted away.
    Account(String),
    /// The text of an answer, its call (id, name and arguments), and the id of the answer, which
    /// several events may share.
    Answer {
        said: String,
        call: Option<(String, String, String)>,
        id: String,
    },
    Result {
        call: String,
        content: String,
    },
    Bookkeeping,
}

pub(super) fn read(events: &[Value]) -> Imported {
    let mut left = Left::default();
    let forgotten: HashSet<String> = events.iter().flat_map(forgotten).collect();
    let mut calls: HashMap<String, String> = HashMap::new();
    let mut messages: Vec<Carried> = Vec::new();
    let mut last = String::new();
    for (at, event) in events.iter().enumerate() {
        if forgotten.contains(&id(event)) {
            left.out("what the agent compacted away");
            continue;
        }
        let part = match event.get("kind") {
            Some(_) => part_of_second_form(event),
            None => part_of_first_form(event, &calls),
        };
        let mut continues = String::new();
        let value = match part {
            Part::System(text) => json!({"role": "system", "content": text}),
            Part::User(text) => json!({"role": "user", "content": text}),
            Part::Account(text) => {
                let mut message = json!({"role": "user", "content": text});
                mark_account(&mut message);
                message
            }
            Part::Result { call, content } => {
                json!({"role": "tool", "tool_call_id": call, "content": content})
            }
            Part::Answer { said, call, id: answer } => {
                let call = call.map(|(call, name, arguments)| {
                    calls.insert(id(event), call.clone());
                    json!({"id": call, "type": "function",
                        "function": {"name": name, "arguments": arguments}})
                });
                // Several calls of one answer are events of their own.
                if !answer.is_empty()
                    && answer == last
                    && join(messages.last_mut(), call.as_ref(), at)
                {
                    continue;
                }
                continues = answer;
                match call {
                    Some(call) => {
                        json!({"role": "assistant", "content": said, "tool_calls": [call]})
                    }
                    None => json!({"role": "assistant", "content": said}),
                }
            }
            Part::Bookkeeping => {
                left.out("bookkeeping of the agent");
                continue;
            }
        };
        last = continues;
        messages.push(Carried { value, lines: vec![at] });
    }
    Imported::of(Dialect::OpenAiChat, "", messages, left)
}

/// Adds a call to the answer that made it. False if there is no call, or no answer with calls.
fn join(answer: Option<&mut Carried>, call: Option<&Value>, at: usize) -> bool {
    let (Some(answer), Some(call)) = (answer, call) else { return false };
    let calls = answer.value.get_mut("tool_calls").and_then(Value::as_array_mut);
    let Some(calls) = calls else { return false };
    calls.push(call.clone());
    answer.lines.push(at);
    true
}

fn id(event: &Value) -> String {
    match event.get("id") {
        Some(Value::String(id)) => id.clone(),
        Some(id) => id.to_string(),
        None => String::new(),
    }
}

/// The ids of the events that a compaction took away.
fn forgotten(event: &Value) -> Vec<String> {
    let args = event.get("args").unwrap_or(event);
    let number = |name: &str| args.get(name).and_then(Value::as_u64);
    let mut ids: Vec<String> = items(args, "forgotten_event_ids")
        .map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned))
        .collect();
    if let (Some(start), Some(end)) =
        (number("forgotten_events_start_id"), number("forgotten_events_end_id"))
    {
        // A log has no more events than this; a wrong number must not fill the memory.
        ids.extend((start..=end).take(1_000_000).map(|id| id.to_string()));
    }
    ids
}

fn part_of_first_form(event: &Value, calls: &HashMap<String, String>) -> Part {
    let args = event.get("args").unwrap_or(&Value::Null);
    let made = event.get("tool_call_metadata").filter(|made| !made.is_null());
    let call = made.map_or("", |made| text(made, "tool_call_id"));
    if event.get("observation").is_some() {
        let content = text(event, "content").to_owned();
        let cause = event.get("cause").map(ToString::to_string).unwrap_or_default();
        let call = Some(call.to_owned()).filter(|call| !call.is_empty());
        return match call.or_else(|| calls.get(&cause).cloned()) {
            Some(call) => Part::Result { call, content },
            None => Part::Bookkeeping,
        };
    }
    match (text(event, "action"), text(event, "source")) {
        ("system", _) => Part::System(text(args, "content").to_owned()),
        ("message", "user") => Part::User(text(args, "content").to_owned()),
        ("condensation", _) => match text(args, "summary") {
            "" => Part::Bookkeeping,
            summary => Part::Account(summary.to_owned()),
        },
        ("message", _) => {
            Part::Answer { said: text(args, "content").to_owned(), call: None, id: String::new() }
        }
        ("change_agent_state" | "recall" | "null" | "pause" | "resume" | "", _) => {
            Part::Bookkeeping
        }
        (action, _) => {
            let (id, name) = match made {
                Some(made) => (call.to_owned(), text(made, "function_name").to_owned()),
                None => (format!("action_{}", self::id(event)), action.to_owned()),
            };
            let said = text(args, "thought").to_owned();
            let response = made.and_then(|made| made.get("model_response"));
            let arguments = written(response, &id).unwrap_or_else(|| given(args));
            let answer = response.map_or("", |response| text(response, "id")).to_owned();
            Part::Answer { said, call: Some((id, name, arguments)), id: answer }
        }
    }
}

/// The arguments of a call as the model wrote them.
fn written(response: Option<&Value>, id: &str) -> Option<String> {
    let calls = response?.get("choices")?.get(0)?.get("message")?.get("tool_calls")?.as_array()?;
    let call = calls.iter().find(|call| text(call, "id") == id)?;
    Some(text(call.get("function")?, "arguments").to_owned())
}

/// The arguments of an action without those that the agent adds.
fn given(args: &Value) -> String {
    const OWN: [&str; 6] =
        ["thought", "is_confirmed", "confirmation_state", "hidden", "blocking", "security_risk"];
    let fields = args.as_object().into_iter().flatten();
    let own = fields.filter(|(name, value)| !OWN.contains(&name.as_str()) && !value.is_null());
    let own: Map<String, Value> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
    Value::Object(own).to_string()
}

fn part_of_second_form(event: &Value) -> Part {
    let call = text(event, "tool_call_id").to_owned();
    match text(event, "kind") {
        "SystemPromptEvent" => Part::System(texts(event.get("system_prompt"))),
        "MessageEvent" => {
            let message = event.get("llm_message").unwrap_or(&Value::Null);
            let said = texts(message.get("content"));
            match text(message, "role") {
                "assistant" => Part::Answer { said, call: None, id: String::new() },
                _ => Part::User(said),
            }
        }
        "ActionEvent" => {
            let made = event.get("tool_call").unwrap_or(&Value::Null);
            let function = made.get("function").unwrap_or(made);
            let name = Some(text(event, "tool_name")).filter(|name| !name.is_empty());
            let name = name.unwrap_or_else(|| text(function, "name")).to_owned();
            let arguments = match function.get("arguments") {
                Some(Value::String(arguments)) => arguments.clone(),
                Some(arguments) => arguments.to_string(),
                None => "{}".to_owned(),
            };
            let id = text(event, "llm_response_id").to_owned();
            let said = texts(event.get("thought"));
            Part::Answer { said, call: Some((call, name, arguments)), id }
        }
        "ObservationEvent" => {
            let observation = event.get("observation").unwrap_or(&Value::Null);
            let content = observation.get("content").or_else(|| observation.get("output"));
            Part::Result { call, content: texts(content) }
        }
        "AgentErrorEvent" | "UserRejectObservation" => {
            let content = Some(text(event, "error")).filter(|error| !error.is_empty());
            let content = content.unwrap_or_else(|| text(event, "rejection_reason")).to_owned();
            Part::Result { call, content }
        }
        "Condensation" => match text(event, "summary") {
            "" => Part::Bookkeeping,
            summary => Part::Account(summary.to_owned()),
        },
        _ => Part::Bookkeeping,
    }
}

/// The texts of a content: a text, a part, or a list of parts.
fn texts(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts.iter().map(|part| text(part, "text")).collect();
            texts.join("\n")
        }
        Some(part) => text(part, "text").to_owned(),
        None => String::new(),
    }
}
