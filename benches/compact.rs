//! Planning and applying replacements over 1,000, 10,000 and 100,000 messages.
//!
//! `cargo bench --bench compact` prints, for each operation and size, the least, middle and most
//! milliseconds of some repetitions, the ratio to copying the thread's text once (in the same run),
//! and the exponent of growth from the size before. An exponent of 1 is linear; read it against
//! that of the copy itself, which rises where the text leaves the caches.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use std::sync::Arc;

use threadfold::{
    CheckpointId, ContentBlock, Message, Plan, Replacement, Thread, compact,
    compact::{CompactOptions, Size},
    legality,
    testing::generate::legal_thread_from,
    tokens::ByteEstimate,
};
use yardstick::{Spread, exponent, memcpy, milliseconds, time};

mod yardstick;

fn main() {
    // `cargo test` runs benches too; it wants to see that they run, not how fast.
    let quick = std::env::args().any(|argument| argument == "--test");
    let sizes: &[usize] = if quick { &[200] } else { &[1_000, 10_000, 100_000] };
    println!(
        "{:<34} {:>9} {:>10} {:>10} {:>10} {:>9} {:>9}",
        "operation", "messages", "least ms", "middle ms", "most ms", "x memcpy", "exponent"
    );
    let mut before: Vec<(usize, Spread)> = Vec::new();
    for messages in sizes {
        let rows = measure(*messages);
        let copy = rows[0].1;
        for (index, (name, spread)) in rows.iter().enumerate() {
            let growth = before.get(index).map(|small| exponent(*small, (*messages, *spread)));
            println!(
                "{name:<34} {messages:>9} {:>10} {:>10} {:>10} {:>9.3} {:>9}",
                milliseconds(spread.least),
                milliseconds(spread.middle),
                milliseconds(spread.most),
                spread.over(copy),
                growth.map(|growth| format!("{growth:.2}")).unwrap_or_default(),
            );
        }
        before = rows.into_iter().map(|(_, spread)| (*messages, spread)).collect();
        println!();
    }
}

fn measure(count: usize) -> Vec<(&'static str, Spread)> {
    let messages = legal_thread_from(7, count);
    let thread: Thread = messages.iter().cloned().collect();
    let options = CompactOptions::default();
    let repetitions = (2_000_000 / count.max(1)).clamp(7, 200);
    let ids = checkpoints(&messages);
    let (one, many) = (ranges(&ids, 1), ranges(&ids, 64));
    let again = || thread.clone();
    let plan_one = thread.plan(&one, &options).expect("the ranges are legal");
    let plan_many = thread.plan(&many, &options).expect("the ranges are legal");
    // An owned vector, so that what is timed is the work and not the copy that sharing demands.
    let own = || messages.clone();
    vec![
        ("copy the text (memcpy)", memcpy(&messages, repetitions)),
        (
            "plan 1 range, with the index",
            time(repetitions, || (), |()| thread.plan(&one, &options)),
        ),
        (
            "plan 64 ranges, with the index",
            time(repetitions, || (), |()| thread.plan(&many, &options)),
        ),
        (
            "plan 1 range, by a scan",
            time(repetitions, || (), |()| Plan::new(&messages, &one, &options)),
        ),
        ("apply 1 range", time(repetitions, own, |mut own| (plan_one.apply(&mut own), own))),
        ("apply 64 ranges", time(repetitions, own, |mut own| (plan_many.apply(&mut own), own))),
        (
            "apply 1 range to a live thread",
            time(repetitions, again, |mut own| (own.apply(&plan_one), own)),
        ),
        ("compact 1 range, all at once", time(repetitions, || (), |()| compact(&messages, &one))),
        (
            "compact 64 ranges, all at once",
            time(repetitions, || (), |()| compact(&messages, &many)),
        ),
        ("violations", time(repetitions, || (), |()| legality::violations(&messages))),
        ("cut points", time(repetitions, || (), |()| legality::cut_points(&messages))),
        ("repair", time(repetitions, own, legality::repair)),
        ("size", time(repetitions, || (), |()| Size::of(&messages, &ByteEstimate::TRIGGER))),
        ("index a thread anew", time(repetitions, own, |own| own.into_iter().collect::<Thread>())),
    ]
}

fn checkpoints(messages: &[Message]) -> Vec<CheckpointId> {
    let blocks = messages.iter().flat_map(|message| &message.content);
    blocks
        .filter_map(|block| match block {
            ContentBlock::Checkpoint(checkpoint) => Some(checkpoint.id),
            _ => None,
        })
        .collect()
}

/// So many disjoint ranges that together hold about 80 % of the thread.
fn ranges(ids: &[CheckpointId], count: usize) -> Vec<Replacement> {
    let count = count.min(ids.len() / 4).max(1);
    let step = ids.len() / count;
    (0..count)
        .map(|range| {
            let first = range * step;
            let last = (first + step * 8 / 10).max(first + 1).min(ids.len() - 1);
            let summary: Arc<str> = "What happened here, in a sentence or two.".into();
            Replacement::new(summary).from(ids[first]).to(ids[last])
        })
        .collect()
}
