//! Cutting a rendering into chunks that a model can read, between messages where possible.
//!
//! A chunk contains whole messages as long as they fit. Only a message that fits in no chunk is
//! cut, and only its text is read. With `max = target + tolerance`:
//!
//! 1. a message is added while the chunk stays within `max`;
//! 2. otherwise, if the message alone fits in `max`, the chunk ends and the message starts the
//!    next;
//! 3. otherwise the message fills the open chunk, if that is below the target, and is cut into
//!    pieces of `target..=max` bytes: after the last blank line in that range, else the last line,
//!    else the last space, else at the last character boundary up to the target. The rest of the
//!    message starts the next chunk.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::rendered::Rendered;
use crate::message::{boundary_before, slice};

/// The assumed bytes per token: the rule of thumb for English.
pub const BYTES_PER_TOKEN: usize = 4;

/// The default size of a chunk in tokens.
pub const TARGET_CHUNK_TOKENS: usize = 25_000;

/// How many tokens larger than the default a chunk may be.
pub const TOLERANCE_TOKENS: usize = 5_000;

/// The size of chunks in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChunkBudget {
    /// The intended size in bytes. Zero counts as one.
    pub target: usize,
    /// How many bytes larger a chunk may be.
    pub tolerance: usize,
}

impl ChunkBudget {
    /// Returns a budget from tokens, at [`BYTES_PER_TOKEN`].
    ///
    /// ```
    /// use threadfold::render::ChunkBudget;
    ///
    /// assert_eq!(ChunkBudget::of_tokens(25_000, 5_000), ChunkBudget::default());
    /// assert_eq!(ChunkBudget::default().max(), 120_000);
    /// ```
    #[must_use]
    pub const fn of_tokens(target: usize, tolerance: usize) -> Self {
        Self {
            target: target.saturating_mul(BYTES_PER_TOKEN),
            tolerance: tolerance.saturating_mul(BYTES_PER_TOKEN),
        }
    }

    /// The maximum size of a chunk in bytes. Only a chunk that consists of a single character may
    /// exceed it.
    #[must_use]
    pub const fn max(self) -> usize {
        self.effective_target().saturating_add(self.tolerance)
    }

    /// The target, at least 1, so that every chunk makes progress.
    const fn effective_target(self) -> usize {
        if self.target == 0 { 1 } else { self.target }
    }
}

impl Default for ChunkBudget {
    fn default() -> Self {
        Self::of_tokens(TARGET_CHUNK_TOKENS, TOLERANCE_TOKENS)
    }
}

/// A chunk of a rendering, and the messages in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chunk<'a> {
    /// The text of the chunk.
    pub text: &'a str,
    /// The index of the chunk, from 0.
    pub index: usize,
    /// The number of chunks of the rendering.
    pub total: usize,
    /// The byte range of the chunk in the rendering.
    pub bytes: Range<usize>,
    /// The messages that are at least partly in the chunk, by index.
    pub messages: Range<usize>,
    /// `true` if the first of these messages starts in an earlier chunk.
    pub starts_inside: bool,
    /// `true` if the last of these messages ends in a later chunk.
    pub ends_inside: bool,
}

impl Chunk<'_> {
    /// `true` for the last chunk.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.index.saturating_add(1) >= self.total
    }
}

/// Returns the rendering in chunks of similar size. Joined they are the whole text.
///
/// An empty rendering has no chunks. A chunk may be smaller than the target if the next message
/// does not fit; only a single character can exceed [`ChunkBudget::max`]. Text is borrowed, and
/// only messages that must be cut are read; for the rest, each chunk takes one binary search in the
/// offsets of the messages.
///
/// ```
/// use threadfold::{Message, render::{ChunkBudget, RenderOptions, chunk, render}};
///
/// let thread = [Message::user("one"), Message::assistant("two"), Message::user("three")];
/// let rendered = render(&thread, &RenderOptions::default());
/// let chunks = chunk(&rendered, ChunkBudget { target: 30, tolerance: 10 });
/// assert_eq!(chunks.len(), 2);
/// assert_eq!(chunks[0].text, "# user:\n\none\n\n# assistant:\n\ntwo\n\n");
/// assert_eq!(chunks[1].messages, 2..3);
/// assert!(chunks[1].is_last());
/// ```
#[must_use]
pub fn chunk(rendered: &Rendered, budget: ChunkBudget) -> Vec<Chunk<'_>> {
    let ranges = chunk_ranges(rendered, budget);
    let total = ranges.len();
    let ranges = ranges.into_iter().enumerate();
    ranges.map(|(index, bytes)| chunk_at(rendered, index, total, bytes)).collect()
}

/// Returns the byte ranges of the [chunks](fn@chunk), for callers that must own the rendering.
///
/// ```
/// use threadfold::render::{ChunkBudget, Rendered, chunk_ranges};
///
/// let rendered: Rendered = ["x".repeat(55)].into_iter().collect();
/// let ranges = chunk_ranges(&rendered, ChunkBudget { target: 20, tolerance: 5 });
/// let text = rendered.into_text();
/// let sizes: Vec<_> = ranges.iter().map(|range| text[range.clone()].len()).collect();
/// assert_eq!(sizes, [20, 20, 15]);
/// ```
#[must_use]
pub fn chunk_ranges(rendered: &Rendered, budget: ChunkBudget) -> Vec<Range<usize>> {
    let ends = ends(rendered, budget);
    let starts = [0].into_iter().chain(ends.iter().copied());
    starts.zip(&ends).map(|(start, end)| start..*end).collect()
}

/// Returns the offsets at which chunks end.
fn ends(rendered: &Rendered, budget: ChunkBudget) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut start = 0;
    while rendered.len() - start > budget.max() {
        start = next_end(rendered, budget, start);
        ends.push(start);
    }
    if start < rendered.len() {
        ends.push(rendered.len());
    }
    ends
}

/// Returns where a chunk ends, if the text after `start` does not fit in one.
fn next_end(rendered: &Rendered, budget: ChunkBudget, start: usize) -> usize {
    let starts = rendered.starts();
    let limit = start.saturating_add(budget.max());
    // The first message that does not fit is the last that starts within the limit.
    let after = starts.partition_point(|message| *message <= limit);
    let message = after.checked_sub(1).and_then(|last| starts.get(last)).copied().unwrap_or(0);
    let message_end = starts.get(after).copied().unwrap_or(rendered.len());
    let open = message.saturating_sub(start);
    let is_oversized = message_end - message > budget.max();
    if open > 0 && (!is_oversized || open >= budget.effective_target()) {
        return message;
    }
    cut(rendered, start, budget)
}

/// Returns the best offset to cut a text that exceeds the limit of a chunk.
fn cut(text: &str, start: usize, budget: ChunkBudget) -> usize {
    let target = start.saturating_add(budget.effective_target());
    let limit = start.saturating_add(budget.max());
    if let Some(boundary) = best_boundary(text, target, limit) {
        return boundary;
    }
    let boundary = boundary_before(text, target);
    if boundary > start {
        return boundary;
    }
    // The first character is longer than the target. It becomes a chunk of its own, even above the
    // limit.
    let first = text.get(start..).and_then(|rest| rest.chars().next());
    first.map_or(text.len(), |first| start + first.len_utf8())
}

/// Returns the last offset in `target..=limit` after a blank line, else after a line, else after a
/// space.
fn best_boundary(text: &str, target: usize, limit: usize) -> Option<usize> {
    // The cut comes after the separating character, so the search starts one byte earlier.
    let window_start = boundary_before(text, target.saturating_sub(1));
    let window = text.get(window_start..boundary_before(text, limit))?;
    let mut lines = window.rmatch_indices('\n').map(|(at, _)| window_start + at).peekable();
    let last_line = lines.peek().copied();
    let blank = lines.find(|line_end| {
        let before = slice(text, ..*line_end);
        before.strip_suffix('\r').unwrap_or(before).ends_with('\n')
    });
    let end = blank.or(last_line).or_else(|| Some(window_start + window.rfind(' ')?));
    end.map(|at| at + 1)
}

fn chunk_at(rendered: &Rendered, index: usize, total: usize, bytes: Range<usize>) -> Chunk<'_> {
    let text = slice(rendered, bytes.clone());
    let starts = rendered.starts();
    let first = starts.partition_point(|message| *message < bytes.start);
    let starts_inside = starts.get(first) != Some(&bytes.start);
    let (end, ends_inside) = if bytes.end == rendered.len() {
        (starts.len(), false)
    } else {
        let end = starts.partition_point(|message| *message < bytes.end);
        (end, starts.get(end) != Some(&bytes.end))
    };
    let first = first.saturating_sub(usize::from(starts_inside));
    Chunk { text, index, total, bytes, messages: first..end, starts_inside, ends_inside }
}
