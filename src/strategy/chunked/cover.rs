//! Chunks that no model folded into the summary: which ones, why, and an extract of their text made
//! without a model.

use std::{collections::HashMap, ops::Range};

use super::{
    condense::{clipped, condense},
    data::{ChunkOutcome, ChunkStep},
};
use crate::{
    message::Text,
    render::read_back,
    strategy::{digest, run_error::RunError},
};

/// Neighbouring chunks that no model folded in.
#[derive(Debug)]
pub(super) struct Gap {
    /// Indices of the chunks.
    chunks: Range<usize>,
    /// Their bytes in the rendering.
    bytes: Range<usize>,
    /// Why the first of the chunks was skipped.
    failure: Option<RunError>,
}

/// Returns the gaps in order.
pub(super) fn gaps(chunks: &[Range<usize>], steps: &[ChunkStep]) -> Vec<Gap> {
    // After a retry of the run, a chunk can have several steps, and the last one counts.
    let ends = steps.iter().filter(|step| is_end(step.outcome));
    let last: HashMap<_, _> = ends.map(|step| (step.bytes.clone(), step)).collect();
    let mut gaps: Vec<Gap> = Vec::new();
    for (index, bytes) in chunks.iter().enumerate() {
        let step = last.get(bytes).filter(|step| step.outcome == ChunkOutcome::Skipped);
        let Some(step) = step else { continue };
        match gaps.last_mut().filter(|gap| gap.chunks.end == index) {
            Some(gap) => (gap.chunks.end, gap.bytes.end) = (index + 1, bytes.end),
            None => gaps.push(Gap {
                chunks: index..index + 1,
                bytes: bytes.clone(),
                failure: step.failure.clone(),
            }),
        }
    }
    gaps
}

/// Whether this outcome ended the work on its chunk.
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

/// Whether the summary, or an edit of it, was shortened without a model.
fn was_clipped(step: &ChunkStep) -> bool {
    let is_unfolded = step.failure.as_ref().is_some_and(RunError::is_unfolded);
    step.outcome == ChunkOutcome::Clipped || (step.outcome == ChunkOutcome::Capped && is_unfolded)
}

/// Returns notes for the user on what no model summarised, one sentence each.
pub(super) fn notes(chunks: &[Range<usize>], steps: &[ChunkStep]) -> Vec<Text> {
    let total = chunks.len();
    let mut notes: Vec<Text> = Vec::new();
    for Gap { chunks, failure, .. } in gaps(chunks, steps) {
        let why = failure.map(|failure| format!(" ({failure})")).unwrap_or_default();
        let chunks = numbers(&chunks);
        notes.push(format!("summarised without a model: {chunks} of {total}{why}").into());
    }
    let clipped = steps.iter().filter(|step| was_clipped(step)).count();
    if clipped > 0 {
        let times = if clipped == 1 { "once".to_owned() } else { format!("{clipped} times") };
        notes
            .push(format!("the summary was full and was shortened without a model {times}").into());
    }
    notes
}

/// Returns the summary with an extract of the gaps, in at most `most` bytes.
pub(super) fn with_extract(summary: &str, rendered: &str, gaps: &[Gap], most: usize) -> String {
    let missing: Vec<&str> =
        gaps.iter().filter_map(|gap| rendered.get(gap.bytes.clone())).collect();
    let bytes: usize = missing.iter().map(|text| text.len()).sum();
    if bytes == 0 {
        return summary.to_owned();
    }
    // The extract gets the share of the summary that its chunks have of the thread, but at most
    // half: the model's text says more for its size.
    let share = most as u128 * bytes as u128 / (rendered.len() as u128).max(1);
    let share = usize::try_from(share).unwrap_or(most).clamp(most / 8, most / 2);
    let heading = heading(gaps);
    let room = share.saturating_sub(heading.len());
    let messages: Vec<_> = missing.into_iter().flat_map(read_back::messages).collect();
    // Below our heading the digest's headings move one level down.
    let digest = digest::of(&messages, room.saturating_sub(FRAME)).unwrap_or_default();
    let extract = format!("{heading}{}\n", digest.replace("\n## ", "\n### "));
    let kept = condense(summary, most.saturating_sub(extract.len()));
    let kept = if kept.is_empty() { kept } else { format!("{}\n\n", kept.trim_end()) };
    condense(&format!("{kept}{extract}"), most)
}

/// Returns an extract of a chunk, in about `most` bytes.
pub(super) fn extract(chunk: &str, most: usize) -> String {
    let digest = digest::of(&read_back::messages(chunk), most);
    let digest = digest.filter(|digest| !digest.trim().is_empty());
    let extract = digest.unwrap_or_else(|| clipped(chunk, most));
    format!("(An extract: no model summarised this.)\n\n{}", extract.trim())
}

/// Bytes around a digest: one more `#` for each of its eight headings, the line break after it, and
/// the blank line before its heading.
const FRAME: usize = 8 + 1 + 2;

fn heading(gaps: &[Gap]) -> String {
    let parts: Vec<String> = gaps.iter().map(|gap| numbers(&gap.chunks)).collect();
    let named = if parts.len() <= 8 { parts.join(", ") } else { format!("{} parts", parts.len()) };
    format!("## Not summarised by a model: {named}\n\n")
}

/// The numbers of the chunks, counted from 1.
fn numbers(chunks: &Range<usize>) -> String {
    match chunks.len() {
        1 => format!("chunk {}", chunks.end),
        _ => format!("chunks {} to {}", chunks.start + 1, chunks.end),
    }
}
