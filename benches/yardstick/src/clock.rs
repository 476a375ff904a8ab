//! The time and the allocations of one piece of work.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// The maximum total time of the repetitions of one row, including the creation of their inputs. At
/// least three repetitions are made.
const MAX: Duration = Duration::from_secs(1);

/// The shortest, the median and the longest time of some repetitions.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub least: Duration,
    pub middle: Duration,
    pub most: Duration,
}

/// The allocations of one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// The number of allocations.
    pub allocations: u64,
    /// Their bytes together.
    pub bytes: u64,
    /// The maximum of bytes allocated at one time, without those allocated before the run.
    pub peak: u64,
}

impl Cost {
    /// Counts what the work allocates, its output included.
    pub fn of<I, O>(input: I, work: impl FnOnce(I) -> O) -> Self {
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
pub fn is_test() -> bool {
    std::env::args().any(|argument| argument == "--test")
}

/// Times the work. Making its input, dropping its output, and waiting for a processor do not count.
/// Slow work is repeated less often.
pub fn time<I, O>(
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
    pub fn over(self, other: Self) -> f64 {
        self.middle.as_secs_f64() / other.middle.as_secs_f64().max(1e-12)
    }
}

/// Returns milliseconds with three significant digits.
pub fn milliseconds(duration: Duration) -> String {
    let milliseconds = duration.as_secs_f64() * 1e3;
    match milliseconds {
        100.0.. => format!("{milliseconds:.0}"),
        10.0.. => format!("{milliseconds:.1}"),
        1.0.. => format!("{milliseconds:.2}"),
        _ => format!("{milliseconds:.4}"),
    }
}

/// Returns the exponent of growth between two sizes: 1 is linear, 2 quadratic.
pub fn exponent(small: (usize, Spread), large: (usize, Spread)) -> f64 {
    let time = large.1.middle.as_secs_f64() / small.1.middle.as_secs_f64().max(1e-12);
    let size = large.0 as f64 / small.0 as f64;
    time.log10() / size.log10()
}
