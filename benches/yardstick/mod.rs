//! What every bench measures by: the same clock, the same thread, the cost of moving its bytes and
//! the count of what is allocated. `benches/README.md` says how to read what comes out.

#![allow(dead_code, unused_imports, reason = "each bench uses a part of it")]
#![allow(clippy::wildcard_enum_match_arm, reason = "it looks for the blocks with text")]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use serde_json::Value;
use threadfold::{ContentBlock, Message};

mod table;
pub(crate) mod thread;
pub(crate) mod wire;

pub(crate) use table::{ROUNDS, Row, Tables, merged, rounds, row};
pub(crate) use thread::texts;

/// How long the repetitions of one row may take together, what is made for them included. Three
/// are always done.
const MAX: Duration = Duration::from_secs(1);

/// The least, the middle and the most of some repetitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) least: Duration,
    pub(crate) middle: Duration,
    pub(crate) most: Duration,
}

/// What one run allocates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// How often.
    pub(crate) allocations: u64,
    /// The bytes of all of them.
    pub(crate) bytes: u64,
    /// The most bytes at one time, beside what was there before.
    pub(crate) peak: u64,
}

impl Cost {
    /// Counts what the work allocates, in what it gives too.
    pub(crate) fn of<I, O>(input: I, work: impl FnOnce(I) -> O) -> Self {
        let mut output = None;
        let counted = allocation_counter::measure(|| output = Some(work(input)));
        drop(black_box(output));
        Self {
            allocations: counted.count_total,
            bytes: counted.bytes_total,
            peak: counted.bytes_max,
        }
    }
}

/// Whether the bench is only to show that it runs: `cargo test` runs benches too.
pub(crate) fn is_test() -> bool {
    std::env::args().any(|argument| argument == "--test")
}

/// Times the work, with what it needs made anew each time and what it gives dropped outside the
/// clock, and without what it waited for a processor. There are fewer repetitions where they take
/// long.
pub(crate) fn time<I, O>(
    repetitions: usize,
    mut make: impl FnMut() -> I,
    mut work: impl FnMut(I) -> O,
) -> Spread {
    let (mut taken, begun) = (Vec::new(), Instant::now());
    while taken.len() < repetitions.max(1) && (taken.len() < 3 || begun.elapsed() < MAX) {
        let input = black_box(make());
        let (waited_before, start) = (waited(), Instant::now());
        let output = work(input);
        let elapsed = start.elapsed();
        // What was waited between the looks, but outside of the clock, may come to more.
        let waited = waited().saturating_sub(waited_before);
        taken.push(elapsed.checked_sub(waited).unwrap_or(elapsed));
        drop(black_box(output));
    }
    taken.sort();
    Spread { least: taken[0], middle: taken[taken.len() / 2], most: taken[taken.len() - 1] }
}

/// How long this thread has been ready to run and waited for a processor, where the system tells:
/// what neighbours take is not the work's. Elsewhere nothing, and times are those of the clock.
fn waited() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = told.split(' ').nth(1).and_then(|waited| waited.parse().ok());
    Duration::from_nanos(waited.unwrap_or_default())
}

impl Spread {
    /// How many times the other it takes, by the middle ones.
    pub(crate) fn over(self, other: Self) -> f64 {
        self.middle.as_secs_f64() / other.middle.as_secs_f64().max(1e-12)
    }
}

/// Milliseconds with three digits that count.
pub(crate) fn milliseconds(duration: Duration) -> String {
    let milliseconds = duration.as_secs_f64() * 1e3;
    match milliseconds {
        100.0.. => format!("{milliseconds:.0}"),
        10.0.. => format!("{milliseconds:.1}"),
        1.0.. => format!("{milliseconds:.2}"),
        _ => format!("{milliseconds:.4}"),
    }
}

/// Copies the text of a thread into a buffer that is there already: what moving the bytes costs.
pub(crate) fn memcpy(messages: &[Message], repetitions: usize) -> Row {
    let all: String =
        messages.iter().flat_map(|message| &message.content).flat_map(texts).collect();
    memcpy_of(all.as_bytes(), repetitions)
}

/// Copies these bytes into a buffer that is there already.
pub(crate) fn memcpy_of(bytes: &[u8], repetitions: usize) -> Row {
    let mut buffer = vec![0_u8; bytes.len()];
    let copy = |()| {
        buffer.copy_from_slice(black_box(bytes));
        black_box(buffer.last().copied())
    };
    row("copy the same bytes", repetitions, || (), copy).yardstick("memcpy")
}

/// Copies the texts of some blocks from where they lie, with nothing between them: what no work that
/// looks at each of them can be faster than.
pub(crate) fn gather(
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

/// Parses lines of JSON to `Value`, a line at a time.
pub(crate) fn values(lines: &[u8], repetitions: usize) -> Row {
    let parse = |()| {
        let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let value = |line| serde_json::from_slice::<Value>(line).unwrap_or_default();
        lines.map(value).collect::<Vec<Value>>()
    };
    row("parse the same text to Value", repetitions, || (), parse).yardstick("Value")
}

/// The exponent by which the time grows from one size to another.
pub(crate) fn exponent(small: (usize, Spread), large: (usize, Spread)) -> f64 {
    let time = large.1.middle.as_secs_f64() / small.1.middle.as_secs_f64().max(1e-12);
    let size = large.0 as f64 / small.0 as f64;
    time.log10() / size.log10()
}
