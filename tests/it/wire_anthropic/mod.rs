//! The Anthropic Messages codec against real bodies, cases under `testdata/`, random bodies, junk.

mod bodies;
mod junk;

use proptest::prelude::*;
use serde_json::{Value, json};
use threadfold::{
    Request,
    wire::{DecodeOptions, Dialect, EncodeOptions, Encoded},
};

use crate::support::{recorded::records, tries::tries};

/// Options under which nothing has to be changed in any valid body.
fn lenient() -> EncodeOptions {
    EncodeOptions { accepts_prefill: true, accepts_inner_system: true, ..Default::default() }
}

fn roundtrip(body: &str, recognise: DecodeOptions) -> Encoded {
    let options = recognise;
    let request = Dialect::Anthropic.decode_slice(body.as_bytes(), &options);
    Dialect::Anthropic
        .encode(&request.unwrap_or_else(|error| panic!("{error}: {body}")), &lenient())
}

const EVERYTHING: DecodeOptions = DecodeOptions {
    checkpoints: true,
    reminders: true,
    summaries: true,
    limits: threadfold::wire::DecodeLimits::DEFAULT,
};
const NOTHING: DecodeOptions = DecodeOptions {
    checkpoints: false,
    reminders: false,
    summaries: false,
    limits: threadfold::wire::DecodeLimits::DEFAULT,
};

mod transcripts {
    use super::*;

    #[test]
    fn every_real_body_round_trips() {
        for (name, record) in records(Dialect::Anthropic.name()) {
            let body = &record["request"];
            for recognise in [DecodeOptions::default(), EVERYTHING, NOTHING] {
                let encoded = roundtrip(&body.to_string(), recognise);
                assert_eq!(encoded.adjustments, [], "{name}");
                assert_eq!(&encoded.body.to_value().unwrap(), body, "{name}");
            }
        }
    }

    #[test]
    fn every_real_answer_can_be_sent_back() {
        for (name, record) in records(Dialect::Anthropic.name()) {
            let Some(response) = record.get("response") else { continue };
            let turn = Dialect::Anthropic.decode_response(response.to_string().as_bytes()).unwrap();
            let answer = Request::new(vec![threadfold::Message::user("hi"), turn.message]);
            let encoded = Dialect::Anthropic.encode(&answer, &lenient());
            let sent = json!({"role": "assistant", "content": response["content"]});
            assert_eq!(encoded.adjustments, [], "{name}");
            assert_eq!(encoded.body.to_value().unwrap()["messages"][1], sent, "{name}");
            assert!(turn.usage.is_some_and(|usage| !usage.is_zero()));
        }
    }
}

mod conformance {
    use super::*;
    use threadfold_testing::shared::cases::{self, Case};

    #[test]
    fn every_case_gives_its_body_and_its_adjustments() {
        for case in cases::read("testdata/wire/anthropic").unwrap() {
            let (body, adjustments) = run(&case);
            let expected: Value = serde_json::from_str(case.section("expect body").unwrap())
                .unwrap_or_else(|error| panic!("{}: {error}", case.name));
            assert_eq!(body, expected, "{}", case.name);
            let lines = case.section("expect adjustments").unwrap();
            assert_eq!(adjustments, lines.trim(), "{}", case.name);
        }
    }

    /// Reads the body, or the request in the crate's own form, of a case and encodes it.
    pub(super) fn run(case: &Case) -> (Value, String) {
        let options = case.section("options").unwrap_or("{}");
        let options: Value = serde_json::from_str(options).unwrap();
        let flag = |name: &str| options.get(name).is_some_and(|flag| flag == true);
        let mut request = match case.section("body") {
            Some(body) => {
                let everything = flag("recognise");
                let recognise = if everything { EVERYTHING } else { DecodeOptions::default() };
                let options = recognise;
                Dialect::Anthropic.decode_slice(body.as_bytes(), &options).unwrap()
            }
            None => serde_json::from_str(case.section("request").unwrap()).unwrap(),
        };
        if flag("cache_auto") {
            request.cache = true;
        }
        let options = EncodeOptions {
            model: options.get("model").and_then(Value::as_str).map(Into::into),
            accepts_prefill: flag("accepts_prefill"),
            accepts_inner_system: flag("accepts_inner_system"),
            binds_reasoning: flag("binds_reasoning"),
            ..EncodeOptions::default()
        };
        let encoded = Dialect::Anthropic.encode(&request, &options);
        let lines: Vec<String> = encoded.adjustments.iter().map(ToString::to_string).collect();
        (encoded.body.to_value().unwrap(), lines.join("\n"))
    }
}

mod properties {
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..tries(256) })]

        #[test]
        fn every_valid_body_round_trips(body in bodies::body(), everything in any::<bool>()) {
            let recognise = if everything { EVERYTHING } else { DecodeOptions::default() };
            let encoded = roundtrip(&body, recognise);
            prop_assert_eq!(encoded.adjustments, []);
            let expected: Value = serde_json::from_str(&body).unwrap();
            prop_assert_eq!(encoded.body.to_value().unwrap(), expected);
        }

        #[test]
        fn a_repaired_body_needs_no_second_repair(body in junk::body_like()) {
            let Ok(request) = Dialect::Anthropic.decode(&body, &DecodeOptions::default()) else {
                return Ok(());
            };
            for options in [EncodeOptions::default(), lenient()] {
                let once = Dialect::Anthropic.encode(&request, &options).body;
                let again = Dialect::Anthropic
                    .decode_slice(once.as_str().as_bytes(), &DecodeOptions::default()).unwrap();
                let twice = Dialect::Anthropic.encode(&again, &options);
                prop_assert_eq!(&twice.adjustments, &[], "{}", once);
                prop_assert_eq!(twice.body.to_value().unwrap(), once.to_value().unwrap());
            }
        }
    }
}

mod robustness {
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..tries(256) })]

        #[test]
        fn no_tree_causes_a_panic(body in prop_oneof![junk::value(), junk::body_like()]) {
            if let Ok(request) = Dialect::Anthropic.decode(&body, &DecodeOptions::default()) {
                let _ = Dialect::Anthropic.encode(&request, &EncodeOptions::default());
            }
            let _ = Dialect::Anthropic.decode_response(body.to_string().as_bytes());
        }

        #[test]
        fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Dialect::Anthropic.decode_slice(&bytes, &DecodeOptions::default());
            let _ = Dialect::Anthropic.decode_response(&bytes);
        }
    }

    #[test]
    fn deep_and_wide_bodies_are_read_in_linear_time() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let results = format!(
            "{}[]{}",
            r#"[{"type":"tool_result","tool_use_id":"t","content":"#.repeat(20_000),
            "}]".repeat(20_000)
        );
        let wide: Vec<String> = (0..100_000).map(|number| format!(r#""k{number}":1"#)).collect();
        let block = format!(r#"[{{"type":"text","text":"a",{}}}]"#, wide.join(","));
        for content in [deep, results, block] {
            let body = format!(r#"{{"messages":[{{"role":"user","content":{content}}}]}}"#);
            let request = Dialect::Anthropic
                .decode_slice(body.as_bytes(), &DecodeOptions::default())
                .unwrap();
            let _ = Dialect::Anthropic.encode(&request, &EncodeOptions::default());
        }
    }
}
