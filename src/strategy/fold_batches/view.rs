//! The view: the text of a summary that represents all batches.
//!
//! It is a pure function of the batches and the options. It is never parsed: the batches are stored
//! beside it.

use std::fmt::Write;

use super::options::FoldBatches;
use crate::{
    message::{Batch, Timestamp},
    strategy::clip::clip,
    tokens::TokenCounter,
};

impl FoldBatches {
    /// Returns the text that the thread shows for these batches: a line with the number of messages
    /// that they replace, then the first and the last batches, with the number of those omitted
    /// between them.
    ///
    /// That line also states the number of cycles: how often the oldest messages were summarised.
    ///
    /// ```
    /// use threadfold::{message::{Batch, BatchId}, strategy::FoldBatches};
    ///
    /// let batch = Batch::new(BatchId::default(), "They fixed the parser.");
    /// let view = FoldBatches::default().view(&[batch]);
    /// assert!(view.starts_with("[Summary of the conversation so far: 0 messages compressed"));
    /// assert!(view.ends_with("They fixed the parser."));
    /// ```
    #[must_use]
    pub fn view(&self, batches: &[Batch]) -> String {
        let mut text = header(batches);
        let numbered: Vec<(usize, &Batch)> = batches.iter().enumerate().collect();
        let (first, omitted, last) = self.clip(&numbered);
        if omitted > 0 {
            push_section(&mut text, "## Earliest", first);
            let _ = write!(
                text,
                "\n\n[... {} omitted here; the archive of this conversation can be searched for \
                 what {} ...]",
                counted(omitted, "batch", "batches"),
                if omitted == 1 { "it says" } else { "they say" },
            );
            push_section(&mut text, "## Recent", last);
        } else {
            first.iter().for_each(|(index, batch)| push_batch(&mut text, *index, batch));
        }
        text.trim_end().to_owned()
    }

    /// Returns the texts joined, in at most `most` tokens: all of them, else the first and the last
    /// ones that the view shows, else these with their middles omitted. `None` if there are none.
    pub(super) fn so_far(
        &self,
        texts: &[&str],
        most: u64,
        counter: &dyn TokenCounter,
    ) -> Option<String> {
        if texts.is_empty() || most == 0 {
            return None;
        }
        if joined_tokens(texts, counter) <= most {
            return Some(texts.join("\n\n"));
        }
        let (first, omitted, last) = self.clip(texts);
        let note = format!("[... {} omitted ...]", counted(omitted, "batch", "batches"));
        let note = (omitted > 0).then_some(note.as_str());
        let shown = [first, note.as_slice(), last].concat();
        if joined_tokens(&shown, counter) <= most {
            return Some(clip(&shown.join("\n\n"), most, counter));
        }
        let share = (most / shown.len().max(1) as u64).saturating_sub(1);
        let texts: Vec<String> = shown.iter().map(|text| clip(text, share, counter)).collect();
        Some(clip(&texts.join("\n\n"), most, counter))
    }

    /// Returns the first and the last items, and the number of those between them. If none is
    /// between, all are among the first.
    fn clip<'t, T>(&self, all: &'t [T]) -> (&'t [T], usize, &'t [T]) {
        let omitted = all.len().saturating_sub(self.clip_first).saturating_sub(self.clip_last);
        if omitted == 0 {
            return (all, 0, &[]);
        }
        // Something is omitted, so the list is longer than both ends together.
        let (first, rest) = all.split_at(self.clip_first);
        let (_, last) = rest.split_at(omitted);
        (first, omitted, last)
    }
}

fn header(batches: &[Batch]) -> String {
    let messages = batches.iter().map(|batch| batch.messages).fold(0, usize::saturating_add);
    let depth = batches.iter().map(|batch| batch.depth).max();
    let cycles = depth.map_or(0, |depth| depth.saturating_add(1) as usize);
    format!(
        "[Summary of the conversation so far: {} compressed, {} deep]",
        counted(messages, "message", "messages"),
        counted(cycles, "cycle", "cycles"),
    )
}

fn push_section(text: &mut String, heading: &str, batches: &[(usize, &Batch)]) {
    if batches.is_empty() {
        return;
    }
    text.push_str("\n\n");
    text.push_str(heading);
    batches.iter().for_each(|(index, batch)| push_batch(text, *index, batch));
}

fn push_batch(text: &mut String, index: usize, batch: &Batch) {
    text.push_str("\n\n");
    text.push_str(&label(index, batch));
    text.push('\n');
    text.push_str(batch.text.trim());
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

/// The tokens of texts that are joined by blank lines.
fn joined_tokens(texts: &[&str], counter: &dyn TokenCounter) -> u64 {
    texts.iter().map(|text| counter.text(text) + 1).fold(0, u64::saturating_add)
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
