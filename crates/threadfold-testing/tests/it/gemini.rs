//! What the rules of Gemini do.

use serde_json::{Value, json};
use threadfold::wire::Dialect;
use threadfold_testing::rulebook::{Asked, Said};

use crate::desk::{Desk, whole, with};

const PATH: &str = "/v1beta/models/gemini-3-pro:generateContent";

fn desk() -> Desk {
    Desk::new(Dialect::Gemini, PATH, &[])
}

fn content(role: &str, part: Value) -> Value {
    json!({"role": role, "parts": [part]})
}

fn call(name: &str) -> Value {
    content(
        "model",
        json!({"functionCall": {"name": name, "args": {}},
        "thoughtSignature": "skip_thought_signature_validator"}),
    )
}

fn response(name: &str) -> Value {
    content("user", json!({"functionResponse": {"name": name, "response": {"output": "x"}}}))
}

#[test]
fn each_rule_of_the_form_is_enforced() {
    let user = content("user", json!({"text": "Hi."}));
    let model = content("model", json!({"text": "Hello."}));
    let of = |contents: Value| json!({"contents": contents});
    let bare = content("model", json!({"functionCall": {"name": "a", "args": {}}}));
    let signed = content("model", json!({"text": "Hm.", "thoughtSignature": "mine"}));
    let declared = json!([{"functionDeclarations": [{"name": "1"}]}]);
    let cases = [
        ("fields", with(&of(json!([user])), "messages", json!([]))),
        ("non-empty", of(json!([]))),
        ("non-empty", of(json!([{"role": "user", "parts": []}]))),
        ("parts", of(json!([content("user", json!({"text": ""}))]))),
        ("parts", of(json!([content("user", json!({"thought": true}))]))),
        ("alternate", of(json!([user, user]))),
        ("call-turn", of(json!([call("a"), response("a")]))),
        ("response-turn", of(json!([user, model, response("a")]))),
        ("responses", of(json!([user, call("a"), user]))),
        ("responses", of(json!([user, call("a"), response("b")]))),
        ("last", of(json!([user, model]))),
        ("signed-calls", of(json!([user, bare, response("a")]))),
        ("signatures", of(json!([user, signed, user]))),
        ("tools", with(&of(json!([user])), "tools", declared)),
    ];
    for (rule, body) in cases {
        assert_eq!(desk().refused(&body).1, rule, "{body}");
    }
    desk().answered(&of(json!([user, call("a"), response("a")])));
    // An earlier turn is not checked, and the user's new text makes it an earlier one.
    desk().answered(&of(json!([user, bare, response("a"), model, user])));
}

#[test]
fn a_call_comes_with_a_signature_that_goes_back() {
    let mut desk = desk();
    let user = content("user", json!({"text": "Hi."}));
    let mut script = |_: &Asked<'_>| Said::call("a", json!({}));
    let answer = whole(desk.ask_with(&json!({"contents": [user]}), &mut script));
    let called = answer["candidates"][0]["content"].clone();
    desk.answered(&json!({"contents": [user, called, response("a")]}));
    assert_eq!(desk.book.seen().last.arrived, ["contents[1].parts[0]"]);
}
