//! Runs every case under `testdata/` that more than one implementation must pass.
//!
//! `testdata/compact/`: `--- thread`, any number of `--- replace FROM..TO` (either side may be
//! empty, the body is the summary), `--- strip` with words of `reminders`, `thinking`, `open-loop`
//! that are switched off, then `--- expect` with the thread after, or `--- expect error` with the
//! text of the error. A successful case is also applied from its stored plan.

use threadfold::{
    Message, Plan, Replacement,
    compact::{CompactError, CompactOptions},
    legality,
};
use threadfold_testing::{
    notation,
    shared::cases::{self, Case},
};

#[test]
fn compact_passes_its_cases() {
    for case in cases::read("testdata/compact").unwrap() {
        let thread = notation::parse(case.section("thread").unwrap()).unwrap();
        let compacted = compact(&case, &thread);
        match (case.section("expect"), case.section("expect error")) {
            (Some(expected), None) => {
                let messages = compacted.unwrap_or_else(|error| panic!("{}: {error}", case.name));
                assert_eq!(notation::write(&messages), canonical(expected), "{}", case.name);
                assert_eq!(legality::violations(&messages), [], "{}", case.name);
            }
            (None, Some(expected)) => {
                let error = compacted.expect_err(&case.name);
                assert_eq!(error.to_string(), expected.trim_end(), "{}", case.name);
            }
            _ => panic!("{}: one of `expect` and `expect error` is needed", case.name),
        }
    }
}

fn compact(case: &Case, thread: &[Message]) -> Result<Vec<Message>, CompactError> {
    let ranges = case.sections_of("replace").map(|(range, summary)| replacement(range, summary));
    let ranges: Vec<Replacement> = ranges.collect();
    let off = case.section("strip").unwrap_or_default();
    let options = CompactOptions {
        strip_reminders: !off.contains("reminders"),
        strip_thinking: !off.contains("thinking"),
        keep_open_loop: !off.contains("open-loop"),
        compaction: None,
    };
    let plan = Plan::new(thread, &ranges, &options)?;
    let stored = serde_json::to_string(&plan).unwrap();
    let mut messages = thread.to_vec();
    let removed = plan.apply(&mut messages).unwrap();
    assert_eq!(removed.len() + messages.len(), thread.len() + inserted(&plan));

    let mut again = thread.to_vec();
    serde_json::from_str::<Plan>(&stored).unwrap().apply(&mut again).unwrap();
    assert_eq!(again, messages, "{}: the stored plan gives another thread", case.name);
    Ok(messages)
}

fn inserted(plan: &Plan) -> usize {
    plan.splices().iter().map(|splice| splice.insert.len()).sum()
}

fn replacement(range: &str, summary: &str) -> Replacement {
    let (from, to) = range.split_once("..").unwrap();
    let replacement = Replacement::new(summary.trim_end());
    let replacement = match from {
        "" => replacement,
        id => replacement.from(id.parse().unwrap()),
    };
    match to {
        "" => replacement,
        id => replacement.to(id.parse().unwrap()),
    }
}

fn canonical(text: &str) -> String {
    notation::write(&notation::parse(text).unwrap())
}
