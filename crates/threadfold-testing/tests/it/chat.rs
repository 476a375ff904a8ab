//! What the rules of OpenAI Chat Completions do.

use serde_json::{Value, json};
use threadfold::wire::Dialect;
use threadfold_testing::rulebook::ReplyBody;

use crate::desk::{Desk, with};

fn desk() -> Desk {
    Desk::new(Dialect::OpenAiChat, "/v1/chat/completions", &[])
}

fn body(messages: Value) -> Value {
    json!({"model": "gpt-5.2", "messages": messages})
}

fn call(id: &str) -> Value {
    let function = json!({"name": "read", "arguments": "{}"});
    json!({"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "x"})
}

#[test]
fn each_rule_of_the_form_is_enforced() {
    let user = json!({"role": "user", "content": "Hi."});
    let legal = body(json!([user]));
    let tool = json!([{"type": "function", "function": {"name": "read"}}]);
    let image = json!({"role": "tool", "tool_call_id": "c", "content": [{"type": "image_url"}]});
    let long = "x".repeat(41);
    let cases = [
        ("fields", with(&legal, "n_ctx", json!(1))),
        ("roles", body(json!([]))),
        ("roles", body(json!([{"role": "model", "content": "x"}]))),
        ("content", body(json!([user, {"role": "assistant", "content": null}]))),
        ("parts", body(json!([user, call("c"), image]))),
        ("pairs", body(json!([user, call("c"), user]))),
        ("pairs", body(json!([user, call("c")]))),
        ("orphans", body(json!([user, result("c")]))),
        ("orphans", body(json!([user, call("c"), result("c"), result("c")]))),
        ("calls", body(json!([user, {"role": "assistant", "content": "x", "tool_calls": []}]))),
        ("calls", body(json!([user, call(&long), result(&long)]))),
        (
            "tools",
            with(&legal, "tools", json!([{"type": "function", "function": {"name": "a.b"}}])),
        ),
        ("no-functions", with(&with(&legal, "model", json!("gpt-6-sol")), "tools", tool)),
        (
            "no-sampling-parameters",
            with(&with(&legal, "model", json!("gpt-6.2-sol")), "temperature", json!(0)),
        ),
    ];
    for (rule, body) in cases {
        assert_eq!(desk().refused(&body).1, rule, "{body}");
    }
    desk().answered(&body(json!([user, call("c"), result("c")])));
}

#[test]
fn a_stream_ends_with_its_usage_if_asked() {
    let mut body = with(&body(json!([{"role": "user", "content": "Hi."}])), "stream", json!(true));
    body["stream_options"] = json!({"include_usage": true});
    let ReplyBody::Events(events) = desk().ask(&body).body else { panic!() };
    let [.., usage, done] = events.as_slice() else { panic!() };
    assert!(usage.data["usage"]["total_tokens"].as_u64() > Some(0));
    assert_eq!(done.data, "[DONE]");
}
