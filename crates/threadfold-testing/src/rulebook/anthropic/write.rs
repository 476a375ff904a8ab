//! Writing answers.

use serde_json::{Value, json};

use super::super::{
    bound::VoidReason,
    call::Reply,
    event::Event,
    piece::MINUTE,
    script::{Part, Said},
    vendor::{Incoming, Wants, Writing, halves, items, stream, word},
};
use super::{binding, family::Family};

/// How long a thread lives after its last request.
const THREAD_LIFE: u64 = 5 * MINUTE;

/// Returns the reply with an answer or a compaction.
pub(super) fn reply(request: &Incoming<'_>, said: &Said, mut writing: Writing<'_>) -> Reply {
    let id = writing.numbers.id("msg_01");
    let (content, stop) = match request.wants {
        Wants::Compaction => (compaction(request, said, &mut writing), "compaction"),
        Wants::Answer | Wants::Count if said.has_calls() => {
            (blocks(request, said, &mut writing), "tool_use")
        }
        Wants::Answer | Wants::Count => (blocks(request, said, &mut writing), "end_turn"),
    };
    keep(request, &id, &content, &mut writing);
    let mut message = json!({
        "id": id, "type": "message", "role": "assistant", "model": request.model,
        "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage(request, &writing),
    });
    if request.has_beta("thinking-binding-controls-2026-08-01") {
        message["input_transformations"] = transformations(&writing);
    }
    if request.streams() { stream(events(&message)) } else { Reply::json(200, message) }
}

fn blocks(request: &Incoming<'_>, said: &Said, writing: &mut Writing<'_>) -> Vec<Value> {
    binding::blocks(request, said, writing, "toolu_01", |part, id| match part {
        Part::Reasoning(text) => json!({"type": "thinking", "thinking": text, "signature": id}),
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Call { name, input } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
    })
}

/// The block that stands for all messages of the request.
fn compaction(request: &Incoming<'_>, said: &Said, writing: &mut Writing<'_>) -> Vec<Value> {
    let signature = writing.numbers.opaque("Ec");
    let binds = Family::of(&request.model).binds();
    writing.bound.remember_compaction(&signature, writing.end.clone(), binds);
    vec![json!({
        "type": "compaction", "content": said.all_text(), "signature": signature, "tool_changes": [],
    })]
}

/// Keeps the thread, if the request asks for that.
fn keep(request: &Incoming<'_>, id: &str, content: &[Value], writing: &mut Writing<'_>) {
    if !request.body.get("thread").is_some_and(Value::is_object) {
        return;
    }
    let mut body = request.body.clone();
    if let Some(messages) = body.get_mut("messages").and_then(Value::as_array_mut) {
        messages.push(json!({"role": "assistant", "content": content}));
    }
    writing.held.keep(id, body, request.now.0 + THREAD_LIFE);
}

fn usage(request: &Incoming<'_>, writing: &Writing<'_>) -> Value {
    let used = writing.used;
    let counts = json!({
        "input_tokens": used.plain,
        "cache_read_input_tokens": used.read,
        "cache_creation_input_tokens": used.written + used.written_hour,
        "cache_creation": {
            "ephemeral_5m_input_tokens": used.written,
            "ephemeral_1h_input_tokens": used.written_hour,
        },
        "output_tokens": writing.output,
    });
    if request.wants != Wants::Compaction {
        return counts;
    }
    // The counts of a compaction stand only among the iterations (anthropic 2.14.0,
    // BetaCompactionIterationUsage).
    let mut pass = counts;
    pass["type"] = json!("compaction");
    json!({
        "input_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0,
        "output_tokens": 0, "iterations": [pass],
    })
}

/// anthropic 2.14.0, BetaThinkingDroppedInputTransformation.
fn transformations(writing: &Writing<'_>) -> Value {
    let dropped = writing.void.iter().filter_map(|(index, reason): &(usize, VoidReason)| {
        let path = &writing.pieces.get(*index)?.path;
        let reason = reason.word("prefix_binding_mismatch", "model_binding_mismatch");
        Some(json!({"type": "thinking_dropped", "path": path, "reason": reason}))
    });
    dropped.collect()
}

/// The events of an answer (Anthropic, "Streaming Messages"). The SDK has no event that brings the
/// signature of a compaction, so its block begins with it.
fn events(message: &Value) -> Vec<Event> {
    let mut start = message.clone();
    (start["content"], start["stop_reason"]) = (json!([]), Value::Null);
    start["usage"]["output_tokens"] = json!(1);
    let mut events = vec![json!({"type": "message_start", "message": start})];
    for (index, block) in items(message.get("content")).enumerate() {
        let (start, deltas) = opened(block);
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        let deltas = deltas.into_iter();
        events.extend(
            deltas.map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": null},
        "usage": message["usage"],
    }));
    events.push(json!({"type": "message_stop"}));
    events.into_iter().map(Event::typed).collect()
}

/// A block as it begins, and the pieces that complete it.
fn opened(block: &Value) -> (Value, Vec<Value>) {
    let mut start = block.clone();
    match word(block, "type") {
        "text" => {
            start["text"] = json!("");
            let pieces = halves(word(block, "text"));
            (start, pieces.map(|text| json!({"type": "text_delta", "text": text})).to_vec())
        }
        "thinking" => {
            (start["thinking"], start["signature"]) = (json!(""), json!(""));
            let pieces = halves(word(block, "thinking"));
            let pieces = pieces.map(|text| json!({"type": "thinking_delta", "thinking": text}));
            let signature = json!({"type": "signature_delta", "signature": block["signature"]});
            (start, pieces.into_iter().chain([signature]).collect())
        }
        "tool_use" => {
            start["input"] = json!({});
            let input = block["input"].to_string();
            let pieces = halves(&input);
            let pieces =
                pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
            (start, pieces.to_vec())
        }
        "compaction" => {
            start["content"] = Value::Null;
            let delta = json!({"type": "compaction_delta", "content": block["content"]});
            (start, vec![delta])
        }
        _ => (start, Vec::new()),
    }
}
