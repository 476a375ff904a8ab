//! The Responses codec: cases in `testdata/wire/openai-responses`, real bodies, random bodies,
//! junk, and checks of streams that `streams.rs` does not make.
//!
//! A case has the form that `wire_openai_chat.rs` describes.

use proptest::prelude::*;
use serde_json::{Value, json};
use threadfold::{
    Answer, Message, Request,
    message::{Delta, ModelError},
    wire::{DecodeOptions, Dialect, EncodeOptions},
};
use threadfold_testing::shared::cases;

use crate::support::{
    responses_bodies as generate, stream_cases,
    tries::tries,
    wire_cases::{self, comes_back, settles, survive, survives_serde},
};

#[test]
fn every_case_gives_what_it_expects() {
    for case in cases::read("testdata/wire/openai-responses").unwrap() {
        wire_cases::run(Dialect::OpenAiResponses, &case);
    }
}

#[test]
fn real_bodies_round_trip() {
    wire_cases::run_recorded(Dialect::OpenAiResponses);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..tries(400) })]

    #[test]
    fn valid_bodies_round_trip(body in generate::body()) {
        comes_back(Dialect::OpenAiResponses, &body);
    }

    #[test]
    fn number_texts_and_white_space_do_not_matter(body in generate::body(), number in "-?[1-9][0-9]{0,20}(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?") {
        let mut text = serde_json::to_string_pretty(&body).unwrap();
        text.truncate(text.rfind('}').unwrap());
        for key in ["temperature", "max_output_tokens", "top_p"] {
            text.push_str(&format!(",\n {key:?} : {number}"));
        }
        text.push('}');
        let request =
            Dialect::OpenAiResponses.decode_slice(text.as_bytes(), &DecodeOptions::default()).unwrap();
        let encoded = Dialect::OpenAiResponses.encode(&request, &EncodeOptions::default());
        let expected: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(encoded.body.to_value().unwrap(), expected);
        prop_assert_eq!(encoded.body.as_str().matches(&number).count() >= 3, true);
    }

    #[test]
    fn a_request_survives_serde_and_is_written_the_same(body in generate::body()) {
        survives_serde(Dialect::OpenAiResponses, &body);
    }

    #[test]
    fn a_thread_with_missing_blocks_is_written_legally(
        body in generate::body(),
        drop in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
    ) {
        let mut request = Dialect::OpenAiResponses.decode(&body, &DecodeOptions::default()).unwrap();
        let mut messages = request.messages.to_vec();
        for index in drop {
            if messages.is_empty() {
                break;
            }
            let at = index.index(messages.len());
            let content = &mut messages[at].make_mut().content;
            if !content.is_empty() {
                content.remove(index.index(content.len()));
            }
        }
        request.messages = messages.into();
        let options = EncodeOptions { model: Some("m".into()), ..EncodeOptions::default() };
        let encoded = Dialect::OpenAiResponses.encode(&request, &options);
        check(&encoded.body.to_value().unwrap());
        let body = encoded.body.as_str().as_bytes();
        let again = Dialect::OpenAiResponses.decode_slice(body, &DecodeOptions::default()).unwrap();
        let settled = Dialect::OpenAiResponses.encode(&again, &EncodeOptions::default());
        prop_assert_eq!(&settled.adjustments, &[]);
        prop_assert_eq!(settled.body, encoded.body);
    }

    #[test]
    fn content_that_other_dialects_can_express_round_trips(body in generate::body()) {
        let request = Dialect::OpenAiResponses.decode(&body, &DecodeOptions::default()).unwrap();
        for codec in [Dialect::OpenAiChat, Dialect::Anthropic] {
            let there = codec.encode(&request, &EncodeOptions::default());
            let there = there.body.as_str().as_bytes();
            let foreign = codec.decode_slice(there, &DecodeOptions::default()).unwrap();
            let back = Dialect::OpenAiResponses.encode(&foreign, &EncodeOptions::default());
            check(&back.body.to_value().unwrap());
        }
    }

    #[test]
    fn junk_never_panics(value in generate::junk()) {
        let codec = Dialect::OpenAiResponses;
        survive(codec, value.to_string().as_bytes());
        survive(codec, json!({"input": value}).to_string().as_bytes());
        survive(codec, json!({"input": [value]}).to_string().as_bytes());
        survive(codec, json!({"input": [{"type": "message", "role": "assistant", "content": value}]}).to_string().as_bytes());
        survive(codec, json!({"input": [{"type": "reasoning", "summary": value}]}).to_string().as_bytes());
        survive(codec, json!({"output": [value], "usage": value, "status": value}).to_string().as_bytes());
        let mut builder = Dialect::OpenAiResponses.answer_builder();
        for kind in EVENTS {
            let event = json!({"type": kind, "item": value, "output_index": value, "delta": value, "response": value});
            let _ = builder.handle("", &event.to_string());
        }
        let _ = builder.finish();
    }

    #[test]
    fn mutated_bodies_never_panic_and_settle(
        body in generate::body(),
        junk in generate::junk(),
        at in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
    ) {
        settles(Dialect::OpenAiResponses, &body, &junk, at, cut);
    }
}

const EVENTS: [&str; 12] = [
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.custom_tool_call_input.delta",
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.reasoning_summary_part.added",
    "response.output_item.done",
    "",
    "response.completed",
    "response.failed",
];

/// Checks the rules of the dialect, implemented independently of the codec.
fn check(body: &Value) {
    let empty = Vec::new();
    let items = body["input"].as_array().unwrap_or(&empty);
    let chained = ["previous_response_id", "conversation"].iter().any(|key| !body[*key].is_null())
        || items.iter().any(|item| item["type"].is_null() && item["role"].is_null())
        || items.iter().any(|item| item["type"] == "item_reference");
    let (mut ids, mut calls, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    for (index, item) in items.iter().enumerate() {
        let kind = item["type"].as_str().unwrap_or("message");
        let reference =
            kind == "item_reference" || item["type"].is_null() && item["role"].is_null();
        if let Some(id) = item["id"].as_str().filter(|_| !reference && !kind.starts_with("local")) {
            assert!(!ids.contains(&id), "{id} twice: {body}");
            ids.push(id);
        }
        let call_id = item["call_id"].as_str().or(item["id"].as_str());
        if let (true, Some(id)) = (kind.ends_with("_output"), call_id) {
            assert!(chained || calls.contains(&id), "{id} is not called: {body}");
            answers.push(id);
        } else if kind.ends_with("_call") && item["call_id"].is_string() {
            assert!(item["call_id"].as_str().unwrap().chars().count() <= 64);
            assert!(!calls.contains(&call_id.unwrap()), "{call_id:?} is called twice: {body}");
            calls.push(item["call_id"].as_str().unwrap());
        }
        if kind == "reasoning" && item["id"].is_string() {
            let next = items.get(index + 1).unwrap_or(&Value::Null);
            let kind = next["type"].as_str().unwrap_or_default();
            let of_host = next.is_null()
                || (next["role"].is_string() && next["role"] != "assistant")
                || kind.ends_with("_output");
            assert!(!of_host, "reasoning leads to nothing: {body}");
        }
    }
    let called: Vec<&&str> = calls.iter().filter(|id| !answers.contains(*id)).collect();
    assert!(called.is_empty() || body["model"].is_null(), "{called:?} unanswered: {body}");
}

#[test]
fn deep_and_large_bodies_are_read_in_linear_time() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    survive(Dialect::OpenAiResponses, deep.as_bytes());
    let body = format!(r#"{{"input":[{{"role":"user","content":{deep}}}],"x":{deep}}}"#);
    survive(Dialect::OpenAiResponses, body.as_bytes());
    let fields: String = (0..50_000).map(|n| format!(r#","k{n}":{n}"#)).collect();
    let call = |n: usize| {
        format!(
            r#"{{"type":"reasoning","id":"rs{n}","summary":[]}},{{"type":"function_call","id":"fc{n}","call_id":"c{n}","name":"f","arguments":"{{}}"}},{{"type":"function_call_output","call_id":"c{n}","output":"x"}}"#
        )
    };
    let calls: Vec<String> = (0..20_000).map(call).collect();
    let body = format!(r#"{{"input":[{}]{fields}}}"#, calls.join(","));
    let request =
        Dialect::OpenAiResponses.decode_slice(body.as_bytes(), &DecodeOptions::default()).unwrap();
    let encoded = Dialect::OpenAiResponses.encode(&request, &EncodeOptions::default());
    assert_eq!(encoded.adjustments, []);
    assert_eq!(encoded.body.as_str().len(), body.len());
}

#[test]
fn an_answer_is_sent_back_unchanged() {
    for case in stream_cases::read("openai-responses") {
        let Some(response) = case.section("response") else { continue };
        let turn = Dialect::OpenAiResponses.decode_response(response.as_bytes()).unwrap();
        let response: Value = serde_json::from_str(response).unwrap();
        let request = Request::new(vec![Message::user("hi"), turn.message]);
        let body = Dialect::OpenAiResponses.encode(&request, &EncodeOptions::default()).body;
        let body = body.to_value().unwrap();
        assert_eq!(
            body["input"].as_array().unwrap()[1..],
            response["output"].as_array().unwrap()[..],
            "{}",
            case.name
        );
    }
}

#[test]
fn a_repeated_event_counts_once() {
    for case in stream_cases::read("openai-responses") {
        let events = stream_cases::events(&case);
        let done = |event: &(String, String)| {
            event.1.contains("output_item.") || event.1.contains("completed")
        };
        let twice = events.iter().flat_map(|event| {
            let again = done(event).then_some(event);
            [event].into_iter().chain(again)
        });
        let clean = stream(&events);
        assert_eq!(format!("{:?}", stream(twice)), format!("{clean:?}"), "{}", case.name);
    }
}

/// Hands the events over, and takes the answer at the end of them.
fn stream<'e>(
    events: impl IntoIterator<Item = &'e (String, String)>,
) -> (Vec<Delta>, Result<Answer, ModelError>) {
    let mut builder = Dialect::OpenAiResponses.answer_builder();
    let mut deltas = Vec::new();
    for event in events {
        match builder.handle(&event.0, &event.1) {
            Ok(more) => deltas.extend(more),
            Err(error) => return (deltas, Err(error)),
        }
    }
    let outcome = builder.finish();
    assert_eq!(outcome.is_ok(), builder.is_complete());
    (deltas, outcome)
}
