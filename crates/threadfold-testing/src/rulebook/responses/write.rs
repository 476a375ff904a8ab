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
use super::{
    items::{kind_of, piece, wants_encrypted},
    version::binds,
};

/// How long an answer is stored.
const STORED_LIFE: u64 = 30 * 24 * 60 * MINUTE;

/// Returns the reply with an answer or a compaction.
pub(super) fn reply(request: &Incoming<'_>, said: &Said, mut writing: Writing<'_>) -> Reply {
    let id = writing.numbers.id("resp_");
    let seconds = request.now.0 / 1_000;
    if request.wants == Wants::Compaction {
        let item = compaction(said, request, &mut writing);
        if request.call.route().ends_with("/compact") {
            let users = items(request.body.get("input"));
            let users =
                users.filter(|item| kind_of(item) == "message" && word(item, "role") == "user");
            let output: Vec<Value> = users.cloned().chain([item]).collect();
            let whole = json!({"id": id, "object": "response.compaction", "created_at": seconds,
                "output": output, "usage": usage(&writing)});
            return Reply::json(200, whole);
        }
        return finish(request, &id, vec![item], &mut writing);
    }
    let output = output(request, said, &mut writing);
    finish(request, &id, output, &mut writing)
}

/// Keeps the answer and writes its response.
fn finish(
    request: &Incoming<'_>,
    id: &str,
    output: Vec<Value>,
    writing: &mut Writing<'_>,
) -> Reply {
    if is_stored(&request.body) {
        let mut input: Vec<Value> = items(request.body.get("input")).cloned().collect();
        input.extend(output.iter().cloned());
        for item in &output {
            writing.held.keep_item(word(item, "id"), item.clone());
        }
        writing.held.keep(id, json!({"input": input}), request.now.0 + STORED_LIFE);
    }
    let seconds = request.now.0 / 1_000;
    let mut whole = json!({
        "id": id, "object": "response", "created_at": seconds, "completed_at": seconds,
        "model": request.model, "status": "completed", "error": null, "incomplete_details": null,
        "output": output, "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
        "usage": usage(writing),
    });
    if binds(&request.model) {
        whole["input_transformations"] = transformations(request, writing);
    }
    if request.streams() { stream(events(&whole)) } else { Reply::json(200, whole) }
}

fn is_stored(body: &Value) -> bool {
    body.get("store").and_then(Value::as_bool).unwrap_or(true)
}

/// The items of an answer. Reasoning is bound to what stands before it.
fn output(request: &Incoming<'_>, said: &Said, writing: &mut Writing<'_>) -> Vec<Value> {
    let reply = writing.bound.begin_reply();
    let mut end = writing.end.clone();
    let mut output = Vec::new();
    // The names of reasoning that the next item follows.
    let mut led: Vec<String> = Vec::new();
    for part in &said.parts {
        let item = match part {
            Part::Reasoning(text) => {
                let id = writing.numbers.id("rs_");
                let encrypted = writing.numbers.opaque("gAAA");
                let summary =
                    word(request.body.get("reasoning").unwrap_or(&Value::Null), "summary");
                let summary = if summary.is_empty() {
                    json!([])
                } else {
                    json!([{"type": "summary_text", "text": text}])
                };
                let mut item = json!({"id": id, "type": "reasoning", "summary": summary});
                led = vec![id.clone()];
                let mut names = Vec::new();
                if is_stored(&request.body) {
                    names.push(id);
                }
                if wants_encrypted(&request.body) {
                    item["encrypted_content"] = json!(encrypted);
                    led.push(encrypted.clone());
                    names.push(encrypted);
                }
                writing.bound.remember(&names, &mut end, (&request.model, 0), reply);
                output.push(item);
                continue;
            }
            Part::Text(text) => {
                let part = json!({"type": "output_text", "text": text, "annotations": [],
                    "logprobs": []});
                json!({"id": writing.numbers.id("msg_"), "type": "message", "role": "assistant",
                    "status": "completed", "content": [part]})
            }
            Part::Call { name, input } => json!({
                "id": writing.numbers.id("fc_"), "type": "function_call", "status": "completed",
                "call_id": writing.numbers.id("call_"), "name": name, "arguments": input.to_string(),
            }),
        };
        if !led.is_empty() {
            writing.bound.remember_led(word(&item, "id"), &std::mem::take(&mut led));
        }
        end.add(&piece("", &item));
        output.push(item);
    }
    output
}

fn compaction(said: &Said, request: &Incoming<'_>, writing: &mut Writing<'_>) -> Value {
    let encrypted = writing.numbers.opaque("gAAA");
    let binds = binds(&request.model);
    writing.bound.remember_compaction(&encrypted, writing.end.clone(), binds);
    // As long as the summary that it stands for.
    let padding = "x".repeat(said.all_text().len().saturating_sub(encrypted.len()));
    let padded = format!("{encrypted}{padding}");
    writing.bound.remember_compaction(&padded, writing.end.clone(), binds);
    json!({"id": writing.numbers.id("cmp_"), "type": "compaction", "encrypted_content": padded})
}

fn usage(writing: &Writing<'_>) -> Value {
    let used = writing.used;
    json!({
        "input_tokens": used.prompt(),
        "input_tokens_details": {
            "cached_tokens": used.read, "cache_write_tokens": used.written + used.written_hour,
        },
        "output_tokens": writing.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.prompt() + writing.output,
    })
}

/// openai 3.57.0, InputTransformation.
fn transformations(request: &Incoming<'_>, writing: &Writing<'_>) -> Value {
    let sent: Vec<&Value> = items(request.body.get("input")).collect();
    let removed = writing.void.iter().filter_map(|(index, reason): &(usize, VoidReason)| {
        let path = &writing.pieces.get(*index)?.path;
        let place = path.strip_prefix("input[")?.strip_suffix(']')?.parse::<usize>().ok()?;
        let id = word(sent.get(place)?, "id");
        let reason = reason.word("prefix_mismatch", "model_mismatch");
        Some(json!({"type": "reasoning", "id": id, "action": "removed", "reason": reason}))
    });
    removed.collect()
}

/// The events of an answer (openai 3.57.0, ResponseStreamEvent).
fn events(whole: &Value) -> Vec<Event> {
    let mut begun = whole.clone();
    (begun["status"], begun["output"]) = (json!("in_progress"), json!([]));
    (begun["usage"], begun["completed_at"]) = (Value::Null, Value::Null);
    let mut events = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
    ];
    for (index, item) in items(whole.get("output")).enumerate() {
        let (start, pieces) = opened(item);
        events.push(
            json!({"type": "response.output_item.added", "output_index": index, "item": start}),
        );
        for mut piece in pieces {
            (piece["output_index"], piece["item_id"]) = (json!(index), item["id"].clone());
            events.push(piece);
        }
        events.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        );
    }
    events.push(json!({"type": "response.completed", "response": whole}));
    let events = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        Event::typed(event)
    });
    events.collect()
}

/// An item as it begins, and the pieces that complete it.
fn opened(item: &Value) -> (Value, Vec<Value>) {
    let mut start = item.clone();
    match kind_of(item) {
        "message" => {
            (start["content"], start["status"]) = (json!([]), json!("in_progress"));
            let part = item["content"].get(0).cloned().unwrap_or_default();
            let mut empty = part.clone();
            empty["text"] = json!("");
            let text = word(&part, "text");
            let of = |kind: &str| json!({"type": format!("response.{kind}"), "content_index": 0});
            let mut added = of("content_part.added");
            added["part"] = empty;
            let deltas = halves(text).map(|delta| {
                let mut event = of("output_text.delta");
                (event["delta"], event["logprobs"]) = (json!(delta), json!([]));
                event
            });
            let mut done = of("output_text.done");
            (done["text"], done["logprobs"]) = (json!(text), json!([]));
            let mut ended = of("content_part.done");
            ended["part"] = part.clone();
            (start, [added].into_iter().chain(deltas).chain([done, ended]).collect())
        }
        "function_call" => {
            (start["arguments"], start["status"]) = (json!(""), json!("in_progress"));
            let arguments = word(item, "arguments");
            let kind = "response.function_call_arguments.delta";
            let deltas = halves(arguments).map(|delta| json!({"type": kind, "delta": delta}));
            let done = json!({"type": "response.function_call_arguments.done",
                "name": item["name"], "arguments": arguments});
            (start, deltas.into_iter().chain([done]).collect())
        }
        "reasoning" => {
            // The final content comes only with the end of the item.
            if let Some(fields) = start.as_object_mut() {
                fields.remove("encrypted_content");
            }
            (start, Vec::new())
        }
        _ => (start, Vec::new()),
    }
}
