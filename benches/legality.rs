//! What is legal in threads of 1,000, 10,000 and 100,000 messages: violations, cut points, repair,
//! and the index of a live thread.
//!
//! `cargo bench --bench legality` prints the table that `benches/README.md` explains, held against
//! a copy of the thread's text.

#![allow(
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use threadfold::{Message, Thread, legality};
use yardstick::{Row, Tables, is_test, memcpy, rounds, row, thread};

mod yardstick;

fn main() {
    let sizes: &[usize] = if is_test() { &[200] } else { &[1_000, 10_000, 100_000] };
    let mut tables = Tables::default();
    for count in sizes {
        let messages = thread::thread(*count);
        tables.print("messages", *count, thread::size(&messages), measure(&messages));
    }
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
