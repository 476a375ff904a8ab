//! Planning and applying replacements over 1,000, 10,000 and 100,000 messages of some 1.1 KB.
//!
//! `cargo bench --bench compact` prints the table that `benches/README.md` explains, relative to a
//! copy of the thread's text and to dropping the removed messages of the one range, if no other
//! handle shares them.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use std::sync::Arc;

use threadfold::{
    CheckpointId, ContentBlock, Message, Plan, Replacement, Thread, compact,
    compact::CompactOptions,
};
use yardstick::{Row, memcpy, rounds, row, thread};

fn main() {
    yardstick::threads(measure);
}

fn measure(messages: &[Message]) -> Vec<Row> {
    let thread: Thread = messages.iter().cloned().collect();
    let options = CompactOptions::default();
    let repetitions = (2_000_000 / messages.len().max(1)).clamp(7, 200);
    let ids = checkpoints(messages);
    let (one, many) = (ranges(&ids, 1), ranges(&ids, 64));
    let plan_one = thread.plan(&one, &options).expect("the ranges are legal");
    let plan_many = thread.plan(&many, &options).expect("the ranges are legal");
    // An owned vector, so that the time does not include the copy of a shared one.
    let own = || messages.to_vec();
    rounds(repetitions, |repetitions| {
        vec![
            memcpy(messages, repetitions),
            row(
                "drop what one range removes",
                repetitions,
                || removed(&plan_one, messages.len()),
                drop,
            )
            .yardstick("drop"),
            row(
                "plan 1 range, with the index",
                repetitions,
                || (),
                |()| thread.plan(&one, &options),
            ),
            row(
                "plan 64 ranges, with the index",
                repetitions,
                || (),
                |()| thread.plan(&many, &options),
            ),
            row(
                "plan 1 range, by a scan",
                repetitions,
                || (),
                |()| Plan::new(messages, &one, &options),
            ),
            row("apply 1 range", repetitions, own, |mut own| (plan_one.apply(&mut own), own)),
            row("apply 64 ranges", repetitions, own, |mut own| (plan_many.apply(&mut own), own)),
            row(
                "apply 1 range to a live thread",
                repetitions,
                || thread.clone(),
                |mut own| (own.apply(&plan_one), own),
            ),
            row("compact 1 range, all at once", repetitions, || (), |()| compact(messages, &one)),
            row(
                "compact 64 ranges, all at once",
                repetitions,
                || (),
                |()| compact(messages, &many),
            ),
        ]
    })
}

/// Returns what the plan removes from a thread without other handles.
fn removed(plan: &Plan, count: usize) -> impl Sized {
    plan.apply(&mut thread::thread(count)).expect("the same thread")
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

/// This many disjoint ranges, which together hold about 80 % of the thread.
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
