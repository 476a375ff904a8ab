//! Estimating the tokens of threads of 1,000, 10,000 and 100,000 messages: walks over the whole
//! thread, and the values that are read on every turn.
//!
//! `cargo bench --bench estimate` prints the table that `benches/README.md` explains, relative to a
//! copy of the thread's text. The last row reads its value a thousand times, so its milliseconds
//! are the microseconds of one read.

#![allow(
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use std::hint::black_box;

use threadfold::{
    Message, Thread,
    auto::Pressure,
    compact::Size,
    tokens::{ByteEstimate, estimate_conversation_tokens},
};
use yardstick::{Row, memcpy, rounds, row};

fn main() {
    yardstick::threads(measure);
}

fn measure(messages: &[Message]) -> Vec<Row> {
    let thread: Thread = messages.iter().cloned().collect();
    let repetitions = (1_000_000 / messages.len().max(1)).clamp(7, 200);
    let nothing = || ();
    rounds(repetitions, |repetitions| {
        vec![
            memcpy(messages, repetitions),
            row("size, a walk", repetitions, nothing, |()| {
                Size::of(messages, &ByteEstimate::TRIGGER)
            }),
            row("tokens of what was said, a walk", repetitions, nothing, |()| {
                estimate_conversation_tokens(messages)
            }),
            row("usage of a live thread, 1,000 times", repetitions, nothing, |()| {
                (0..1_000).map(|_| Pressure::of(black_box(&thread)).since).sum::<u64>()
            }),
        ]
    })
}
