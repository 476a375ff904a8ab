//! Logs of Codex: items of the Responses dialect, and events for its user interface.

use serde_json::{Value, json};

use super::lines::{Imported, Left, text};
use crate::input::Dialect;

pub(super) fn read(lines: &[Value], mut left: Left) -> Imported {
    let (mut input, mut model, mut instructions) = (Vec::new(), "", "");
    let mut sources = Vec::new();
    for line in lines {
        let payload = line.get("payload").unwrap_or(&Value::Null);
        match text(line, "type") {
            "response_item" => {
                input.push(payload.clone());
                sources.push(1_usize);
            }
            "compacted" => {
                // From here on, the agent used this history instead of the earlier items, so these
                // are outside the thread.
                for _ in 0..sources.iter().sum() {
                    left.out("what the agent compacted away");
                }
                input = match payload.get("replacement_history").and_then(Value::as_array) {
                    Some(history) => history.clone(),
                    None => vec![json!({"type": "message", "role": "user",
                        "content": [{"type": "input_text", "text": text(payload, "message")}]})],
                };
                sources = vec![1];
            }
            kind => {
                if kind == "session_meta" {
                    instructions = text(payload, "instructions");
                } else if kind == "turn_context" {
                    model = text(payload, "model");
                }
                left.out(match kind {
                    "event_msg" => "an event for the screen, which repeats the thread",
                    "turn_context" => "settings of a turn",
                    "session_meta" => "the head of the session",
                    _ => "bookkeeping of the agent",
                });
            }
        }
    }
    let mut body = json!({"model": model, "input": input});
    if let (false, Some(body)) = (instructions.is_empty(), body.as_object_mut()) {
        body.insert("instructions".to_owned(), instructions.into());
    }
    let carried = sources.iter().sum();
    Imported { body, dialect: Dialect::OpenAiResponses, carried, left }
}
