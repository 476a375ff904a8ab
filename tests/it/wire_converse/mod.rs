//! The Converse codec: cases in `testdata/wire/converse`, random bodies, junk, real threads of
//! other dialects, and checks of the streams in `testdata/streams/converse` that `streams.rs` does
//! not make.
//!
//! A case has `--- body` (a request body) or `--- request` (a `Request` in its serde form), and
//! what is expected of it: `--- expect body`, `--- expect adjustments` (one a line; none where the
//! section is left out) or `--- expect error`. A body that is expected to stay as it is needs no
//! `--- expect body`. `--- options` may name a model, its traits, and `cache_auto`.

mod bodies;

use proptest::prelude::*;
use serde_json::{Value, json};
use threadfold::{
    Request, legality,
    message::{Answer, Delta, ModelError},
    wire::{DecodeOptions, Dialect, EncodeOptions},
};
use threadfold_testing::shared::cases::{self, Case};

use crate::support::{recorded, stream_cases, tries::tries, wire_cases::save};

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

fn decode(body: &str) -> Request {
    let request = Dialect::BedrockConverse.decode_slice(body.as_bytes(), &DecodeOptions::default());
    request.unwrap_or_else(|error| panic!("{error}: {body}"))
}

fn model(name: &str) -> EncodeOptions {
    EncodeOptions::for_model(name)
}

mod requests {
    use super::*;

    #[test]
    fn every_case_gives_what_it_expects() {
        for case in cases::read("testdata/wire/converse").unwrap() {
            run(&case);
        }
    }

    fn run(case: &Case) {
        let name = case.name.as_str();
        let get = |section: &str| case.section(section).map(|body| body.trim_end_matches('\n'));
        let parse = |section: &str| -> Option<Value> {
            let value = serde_json::from_str(get(section)?);
            Some(value.unwrap_or_else(|error| panic!("{name}, {section}: {error}")))
        };
        let options = parse("options").unwrap_or_default();
        let read = match get("body") {
            Some(body) => {
                Dialect::BedrockConverse.decode_slice(body.as_bytes(), &DecodeOptions::default())
            }
            None => Ok(serde_json::from_str(get("request").unwrap())
                .unwrap_or_else(|error| panic!("{name}: {error}"))),
        };
        let mut request = match read {
            Ok(request) => request,
            Err(error) => {
                assert_eq!(Some(error.to_string().as_str()), get("expect error"), "{name}");
                return;
            }
        };
        if options["cache_auto"] == true {
            request.cache = true;
        }
        let options = EncodeOptions {
            model: options["model"].as_str().map(Into::into),
            accepts_prefill: options["accepts_prefill"] == true,
            accepts_inner_system: options["accepts_inner_system"] == true,
            binds_reasoning: options["binds_reasoning"] == true,
            ..EncodeOptions::default()
        };
        let encoded = Dialect::BedrockConverse.encode(&request, &options);
        let lines: Vec<String> = encoded.adjustments.iter().map(ToString::to_string).collect();
        let body = encoded.body.to_value().unwrap();
        save(name, &encoded);
        let expected = parse("expect body").or_else(|| parse("body")).unwrap_or_default();
        assert_eq!(body, expected, "{name}");
        assert_eq!(lines.join("\n"), get("expect adjustments").unwrap_or_default(), "{name}");
        if get("expect body").is_none() {
            same_numbers(get("body").unwrap(), encoded.body.as_str());
        }
    }

    /// The numbers of both are spelled the same.
    fn same_numbers(one: &str, other: &str) {
        let numbers = |text: &str| {
            let is_number = |c: char| c.is_ascii_digit() || ".-+eE".contains(c);
            let mut numbers: Vec<String> = text
                .split(|c: char| !is_number(c))
                .filter(|word| word.chars().any(|c| c.is_ascii_digit()))
                .map(str::to_owned)
                .collect();
            numbers.sort();
            numbers
        };
        assert_eq!(numbers(one), numbers(other));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..tries(256) })]

        #[test]
        fn every_valid_body_round_trips(body in bodies::body()) {
            for recognise in [DecodeOptions::default(), EVERYTHING, NOTHING] {
                let request = Dialect::BedrockConverse.decode(&body, &recognise).unwrap();
                let encoded = Dialect::BedrockConverse.encode(&request, &EncodeOptions::default());
                prop_assert_eq!(&encoded.adjustments, &[]);
                prop_assert_eq!(&encoded.body.to_value().unwrap(), &body);
            }
            let request = Dialect::BedrockConverse.decode(&body, &DecodeOptions::default()).unwrap();
            let stored: Request =
                serde_json::from_str(&serde_json::to_string(&request).unwrap()).unwrap();
            let again = Dialect::BedrockConverse.encode(&stored, &EncodeOptions::default());
            prop_assert_eq!(again.body.to_value().unwrap(), body);
        }

        #[test]
        fn a_repaired_body_needs_no_second_repair(body in bodies::body_like(), prefill in any::<bool>()) {
            let request = Dialect::BedrockConverse.decode(&body, &DecodeOptions::default()).unwrap();
            let options = EncodeOptions { accepts_prefill: prefill, ..EncodeOptions::default() };
            let once = Dialect::BedrockConverse.encode(&request, &options).body;
            let read = decode(once.as_str());
            prop_assert_eq!(legality::violations(&read.messages), [], "{}", once);
            let twice = Dialect::BedrockConverse.encode(&read, &options);
            prop_assert_eq!(&twice.adjustments, &[], "{}", once);
            prop_assert_eq!(twice.body.to_value().unwrap(), once.to_value().unwrap());
        }

        #[test]
        fn no_tree_causes_a_panic(body in prop_oneof![bodies::junk(), bodies::body_like()]) {
            if let Ok(request) = Dialect::BedrockConverse.decode(&body, &DecodeOptions::default()) {
                let _ = Dialect::BedrockConverse.encode(&request, &EncodeOptions::default());
            }
            let _ = Dialect::BedrockConverse.decode_response(body.to_string().as_bytes());
            let answer = json!({"output": {"message": {"role": "assistant", "content": body}}});
            let _ = Dialect::BedrockConverse.decode_response(answer.to_string().as_bytes());
        }

        #[test]
        fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Dialect::BedrockConverse.decode_slice(&bytes, &DecodeOptions::default());
            let _ = Dialect::BedrockConverse.decode_response(&bytes);
        }
    }

    #[test]
    fn deep_and_wide_bodies_are_read_in_linear_time() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let results = format!(
            "{}[]{}",
            r#"[{"toolResult":{"toolUseId":"t","content":"#.repeat(20_000),
            "}}]".repeat(20_000)
        );
        let wide: Vec<String> = (0..100_000).map(|number| format!(r#""k{number}":1"#)).collect();
        let block = format!(r#"[{{"text":"a",{}}}]"#, wide.join(","));
        let points =
            format!("[{}]", vec![r#"{"cachePoint":{"type":"default"}}"#; 50_000].join(","));
        for content in [deep, results, block, points] {
            let body = format!(r#"{{"messages":[{{"role":"user","content":{content}}}]}}"#);
            let _ = Dialect::BedrockConverse.encode(&decode(&body), &EncodeOptions::default());
        }
        let message = |number: usize| {
            format!(r#"{{"role":"user","content":[{{"text":"a"}}],"u{number}":1}}"#)
        };
        let messages: Vec<String> = (0..20_000).map(message).collect();
        let body = format!(r#"{{"messages":[{}]}}"#, messages.join(","));
        let encoded = Dialect::BedrockConverse.encode(&decode(&body), &EncodeOptions::default());
        assert_eq!(encoded.adjustments.len(), 19_999);
    }
}

mod crossing {
    use super::*;

    const CLAUDE: &str = "us.anthropic.claude-opus-4-6-v1:0";
    const LLAMA: &str = "meta.llama3-1-70b-instruct-v1:0";

    #[test]
    fn real_threads_of_other_dialects_become_legal_bodies() {
        for (name, _, request) in recorded::requests() {
            for options in [EncodeOptions::default(), model(CLAUDE), model(LLAMA)] {
                let encoded = Dialect::BedrockConverse.encode(&request, &options);
                let read = decode(encoded.body.as_str());
                assert_eq!(legality::violations(&read.messages), [], "{name}");
                let again = Dialect::BedrockConverse.encode(&read, &options);
                assert_eq!(again.adjustments, [], "{name}");
                assert_eq!(again.body, encoded.body, "{name}");
                save(&format!("from-{name}"), &encoded);
            }
        }
    }

    #[test]
    fn every_case_crosses_into_the_other_dialects_and_back() {
        for case in cases::read("testdata/wire/converse").unwrap() {
            let Some(body) = case.section("body").filter(|_| !case.name.starts_with("error"))
            else {
                continue;
            };
            let others = recorded::FORMATS.into_iter().map(|(_, format)| format);
            for other in others.filter(|other| other.name() != Dialect::BedrockConverse.name()) {
                let there = other.encode(&decode(body), &EncodeOptions::default()).body;
                let read = other
                    .decode_slice(there.as_str().as_bytes(), &DecodeOptions::default())
                    .unwrap();
                assert_eq!(legality::violations(&read.messages), [], "{}: {there}", case.name);
                let back = Dialect::BedrockConverse.encode(&read, &EncodeOptions::default());
                assert_eq!(legality::violations(&decode(back.body.as_str()).messages), []);
                assert!(!there.as_str().contains("c2ln"), "{}: a signature crossed", case.name);
            }
        }
    }
}

mod streams {
    use super::*;

    type Event = (String, String);

    fn events(case: &Case) -> Vec<Event> {
        let events = stream_cases::events(case).into_iter();
        events.collect()
    }

    /// Feeds the events; what they added, and the answer.
    fn feed(events: &[Event]) -> (Vec<Delta>, Result<Answer, ModelError>) {
        let mut builder = Dialect::BedrockConverse.answer_builder();
        let mut deltas = Vec::new();
        for (name, data) in events {
            match builder.handle(name, data) {
                Ok(more) => deltas.extend(more),
                Err(error) => {
                    assert!(!builder.is_complete());
                    let again = builder.finish().unwrap_err();
                    assert_eq!(again.to_string(), error.to_string());
                    return (deltas, Err(error));
                }
            }
        }
        (deltas, builder.finish())
    }

    fn answers() -> Vec<(String, Vec<Event>, Answer)> {
        let cases = stream_cases::read("converse");
        let whole = cases.iter().filter_map(|case| {
            let response = case.section("response")?;
            let turn = Dialect::BedrockConverse.decode_response(response.as_bytes()).unwrap();
            Some((case.name.clone(), events(case), turn))
        });
        whole.collect()
    }

    /// The two events that a piece of text becomes when it is cut here; `None` if it is no text.
    fn cut(event: &Event, at: usize) -> Option<[Event; 2]> {
        let data: Value = serde_json::from_str(&event.1).ok()?;
        let paths = ["/delta/text", "/delta/toolUse/input", "/delta/reasoningContent/text"];
        let path = paths.into_iter().find(|path| data.pointer(path).is_some())?;
        let (one, two) = data.pointer(path)?.as_str()?.split_at_checked(at)?;
        let piece = |text: &str| {
            let mut data = data.clone();
            *data.pointer_mut(path).unwrap() = text.into();
            (event.0.clone(), data.to_string())
        };
        Some([piece(one), piece(two)])
    }

    #[test]
    fn wherever_pieces_are_cut_the_answer_is_the_same() {
        for (name, events, turn) in answers() {
            for index in 0..events.len() {
                for at in 0..40 {
                    let Some(pieces) = cut(&events[index], at) else { continue };
                    let mut split = events.clone();
                    split.splice(index..=index, pieces);
                    assert_eq!(feed(&split).1.unwrap(), turn, "{name}, {index}, {at}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..tries(256) })]

        #[test]
        fn no_events_cause_a_panic(
            events in prop::collection::vec((event_name(), event_data()), 0..8),
        ) {
            let (_, outcome) = feed(&events);
            if let Ok(turn) = outcome {
                let thread = vec![threadfold::Message::user("hi"), turn.message];
                let encoded = Dialect::BedrockConverse.encode(&Request::new(thread), &EncodeOptions::default());
                decode(encoded.body.as_str());
            }
        }
    }

    fn event_name() -> BoxedStrategy<String> {
        prop::sample::select(vec![
            "messageStart",
            "contentBlockStart",
            "contentBlockDelta",
            "contentBlockStop",
            "messageStop",
            "metadata",
            "throttlingException",
            "",
            "new",
        ])
        .prop_map(str::to_owned)
        .boxed()
    }

    fn event_data() -> BoxedStrategy<String> {
        let index = prop_oneof![
            4 => (0..3_u64).prop_map(Value::from),
            1 => Just(json!(u64::MAX)),
            1 => Just(json!(-1)),
            1 => Just(json!(1e300)),
        ];
        let kind = prop::sample::select(vec![
            "text",
            "toolUse",
            "reasoningContent",
            "toolResult",
            "image",
            "citation",
        ]);
        let shaped =
            (index, kind, bodies::junk(), any::<bool>()).prop_map(|(index, kind, odd, right)| {
                let inner = json!({"toolUseId": "t1", "name": "read", "input": "{}", "text": "a",
                "format": "png", "source": {"bytes": "AA=="}, "redactedContent": odd});
                let delta = match kind {
                    "text" => json!("a"),
                    "toolResult" => json!([odd]),
                    _ if right => inner.clone(),
                    _ => odd,
                };
                json!({"contentBlockIndex": index, "delta": {kind: delta}, "start": {kind: inner},
                "role": "assistant", "stopReason": "end_turn", "usage": {"inputTokens": 1}})
            });
        prop_oneof![3 => shaped, 1 => bodies::junk()].prop_map(|data| data.to_string()).boxed()
    }
}
