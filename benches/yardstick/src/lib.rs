//! Shared by all benches: the clock, the thread, the cost of copying its bytes, and the counter of
//! allocations. `benches/README.md` explains the output.

#![allow(clippy::wildcard_enum_match_arm, reason = "it looks for the blocks with text")]

use std::hint::black_box;

use serde_json::Value;
use threadfold::{ContentBlock, Message};

mod clock;
mod table;
pub mod thread;
pub mod wire;

pub use clock::{Cost, Spread, exponent, is_test, milliseconds, time};
pub use table::{ROUNDS, Row, Tables, merged, rounds, row};
pub use thread::texts;

/// Prints the measurements of threads of 1,000, 10,000 and 100,000 messages; in a test, of 200.
pub fn threads(measure: impl Fn(&[Message]) -> Vec<Row>) {
    let sizes: &[usize] = if is_test() { &[200] } else { &[1_000, 10_000, 100_000] };
    let mut tables = Tables::default();
    for count in sizes {
        let messages = thread::thread(*count);
        tables.print("messages", *count, thread::size(&messages), measure(&messages));
    }
}

/// Copies the text of a thread into an allocated buffer: the cost of moving the bytes.
pub fn memcpy(messages: &[Message], repetitions: usize) -> Row {
    let all: String =
        messages.iter().flat_map(|message| &message.content).flat_map(texts).collect();
    memcpy_of(all.as_bytes(), repetitions)
}

/// Copies these bytes into an allocated buffer.
pub fn memcpy_of(bytes: &[u8], repetitions: usize) -> Row {
    let mut buffer = vec![0_u8; bytes.len()];
    let copy = |()| {
        buffer.copy_from_slice(black_box(bytes));
        black_box(buffer.last().copied())
    };
    row("copy the same bytes", repetitions, || (), copy).yardstick("memcpy")
}

/// Copies the texts of some blocks from their own allocations into one buffer. No work that reads
/// every text can be faster.
pub fn gather(
    messages: &[Message],
    keeps: impl Fn(&ContentBlock) -> bool,
    repetitions: usize,
) -> Row {
    let mut buffer = String::with_capacity(thread::size(messages));
    let gather = |()| {
        buffer.clear();
        let blocks = messages.iter().flat_map(|message| &message.content);
        for block in blocks.filter(|block| keeps(block)) {
            texts(block).into_iter().for_each(|text| buffer.push_str(text));
        }
    };
    row("gather the texts where they lie", repetitions, || (), gather).yardstick("gather")
}

/// Parses each line of JSON to a `Value`.
pub fn values(lines: &[u8], repetitions: usize) -> Row {
    let parse = |()| {
        let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let value = |line| serde_json::from_slice::<Value>(line).unwrap_or_default();
        lines.map(value).collect::<Vec<Value>>()
    };
    row("parse the same text to Value", repetitions, || (), parse).yardstick("Value")
}
