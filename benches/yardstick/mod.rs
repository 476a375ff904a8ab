//! What every bench measures by: the same clock, the same thread, and the cost of moving its bytes.

#![allow(dead_code, reason = "each bench uses a part of it")]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use threadfold::{ContentBlock, Message};

/// The least, the middle and the most of some repetitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) least: Duration,
    pub(crate) middle: Duration,
    pub(crate) most: Duration,
}

/// Times the work, with what it needs made anew each time and what it gives dropped outside the
/// clock.
pub(crate) fn time<I, O>(
    repetitions: usize,
    mut make: impl FnMut() -> I,
    mut work: impl FnMut(I) -> O,
) -> Spread {
    let mut taken: Vec<Duration> = (0..repetitions.max(1))
        .map(|_| {
            let input = black_box(make());
            let start = Instant::now();
            let output = work(input);
            let taken = start.elapsed();
            drop(black_box(output));
            taken
        })
        .collect();
    taken.sort();
    Spread { least: taken[0], middle: taken[taken.len() / 2], most: taken[taken.len() - 1] }
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
pub(crate) fn memcpy(messages: &[Message], repetitions: usize) -> Spread {
    let texts: Vec<&str> =
        messages.iter().flat_map(|message| &message.content).flat_map(texts).collect();
    let all: String = texts.concat();
    let mut buffer = vec![0u8; all.len()];
    time(
        repetitions,
        || (),
        |()| {
            buffer.copy_from_slice(black_box(all.as_bytes()));
            black_box(buffer.last().copied())
        },
    )
}

/// The texts in a block, where most bytes of a thread are.
pub(crate) fn texts(block: &ContentBlock) -> Vec<&str> {
    match block {
        ContentBlock::Text(block) => vec![&block.text],
        ContentBlock::Thinking(block) => vec![&block.text],
        ContentBlock::SystemReminder(block) => vec![&block.text],
        ContentBlock::ToolUse(call) => vec![call.input.as_str()],
        ContentBlock::ToolResult(result) => result.content.iter().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// The exponent by which the time grows from one size to another.
pub(crate) fn exponent(small: (usize, Spread), large: (usize, Spread)) -> f64 {
    let time = large.1.middle.as_secs_f64() / small.1.middle.as_secs_f64().max(1e-12);
    let size = large.0 as f64 / small.0 as f64;
    time.log10() / size.log10()
}
