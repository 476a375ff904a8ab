//! Writing answers.

use serde_json::{Value, json};

use super::super::{
    event::Event,
    numbers::hash_of,
    piece::{Piece, Place},
    script::{Part, Said},
    vendor::{Incoming, Writing, halves, items, word},
};

/// Returns the whole response.
pub(super) fn whole(request: &Incoming<'_>, said: &Said, writing: Writing<'_>) -> Value {
    let reply = writing.bound.begin_reply();
    let mut end = writing.end;
    let mut content = Vec::new();
    for part in &said.parts {
        let block = match part {
            Part::Reasoning(text) => {
                let signature = writing.numbers.opaque("Er");
                let text = json!({"text": text, "signature": signature});
                let block = json!({"reasoningContent": {"reasoningText": text}});
                let made = (request.model.as_str(), hash_of(&block));
                writing.bound.remember(&[signature], &mut end, made, reply);
                content.push(block);
                continue;
            }
            Part::Text(text) => json!({"text": text}),
            Part::Call { name, input } => {
                let id = writing.numbers.id("tooluse_");
                json!({"toolUse": {"toolUseId": id, "name": name, "input": input}})
            }
        };
        end.add(&Piece::new(String::new(), Place::Assistant, &block));
        content.push(block);
    }
    let used = writing.used;
    let usage = json!({
        "inputTokens": used.plain, "outputTokens": writing.output,
        "totalTokens": used.prompt() + writing.output, "cacheReadInputTokens": used.read,
        "cacheWriteInputTokens": used.written + used.written_hour,
    });
    json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": if said.has_calls() { "tool_use" } else { "end_turn" },
        "usage": usage, "metrics": {"latencyMs": 1},
    })
}

/// The events of a response (botocore 1.44.8, ConverseStreamOutput).
pub(super) fn events(whole: &Value) -> Vec<Event> {
    let mut events = vec![Event::named("messageStart", json!({"role": "assistant"}))];
    for (index, block) in items(whole["output"]["message"].get("content")).enumerate() {
        let of = |name: &str, key: &str, value: Value| {
            Event::named(name, json!({"contentBlockIndex": index, key: value}))
        };
        let delta = |value: Value| of("contentBlockDelta", "delta", value);
        if let Some(text) = block.get("text").and_then(Value::as_str) {
            events.extend(halves(text).map(|text| delta(json!({"text": text}))));
        } else if let Some(call) = block.get("toolUse") {
            let start = json!({"toolUse": {"toolUseId": call["toolUseId"], "name": call["name"]}});
            events.push(of("contentBlockStart", "start", start));
            let input = call["input"].to_string();
            events.extend(halves(&input).map(|piece| delta(json!({"toolUse": {"input": piece}}))));
        } else {
            let text = &block["reasoningContent"]["reasoningText"];
            let pieces = halves(word(text, "text"));
            let pieces = pieces.map(|text| delta(json!({"reasoningContent": {"text": text}})));
            events.extend(pieces);
            let signature = json!({"reasoningContent": {"signature": text["signature"]}});
            events.push(delta(signature));
        }
        events.push(Event::named("contentBlockStop", json!({"contentBlockIndex": index})));
    }
    events.push(Event::named("messageStop", json!({"stopReason": whole["stopReason"]})));
    let metadata = json!({"usage": whole["usage"], "metrics": whole["metrics"]});
    events.push(Event::named("metadata", metadata));
    events
}
