//! The measurements and their output: the peer's row, then ours with the ratio of the peer's time
//! to ours.

use std::time::Duration;

use agent_sdk::llm;
use threadfold::Message;

use yardstick::{Spread, memcpy};

use crate::{
    measured::{Asked, Measured},
    ours, theirs,
};

/// The peer's measurement, and those of our ways to the same result.
pub(crate) struct Group {
    theirs: Measured,
    ours: Vec<Measured>,
}

/// All measurements of one size.
pub(crate) fn measure(
    messages: &[Message],
    history: &[llm::Message],
    repetitions: usize,
) -> (Vec<Measured>, Vec<Group>) {
    let alone = vec![memcpy(messages, repetitions).into(), theirs::dropping(history, repetitions)];
    let compact = |name, range| ours::compact(name, messages, range, repetitions);
    let groups = vec![
        Group {
            theirs: theirs::turn(history, repetitions),
            ours: vec![ours::turn(messages, repetitions)],
        },
        Group {
            theirs: theirs::walk(history, repetitions),
            ours: vec![ours::walk(messages, repetitions)],
        },
        Group {
            theirs: theirs::compact(history, repetitions),
            ours: vec![
                compact("threadfold: propose, apply", ours::AS_MESSAGES),
                compact("threadfold: propose, apply, as text", ours::AS_TEXT),
                ours::compact_logged(messages, repetitions),
            ],
        },
    ];
    (alone, groups)
}

/// Prints the times of one size. `bytes` is the size of the text, to which the peaks of memory are
/// compared.
pub(crate) fn times(bytes: usize, (alone, groups): &(Vec<Measured>, Vec<Group>)) {
    heading();
    alone.iter().for_each(|measured| line(measured, None, bytes));
    for group in groups {
        println!();
        line(&group.theirs, None, bytes);
        group.ours.iter().for_each(|ours| line(ours, Some(&group.theirs), bytes));
    }
    println!();
}

/// Prints the heading of a table of times.
pub(crate) fn heading() {
    println!(
        "{:<36} {:>10} {:>10} {:>10} {:>12} {:>9} {:>9}",
        "operation", "least", "middle", "most", "theirs/ours", "allocs", "peak/text"
    );
}

/// Prints a measurement, and the ratio of the peer's time to it.
pub(crate) fn line(measured: &Measured, theirs: Option<&Measured>, bytes: usize) {
    let Spread { least, middle, most } = measured.spread;
    let ratio = theirs.map(|theirs| theirs.spread.over(measured.spread));
    println!(
        "{:<36} {:>10} {:>10} {:>10} {:>12} {:>9} {:>9.4}",
        measured.name,
        duration(least),
        duration(middle),
        duration(most),
        ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
        measured.cost.allocations,
        measured.cost.peak as f64 / bytes.max(1) as f64,
    );
}

/// Prints what the compactions of one size did.
pub(crate) fn asked(all: &[Asked]) {
    println!(
        "{:<36} {:>10} {:>10} {:>10} {:>12} {:>9}",
        "one compaction", "tokens", "told of", "bytes", "left", "tokens"
    );
    for asked in all {
        let told = Some(asked.heard.messages).filter(|told| *told > 0);
        println!(
            "{:<36} {:>10} {:>10} {:>10} {:>12} {:>9}",
            asked.name,
            asked.tokens,
            told.map_or("all old".to_owned(), |told| told.to_string()),
            asked.heard.bytes,
            asked.messages_after,
            asked.tokens_after,
        );
    }
    println!();
}

/// Writes a time in the unit that fits it, from nanoseconds to milliseconds.
fn duration(duration: Duration) -> String {
    let nanoseconds = duration.as_secs_f64() * 1e9;
    match nanoseconds {
        1e6.. => format!("{:.2} ms", nanoseconds / 1e6),
        1e3.. => format!("{:.2} us", nanoseconds / 1e3),
        _ => format!("{nanoseconds:.0} ns"),
    }
}

/// Prints what the rows include.
pub(crate) fn legend() {
    println!("{}", include_str!("legend.txt").trim_end());
}
