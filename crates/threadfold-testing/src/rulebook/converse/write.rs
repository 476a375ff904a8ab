//! Writing answers.

use serde_json::{Value, json};

use super::super::{
    anthropic::binding,
    event::Event,
    script::{Part, Said},
    vendor::{Incoming, Writing, halves, items, word},
};

/// Returns the whole response.
pub(super) fn whole(request: &Incoming<'_>, said: &Said, mut writing: Writing<'_>) -> Value {
    let content = binding::blocks(request, said, &mut writing, "tooluse_", |part, id| match part {
        Part::Reasoning(text) => {
            json!({"reasoningContent": {"reasoningText": {"text": text, "signature": id}}})
        }
        Part::Text(text) => json!({"text": text}),
        Part::Call { name, input } => {
            json!({"toolUse": {"toolUseId": id, "name": name, "input": input}})
        }
    });
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
