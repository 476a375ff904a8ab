//! The suite for adapters, for every dialect: a server answers with what is served in the
//! provider's own form.

use std::sync::Mutex;

use serde_json::{Map, Value, json};
use threadfold::{Answer, ContentBlock, message::StopReason};
use threadfold_http::Dialect;
use threadfold_testing::conformance::{self, Served, Stubbed};

use crate::{
    http::{Server, body, half},
    runtime::run,
};

/// Returns an answer as the provider of this dialect sends it in one body.
fn native(dialect: Dialect, answer: &Answer) -> Value {
    let usage = answer.usage.unwrap_or_default();
    let (input, output) = (usage.input, usage.output);
    let call = |block: &ContentBlock| match block {
        ContentBlock::ToolUse(call) => {
            let value: Value = serde_json::from_str(call.input.as_str()).unwrap();
            Some((call.id.to_string(), call.name.to_string(), value))
        }
        _ => None,
    };
    let blocks = &answer.message.content;
    let text: String = answer.message.texts().map(|text| text.as_str()).collect();
    let each = |text: &dyn Fn(&str) -> Value, called: &dyn Fn((String, String, Value)) -> Value| {
        let blocks = blocks.iter().filter_map(|block| match call(block) {
            Some(call) => Some(called(call)),
            None => block.as_text().map(|it| text(it)),
        });
        blocks.collect::<Vec<Value>>()
    };
    let reason = |end: &str, call: &str, most: &str| match answer.stop_reason {
        StopReason::ToolUse => json!(call),
        StopReason::MaxTokens => json!(most),
        _ => json!(end),
    };
    match dialect {
        Dialect::Anthropic => {
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1",
            "content": each(&|text| json!({"type": "text", "text": text}), &|(id, name, input)| {
                json!({"type": "tool_use", "id": id, "name": name, "input": input})
            }),
            "stop_reason": reason("end_turn", "tool_use", "max_tokens"),
            "usage": {"input_tokens": input, "output_tokens": output}})
        }
        Dialect::OpenAi | Dialect::Compatible => {
            let calls: Vec<Value> = blocks
                .iter()
                .filter_map(call)
                .map(|(id, name, input)| {
                    json!({"id": id, "type": "function",
                    "function": {"name": name, "arguments": input.to_string()}})
                })
                .collect();
            let mut message = Map::new();
            message.insert("role".into(), json!("assistant"));
            message.insert("content".into(), json!(text));
            if !calls.is_empty() {
                message.insert("tool_calls".into(), calls.into());
            }
            json!({"id": "chatcmpl-1", "object": "chat.completion", "model": "m-1", "choices": [{
                "index": 0, "message": message, "finish_reason": reason("stop", "tool_calls", "length")}],
                "usage": {"prompt_tokens": input, "completion_tokens": output}})
        }
        Dialect::Responses => {
            let output_items = each(
                &|text| {
                    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": text, "annotations": []}]})
                },
                &|(id, name, input)| {
                    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id,
                    "name": name, "arguments": input.to_string(), "status": "completed"})
                },
            );
            let cut = answer.stop_reason == StopReason::MaxTokens;
            json!({"id": "resp_1", "object": "response", "model": "m-1", "output": output_items,
                "status": if cut { "incomplete" } else { "completed" },
                "incomplete_details": if cut { json!({"reason": "max_output_tokens"}) } else { Value::Null },
                "usage": {"input_tokens": input, "output_tokens": output}})
        }
        Dialect::Gemini => json!({"modelVersion": "m-1", "candidates": [{"index": 0,
            "content": {"role": "model", "parts": each(&|text| json!({"text": text}), &|(id, name, input)| {
                json!({"functionCall": {"id": id, "name": name, "args": input}})
            })},
            "finishReason": reason("STOP", "STOP", "MAX_TOKENS")}],
            "usageMetadata": {"promptTokenCount": input, "candidatesTokenCount": output}}),
        Dialect::Bedrock => json!({"output": {"message": {"role": "assistant",
            "content": each(&|text| json!({"text": text}), &|(id, name, input)| {
                json!({"toolUse": {"toolUseId": id, "name": name, "input": input}})
            })}},
            "stopReason": reason("end_turn", "tool_use", "max_tokens"),
            "usage": {"inputTokens": input, "outputTokens": output}}),
    }
}

/// A refusal for the length, in the provider's words.
fn too_long(dialect: Dialect, window: u64) -> (&'static str, Value) {
    let found = window + 100;
    let body = match dialect {
        Dialect::Anthropic => json!({"type": "error", "error": {"type": "invalid_request_error",
            "message": format!("prompt is too long: {found} tokens > {window} maximum")}}),
        Dialect::Gemini => {
            json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": format!(
            "The input token count ({found}) exceeds the maximum number of tokens allowed ({window}).")}})
        }
        Dialect::Bedrock => json!({"message": format!(
            "prompt is too long: {found} tokens > {window} maximum")}),
        _ => json!({"error": {"type": "invalid_request_error", "code": "context_length_exceeded",
            "message": format!("This model's maximum context length is {window} tokens. However, your \
                messages resulted in {found} tokens.")}}),
    };
    ("400 Bad Request", body)
}

#[test]
fn every_dialect_carries_everything() {
    let dialects = [
        Dialect::Anthropic,
        Dialect::OpenAi,
        Dialect::Compatible,
        Dialect::Responses,
        Dialect::Gemini,
        Dialect::Bedrock,
    ];
    for dialect in dialects {
        let stub = |served: &Served| {
            let answers = match served {
                Served::Answer(answer) => vec![body("200 OK", native(dialect, answer))],
                // Each attempt breaks off.
                Served::CutOff(answer) => (0..3).map(|_| half(native(dialect, answer))).collect(),
                Served::TooLong(window) => {
                    let (status, answer) = too_long(dialect, window.tokens());
                    vec![body(status, answer)]
                }
            };
            let server = Server::new(answers);
            let (model, server) = (server.model(dialect), Mutex::new(server));
            let received = move || {
                server.lock().unwrap().received().pop().map(|it| it.body).unwrap_or_default()
            };
            Stubbed::new(model, received)
        };
        let conforms = run(conformance::adapter(stub));
        conforms.unwrap_or_else(|breach| panic!("{dialect:?}: {breach}"));
    }
}
