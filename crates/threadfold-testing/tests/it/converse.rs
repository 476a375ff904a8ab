//! What the rules of Bedrock Converse do.

use serde_json::{Value, json};
use threadfold::wire::Dialect;
use threadfold_testing::rulebook::ReplyBody;

use crate::desk::{Desk, with};

const CLAUDE: &str = "/model/anthropic.claude-opus-5-5/converse";
const LLAMA: &str = "/model/meta.llama4/converse";

fn message(role: &str, block: Value) -> Value {
    json!({"role": role, "content": [block]})
}

fn body(messages: Value) -> Value {
    let tool = json!({"toolSpec": {"name": "read", "inputSchema": {"json": {"type": "object"}}}});
    json!({"messages": messages, "toolConfig": {"tools": [tool]}})
}

fn call(id: &str) -> Value {
    message("assistant", json!({"toolUse": {"toolUseId": id, "name": "read", "input": {}}}))
}

fn result(id: &str) -> Value {
    message("user", json!({"toolResult": {"toolUseId": id, "content": [{"text": "x"}]}}))
}

#[test]
fn each_rule_of_the_form_is_enforced() {
    let user = message("user", json!({"text": "Hi."}));
    let answer = message("assistant", json!({"text": "Hello."}));
    let legal = body(json!([user]));
    let mut beside = result("c");
    beside["content"].as_array_mut().unwrap().push(json!({"text": "And?"}));
    let point = json!({"cachePoint": {"type": "default"}});
    let document = json!({"document": {"name": "a", "source": {"text": "x"}}});
    let thought =
        json!({"reasoningContent": {"reasoningText": {"text": "x", "signature": "mine"}}});
    let cases = [
        (CLAUDE, "fields", with(&legal, "max_tokens", json!(1))),
        (CLAUDE, "blocks", body(json!([message("user", json!({"text": "x", "image": {}}))]))),
        (CLAUDE, "non-empty", body(json!([]))),
        (LLAMA, "first-role", body(json!([answer, user]))),
        (CLAUDE, "alternate", body(json!([user, user]))),
        (CLAUDE, "pairs", body(json!([user, call("c"), user]))),
        (CLAUDE, "too-many-results", body(json!([user, answer, result("c")]))),
        (LLAMA, "results-alone", body(json!([user, call("c"), beside]))),
        (
            CLAUDE,
            "tool-config",
            with(&body(json!([user, call("c"), result("c")])), "toolConfig", Value::Null),
        ),
        (CLAUDE, "text", body(json!([message("user", json!({"text": "\n"}))]))),
        (CLAUDE, "ids", body(json!([user, call("c/1"), result("c/1")]))),
        (CLAUDE, "documents", body(json!([message("user", document)]))),
        (CLAUDE, "cache-points", body(json!([message("user", point)]))),
        (CLAUDE, "prefill", body(json!([user, answer]))),
        (CLAUDE, "signatures", body(json!([user, message("assistant", thought), user]))),
    ];
    for (path, rule, body) in cases {
        assert_eq!(Desk::new(Dialect::BedrockConverse, path, &[]).refused(&body).1, rule, "{body}");
    }
    Desk::new(Dialect::BedrockConverse, CLAUDE, &[]).answered(&body(json!([
        user,
        call("c"),
        beside
    ])));
}

#[test]
fn reasoning_of_claude_is_bound() {
    let mut desk = Desk::new(Dialect::BedrockConverse, CLAUDE, &[]);
    let user = |text: &str| message("user", json!({"text": text}));
    let answer = desk.answered(&body(json!([user("One?")])))["output"]["message"].clone();
    desk.answered(&body(json!([user("One?"), answer, user("Two?")])));
    assert_eq!(desk.book.seen().last.arrived.len(), 1);
    let edited = body(json!([user("First?"), answer, user("Two?")]));
    assert_eq!(desk.refused(&edited).1, "binding");
    let drops = json!({"thinking": {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}});
    desk.answered(&with(&edited, "additionalModelRequestFields", drops));
    assert_eq!(desk.book.seen().last.void.len(), 1);
}

#[test]
fn a_stream_is_made_of_frames() {
    let mut desk = Desk::new(Dialect::BedrockConverse, "/model/m/converse-stream", &[]);
    let reply = desk.ask(&json!({"messages": [message("user", json!({"text": "Hi."}))]}));
    let ReplyBody::Frames(events) = &reply.body else { panic!("{reply:?}") };
    assert_eq!(events.last().unwrap().name.as_deref(), Some("metadata"));
    let bytes = reply.bytes();
    let length = u32::from_be_bytes(bytes[..4].try_into().unwrap());
    assert!(bytes.len() > length as usize && length > 16);
}
