//! Trimming the tool results of threads of 1,000, 10,000 and 100,000 messages.
//!
//! `cargo bench --bench trim` prints the table that `benches/README.md` explains, relative to a
//! copy of the thread's text.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use threadfold::{
    Message,
    compact::{TrimToolResults, trim},
};
use yardstick::{Row, memcpy, rounds, row};

fn main() {
    yardstick::threads(measure);
}

fn measure(messages: &[Message]) -> Vec<Row> {
    let repetitions = (1_000_000 / messages.len().max(1)).clamp(7, 200);
    let (nothing, own) = (|| (), || messages.to_vec());
    let options = TrimToolResults::default();
    let plan = trim(messages, &options);
    let mut trimmed = own();
    plan.apply(&mut trimmed).expect("the same thread");
    let long = TrimToolResults { lines: 100, bytes: None, ..options };
    rounds(repetitions, |repetitions| {
        vec![
            memcpy(messages, repetitions),
            row("plan, three lines stay", repetitions, nothing, |()| trim(messages, &options)),
            row("plan, a hundred lines stay", repetitions, nothing, |()| trim(messages, &long)),
            row("plan, all is trimmed already", repetitions, nothing, |()| {
                trim(&trimmed, &options)
            }),
            row("apply", repetitions, own, |mut own| (plan.apply(&mut own), own)),
            row("plan and apply", repetitions, own, |mut own| {
                (trim(&own, &options).apply(&mut own), own)
            }),
        ]
    })
}
