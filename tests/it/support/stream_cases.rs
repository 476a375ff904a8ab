//! The cases of streamed answers, event by event. `streams.rs` describes their form.

use crate::support::cases::{self, Case};
use threadfold::wire::SseParser;

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
