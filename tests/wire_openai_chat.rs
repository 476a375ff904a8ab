//! The Chat Completions codec: cases in `testdata/wire/openai-chat`, real bodies, random bodies,
//! junk.
//!
//! A case has one of `--- body` (a request body), `--- request` (a `Request` in its serde form) or
//! `--- response` (a response body), and what is expected of it: `--- expect body`,
//! `--- expect adjustments` (one a line; none where the section is left out), `--- expect request`,
//! `--- expect turn` or `--- expect error`. `--- options` may name a model and what to recognise.
//! A body that is expected to stay as it is needs no `--- expect body`.

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};
use threadfold::{
    Request,
    wire::{DecodeOptions, EncodeOptions, Encoded, OpenAiChat, Recognise, WireFormat},
};

#[test]
fn every_case_gives_what_it_expects() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/wire/openai-chat");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no cases in {}", folder.display());
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        run(&name, &sections(&text));
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

fn run(name: &str, case: &BTreeMap<String, String>) {
    let get = |section: &str| case.get(section).map(String::as_str);
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

fn sections(text: &str) -> BTreeMap<String, String> {
    let mut sections: BTreeMap<String, String> = BTreeMap::new();
    let mut open = None;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("--- ") {
            sections.insert(name.to_owned(), String::new());
            open = Some(name.to_owned());
        } else if let Some(section) = open.as_ref().and_then(|name| sections.get_mut(name)) {
            if !section.is_empty() {
                section.push('\n');
            }
            section.push_str(line);
        }
    }
    sections
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

/// Random bodies.
mod generate {
    use proptest::{collection::vec, option, prelude::*, sample::select};
    use serde_json::{Map, Value, json};

    /// A body that the API accepts.
    pub(super) fn body() -> impl Strategy<Value = Value> {
        let messages = (vec(system(), 0..3), vec(exchange(), 1..6));
        let tools = option::of(vec(tool(), 1..3));
        (messages, params(), tools, unknown()).prop_map(
            |((system, exchanges), params, tools, unknown)| {
                let mut messages = system;
                for (index, exchange) in exchanges.into_iter().enumerate() {
                    messages.extend(exchange.into_iter().map(|message| numbered(message, index)));
                }
                let mut body = with(json!({"messages": messages}), params);
                if let Some(tools) = tools {
                    body = with(body, json!({"tools": tools}));
                }
                with(body, unknown)
            },
        )
    }

    /// Any JSON, with the words of the dialect in it more often than chance would have them.
    pub(super) fn junk() -> impl Strategy<Value = Value> {
        let words = select(vec![
            "role",
            "content",
            "type",
            "text",
            "user",
            "assistant",
            "tool",
            "system",
            "function",
            "tool_calls",
            "function_call",
            "id",
            "tool_call_id",
            "name",
            "arguments",
            "image_url",
            "url",
            "file",
            "#field",
            "#as",
            "value",
            "message",
            "refusal",
            "audio",
            "custom",
            "",
        ]);
        let word = words.clone();
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(|number| json!(number)),
            word.prop_map(Value::from),
            text().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            prop_oneof![
                vec(inner.clone(), 0..5).prop_map(Value::from),
                vec((words.clone(), inner), 0..6).prop_map(|fields| Value::Object(
                    fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
                )),
            ]
        })
    }

    /// Makes call ids unique over the body, so that the pairs of one exchange stay its own.
    fn numbered(mut message: Value, exchange: usize) -> Value {
        let renew = |id: &mut Value| *id = json!(format!("{}_{exchange}", id.as_str().unwrap()));
        if let Some(id) = message.get_mut("tool_call_id") {
            renew(id);
        }
        for call in
            message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten()
        {
            renew(call.get_mut("id").unwrap());
        }
        message
    }

    /// What somebody says, and what it leads to.
    fn exchange() -> impl Strategy<Value = Vec<Value>> {
        prop_oneof![
            user().prop_map(|message| vec![message]),
            system().prop_map(|message| vec![message]),
            answer().prop_map(|message| vec![message]),
            (user(), answer()).prop_map(|(user, answer)| vec![user, answer]),
            calls(),
            function_call(),
        ]
    }

    fn system() -> impl Strategy<Value = Value> {
        let role = select(vec!["system", "developer"]);
        (role, content(text_part().boxed()), unknown()).prop_map(|(role, content, unknown)| {
            with(json!({"role": role, "content": content}), unknown)
        })
    }

    fn user() -> impl Strategy<Value = Value> {
        let part = prop_oneof![text_part(), media_part(), unknown_part()].boxed();
        (content(part), unknown()).prop_map(|(content, unknown)| {
            with(json!({"role": "user", "content": content}), unknown)
        })
    }

    fn answer() -> impl Strategy<Value = Value> {
        let refusal = text_of(|text| !text.is_empty())
            .prop_map(|text| json!({"type": "refusal", "refusal": text}));
        let said = prop_oneof![
            content(prop_oneof![text_part(), refusal, unknown_part()].boxed())
                .prop_filter("an answer says something", |content| *content != json!(""))
                .prop_map(|content| json!({"content": content})),
            blank_or_text()
                .prop_map(|text| json!({"content": null, "refusal": format!("x{text}")})),
            "[a-z]{1,9}".prop_map(|id| json!({"audio": {"id": id}})),
            "[a-z]{1,9}".prop_map(|text| json!({"content": "", "reasoning_content": text})),
        ];
        (said, beside(), unknown()).prop_map(|(said, beside, unknown)| {
            with(with(with(json!({"role": "assistant"}), said), beside), unknown)
        })
    }

    /// A message that calls, and its results in any order.
    fn calls() -> impl Strategy<Value = Vec<Value>> {
        let call = (call(), content(text_part().boxed()), option::of("[a-z]{1,4}"), unknown());
        let said = prop_oneof![
            Just(json!({})),
            Just(json!({"content": null})),
            Just(json!({"content": ""})),
            Just(json!({"content": []})),
            content(text_part().boxed()).prop_map(|content| json!({"content": content})),
        ];
        (said, beside(), vec(call, 1..4), unknown(), any::<bool>(), option::of(user())).prop_map(
            |(said, beside, calls, unknown, reverse, user)| {
                let mut items = Vec::new();
                let mut results = Vec::new();
                for (index, (mut call, content, name, extra)) in calls.into_iter().enumerate() {
                    let id = format!("call_{index}");
                    call["id"] = json!(id);
                    items.push(call);
                    let result = json!({"role": "tool", "tool_call_id": id, "content": content});
                    let name = name.map_or(json!({}), |name| json!({"name": name}));
                    results.push(with(with(result, name), extra));
                }
                if reverse {
                    results.reverse();
                }
                let message = with(json!({"role": "assistant", "tool_calls": items}), unknown);
                let mut messages = vec![with(with(message, said), beside)];
                messages.extend(results);
                messages.extend(user);
                messages
            },
        )
    }

    fn call() -> impl Strategy<Value = Value> {
        let arguments = prop_oneof![
            Just("{}".to_owned()),
            Just(r#"{"b": 1.0, "a": 1e2}"#.to_owned()),
            Just("{\"a\": ".to_owned()),
            text(),
        ];
        let kind = select(vec![("function", "arguments"), ("custom", "input")]);
        (kind, "[a-z_]{1,8}", arguments, unknown(), unknown()).prop_map(
            |((kind, key), name, arguments, outer, inner)| {
                let body = with(json!({"name": name, key: arguments}), inner);
                with(json!({"type": kind, kind: body}), outer)
            },
        )
    }

    fn function_call() -> impl Strategy<Value = Vec<Value>> {
        let call = ("[a-z_]{1,8}", text(), unknown());
        let answer =
            option::of((prop_oneof![Just(Value::Null), text().prop_map(Value::from)], unknown()));
        (call, answer).prop_map(|((name, arguments, unknown), answer)| {
            let call = with(json!({"name": name, "arguments": arguments}), unknown);
            let call = json!({"role": "assistant", "content": null, "function_call": call});
            let answer = answer.map(|(content, unknown)| {
                with(json!({"role": "function", "name": name, "content": content}), unknown)
            });
            [call].into_iter().chain(answer).collect()
        })
    }

    /// Fields that compatible servers put beside the content.
    fn beside() -> impl Strategy<Value = Value> {
        prop_oneof![
            4 => Just(json!({})),
            1 => text().prop_map(|text| json!({"reasoning_content": text})),
            1 => text().prop_map(|text| json!({"reasoning": text, "reasoning_details": [{"data": text}]})),
            1 => Just(json!({"refusal": null, "audio": null, "function_call": null, "annotations": []})),
            1 => Just(json!({"reasoning": null, "reasoning_content": ""})),
        ]
    }

    fn content(part: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
        let kinds = select(vec![
            "<checkpoint:a1b2c3>",
            "<system-reminder>\nbe brief\n</system-reminder>",
            "<system-reminder>\n \n</system-reminder>",
            "<conversation-summary>\nall of it\n</conversation-summary>",
        ]);
        let kinds = kinds.prop_map(str::to_owned).boxed();
        let kind_part = kinds.clone().prop_map(|text| json!({"type": "text", "text": text}));
        prop_oneof![
            3 => blank_or_text().prop_map(Value::from),
            1 => kinds.prop_map(Value::from),
            3 => vec(prop_oneof![3 => part, 1 => kind_part], 1..4).prop_map(Value::from),
        ]
    }

    fn text_part() -> impl Strategy<Value = Value> {
        (blank_or_text(), unknown())
            .prop_map(|(text, unknown)| with(json!({"type": "text", "text": text}), unknown))
    }

    fn media_part() -> impl Strategy<Value = Value> {
        let url = select(vec![
            "data:image/png;base64,iVBORw0KGgo=",
            "data:image/png;charset=utf-8;base64,AA",
            "https://example.com/a.png",
            "",
        ]);
        let image = (url, option::of(select(vec!["auto", "low"])), unknown()).prop_map(
            |(url, detail, unknown)| {
                let mut inner = with(json!({"url": url}), unknown);
                if let Some(detail) = detail {
                    inner["detail"] = json!(detail);
                }
                json!({"type": "image_url", "image_url": inner})
            },
        );
        let file = select(vec![
            json!({"file_id": "file-1"}),
            json!({"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"}),
            json!({"file_data": "data:application/pdf;base64,JVBERi0=", "file_id": "f"}),
            json!({"file_data": "https://example.com/a.pdf"}),
            json!({"filename": "a.pdf"}),
        ]);
        let file = (file, unknown())
            .prop_map(|(file, unknown)| json!({"type": "file", "file": with(file, unknown)}));
        let part = prop_oneof![image.boxed(), file.boxed()];
        (part, unknown()).prop_map(|(part, unknown)| with(part, unknown))
    }

    fn unknown_part() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(json!({"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}})),
            Just(json!({"type": "hologram", "depth": [1.0, 1e30]})),
            Just(json!({"#field": "audio", "value": {"id": "x"}})),
            Just(json!({"#field": "message", "value": {"role": "user"}})),
            Just(json!({"type": "text", "text": null})),
        ]
    }

    fn tool() -> impl Strategy<Value = Value> {
        let function = (
            "[a-z_]{1,8}",
            option::of(select(vec![Value::Null, json!(""), json!("does it")])),
            option::of(select(vec![
                Value::Null,
                json!({}),
                json!({"type": "object", "properties": {}}),
            ])),
            unknown(),
        );
        let function = function.prop_map(|(name, description, parameters, unknown)| {
            let mut function = with(json!({"name": name}), unknown);
            if let Some(description) = description {
                function["description"] = description;
            }
            if let Some(parameters) = parameters {
                function["parameters"] = parameters;
            }
            json!({"type": "function", "function": function})
        });
        let tool = prop_oneof![
            3 => function.boxed(),
            1 => Just(json!({"type": "custom", "custom": {"name": "c", "description": "d"}})).boxed(),
            1 => Just(json!({"type": "web_search", "filters": null})).boxed(),
        ];
        (tool, unknown()).prop_map(|(tool, unknown)| with(tool, unknown))
    }

    fn params() -> impl Strategy<Value = Value> {
        let choices = vec![
            json!({}),
            json!({"model": "gpt-5", "temperature": 1, "max_tokens": 10}),
            json!({"temperature": 0.7, "max_completion_tokens": 10, "stream": true}),
            json!({"temperature": null, "max_tokens": null, "tool_choice": null}),
            json!({"temperature": 1.0, "max_tokens": 10.0, "tool_choice": "auto"}),
            json!({"tool_choice": {"type": "function", "function": {"name": "f"}}}),
            json!({"tool_choice": {"type": "custom", "custom": {"name": "c"}}}),
            json!({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}}),
        ];
        select(choices)
    }

    /// Unknown fields, those among them that look like the codec's own marks.
    fn unknown() -> impl Strategy<Value = Value> {
        let fields = select(vec![
            json!({"x_new": {"z": 1.0, "a": [null]}}),
            json!({"name": "bob"}),
            json!({"#as": "custom", "#content": "array"}),
            json!({"##raw": 1, "#raw": {}, "#id": "absent", "#role": "developer"}),
            json!({"cache_control": {"type": "ephemeral"}, "extra_content": {"google": 1e2}}),
        ]);
        let none = Just(json!({}));
        prop_oneof![6 => none, 1 => fields]
    }

    fn blank_or_text() -> impl Strategy<Value = String> {
        prop_oneof![6 => text_of(|text| !text.trim().is_empty()), 1 => "[ \n\t]{0,3}"]
    }

    fn text() -> impl Strategy<Value = String> {
        text_of(|_| true)
    }

    fn text_of(keep: fn(&String) -> bool) -> impl Strategy<Value = String> {
        let known = select(vec!["hello", "Error: x", "é🦀\u{0}", "a\r\n\"b\"\\", "\u{feff}z"]);
        prop_oneof![known.prop_map(str::to_owned), ".{1,12}"].prop_filter("kept", keep)
    }

    fn with(mut value: Value, more: Value) -> Value {
        let mut fields: Map<String, Value> = more.as_object().unwrap().clone();
        // What the dialect names goes before what nobody knows.
        fields.retain(|key, _| value.get(key).is_none());
        value.as_object_mut().unwrap().append(&mut fields);
        value
    }
}
