//! Writing answers.

use serde_json::{Value, json};

use super::super::{
    call::Reply,
    event::Event,
    script::{Part, Said},
    vendor::{Incoming, Writing, halves, items, stream, word},
};

/// Returns the reply with an answer.
pub(super) fn reply(request: &Incoming<'_>, said: &Said, writing: Writing<'_>) -> Reply {
    let text = said.all_text();
    let mut message = json!({"role": "assistant", "refusal": null, "annotations": []});
    message["content"] = if text.is_empty() { Value::Null } else { json!(text) };
    let calls: Vec<Value> = said
        .parts
        .iter()
        .filter_map(|part| {
            let Part::Call { name, input } = part else { return None };
            let id = writing.numbers.id("call_");
            let function = json!({"name": name, "arguments": input.to_string()});
            Some(json!({"id": id, "type": "function", "function": function}))
        })
        .collect();
    let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let used = writing.used;
    let usage = json!({
        "prompt_tokens": used.prompt(), "completion_tokens": writing.output,
        "total_tokens": used.prompt() + writing.output,
        "prompt_tokens_details": {
            "cached_tokens": used.read, "cache_write_tokens": used.written + used.written_hour,
        },
    });
    let choice = json!({"index": 0, "message": message, "finish_reason": reason, "logprobs": null});
    let id = writing.numbers.id("chatcmpl-");
    let whole = json!({"id": id, "object": "chat.completion", "created": request.now.0 / 1_000,
        "model": request.model, "choices": [choice], "usage": usage});
    if request.streams() {
        let with_usage = request.body["stream_options"]["include_usage"] == json!(true);
        return stream(events(&whole, with_usage));
    }
    Reply::json(200, whole)
}

/// The chunks of an answer (openai 3.57.0, ChatCompletionChunk).
fn events(whole: &Value, with_usage: bool) -> Vec<Event> {
    let choice = &whole["choices"][0];
    let message = &choice["message"];
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    deltas.extend(halves(word(message, "content")).map(|text| json!({"content": text})));
    for (index, call) in items(message.get("tool_calls")).enumerate() {
        let mut begun = call.clone();
        (begun["index"], begun["function"]["arguments"]) = (json!(index), json!(""));
        deltas.push(json!({"tool_calls": [begun]}));
        let arguments = halves(word(&call["function"], "arguments"));
        deltas.extend(arguments.map(
            |piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
        ));
    }
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = whole.clone();
        (chunk["object"], chunk["choices"]) = (json!("chat.completion.chunk"), choices);
        chunk["usage"] = usage;
        Event::unnamed(chunk)
    };
    let ended = (json!({}), choice["finish_reason"].clone());
    let deltas = deltas.into_iter().map(|delta| (delta, Value::Null)).chain([ended]);
    let mut events: Vec<Event> = deltas
        .map(|(delta, reason)| {
            chunk(json!([{"index": 0, "delta": delta, "finish_reason": reason}]), Value::Null)
        })
        .collect();
    if with_usage {
        events.push(chunk(json!([]), whole["usage"].clone()));
    }
    events.push(Event::unnamed(json!("[DONE]")));
    events
}
