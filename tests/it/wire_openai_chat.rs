//! The Chat Completions codec: cases in `testdata/wire/openai-chat`, real bodies, random bodies,
//! junk.
//!
//! A case has one of `--- body` (a request body), `--- request` (a `Request` in its serde form) or
//! `--- response` (a response body), and what is expected of it: `--- expect body`,
//! `--- expect adjustments` (one a line; none where the section is left out), `--- expect request`,
//! `--- expect turn` or `--- expect error`. `--- options` may name a model and what to recognise.
//! A body that is expected to stay as it is needs no `--- expect body`.

use proptest::prelude::*;
use serde_json::{Value, json};
use threadfold::wire::{DecodeOptions, Dialect, EncodeOptions};
use threadfold_testing::shared::cases;

use crate::support::{
    chat_bodies as generate,
    tries::tries,
    wire_cases::{self, comes_back, settles, survive, survives_serde},
};

#[test]
fn every_case_gives_what_it_expects() {
    for case in cases::read("testdata/wire/openai-chat").unwrap() {
        wire_cases::run(Dialect::OpenAiChat, &case);
    }
}

#[test]
fn real_bodies_round_trip() {
    wire_cases::run_recorded(Dialect::OpenAiChat);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..tries(400) })]

    #[test]
    fn valid_bodies_round_trip(body in generate::body()) {
        comes_back(Dialect::OpenAiChat, &body);
    }

    #[test]
    fn number_texts_and_white_space_do_not_matter(body in generate::body(), number in "-?[1-9][0-9]{0,20}(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?") {
        let mut text = serde_json::to_string_pretty(&body).unwrap();
        text.truncate(text.rfind('}').unwrap());
        for key in ["temperature", "max_tokens", "max_completion_tokens", "seed"] {
            text.push_str(&format!(",\n {key:?} : {number}"));
        }
        text.push('}');
        let request = Dialect::OpenAiChat.decode_slice(text.as_bytes(), &DecodeOptions::default()).unwrap();
        let encoded = Dialect::OpenAiChat.encode(&request, &EncodeOptions::default());
        let expected: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(encoded.body.to_value().unwrap(), expected);
        prop_assert_eq!(encoded.body.as_str().matches(&number).count() >= 4, true);
    }

    #[test]
    fn a_request_survives_serde_and_is_written_the_same(body in generate::body()) {
        survives_serde(Dialect::OpenAiChat, &body);
    }

    #[test]
    fn junk_never_panics(value in generate::junk()) {
        survive(Dialect::OpenAiChat, value.to_string().as_bytes());
        survive(Dialect::OpenAiChat, json!({"messages": value}).to_string().as_bytes());
        survive(Dialect::OpenAiChat, json!({"messages": [{"role": "assistant", "content": value}]}).to_string().as_bytes());
        let choices = json!([{"message": value.clone(), "finish_reason": value}]);
        survive(Dialect::OpenAiChat, json!({"choices": choices, "usage": value}).to_string().as_bytes());
    }

    #[test]
    fn mutated_bodies_never_panic_and_settle(
        body in generate::body(),
        junk in generate::junk(),
        at in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
    ) {
        settles(Dialect::OpenAiChat, &body, &junk, at, cut);
    }
}

#[test]
fn deep_and_large_bodies_are_read_in_linear_time() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    survive(Dialect::OpenAiChat, deep.as_bytes());
    survive(
        Dialect::OpenAiChat,
        format!(r#"{{"messages":[{{"role":"user","content":{deep}}}],"x":{deep}}}"#).as_bytes(),
    );
    let fields: String = (0..50_000).map(|n| format!(r#","k{n}":{n}"#)).collect();
    let call = |n: usize| {
        format!(
            r#"{{"role":"assistant","reasoning":"r","u{n}":1,"reasoning_details":[{n}],"tool_calls":[{{"id":"c{n}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
        )
    };
    let calls: Vec<String> = (0..20_000).map(call).collect();
    let body = format!(r#"{{"messages":[{}]{fields}}}"#, calls.join(","));
    let request =
        Dialect::OpenAiChat.decode_slice(body.as_bytes(), &DecodeOptions::default()).unwrap();
    let encoded = Dialect::OpenAiChat.encode(&request, &EncodeOptions::default());
    assert_eq!(encoded.adjustments.len(), 19_999);
}

#[test]
fn a_call_of_the_old_form_is_repaired_for_every_damage_of_its_body() {
    let system = json!({"role": "system", "content": "Be brief."});
    let call = json!({"role": "assistant", "content": null, "function_call": {"name": "read", "arguments": "{}"}});
    let answer = |role: &str| json!({"role": role, "name": "read", "content": "a line"});
    let foreign = json!({"role": "tool", "tool_call_id": "t1", "content": "a line"});
    let unreadable = json!({"role": "assistant", "tool_calls": [false, "x"]});
    let blank = json!({"role": "assistant", "content": ""});
    let ends = [
        vec![],
        vec![answer("function")],
        vec![answer("tool")],
        vec![unreadable],
        vec![blank],
        vec![foreign],
        vec![answer("function"), call.clone(), answer("function")],
    ];
    let junk = ["", " ", "_", "a b", "assistant", "user", "function", "tool"].map(Value::from);
    let junk = junk.into_iter().chain([json!(null), json!(5), json!([]), json!({}), json!([{}])]);
    let junk: Vec<Value> = junk.collect();
    for end in ends {
        let messages = [system.clone(), call.clone()].into_iter().chain(end);
        let body = json!({"model": "m", "messages": messages.collect::<Vec<_>>()});
        for junk in &junk {
            for at in 0..wire_cases::places(&mut body.clone(), None, junk) {
                let mut spoilt = body.clone();
                wire_cases::places(&mut spoilt, Some(at), junk);
                wire_cases::settles_whole(Dialect::OpenAiChat, &spoilt);
            }
        }
    }
}
