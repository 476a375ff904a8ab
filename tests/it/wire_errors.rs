//! Error answers of every provider: the cases in `testdata/errors/*.txt`.
//!
//! A case is `--- status`, `--- body` and `--- expect`, whose first line is the kind of the
//! failure; a second line, where there is one, is the message. A file may hold several cases.

use std::{fs, path::PathBuf};

use proptest::prelude::*;
use threadfold::{
    message::{ModelError, ModelErrorKind},
    wire::classify_error,
};

use crate::support::tries::tries;

#[test]
fn every_error_answer_has_its_expected_kind() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/errors");
    let mut cases = 0;
    for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        let text = fs::read_to_string(&path).unwrap();
        for (number, case) in text.split("--- status\n").skip(1).enumerate() {
            let place = format!("{}, case {}", path.display(), number + 1);
            let (status, rest) = case.split_once("\n--- body").expect(&place);
            let (body, expected) = rest.split_once("\n--- expect\n").expect(&place);
            let error =
                classify_error(status.trim().parse().expect(&place), body.trim().as_bytes());
            let mut lines = expected.lines().filter(|line| !line.is_empty());
            assert_eq!(Some(kind(&error).as_str()), lines.next(), "{place}");
            if let Some(message) = lines.next() {
                assert_eq!(error.message, message, "{place}");
            }
            cases += 1;
        }
    }
    assert!(cases > 0, "no cases in {}", folder.display());
}

#[test]
fn a_huge_body_is_abridged() {
    for body in ["x".repeat(10_000_000), format!("{{\"error\":\"{}\"}}", "é".repeat(30_000))] {
        let error = classify_error(500, body.as_bytes());
        assert!(error.message.len() < 9_000 && error.message.ends_with("..."));
    }
}

#[test]
fn text_of_the_request_in_a_large_body_does_not_affect_the_kind() {
    let prompt = "prompt is too long, rate limit, content policy. ".repeat(4_000);
    let body = serde_json::json!({"detail": [{"msg": "Field required", "input": prompt}]});
    let error = classify_error(422, body.to_string().as_bytes());
    assert_eq!((kind(&error).as_str(), error.message.as_str()), ("other", "Field required"));
    let cut = format!("{{\"msg\":\"Field required\",{}\"input\":\"{prompt}", " ".repeat(2_048));
    assert_eq!(kind(&classify_error(422, cut.as_bytes())), "other");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..tries(256) })]

    #[test]
    fn no_body_panics(status: u16, body: Vec<u8>) {
        let _ = classify_error(status, &body);
    }

    #[test]
    fn no_text_panics(status: u16, text in ".*", words in prop::sample::select(vec![
        "> ", " maximum", "try again in ", "exceed context limit: ", "\"retryDelay\":", "limit of ",
    ])) {
        let _ = classify_error(status, format!("{text}{words}{text}").as_bytes());
        let _ = classify_error(status, serde_json::json!({"error": {"message": format!("{words}{text}")}}).to_string().as_bytes());
    }
}

fn kind(error: &ModelError) -> String {
    let or_unknown =
        |number: Option<u64>| number.map_or("?".to_owned(), |number| number.to_string());
    if let ModelErrorKind::Overflow { limit, found, output } = error.kind {
        let output = output.map_or(String::new(), |output| format!(" output={output}"));
        return format!("overflow limit={} found={}{output}", or_unknown(limit), or_unknown(found));
    }
    if let ModelErrorKind::Retryable { after: Some(after) } = error.kind {
        return format!("retryable after {}ms", after.as_millis());
    }
    if error.is_retryable() {
        return "retryable".to_owned();
    }
    format!("{:?}", error.kind).to_lowercase()
}
