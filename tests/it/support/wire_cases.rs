//! Checks of a codec on bodies: cases in files, real bodies, random and damaged ones.

use std::{env, fs, path::PathBuf};

use crate::support::recorded::records;
use proptest::sample::Index;
use serde_json::Value;
use threadfold::{
    Request,
    wire::{DecodeOptions, Dialect, EncodeOptions, Encoded},
};
use threadfold_testing::shared::cases::Case;

/// Checks that every real body of a dialect comes back unchanged.
pub(crate) fn run_recorded(codec: Dialect) {
    for (name, record) in records(codec.name()) {
        let encoded = round_trip(codec, &record["request"], &DecodeOptions::default());
        assert_eq!(encoded.adjustments, [], "{name}");
        assert_eq!(encoded.body.to_value().unwrap(), record["request"], "{name}");
        save(&name, &encoded);
    }
}

/// Runs one case.
pub(crate) fn run(codec: Dialect, case: &Case) {
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
    let recognise = DecodeOptions {
        checkpoints: options["recognise"].is_null() || asked("checkpoints"),
        reminders: asked("reminders"),
        summaries: asked("summaries"),
        ..DecodeOptions::default()
    };
    let decode = recognise;
    let traits = options["model"].as_str().map(EncodeOptions::for_model).unwrap_or_default();
    let encode = EncodeOptions { accepts_prefill: options["prefill"] == true, ..traits };
    if let Some(response) = get("response") {
        match codec.decode_response(response.as_bytes()) {
            Ok(turn) => {
                let turn = serde_json::to_value(&turn).unwrap();
                assert_eq!(turn, parse("expect turn").unwrap(), "{name}: {turn}");
            }
            Err(error) => {
                assert_eq!(Some(error.to_string().as_str()), get("expect error"), "{name}")
            }
        }
        return;
    }
    let request = match (get("body"), get("request")) {
        (Some(body), _) => codec.decode_slice(body.as_bytes(), &decode),
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
        let found = serde_json::to_value(&request).unwrap();
        assert_eq!(found, expected, "{name}: {found}");
    }
    let encoded = codec.encode(&request, &encode);
    let expected = parse("expect body").or_else(|| parse("body")).unwrap_or_default();
    assert_eq!(encoded.body.to_value().unwrap(), expected, "{name}: {}", encoded.body);
    let adjustments: Vec<String> = encoded.adjustments.iter().map(ToString::to_string).collect();
    assert_eq!(adjustments.join("\n"), get("expect adjustments").unwrap_or_default(), "{name}");
    if !encode.accepts_prefill {
        save(name, &encoded);
    }
}

/// Saves an encoded body in the folder that `THREADFOLD_WIRE_OUT` names, for other validators.
pub(crate) fn save(name: &str, encoded: &Encoded) {
    if let Some(folder) = env::var_os("THREADFOLD_WIRE_OUT") {
        let line = format!("{}\n", encoded.body);
        let path = PathBuf::from(folder).join(format!("{name}.jsonl"));
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        std::io::Write::write_all(&mut file, line.as_bytes()).unwrap();
    }
}

/// Reads a body and writes it.
pub(crate) fn round_trip(codec: Dialect, body: &Value, options: &DecodeOptions) -> Encoded {
    let request = codec.decode(body, options).unwrap();
    codec.encode(&request, &EncodeOptions::default())
}

/// Checks that a valid body comes back unchanged, whatever is recognised in it.
pub(crate) fn comes_back(codec: Dialect, body: &Value) {
    for recognise in [
        DecodeOptions {
            checkpoints: false,
            reminders: false,
            summaries: false,
            limits: threadfold::wire::DecodeLimits::DEFAULT,
        },
        DecodeOptions::default(),
        DecodeOptions {
            checkpoints: true,
            reminders: true,
            summaries: true,
            limits: threadfold::wire::DecodeLimits::DEFAULT,
        },
    ] {
        let encoded = round_trip(codec, body, &recognise);
        assert_eq!(encoded.adjustments, []);
        assert_eq!(encoded.body.to_value().unwrap(), *body);
    }
    save("generated", &round_trip(codec, body, &DecodeOptions::default()));
}

/// Checks that a stored and loaded request is written the same.
pub(crate) fn survives_serde(codec: Dialect, body: &Value) {
    let request = codec.decode(body, &DecodeOptions::default()).unwrap();
    let stored = serde_json::to_string(&request).unwrap();
    let loaded: Request = serde_json::from_str(&stored).unwrap();
    let options = EncodeOptions::default();
    assert_eq!(codec.encode(&loaded, &options), codec.encode(&request, &options));
}

/// Puts junk somewhere into a body and reads it, whole and cut off. A repaired request must not
/// need a second repair. Returns the valid request, if the body was a request.
pub(crate) fn settles(
    codec: Dialect,
    body: &Value,
    junk: &Value,
    at: Index,
    cut: Index,
) -> Option<Request> {
    let mut mutated = body.clone();
    let count = places(&mut mutated, None, junk);
    places(&mut mutated, Some(at.index(count)), junk);
    let text = mutated.to_string();
    survive(codec, text.as_bytes());
    survive(codec, &text.as_bytes()[..cut.index(text.len())]);
    settles_whole(codec, &mutated)
}

/// Reads a body, if it can be read, and writes it. A repaired request must not need a second
/// repair. Returns the valid request.
pub(crate) fn settles_whole(codec: Dialect, body: &Value) -> Option<Request> {
    let options = EncodeOptions::default();
    let request = codec.decode(body, &DecodeOptions::default()).ok()?;
    let first = codec.encode(&request, &options);
    let again = codec.decode_slice(first.body.as_str().as_bytes(), &DecodeOptions::default());
    let again = again.unwrap();
    assert_eq!(codec.encode(&again, &options).body.to_value(), first.body.to_value(), "{body}");
    Some(again)
}

/// Reads any bytes as a request and as an answer; if they are a request, writes it.
pub(crate) fn survive(codec: Dialect, body: &[u8]) {
    if let Ok(request) = codec.decode_slice(body, &DecodeOptions::default()) {
        let _ = codec.encode(&request, &EncodeOptions::default());
    }
    let _ = codec.decode_response(body);
}

/// Counts the values in a tree, and replaces one of them with junk.
pub(crate) fn places(value: &mut Value, mut replace: Option<usize>, junk: &Value) -> usize {
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
