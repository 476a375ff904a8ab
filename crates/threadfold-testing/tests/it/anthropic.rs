//! What the rules of Anthropic Messages do.

use serde_json::{Value, json};
use threadfold::wire::Dialect;
use threadfold_testing::rulebook::{
    Asked, BookOptions, Fit, Outcome, Part, Refusal, ReplyBody, Said, VoidReason,
};

use crate::desk::{Desk, more, whole, with};

const NEW: (&str, &str) = ("anthropic-version", "2026-10-21");
const BETAS: (&str, &str) = (
    "anthropic-beta",
    "compact-2026-09-04,thinking-binding-controls-2026-08-01,message-threads-2026-08-12",
);

fn desk() -> Desk {
    Desk::new(Dialect::Anthropic, "/v1/messages", &[NEW, BETAS])
}

fn body(model: &str, messages: Value) -> Value {
    json!({"model": model, "max_tokens": 100, "messages": messages})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn call(id: &str) -> Value {
    json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": id, "name": "read", "input": {}}]})
}

fn result(id: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "x"}]})
}

#[test]
fn each_rule_of_the_form_is_enforced() {
    let image = json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}});
    let cited = json!({"type": "text", "text": "x", "citations": [{"type": "char_location"}]});
    let marked = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
    let hour =
        json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}});
    let of_user = |blocks: Value| json!([{"role": "user", "content": blocks}]);
    let m = "claude-opus-5-5";
    let legal = body(m, json!([user("Hi.")]));
    let cases = [
        ("fields", with(&legal, "n", json!(1))),
        ("no-sampling-parameters", with(&legal, "top_p", json!(1))),
        ("max-tokens", with(&legal, "max_tokens", Value::Null)),
        ("non-empty", body(m, json!([]))),
        ("non-empty", body(m, json!([{"role": "user", "content": []}]))),
        ("roles", body(m, json!([{"role": "tool", "content": "x"}]))),
        ("first-role", body(m, json!([{"role": "assistant", "content": "x"}, user("Hi.")]))),
        (
            "inner-system",
            body("claude-opus-4-5", json!([user("Hi."), {"role": "system", "content": "x"}])),
        ),
        ("prefill", body(m, json!([user("Hi."), {"role": "assistant", "content": "x"}]))),
        ("text", body(m, json!([user(" ")]))),
        (
            "text",
            body(
                m,
                json!([user("Hi."), call("c"), {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": ""}]}]}]),
            ),
        ),
        ("pairs", body(m, json!([user("Hi."), call("c"), user("And?")]))),
        ("pairs", body("m", json!([user("Hi."), call("c")]))),
        ("orphans", body(m, json!([user("Hi."), result("c")]))),
        (
            "orphans",
            body(
                m,
                json!([user("Hi."), call("c"), result("c"), call("d"), result("d"), result("c")]),
            ),
        ),
        (
            "unique-ids",
            body(m, json!([user("Hi."), call("c"), result("c"), call("c"), result("c")])),
        ),
        ("single-result", body(m, json!([user("Hi."), call("c"), result("c"), result("c")]))),
        ("results-first", body(m, json!([user("Hi."), call("c"), user("And"), result("c")]))),
        ("id-characters", body(m, json!([user("Hi."), call("c.1"), result("c.1")]))),
        (
            "tools",
            with(&legal, "tools", json!([{"name": "a.b", "input_schema": {"type": "object"}}])),
        ),
        ("tool-choice", with(&legal, "tool_choice", json!({"type": "auto"}))),
        ("cache-marks", body(m, of_user(json!([marked, marked, marked, marked, marked])))),
        ("cache-marks", body(m, of_user(json!([marked, hour])))),
        (
            "assistant-documents",
            body(m, json!([user("Hi."), {"role": "assistant", "content": [image]}, user("And?")])),
        ),
        ("user-citations", body(m, of_user(json!([cited])))),
        (
            "signatures",
            body(
                m,
                json!([user("Hi."), {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "x", "signature": "mine"}]}, user("And?")]),
            ),
        ),
        (
            "compaction-block",
            body(
                m,
                json!([{"role": "assistant", "content": [
            {"type": "compaction", "content": "x", "signature": "mine"}]}, user("And?")]),
            ),
        ),
        (
            "compaction-request",
            with(
                &with(&legal, "compaction", json!({"type": "summarize"})),
                "stop_sequences",
                json!(["x"]),
            ),
        ),
    ];
    for (rule, body) in cases {
        let mut desk = desk();
        assert_eq!(desk.refused(&body).1, rule, "{body}");
    }
    desk().answered(&legal);
}

#[test]
fn the_old_version_accepts_what_the_new_one_refuses() {
    let mut old =
        Desk::new(Dialect::Anthropic, "/v1/messages", &[("anthropic-version", "2023-06-01")]);
    let body = body("claude-sonnet-4-5", json!([user("Hi.")]));
    old.answered(&with(&body, "temperature", json!(0.5)));
    let mut none = Desk::new(Dialect::Anthropic, "/v1/messages", &[]);
    assert_eq!(none.refused(&body).1, "version");
}

/// A thread of three answers with thinking, and its messages.
fn thread(desk: &mut Desk, model: &str) -> Value {
    let mut messages = json!([user("One?")]);
    for question in ["Two?", "Three?", "Four?"] {
        let answer = desk.answered(&body(model, messages.clone()));
        messages = more(
            &messages,
            json!([
            {"role": "assistant", "content": answer["content"]}, user(question)]),
        );
    }
    messages
}

#[test]
fn thinking_is_bound_to_what_came_before_it() {
    let mut desk = desk();
    let messages = thread(&mut desk, "claude-opus-5-5");
    desk.answered(&body("claude-opus-5-5", messages.clone()));
    assert_eq!(desk.book.seen().last.arrived.len(), 3);
    // The second question is another one: the first thinking is good, all later are not.
    let mut edited = messages.clone();
    edited[2] = user("Second?");
    let (message, rule) = desk.refused(&body("claude-opus-5-5", edited.clone()));
    assert_eq!(rule, "binding");
    assert!(message.starts_with(
        "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound"
    ));
    let drops =
        json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
    let body = with(&body("claude-opus-5-5", edited), "thinking", drops);
    let answer = desk.answered(&body);
    let dropped = |path: &str| json!({"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"});
    assert_eq!(
        answer["input_transformations"],
        json!([dropped("messages.3.content.0"), dropped("messages.5.content.0")])
    );
    assert_eq!(
        desk.book.seen().last.void[0],
        ("messages.3.content.0".to_owned(), VoidReason::Prefix)
    );
}

#[test]
fn a_gap_between_thinking_is_a_change_and_a_missing_start_is_none() {
    let mut desk = desk();
    let messages = thread(&mut desk, "claude-opus-5-5");
    let without = |places: &[usize]| {
        let mut messages = messages.clone();
        for place in places {
            messages[*place]["content"].as_array_mut().unwrap().remove(0);
        }
        body("claude-opus-5-5", messages)
    };
    assert_eq!(desk.refused(&without(&[3])).1, "binding");
    desk.answered(&without(&[1, 3]));
}

#[test]
fn an_older_model_reads_thinking_after_a_change() {
    let mut desk = desk();
    let mut messages = thread(&mut desk, "claude-opus-5");
    messages[2] = user("Second?");
    desk.answered(&body("claude-opus-5", messages));
    assert_eq!(desk.book.seen().last.arrived.len(), 3);
}

#[test]
fn the_latest_thinking_must_be_whole() {
    let mut desk = desk();
    let mut script = |_: &Asked<'_>| Said {
        parts: vec![
            Part::Reasoning("a".into()),
            Part::Text("x".into()),
            Part::Reasoning("b".into()),
            Part::Text("y".into()),
        ],
    };
    let first = body("claude-sonnet-4-5", json!([user("One?")]));
    let answer = whole(desk.ask_with(&first, &mut script));
    let mut content = answer["content"].clone();
    content.as_array_mut().unwrap().remove(2);
    let body = body(
        "claude-sonnet-4-5",
        json!([user("One?"), {"role": "assistant", "content": content}, user("Two?")]),
    );
    assert_eq!(desk.refused(&body).1, "latest-thinking");
}

#[test]
fn kept_turns_keep_their_thinking_after_a_compaction_of_the_api() {
    let mut desk = desk();
    let m = "claude-opus-5-5";
    let messages = thread(&mut desk, m);
    let head: Vec<Value> = messages.as_array().unwrap()[..3].to_vec();
    let asked = with(&body(m, json!(head)), "compaction", json!({"type": "summarize"}));
    let answer = desk.answered(&asked);
    assert_eq!(answer["stop_reason"], "compaction");
    assert_eq!(answer["content"][0]["content"], "A summary.");
    let block = json!({"role": "assistant", "content": answer["content"]});
    let kept: Vec<Value> = messages.as_array().unwrap()[3..].to_vec();
    desk.answered(&body(m, more(&json!([block]), json!(kept))));
    assert_eq!(desk.book.seen().last.arrived.len(), 2);
    // Something between the block and the kept turns is a change.
    let between = more(&json!([block, user("By the way.")]), json!(kept));
    assert_eq!(desk.refused(&body(m, between)).1, "binding");
    // Another system prompt is one too.
    let body = with(&body(m, more(&json!([block]), json!(kept))), "system", json!("Be brief."));
    assert_eq!(desk.refused(&body).1, "binding");
}

#[test]
fn the_cache_reads_what_it_wrote_until_it_dies() {
    let mut desk = desk();
    let long = "word ".repeat(4_000);
    let marked = json!([{"type": "text", "text": long, "cache_control": {"type": "ephemeral"}}]);
    let body = with(&body("claude-opus-5-5", json!([user("Hi.")])), "system", marked);
    let mut usage = |now: u64| {
        desk.now = now;
        let usage = desk.answered(&body)["usage"].clone();
        ["cache_creation_input_tokens", "cache_read_input_tokens"]
            .map(|key| usage[key].as_u64().unwrap())
    };
    let written = usage(0)[0];
    assert!(written > 5_000);
    assert_eq!(usage(299_999), [0, written]);
    // Its use has prolonged it.
    assert_eq!(usage(599_998), [0, written]);
    assert_eq!(usage(899_998), [written, 0]);
}

#[test]
fn a_short_prefix_is_not_cached_and_an_hour_costs_more() {
    let mut desk = desk();
    let prompt = |text: &str| {
        let mark = json!({"type": "ephemeral", "ttl": "1h"});
        let system = json!([{"type": "text", "text": text, "cache_control": mark}]);
        with(&body("claude-haiku-4-5", json!([user("Hi.")])), "system", system)
    };
    desk.answered(&prompt("short"));
    assert_eq!(desk.book.seen().input.written_hour, 0);
    desk.answered(&prompt(&"word ".repeat(4_000)));
    assert!(desk.book.seen().input.written_hour > 4_096);
}

#[test]
fn the_window_refuses_with_the_words_of_the_vendor() {
    let options = BookOptions { window: 1_000, ..BookOptions::default() };
    let mut desk = Desk::with(Dialect::Anthropic, "/v1/messages", &[NEW, BETAS], options);
    let long = body("claude-opus-5-5", json!([user(&"x".repeat(5_000))]));
    assert!(desk.refused(&long).0.starts_with("prompt is too long: "));
    assert_eq!(desk.book.seen().last.outcome, Outcome::TooLong);
    let short = with(&body("claude-opus-5-5", json!([user("Hi.")])), "max_tokens", json!(999));
    desk.answered(&short);
    desk.book.options_mut().fit = Fit::Sum;
    assert!(
        desk.refused(&short).0.starts_with("input length and `max_tokens` exceed context limit: ")
    );
    desk.book.options_mut().refusal = Refusal::InStream;
    let reply = desk.ask(&with(&long, "stream", json!(true)));
    let ReplyBody::Events(events) = &reply.body else { panic!("{reply:?}") };
    assert_eq!(
        (reply.status, events.len(), events[0].data["type"].as_str()),
        (200, 1, Some("error"))
    );
}

#[test]
fn a_thread_on_the_server_is_continued_once_and_dies() {
    let mut desk = desk();
    let m = "claude-opus-5-5";
    let created = with(&body(m, json!([user("One?")])), "thread", json!({"type": "create"}));
    let created = with(&created, "system", json!("Be brief."));
    let first = desk.answered(&created)["id"].clone();
    let next = |id: &Value| {
        let thread = json!({"type": "continue", "previous_message_id": id});
        with(&body(m, json!([user("Two?")])), "thread", thread)
    };
    desk.now = 299_999;
    let second = desk.answered(&next(&first))["id"].clone();
    assert_eq!(desk.book.seen().last.arrived, ["messages.1.content.0"]);
    let again = whole(desk.ask(&next(&first)));
    assert_eq!(again["error"]["details"]["error_code"], "thread_already_continued");
    let other = whole(desk.ask(&with(&next(&second), "system", json!("Be long."))));
    assert_eq!(other["error"]["details"]["error_code"], "thread_fingerprint_mismatch");
    desk.now += 300_000;
    let reply = desk.ask(&next(&second));
    assert_eq!(reply.status, 404);
    assert_eq!(whole(reply)["error"]["details"]["error_code"], "thread_not_found");
    assert_eq!(desk.book.seen().last.outcome, Outcome::NotFound);
}
