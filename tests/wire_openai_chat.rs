//! The Chat Completions codec: cases in `testdata/wire/openai-chat`, real bodies, random bodies,
//! junk.
//!
//! A case has one of `--- body` (a request body), `--- request` (a `Request` in its serde form) or
//! `--- response` (a response body), and what is expected of it: `--- expect body`,
//! `--- expect adjustments` (one a line; none where the section is left out), `--- expect request`,
//! `--- expect turn` or `--- expect error`. `--- options` may name a model and what to recognise.
//! A body that is expected to stay as it is needs no `--- expect body`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may panic, and so may what it calls"
)]

#[path = "support/chat_bodies.rs"]
mod generate;

use std::{env, fs, path::PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};
use threadfold::{
    Request,
    testing::cases::{self, Case},
    wire::{DecodeOptions, EncodeOptions, Encoded, OpenAiChat, Recognise, WireFormat},
};

#[test]
fn every_case_gives_what_it_expects() {
    for case in cases::read("testdata/wire/openai-chat").unwrap() {
        run(&case);
    }
}

#[test]
fn real_bodies_come_back_as_they_were() {
    let folder = env::var_os("THREADFOLD_TRANSCRIPTS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/transcripts"),
        PathBuf::from,
    );
    let Ok(files) = fs::read_dir(folder.join("openai-chat")) else {
        println!("skipped: there are no transcripts in {}", folder.display());
        return;
    };
    for path in files.map(|file| file.unwrap().path()) {
        let record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let encoded = round_trip(&record["request"], &DecodeOptions::default());
        assert_eq!(encoded.adjustments, [], "{}", path.display());
        assert_eq!(encoded.body.to_value().unwrap(), record["request"], "{}", path.display());
        save(&path.file_stem().unwrap().to_string_lossy(), &encoded);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn valid_bodies_come_back_as_they_were(body in generate::body()) {
        for recognise in [
            Recognise { checkpoints: false, reminders: false, summaries: false },
            Recognise::default(),
            Recognise { checkpoints: true, reminders: true, summaries: true },
        ] {
            let encoded = round_trip(&body, &DecodeOptions { recognise });
            prop_assert_eq!(&encoded.adjustments, &[]);
            prop_assert_eq!(&encoded.body.to_value().unwrap(), &body);
        }
        save("generated", &round_trip(&body, &DecodeOptions::default()));
    }

    #[test]
    fn number_texts_and_white_space_do_not_matter(body in generate::body(), number in "-?[1-9][0-9]{0,20}(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?") {
        let mut text = serde_json::to_string_pretty(&body).unwrap();
        text.truncate(text.rfind('}').unwrap());
        for key in ["temperature", "max_tokens", "max_completion_tokens", "seed"] {
            text.push_str(&format!(",\n {key:?} : {number}"));
        }
        text.push('}');
        let request = OpenAiChat.decode_slice(text.as_bytes(), &DecodeOptions::default()).unwrap();
        let encoded = OpenAiChat.encode(&request, &EncodeOptions::default());
        let expected: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(encoded.body.to_value().unwrap(), expected);
        prop_assert_eq!(encoded.body.as_str().matches(&number).count() >= 4, true);
    }

    #[test]
    fn a_request_survives_serde_and_is_written_the_same(body in generate::body()) {
        let request = OpenAiChat.decode(&body, &DecodeOptions::default()).unwrap();
        let stored = serde_json::to_string(&request).unwrap();
        let loaded: Request = serde_json::from_str(&stored).unwrap();
        let options = EncodeOptions::default();
        prop_assert_eq!(OpenAiChat.encode(&loaded, &options), OpenAiChat.encode(&request, &options));
    }

    #[test]
    fn junk_never_panics(value in generate::junk()) {
        survive(value.to_string().as_bytes());
        survive(json!({"messages": value}).to_string().as_bytes());
        survive(json!({"messages": [{"role": "assistant", "content": value}]}).to_string().as_bytes());
        let choices = json!([{"message": value.clone(), "finish_reason": value}]);
        survive(json!({"choices": choices, "usage": value}).to_string().as_bytes());
    }

    #[test]
    fn mutated_bodies_never_panic_and_settle(
        body in generate::body(),
        junk in generate::junk(),
        at in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut mutated = body.clone();
        let count = places(&mut mutated, None, &junk);
        places(&mut mutated, Some(at.index(count)), &junk);
        let text = mutated.to_string();
        survive(text.as_bytes());
        survive(&text.as_bytes()[..cut.index(text.len())]);
        // What was made valid needs no second repair.
        let options = EncodeOptions::default();
        if let Ok(request) = OpenAiChat.decode(&mutated, &DecodeOptions::default()) {
            let first = OpenAiChat.encode(&request, &options);
            let again = OpenAiChat
                .decode_slice(first.body.as_str().as_bytes(), &DecodeOptions::default())
                .unwrap();
            let settled = OpenAiChat.encode(&again, &options).body.to_value();
            prop_assert_eq!(settled, first.body.to_value());
        }
    }
}

#[test]
fn deep_and_large_bodies_are_read_in_linear_time() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    survive(deep.as_bytes());
    survive(
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
    let request = OpenAiChat.decode_slice(body.as_bytes(), &DecodeOptions::default()).unwrap();
    let encoded = OpenAiChat.encode(&request, &EncodeOptions::default());
    assert_eq!(encoded.adjustments.len(), 19_999);
}

fn run(case: &Case) {
    let name = case.name.as_str();
    let get = |section: &str| case.section(section).map(|body| body.trim_end_matches('\n'));
    let parse = |section: &str| -> Option<Value> {
        let text = get(section)?;
        Some(
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}, {section}: {error}")),
        )
    };
    let options = parse("options").unwrap_or_default();
    let asked = |kind: &str| {
        options["recognise"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
    };
    let recognise = Recognise {
        checkpoints: options["recognise"].is_null() || asked("checkpoints"),
        reminders: asked("reminders"),
        summaries: asked("summaries"),
    };
    let decode = DecodeOptions { recognise };
    let model = options["model"].as_str().map(Into::into);
    let encode = EncodeOptions { model, ..EncodeOptions::default() };
    if let Some(response) = get("response") {
        match OpenAiChat.decode_response(response.as_bytes()) {
            Ok(turn) => {
                assert_eq!(
                    serde_json::to_value(&turn).unwrap(),
                    parse("expect turn").unwrap(),
                    "{name}"
                );
            }
            Err(error) => {
                assert_eq!(Some(error.to_string().as_str()), get("expect error"), "{name}")
            }
        }
        return;
    }
    let request = match (get("body"), get("request")) {
        (Some(body), _) => OpenAiChat.decode_slice(body.as_bytes(), &decode),
        (None, Some(request)) => Ok(serde_json::from_str(request)
            .unwrap_or_else(|error| panic!("{name}, request: {error}"))),
        (None, None) => panic!("{name}: there is nothing to encode"),
    };
    let request = match request {
        Ok(request) => request,
        Err(error) => {
            assert_eq!(Some(error.to_string().as_str()), get("expect error"), "{name}");
            return;
        }
    };
    if let Some(expected) = parse("expect request") {
        assert_eq!(serde_json::to_value(&request).unwrap(), expected, "{name}");
    }
    let encoded = OpenAiChat.encode(&request, &encode);
    let expected = parse("expect body").or_else(|| parse("body"));
    assert_eq!(
        encoded.body.to_value().unwrap(),
        expected.unwrap_or_default(),
        "{name}: {}",
        encoded.body
    );
    let adjustments: Vec<String> = encoded.adjustments.iter().map(ToString::to_string).collect();
    assert_eq!(adjustments.join("\n"), get("expect adjustments").unwrap_or_default(), "{name}");
    save(name, &encoded);
}

/// Leaves what was written in the folder that `THREADFOLD_WIRE_OUT` names, for other validators.
fn save(name: &str, encoded: &Encoded) {
    if let Some(folder) = env::var_os("THREADFOLD_WIRE_OUT") {
        let line = format!("{}\n", encoded.body);
        let path = PathBuf::from(folder).join(format!("{name}.jsonl"));
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        std::io::Write::write_all(&mut file, line.as_bytes()).unwrap();
    }
}

fn round_trip(body: &Value, options: &DecodeOptions) -> Encoded {
    let request = OpenAiChat.decode(body, options).unwrap();
    OpenAiChat.encode(&request, &EncodeOptions::default())
}

fn survive(body: &[u8]) {
    if let Ok(request) = OpenAiChat.decode_slice(body, &DecodeOptions::default()) {
        let _ = OpenAiChat.encode(&request, &EncodeOptions::default());
    }
    let _ = OpenAiChat.decode_response(body);
}

/// Counts the values in a tree; puts junk in the place of one of them.
fn places(value: &mut Value, mut replace: Option<usize>, junk: &Value) -> usize {
    fn walk(value: &mut Value, replace: &mut Option<usize>, junk: &Value, count: &mut usize) {
        *count += 1;
        match replace {
            Some(0) => {
                *value = junk.clone();
                *replace = None;
                return;
            }
            Some(left) => *left -= 1,
            None => {}
        }
        match value {
            Value::Array(items) => {
                items.iter_mut().for_each(|item| walk(item, replace, junk, count));
            }
            Value::Object(fields) => {
                fields.values_mut().for_each(|item| walk(item, replace, junk, count));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut count = 0;
    walk(value, &mut replace, junk, &mut count);
    count
}
