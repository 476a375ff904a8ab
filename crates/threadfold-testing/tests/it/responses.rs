//! What the rules of OpenAI Responses do.

use serde_json::{Value, json};
use threadfold::wire::Dialect;
use threadfold_testing::rulebook::{BookOptions, Refusal, Reply, ReplyBody};

use crate::desk::{Desk, more, whole, with};

fn desk() -> Desk {
    Desk::new(Dialect::OpenAiResponses, "/v1/responses", &[])
}

fn body(model: &str, input: Value) -> Value {
    json!({"model": model, "input": input, "store": false, "include": ["reasoning.encrypted_content"]})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "x"})
}

/// A thread of three answers with reasoning.
fn thread(desk: &mut Desk, model: &str) -> Value {
    let mut input = json!([user("One?")]);
    for question in ["Two?", "Three?", "Four?"] {
        let answer = desk.answered(&body(model, input.clone()));
        input = more(&more(&input, answer["output"].clone()), json!([user(question)]));
    }
    input
}

#[test]
fn each_rule_of_the_form_is_enforced() {
    let m = "gpt-6.2-sol";
    let legal = body(m, json!([user("Hi.")]));
    let long = "x".repeat(65);
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let cases = [
        ("fields", with(&legal, "max_tokens", json!(100))),
        ("items", body(m, json!([{"role": "tool", "content": "x"}]))),
        (
            "items",
            body(m, json!([{"role": "user", "content": [{"type": "output_text", "text": "x"}]}])),
        ),
        ("outputs", body(m, json!([user("Hi."), call("c")]))),
        ("orphans", body(m, json!([user("Hi."), output("c")]))),
        ("orphans", body(m, json!([output("c"), call("c")]))),
        ("one-output", body(m, json!([call("c"), output("c"), output("c")]))),
        ("reasoning-followed", body(m, json!([reasoning, user("Hi.")]))),
        (
            "unique-ids",
            body(
                m,
                json!([{"id": "msg_1", "type": "message", "role": "user", "content": "x"},
            {"id": "msg_1", "type": "message", "role": "user", "content": "x"}]),
            ),
        ),
        ("id-prefix", body(m, json!([with(&call("c"), "id", json!("c")), output("c")]))),
        ("call-id", body(m, json!([call(&long), output(&long)]))),
        (
            "encrypted-content",
            body(
                m,
                json!([
                    with(&reasoning, "encrypted_content", json!("mine")),
                    call("c"),
                    output("c")
                ]),
            ),
        ),
        ("stored-items", body(m, json!([reasoning, call("c"), output("c")]))),
        ("compaction-trigger", body(m, json!([{"type": "compaction_trigger"}, user("Hi.")]))),
        ("tools", with(&legal, "tools", json!([{"type": "function", "name": "a.b"}]))),
        ("max-output-tokens", with(&legal, "max_output_tokens", json!(8))),
        ("no-sampling-parameters", with(&legal, "temperature", json!(0))),
        ("effort", with(&legal, "reasoning", json!({"effort": "none"}))),
    ];
    for (rule, body) in cases {
        let mut desk = desk();
        assert_eq!(desk.refused(&body).1, rule, "{body}");
    }
    desk().answered(&legal);
    desk().answered(&with(&body("gpt-6-sol", json!("Hi.")), "temperature", json!(0)));
}

#[test]
fn since_gpt_6_2_reasoning_after_a_change_is_dropped_and_reported() {
    let mut desk = desk();
    let input = thread(&mut desk, "gpt-6.2-sol");
    let same = desk.answered(&body("gpt-6.2-sol", input.clone()));
    assert_eq!(
        (&same["input_transformations"], desk.book.seen().last.arrived.len()),
        (&json!([]), 3)
    );
    let mut edited = input.clone();
    edited[3] = user("Second?");
    let answer = desk.answered(&body("gpt-6.2-sol", edited));
    let removed = |at: usize, why: &str| json!({"type": "reasoning", "id": input[at]["id"], "action": "removed", "reason": why});
    assert_eq!(
        answer["input_transformations"],
        json!([removed(4, "prefix_mismatch"), removed(7, "prefix_mismatch")])
    );
    // Instructions hold for one request, and are no part of the prefix.
    let told = desk.answered(&with(
        &body("gpt-6.2-sol", input.clone()),
        "instructions",
        json!("Be brief."),
    ));
    assert_eq!(told["input_transformations"], json!([]));
    let mut told =
        with(&body("gpt-6.2-sol", json!([user("One?")])), "instructions", json!("Be brief."));
    let answer = desk.answered(&told);
    told["input"] = more(&more(&told["input"], answer["output"].clone()), json!([user("Two?")]));
    assert_eq!(desk.answered(&told)["input_transformations"], json!([]));
    let other = desk.answered(&body("gpt-6.2-astra", input.clone()));
    assert_eq!(other["input_transformations"][0], removed(1, "model_mismatch"));
}

#[test]
fn before_gpt_6_2_nothing_is_dropped() {
    let mut desk = desk();
    let mut input = thread(&mut desk, "gpt-6-sol");
    input[3] = user("Second?");
    let answer = desk.answered(&body("gpt-6-sol", input));
    assert_eq!(answer.get("input_transformations"), None);
    assert_eq!(desk.book.seen().last.arrived.len(), 3);
}

#[test]
fn an_item_with_its_id_needs_its_reasoning() {
    let mut desk = desk();
    let mut input = thread(&mut desk, "gpt-6-sol");
    input.as_array_mut().unwrap().remove(1);
    assert_eq!(desk.refused(&body("gpt-6-sol", input.clone())).1, "reasoning-present");
    input[1].as_object_mut().unwrap().remove("id");
    desk.answered(&body("gpt-6-sol", input));
}

#[test]
fn reasoning_after_a_compaction_of_openai_stays() {
    let mut desk = desk();
    let m = "gpt-6.2-sol";
    let input = thread(&mut desk, m);
    let all = input.as_array().unwrap();
    let compacted =
        desk.at("/v1/responses/compact").answered(&json!({"model": m, "input": all[..4]}));
    assert_eq!(compacted["object"], "response.compaction");
    assert_eq!(compacted["output"].as_array().unwrap().len(), 3);
    let next = more(&compacted["output"], json!(all[4..]));
    let answer = desk.at("/v1/responses").answered(&body(m, next));
    assert_eq!(answer["input_transformations"], json!([]));
    assert_eq!(desk.book.seen().last.arrived.len(), 2);
    // The same by a trigger at the end of the input.
    let asked = more(&json!(all[..4]), json!([{"type": "compaction_trigger"}]));
    let item = desk.answered(&body(m, asked))["output"].clone();
    let answer = desk.answered(&body(m, more(&item, json!(all[4..]))));
    assert_eq!(answer["input_transformations"], json!([]));
    // A text of ours in its place is a change.
    let ours = more(&json!([user("We talked.")]), json!(all[4..]));
    let answer = desk.answered(&body(m, ours));
    assert_eq!(answer["input_transformations"].as_array().unwrap().len(), 2);
}

#[test]
fn a_stored_answer_is_continued_for_thirty_days() {
    let mut desk = desk();
    let first = desk.answered(&json!({"model": "gpt-6.2-sol", "input": "One?"}));
    let next =
        json!({"model": "gpt-6.2-sol", "input": "Two?", "previous_response_id": first["id"]});
    desk.now = 29 * 24 * 3_600_000;
    desk.answered(&next);
    assert_eq!(desk.book.seen().last.arrived.len(), 1);
    desk.now += 2 * 24 * 3_600_000;
    let error = whole(desk.ask(&next));
    assert_eq!(error["error"]["code"], "previous_response_not_found");
    let unstored = desk.answered(&body("gpt-6.2-sol", json!("One?")));
    let next = with(&next, "previous_response_id", unstored["id"].clone());
    assert_eq!(whole(desk.ask(&next))["error"]["code"], "previous_response_not_found");
}

#[test]
fn a_stream_ends_with_the_whole_answer_or_with_the_refusal() {
    let options =
        BookOptions { window: 1_000, refusal: Refusal::InStream, ..BookOptions::default() };
    let mut desk = Desk::with(Dialect::OpenAiResponses, "/v1/responses", &[], options);
    let short = with(&body("gpt-6.2-sol", json!("Hi.")), "stream", json!(true));
    let last = |reply: Reply| {
        let ReplyBody::Events(events) = reply.body else { panic!("{reply:?}") };
        events.last().unwrap().data.clone()
    };
    let done = last(desk.ask(&short));
    assert_eq!(done["type"], "response.completed");
    assert_eq!(done["response"]["output"][1]["content"][0]["text"], "Done.");
    let failed = last(desk.ask(&with(&short, "input", json!("x".repeat(5_000)))));
    assert_eq!(failed["response"]["error"]["code"], "context_length_exceeded");
}

#[test]
fn every_prefix_is_cached_without_a_mark() {
    let mut desk = desk();
    let long = json!([user(&"word ".repeat(2_000)), user("Hi.")]);
    let usage = |desk: &mut Desk, input: &Value| {
        let usage = desk.answered(&body("gpt-6.2-sol", input.clone()))["usage"].clone();
        let details = &usage["input_tokens_details"];
        [&details["cached_tokens"], &details["cache_write_tokens"]].map(|it| it.as_u64().unwrap())
    };
    let [read, written] = usage(&mut desk, &long);
    assert!(read == 0 && written > 2_000);
    let [read, written] = usage(&mut desk, &more(&long, json!([user("And?")])));
    assert!(read > 2_000 && written < 50, "{read} {written}");
    desk.now = 30 * 60_000;
    assert_eq!(usage(&mut desk, &long)[0], 0);
}
