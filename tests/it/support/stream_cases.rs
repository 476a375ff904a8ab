//! The cases of streamed answers, event by event. `streams.rs` describes their form.

use threadfold::wire::SseParser;
use threadfold_testing::shared::cases::{self, Case};

/// The cases of one dialect.
pub(crate) fn read(dialect: &str) -> Vec<Case> {
    cases::read(format!("testdata/streams/{dialect}")).unwrap()
}

/// The events of the stream of a case.
pub(crate) fn events(case: &Case) -> Vec<(String, String)> {
    let mut parser = SseParser::default();
    parser.push(case.section("stream").unwrap().as_bytes());
    let mut events: Vec<(String, String)> =
        std::iter::from_fn(|| parser.next_event().unwrap()).collect();
    events.extend(parser.rest());
    events
}
