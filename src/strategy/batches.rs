//! The text that a thread shows for batches. It is never parsed, because the batches are stored with
//! it as data.

use std::fmt::Write;

use crate::message::{Batch, Timestamp};

/// Returns the text that the thread shows for these batches: a line with the number of messages that
/// they replace and of cycles, then the first and the last batches.
pub(super) fn view(batches: &[Batch], first: usize, last: usize) -> String {
    let messages = batches.iter().map(|batch| batch.messages).fold(0, usize::saturating_add);
    let depth = batches.iter().map(|batch| batch.depth).max();
    let cycles = depth.map_or(0, |depth| depth.saturating_add(1) as usize);
    let mut text = format!(
        "[Summary of the conversation so far: {} compressed, {} deep]",
        counted(messages, "message", "messages"),
        counted(cycles, "cycle", "cycles"),
    );
    let omitted = batches.len().saturating_sub(first).saturating_sub(last);
    let recent = first.saturating_add(omitted);
    for (index, batch) in batches.iter().enumerate() {
        if omitted > 0 && index == 0 && first > 0 {
            text.push_str("\n\n## Earliest");
        }
        if omitted > 0 && index == first {
            let these = counted(omitted, "batch", "batches");
            let it = if omitted == 1 { "it" } else { "them" };
            let log = "omitted here; the log of this conversation has";
            let _ = write!(text, "\n\n[... {these} {log} {it} ...]");
        }
        if omitted > 0 && index == recent {
            text.push_str("\n\n## Recent");
        }
        if !(first..recent).contains(&index) {
            let _ = write!(text, "\n\n{}\n{}", label(index, batch), batch.text.trim());
        }
    }
    text.trim_end().to_owned()
}

/// The heading of a batch, with its times if they are known.
pub(super) fn label(index: usize, batch: &Batch) -> String {
    let Batch { depth, start, end, .. } = batch;
    let number = index + 1;
    if *end == Timestamp::default() {
        return format!("[Batch {number} \u{2014} depth {depth}]");
    }
    format!("[Batch {number} \u{2014} depth {depth}, {start} to {end}]")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
