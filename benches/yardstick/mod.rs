//! Shared by all benches: the clock, the thread, the cost of copying its bytes, and the counter of
//! allocations. `benches/README.md` explains the output.

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

/// The maximum total time of the repetitions of one row, including the creation of their inputs. At
/// least three repetitions are made.
const MAX: Duration = Duration::from_secs(1);

/// The shortest, the median and the longest time of some repetitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) least: Duration,
    pub(crate) middle: Duration,
    pub(crate) most: Duration,
}

/// The allocations of one run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// The number of allocations.
    pub(crate) allocations: u64,
    /// Their bytes together.
    pub(crate) bytes: u64,
    /// The maximum of bytes allocated at one time, without those allocated before the run.
    pub(crate) peak: u64,
}

impl Cost {
    /// Counts what the work allocates, its output included.
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

/// `true` if the bench only has to prove that it runs: `cargo test` runs benches too.
pub(crate) fn is_test() -> bool {
    std::env::args().any(|argument| argument == "--test")
}

/// Prints the measurements of threads of 1,000, 10,000 and 100,000 messages; in a test, of 200.
pub(crate) fn threads(measure: impl Fn(&[Message]) -> Vec<Row>) {
    let sizes: &[usize] = if is_test() { &[200] } else { &[1_000, 10_000, 100_000] };
    let mut tables = Tables::default();
    for count in sizes {
        let messages = thread::thread(*count);
        tables.print("messages", *count, thread::size(&messages), measure(&messages));
    }
}

/// Times the work. Making its input, dropping its output, and waiting for a processor do not count.
/// Slow work is repeated less often.
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
        // The wait is read outside of the timed span, so it can be longer than that.
        let waited = waited().saturating_sub(waited_before);
        taken.push(elapsed.checked_sub(waited).unwrap_or(elapsed));
        drop(black_box(output));
    }
    taken.sort();
    Spread { least: taken[0], middle: taken[taken.len() / 2], most: taken[taken.len() - 1] }
}

/// Returns how long this thread was ready and waited for a processor, because the load of other
/// programs is not part of the work's cost. Zero on systems that do not report it.
fn waited() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = told.split(' ').nth(1).and_then(|waited| waited.parse().ok());
    Duration::from_nanos(waited.unwrap_or_default())
}

impl Spread {
    /// Returns the ratio of the two medians.
    pub(crate) fn over(self, other: Self) -> f64 {
        self.middle.as_secs_f64() / other.middle.as_secs_f64().max(1e-12)
    }
}

/// Returns milliseconds with three significant digits.
pub(crate) fn milliseconds(duration: Duration) -> String {
    let milliseconds = duration.as_secs_f64() * 1e3;
    match milliseconds {
        100.0.. => format!("{milliseconds:.0}"),
        10.0.. => format!("{milliseconds:.1}"),
        1.0.. => format!("{milliseconds:.2}"),
        _ => format!("{milliseconds:.4}"),
    }
}

/// Copies the text of a thread into an allocated buffer: the cost of moving the bytes.
pub(crate) fn memcpy(messages: &[Message], repetitions: usize) -> Row {
    let all: String =
        messages.iter().flat_map(|message| &message.content).flat_map(texts).collect();
    memcpy_of(all.as_bytes(), repetitions)
}

/// Copies these bytes into an allocated buffer.
pub(crate) fn memcpy_of(bytes: &[u8], repetitions: usize) -> Row {
    let mut buffer = vec![0_u8; bytes.len()];
    let copy = |()| {
        buffer.copy_from_slice(black_box(bytes));
        black_box(buffer.last().copied())
    };
    row("copy the same bytes", repetitions, || (), copy).yardstick("memcpy")
}

/// Copies the texts of some blocks from their own allocations into one buffer. No work that reads
/// every text can be faster.
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

/// Parses each line of JSON to a `Value`.
pub(crate) fn values(lines: &[u8], repetitions: usize) -> Row {
    let parse = |()| {
        let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let value = |line| serde_json::from_slice::<Value>(line).unwrap_or_default();
        lines.map(value).collect::<Vec<Value>>()
    };
    row("parse the same text to Value", repetitions, || (), parse).yardstick("Value")
}

/// Returns the exponent of growth between two sizes: 1 is linear, 2 quadratic.
pub(crate) fn exponent(small: (usize, Spread), large: (usize, Spread)) -> f64 {
    let time = large.1.middle.as_secs_f64() / small.1.middle.as_secs_f64().max(1e-12);
    let size = large.0 as f64 / small.0 as f64;
    time.log10() / size.log10()
}
