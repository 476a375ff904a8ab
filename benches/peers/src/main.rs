//! Compares threadfold with `agent-sdk` and `rig-memory` on the same threads: the cost of knowing the
//! context size in each turn, of a compaction with a model that answers at once, and of 500 turns.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml` prints a table for each size,
//! then what each row includes. The crates do different work, so the tables also show the
//! request of each to its model and the remaining thread.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use yardstick::{is_test, thread};

mod measured;
mod model;
mod ours;
mod rig;
mod scoreboard;
mod table;
mod theirs;
mod whole;

/// The smallest size, at which the peer's prompt has room for all messages: both send equal
/// requests.
const SIZES: [usize; 4] = [50, 1_000, 10_000, 100_000];

fn main() {
    if std::env::args().any(|argument| argument == "--scoreboard") {
        return scoreboard::print();
    }
    let sizes = if is_test() { &SIZES[..1] } else { &SIZES };
    for count in sizes {
        let messages = thread::thread(*count);
        let bytes = thread::size(&messages);
        println!("{count} messages, {bytes} bytes");
        let repetitions = (300_000 / count).clamp(7, 200);
        let history = theirs::history(&messages);
        table::times(bytes, &table::measure(&messages, &history, repetitions));
        table::asked(&[
            ours::asked("threadfold, as messages", &messages, ours::AS_MESSAGES),
            ours::asked("threadfold, as text", &messages, ours::AS_TEXT),
            theirs::asked("agent-sdk", &history),
        ]);
    }
    whole::print();
    table::legend();
}
