//! The Gemini codec: cases in `testdata/wire/gemini`, real bodies, random bodies, junk, and checks
//! of the streams in `testdata/streams/gemini` that `streams.rs` does not make.
//!
//! A case has one of `--- body` (a request body), `--- request` (a `Request` in its serde form) or
//! `--- response` (a response body), and what is expected of it: `--- expect body`,
//! `--- expect adjustments` (one a line; none where the section is left out), `--- expect request`,
//! `--- expect turn` or `--- expect error`. `--- options` may name a model, `prefill` and what to
//! recognise. A body that is expected to stay as it is needs no `--- expect body`.

use proptest::prelude::*;
use serde_json::{Value, json};
use threadfold::{
    Answer, Message, Request, Role, legality,
    message::{Delta, ModelError, ToolResult},
    wire::{DecodeOptions, Dialect, EncodeOptions},
};
use threadfold_testing::shared::cases;

use crate::support::{
    gemini_bodies as generate,
    recorded::records,
    tries::tries,
    wire_cases::{self, comes_back, save, settles, survive, survives_serde},
};

const CODEC: Dialect = Dialect::Gemini;

#[test]
fn every_case_gives_what_it_expects() {
    for case in cases::read("testdata/wire/gemini").unwrap() {
        wire_cases::run(CODEC, &case);
    }
}

#[test]
fn real_bodies_round_trip() {
    wire_cases::run_recorded(CODEC);
}

#[test]
fn real_answers_can_be_sent_back_in_pieces_too() {
    for (name, record) in records(CODEC.name()) {
        let Some(response) = record.get("response") else { continue };
        let body = response.to_string();
        let turn = CODEC.decode_response(body.as_bytes()).unwrap();
        assert!(turn.usage.is_some_and(|usage| !usage.is_zero()), "{name}");
        assert_eq!(stream(&[body.as_str()]).unwrap().0, turn, "{name}");
        let question = threadfold::Message::user("hi");
        let encoded = CODEC.encode(&Request::new(vec![question, turn.message]), &prefilling());
        assert_eq!(encoded.adjustments, [], "{name}");
        let sent = &encoded.body.to_value().unwrap()["contents"][1];
        assert_eq!(sent, &record["response"]["candidates"][0]["content"], "{name}");
    }
}

#[test]
fn the_result_of_a_call_without_an_id_goes_back_without_one() {
    let content = json!({"role": "model", "parts": [
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "f", "args": {"n": 2}}},
    ]});
    let body =
        json!({"candidates": [{"content": content, "finishReason": "STOP"}], "responseId": "r"});
    let turn = CODEC.decode_response(body.to_string().as_bytes()).unwrap();
    let ids: Vec<_> = turn.message.tool_uses().map(|call| call.id.clone()).collect();
    assert_eq!(ids, ["call_0_r", "call_1_r"]);
    // The host answers them in another order.
    let results =
        ids.iter().rev().map(|id| ToolResult::text(id.clone(), format!("of {id}")).into());
    let answer = Message::new(Role::User, results.collect());
    let thread = vec![Message::user("go"), turn.message, answer];
    let encoded = CODEC.encode(&Request::new(thread), &EncodeOptions::default());
    let written = encoded.body.to_value().unwrap();
    assert_eq!(written["contents"][1], content);
    let result =
        |text: &str| json!({"functionResponse": {"name": "f", "response": {"output": text}}});
    let expected = json!([result("of call_0_r"), result("of call_1_r")]);
    assert_eq!(written["contents"][2]["parts"], expected);
}

#[test]
fn another_dialect_receives_the_content_that_it_can_express() {
    let body = json!({
        "contents": [{"role": "user", "parts": [
            {"text": "go"}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgr_-8"}},
        ]}],
        "generationConfig": {"maxOutputTokens": 10, "temperature": 0.5},
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": {
            "type": "OBJECT", "properties": {"a": {"type": "ARRAY", "items": {"type": "STRING"}}},
        }}]}],
    });
    let request = CODEC.decode(&body, &DecodeOptions::default()).unwrap();
    let model = Some("claude-opus-4-6".into());
    let options = EncodeOptions { model, ..EncodeOptions::default() };
    let encoded = Dialect::Anthropic.encode(&request, &options);
    let schema = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}});
    let expected = json!({
        "model": "claude-opus-4-6",
        "max_tokens": 10,
        "temperature": 0.5,
        "tool_choice": {"type": "any"},
        "tools": [{"name": "f", "input_schema": schema}],
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "go"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgr/+8=="}},
        ]}],
    });
    assert_eq!(encoded.body.to_value().unwrap(), expected);
    assert_eq!(encoded.adjustments, []);
}

mod streams {
    use super::*;

    #[test]
    fn an_answer_divided_anywhere_is_the_same_answer() {
        for case in cases::read("testdata/streams/gemini").unwrap() {
            let Some(whole) = case.section("response") else { continue };
            // A tree sorts the keys, in the pieces as in the whole.
            let tree: Value = serde_json::from_str(whole).unwrap();
            let whole = tree.to_string();
            let Some(parts) = tree["candidates"][0]["content"]["parts"].as_array() else {
                continue;
            };
            let expected = stream(&[whole.as_str()]).unwrap();
            let all: Vec<Value> = parts.iter().flat_map(divided).collect();
            for at in 0..=all.len() {
                let one = |parts: &[Value]| {
                    let candidates = json!([{"content": {"parts": parts}}]);
                    json!({"candidates": candidates, "responseId": tree["responseId"]}).to_string()
                };
                let mut last = tree.clone();
                last["candidates"][0]["content"]["parts"] = json!([]);
                let events = [one(&all[..at]), one(&all[at..]), last.to_string()];
                let events: Vec<&str> = events.iter().map(String::as_str).collect();
                let (turn, _) = stream(&events).unwrap();
                assert_eq!(turn.message.content, expected.0.message.content, "{}", case.name);
                assert_eq!(turn.usage, expected.0.usage);
                assert_eq!(turn.stop_reason, expected.0.stop_reason);
            }
        }
    }

    /// A part in pieces: plain texts character by character.
    fn divided(part: &Value) -> Vec<Value> {
        let Some(text) = part["text"].as_str().filter(|_| part.get("thoughtSignature").is_none())
        else {
            return vec![part.clone()];
        };
        let piece = |char: char| {
            let mut part = part.clone();
            part["text"] = json!(char.to_string());
            part
        };
        text.chars().map(piece).collect()
    }
}

mod rules {
    use threadfold::{Plan, Replacement, compact::CompactOptions};
    use threadfold_testing::generate::{junk_thread, legal_thread};

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..tries(200) })]

        #[test]
        fn every_written_body_follows_the_rules_of_the_provider(
            thread in prop_oneof![legal_thread(0..10), junk_thread(0..8)],
            model in prop::option::of(prop::sample::select(vec!["gemini-2.5-pro", "gemini-3-pro"])),
        ) {
            let options = EncodeOptions { model: model.map(Into::into), ..EncodeOptions::default() };
            let encoded = CODEC.encode(&Request::new(thread), &options);
            save("threads", &encoded);
            let body = encoded.body.to_value().unwrap();
            prop_assert_eq!(violations(&body), Vec::<String>::new(), "{}", body);
        }

        #[test]
        fn after_a_compaction_the_remaining_messages_are_written_unchanged(body in generate::body()) {
            let request = CODEC.decode(&body, &DecodeOptions::default()).unwrap();
            // The messages after the second question stay.
            let contents = body["contents"].as_array().unwrap();
            let users = contents.iter().enumerate().filter(|(_, one)| is_question(one));
            let Some(at) = users.map(|(index, _)| index).nth(1) else { return Ok(()) };
            let mut thread = request.messages.to_vec();
            let mark = "aaaaaa".parse().unwrap();
            thread[at].make_mut().content.push(threadfold::ContentBlock::checkpoint(mark));
            let options = CompactOptions {
                strip_reminders: false,
                strip_thinking: false,
                ..CompactOptions::default()
            };
            let summary = Replacement::new("It went well.").to(mark);
            Plan::new(&thread, &[summary], &options).unwrap().apply(&mut thread).unwrap();
            let encoded = CODEC.encode(&Request { messages: thread.into(), ..request }, &prefilling());
            let written = encoded.body.to_value().unwrap();
            // An answer directly after the summary forms one content with it.
            let kept = contents.get(at + 2..).unwrap_or_default();
            let written = written["contents"].as_array().unwrap();
            prop_assert_eq!(kept, &written[written.len() - kept.len()..]);
        }
    }

    #[test]
    fn the_checks_find_violations() {
        let text = json!({"text": "x"});
        let call = json!({"functionCall": {"name": "f", "args": {}}});
        let result = json!({"functionResponse": {"name": "f", "response": {}}});
        let of = |role: &str, parts: &[&Value]| json!({"role": role, "parts": parts});
        let question = of("user", &[&text]);
        let cases = [
            (vec![], "no content"),
            (vec![of("model", &[&text]), question.clone()], "an answer comes first"),
            (vec![question.clone(), of("model", &[&text])], "an answer comes last"),
            (vec![question.clone(), of("user", &[])], "a content without parts"),
            (vec![of("user", &[&json!({"text": ""})])], "a text of nothing"),
            (
                vec![question.clone(), of("model", &[&call]), question.clone()],
                "calls and results differ",
            ),
            (vec![question.clone(), of("user", &[&result])], "calls and results differ"),
            (
                vec![question.clone(), of("model", &[&call]), of("user", &[&result, &text])],
                "results share a content",
            ),
            (
                vec![question.clone(), of("model", &[&call]), of("user", &[&result])],
                "a call is not signed",
            ),
        ];
        for (contents, complaint) in cases {
            assert_eq!(violations(&json!({ "contents": contents })), [complaint]);
        }
    }

    fn is_question(content: &Value) -> bool {
        let parts = content["parts"].as_array().unwrap();
        content["role"] != "model"
            && parts.iter().any(|part| part.get("functionResponse").is_none())
    }

    /// Returns the published rules that a body breaks.
    fn violations(body: &Value) -> Vec<String> {
        let contents = body["contents"].as_array().unwrap();
        let mut found = Vec::new();
        let mut check = |fine: bool, complaint: &str| {
            if !fine {
                found.push(complaint.to_owned());
            }
        };
        check(!contents.is_empty(), "no content");
        check(contents.first().is_none_or(|one| one["role"] != "model"), "an answer comes first");
        check(contents.last().is_none_or(|one| one["role"] != "model"), "an answer comes last");
        for content in contents {
            let parts = content["parts"].as_array().unwrap();
            check(!parts.is_empty(), "a content without parts");
            let empty = |part: &Value| part["text"] == "" && part.get("thoughtSignature").is_none();
            check(!parts.iter().any(empty), "a text of nothing");
            let results =
                parts.iter().filter(|part| part.get("functionResponse").is_some()).count();
            check(results == 0 || results == parts.len(), "results share a content");
        }
        let current = contents.iter().rposition(is_question).unwrap_or(0);
        let runs: Vec<&[Value]> =
            contents.chunk_by(|one, other| one["role"] == other["role"]).collect();
        let mut from = 0;
        for (index, run) in runs.iter().enumerate() {
            let mut calls = named(run, "functionCall");
            let mut results =
                runs.get(index + 1).map_or(Vec::new(), |next| named(next, "functionResponse"));
            calls.sort();
            results.sort();
            check(run[0]["role"] != "model" || calls == results, "calls and results differ");
            let first = index == 0 && !named(run, "functionResponse").is_empty();
            check(!first, "calls and results differ");
            let parts = run.iter().flat_map(|content| content["parts"].as_array().unwrap());
            let signed = parts
                .into_iter()
                .find(|part| part.get("functionCall").is_some())
                .is_none_or(|part| part.get("thoughtSignature").is_some());
            check(signed || from < current, "a call is not signed");
            from += run.len();
        }
        found
    }

    /// Name and id of each call or result.
    fn named(run: &[Value], key: &str) -> Vec<String> {
        let parts = run.iter().flat_map(|content| content["parts"].as_array().unwrap());
        let data = parts.filter_map(|part| part.get(key));
        data.map(|data| format!("{} {}", data["name"], data["id"])).collect()
    }
}

/// The answer that a stream gives, and its deltas.
fn stream(events: &[&str]) -> Result<(Answer, Vec<Delta>), ModelError> {
    let mut builder = CODEC.answer_builder();
    let mut deltas = Vec::new();
    for data in events {
        deltas.extend(builder.handle("", data)?);
    }
    Ok((builder.finish()?, deltas))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..tries(400) })]

    #[test]
    fn valid_bodies_round_trip(body in generate::body()) {
        comes_back(CODEC, &body);
    }

    #[test]
    fn a_request_survives_serde_and_is_written_the_same(body in generate::body()) {
        survives_serde(CODEC, &body);
    }

    #[test]
    fn there_and_back_over_another_dialect_is_legal(body in generate::body()) {
        let request = CODEC.decode(&body, &DecodeOptions::default()).unwrap();
        let others: [Dialect; 2] = [Dialect::Anthropic, Dialect::OpenAiChat];
        for other in others {
            let there = other.encode(&request, &EncodeOptions::default());
            let read = other
                .decode_slice(there.body.as_str().as_bytes(), &DecodeOptions::default())
                .unwrap();
            prop_assert_eq!(legality::violations(&read.messages), &[]);
            let back = CODEC.encode(&read, &EncodeOptions::default());
            save("crossed", &back);
            let read = CODEC.decode_slice(back.body.as_str().as_bytes(), &DecodeOptions::default());
            prop_assert_eq!(CODEC.encode(&read.unwrap(), &EncodeOptions::default()).body, back.body);
        }
    }

    #[test]
    fn junk_never_panics(value in generate::junk()) {
        survive(CODEC, value.to_string().as_bytes());
        survive(CODEC, json!({"contents": value}).to_string().as_bytes());
        for role in ["user", "model"] {
            survive(CODEC, json!({"contents": [{"role": role, "parts": value}]}).to_string().as_bytes());
        }
        let candidates = json!([{"content": {"parts": value}, "finishReason": value}]);
        let body = json!({"candidates": candidates, "usageMetadata": value}).to_string();
        survive(CODEC, body.as_bytes());
        let _ = stream(&[&body, &value.to_string(), &body]);
    }

    #[test]
    fn mutated_bodies_never_panic_and_settle(
        body in generate::body(),
        junk in generate::junk(),
        at in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
    ) {
        if let Some(again) = settles(CODEC, &body, &junk, at, cut) {
            prop_assert_eq!(legality::violations(&again.messages), &[]);
        }
    }
}

#[test]
fn deep_and_large_bodies_are_read_in_linear_time() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    survive(CODEC, deep.as_bytes());
    survive(CODEC, format!(r#"{{"contents":[{{"parts":[{deep}]}}],"x":{deep}}}"#).as_bytes());
    let call = |n: usize| format!(r#"{{"functionCall":{{"name":"f{}"}},"u{n}":1}}"#, n % 7);
    let calls: Vec<String> = (0..20_000).map(call).collect();
    let result = |n: usize| format!(r#"{{"functionResponse":{{"name":"f{}"}}}}"#, n % 7);
    let results: Vec<String> = (0..20_000).map(result).collect();
    let content = |n: usize| format!(r#"{{"role":"model","k{n}":1,"parts":[{{"text":"x"}}]}}"#);
    let answers: Vec<String> = (0..20_000).map(content).collect();
    let (calls, results, answers) = (calls.join(","), results.join(","), answers.join(","));
    let fields: String = (0..50_000).map(|n| format!(r#","k{n}":{n}"#)).collect();
    let body = format!(
        r#"{{"contents":[{{"role":"user","parts":[{{"text":"go"}}]}},{{"role":"model","parts":[{calls}]}},{{"role":"user","parts":[{results}]}},{answers}]{fields}}}"#
    );
    let request = CODEC.decode_slice(body.as_bytes(), &DecodeOptions::default()).unwrap();
    let encoded = CODEC.encode(&request, &prefilling());
    assert_eq!(encoded.adjustments, []);
    let event = format!(r#"{{"candidates":[{{"content":{{"parts":[{calls}]}}}}]{fields}}}"#);
    assert!(stream(&[&event, &event]).is_err());
}

/// Options under which a thread at rest stays as it is.
fn prefilling() -> EncodeOptions {
    EncodeOptions { accepts_prefill: true, ..EncodeOptions::default() }
}
