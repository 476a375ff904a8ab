//! One fuzz case of the answer builders, shared by the fuzz target and by the bounded run in the
//! tests.

#![allow(clippy::expect_used, reason = "a test stops where something is not as it must be")]

use threadfold::{
    Answer, Message, Request,
    message::{Delta, ModelError},
    wire::{Dialect, EncodeOptions, SseParser},
};

/// Reads bytes as a `text/event-stream`, in pieces of the size that the first byte gives, builds an
/// answer from its events with every codec, and checks the invariants.
///
/// # Panics
///
/// If an invariant does not hold.
pub fn check(bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let events = events(bytes, bytes.len().max(1));
    assert_eq!(events, self::events(bytes, usize::from(*size).max(1)), "divided otherwise");
    for codec in Dialect::ALL {
        let (reported, end) = build(*codec, &events);
        // A byte that is not UTF-8 becomes three.
        assert!(reported <= bytes.len() * 3, "{}: {reported} of {}", codec.name(), bytes.len());
        if let Ok(answer) = end {
            let thread = vec![Message::user("hi"), answer.message];
            let _ = codec.encode(&Request::new(thread), &EncodeOptions::default());
        }
    }
}

fn events(bytes: &[u8], size: usize) -> Vec<(String, String)> {
    let mut parser = SseParser::with_max_bytes(1_000_000);
    let mut events = Vec::new();
    for piece in bytes.chunks(size) {
        parser.push(piece);
        events.extend(std::iter::from_fn(|| parser.next_event().expect("within the limit")));
    }
    events.extend(parser.rest());
    events
}

/// The number of bytes in the deltas, and the end of the answer.
fn build(codec: Dialect, events: &[(String, String)]) -> (usize, Result<Answer, ModelError>) {
    let mut builder = codec.answer_builder();
    let mut reported = 0;
    for event in events {
        match builder.handle(&event.0, &event.1) {
            Ok(deltas) => reported += deltas.iter().map(size).sum::<usize>(),
            Err(error) => {
                assert!(!builder.is_complete(), "complete after an error");
                let again = builder.finish().expect_err("an answer after an error");
                assert_eq!(again.to_string(), error.to_string());
                return (reported, Err(error));
            }
        }
    }
    let end = builder.finish();
    assert_eq!(builder.finish().ok(), end.clone().ok(), "it ends otherwise the second time");
    (reported, end)
}

fn size(delta: &Delta) -> usize {
    match delta {
        Delta::Text { text } | Delta::Thinking { text } | Delta::ToolInput { text, .. } => {
            text.len()
        }
        Delta::ToolUse { name, .. } => name.len(),
        Delta::Answer { .. } => panic!("an answer before the end: {delta:?}"),
    }
}
