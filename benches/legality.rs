//! Legality of threads of 1,000, 10,000 and 100,000 messages: violations, cut points, repair,
//! and the index of a live thread.
//!
//! `cargo bench --bench legality` prints the table that `benches/README.md` explains, relative to a
//! copy of the thread's text.

#![allow(
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use threadfold::{Message, Thread, legality};
use yardstick::{Row, memcpy, rounds, row};

fn main() {
    yardstick::threads(measure);
}

fn measure(messages: &[Message]) -> Vec<Row> {
    let repetitions = (1_000_000 / messages.len().max(1)).clamp(7, 200);
    let (nothing, own) = (|| (), || messages.to_vec());
    rounds(repetitions, |repetitions| {
        vec![
            memcpy(messages, repetitions),
            row("violations", repetitions, nothing, |()| legality::violations(messages)),
            row("cut points", repetitions, nothing, |()| legality::cut_points(messages)),
            row("repair, nothing to mend", repetitions, own, legality::repair),
            row(
                "repair, every result missing",
                repetitions,
                || unanswered(messages),
                legality::repair,
            ),
            row("open calls", repetitions, nothing, |()| legality::open_calls(messages)),
            row("index a thread anew", repetitions, own, |own| own.into_iter().collect::<Thread>()),
        ]
    })
}

/// The thread without the results of its calls.
fn unanswered(messages: &[Message]) -> Vec<Message> {
    messages.iter().filter(|message| message.tool_results().next().is_none()).cloned().collect()
}
