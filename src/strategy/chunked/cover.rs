//! Chunks that no model folded in: which they are, why, and what they say, taken from them without
//! a model.

use std::{collections::HashMap, ops::Range};

use super::{
    condense::condense,
    step::{ChunkOutcome, ChunkStep},
};
use crate::strategy::run_error::RunError;
use crate::{message::Text, render::read_back, strategy::digest};

/// A stretch of neighbouring chunks that no model folded in.
#[derive(Debug)]
pub(super) struct Gap {
    /// Which chunks, from 0.
    chunks: Range<usize>,
    /// Where they are in the rendering.
    bytes: Range<usize>,
    /// Why, for the first of them.
    why: Option<RunError>,
}

/// Returns the stretches that no model folded in, in order.
pub(super) fn gaps(chunks: &[Range<usize>], steps: &[ChunkStep]) -> Vec<Gap> {
    let mut last: HashMap<(usize, usize), &ChunkStep> = HashMap::new();
    for step in steps.iter().filter(|step| is_end(step.outcome)) {
        last.insert((step.bytes.start, step.bytes.end), step);
    }
    let mut gaps: Vec<Gap> = Vec::new();
    for (at, bytes) in chunks.iter().enumerate() {
        let step = last.get(&(bytes.start, bytes.end));
        let Some(step) = step.filter(|step| step.outcome == ChunkOutcome::Skipped) else {
            continue;
        };
        match gaps.last_mut().filter(|gap| gap.chunks.end == at) {
            Some(gap) => (gap.chunks.end, gap.bytes.end) = (at + 1, bytes.end),
            None => gaps.push(Gap {
                chunks: at..at + 1,
                bytes: bytes.clone(),
                why: step.failure.clone(),
            }),
        }
    }
    gaps
}

/// Whether the work on a chunk ended with it.
fn is_end(outcome: ChunkOutcome) -> bool {
    match outcome {
        ChunkOutcome::Folded
        | ChunkOutcome::Unchanged
        | ChunkOutcome::Capped
        | ChunkOutcome::Skipped
        | ChunkOutcome::Failed => true,
        ChunkOutcome::Halved
        | ChunkOutcome::Full
        | ChunkOutcome::Condensed
        | ChunkOutcome::Clipped => false,
    }
}

/// Whether the summary, or an edit of it, was made shorter without a model.
fn was_clipped(step: &ChunkStep) -> bool {
    let unfit = matches!(
        step.failure,
        Some(
            RunError::NotFolded { .. }
                | RunError::BlankSummary { .. }
                | RunError::TooManyRounds { .. }
        )
    );
    step.outcome == ChunkOutcome::Clipped || (step.outcome == ChunkOutcome::Capped && unfit)
}

/// Returns what a person should know about how the chunks were folded in, one sentence for each.
pub(super) fn notes(chunks: &[Range<usize>], steps: &[ChunkStep]) -> Vec<Text> {
    let total = chunks.len();
    let gap = |gap: &Gap| {
        let why = gap.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        format!("summarised without a model: {} of {total}{why}", numbers(&gap.chunks)).into()
    };
    let mut notes: Vec<Text> = gaps(chunks, steps).iter().map(gap).collect();
    let clipped = steps.iter().filter(|step| was_clipped(step)).count();
    if clipped > 0 {
        let times = if clipped == 1 { "once".to_owned() } else { format!("{clipped} times") };
        notes
            .push(format!("the summary was full and was shortened without a model {times}").into());
    }
    notes
}

/// Returns the summary with an extract of what no model folded in, in at most `most` bytes.
pub(super) fn covered(summary: &str, rendered: &str, gaps: &[Gap], most: usize) -> String {
    let missing: Vec<&str> =
        gaps.iter().filter_map(|gap| rendered.get(gap.bytes.clone())).collect();
    let bytes: usize = missing.iter().map(|text| text.len()).sum();
    if bytes == 0 {
        return summary.to_owned();
    }
    // The extract has the share of the summary that its chunks have of the thread, and what a model
    // wrote keeps at least the half.
    let share = most as u128 * bytes as u128 / (rendered.len() as u128).max(1);
    let share = usize::try_from(share).unwrap_or(most).clamp(most / 8, most / 2);
    let heading = heading(gaps);
    let room = share.saturating_sub(heading.len());
    let messages: Vec<_> = missing.into_iter().flat_map(read_back::messages).collect();
    // Its sections are below our heading, for which each heading grows by one sign.
    let digest = digest::of(&messages, room.saturating_sub(HEADINGS)).unwrap_or_default();
    let extract = format!("{heading}{}\n", digest.replace("\n## ", "\n### "));
    let kept = condense(summary, most.saturating_sub(extract.len()));
    let kept = if kept.is_empty() { kept } else { format!("{}\n\n", kept.trim_end()) };
    condense(&format!("{kept}{extract}"), most)
}

/// The sections of a digest, the line end after it, and the blank line before its heading.
const HEADINGS: usize = 8 + 1 + 2;

fn heading(gaps: &[Gap]) -> String {
    let parts: Vec<String> = gaps.iter().map(|gap| numbers(&gap.chunks)).collect();
    let named = if parts.len() <= 8 { parts.join(", ") } else { format!("{} parts", parts.len()) };
    format!("## Not summarised by a model: {named}\n\n")
}

fn numbers(chunks: &Range<usize>) -> String {
    match chunks.len() {
        1 => format!("chunk {}", chunks.end),
        _ => format!("chunks {} to {}", chunks.start + 1, chunks.end),
    }
}
