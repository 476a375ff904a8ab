//! Cutting a rendering into pieces that a model can read, between messages where it can.
//!
//! A chunk holds whole messages as long as they fit. A message that fits in no chunk is cut, and
//! only such a message is ever looked into. With `max = target + tolerance`:
//!
//! 1. a message is added while the chunk stays within `max`;
//! 2. else, if the message alone fits in `max`, the chunk is closed and the message opens the next;
//! 3. else the open chunk, if under the target, is filled from it, and it is cut into pieces of
//!    `target..=max` bytes: behind a blank line, else a line, else a space, the last in reach;
//!    where there is none, at the last character border not after the target. What is left of the
//!    message stays open and is the beginning of the next chunk.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{marks::border_before, rendered::Rendered};

/// How many bytes a token is taken to have: the rule of thumb for English.
pub const BYTES_PER_TOKEN: usize = 4;

/// How many tokens a chunk is aimed at.
pub const TARGET_CHUNK_TOKENS: usize = 25_000;

/// By how many tokens a chunk may be larger.
pub const TOLERANCE_TOKENS: usize = 5_000;

/// How large chunks are, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChunkBudget {
    /// The size that is aimed at. Zero counts as one.
    pub target: usize,
    /// By how much a chunk may be larger.
    pub tolerance: usize,
}

impl ChunkBudget {
    /// Returns the budget of so many tokens, at [`BYTES_PER_TOKEN`].
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

    /// The size that no chunk exceeds, unless a single character does.
    #[must_use]
    pub const fn max(self) -> usize {
        self.aim().saturating_add(self.tolerance)
    }

    /// The target, which has to be something for the work to end.
    const fn aim(self) -> usize {
        if self.target == 0 { 1 } else { self.target }
    }
}

impl Default for ChunkBudget {
    fn default() -> Self {
        Self::of_tokens(TARGET_CHUNK_TOKENS, TOLERANCE_TOKENS)
    }
}

/// A piece of a rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chunk<'a> {
    /// Where it is and what it covers.
    pub range: ChunkRange,
    /// Its text.
    pub text: &'a str,
}

/// Where a piece of a rendering is and what it covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChunkRange {
    /// Which of the chunks it is, from 0.
    pub index: usize,
    /// How many chunks there are.
    pub total: usize,
    /// Its bytes in the rendering.
    pub bytes: Range<usize>,
    /// The messages of which it holds something.
    pub messages: Range<usize>,
    /// Whether the first of these messages begins in an earlier chunk.
    pub starts_inside: bool,
    /// Whether the last of these messages ends in a later chunk.
    pub ends_inside: bool,
}

impl ChunkRange {
    /// The messages that it holds whole.
    ///
    /// ```
    /// use threadfold::render::{ChunkBudget, Rendered, chunk_ranges};
    ///
    /// let rendered: Rendered = ["one ".to_owned(), "x".repeat(40)].into_iter().collect();
    /// let ranges = chunk_ranges(&rendered, ChunkBudget { target: 20, tolerance: 5 });
    /// assert_eq!((ranges[0].messages.clone(), ranges[0].whole_messages()), (0..2, 0..1));
    /// assert_eq!((ranges[1].messages.clone(), ranges[1].whole_messages()), (1..2, 2..2));
    /// ```
    #[must_use]
    pub fn whole_messages(&self) -> Range<usize> {
        let start = self.messages.start.saturating_add(usize::from(self.starts_inside));
        let end = self.messages.end.saturating_sub(usize::from(self.ends_inside));
        start..end.max(start)
    }

    /// Whether it is the last chunk.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.index.saturating_add(1) >= self.total
    }
}

/// Returns the rendering in pieces of about the same size; joined they are the whole text.
///
/// No text, no chunks. A chunk may be under the target when the next message does not fit; none is
/// over [`ChunkBudget::max`], unless a single character is. Nothing is copied, and only messages
/// that have to be cut are looked into: the rest is a search of the message offsets a chunk.
///
/// ```
/// use threadfold::{Message, render::{ChunkBudget, RenderOptions, chunk, render}};
///
/// let thread = [Message::user("one"), Message::assistant("two"), Message::user("three")];
/// let rendered = render(&thread, &RenderOptions::default());
/// let chunks = chunk(&rendered, ChunkBudget { target: 30, tolerance: 10 });
/// assert_eq!(chunks.len(), 2);
/// assert_eq!(chunks[0].text, "# user:\n\none\n\n# assistant:\n\ntwo\n\n");
/// assert_eq!(chunks[1].range.messages, 2..3);
/// assert!(chunks[1].range.is_last());
/// ```
#[must_use]
pub fn chunk(rendered: &Rendered, budget: ChunkBudget) -> Vec<Chunk<'_>> {
    let chunk = |range: ChunkRange| {
        let text = rendered.get(range.bytes.clone()).unwrap_or_default();
        Chunk { range, text }
    };
    chunk_ranges(rendered, budget).into_iter().map(chunk).collect()
}

/// Returns where the chunks are: [`chunk`](fn@chunk), for who has to own the rendering.
///
/// ```
/// use threadfold::render::{ChunkBudget, Rendered, chunk_ranges};
///
/// let rendered: Rendered = ["x".repeat(55)].into_iter().collect();
/// let ranges = chunk_ranges(&rendered, ChunkBudget { target: 20, tolerance: 5 });
/// let text = rendered.into_text();
/// let sizes: Vec<_> = ranges.iter().map(|range| text[range.bytes.clone()].len()).collect();
/// assert_eq!(sizes, [20, 20, 15]);
/// ```
#[must_use]
pub fn chunk_ranges(rendered: &Rendered, budget: ChunkBudget) -> Vec<ChunkRange> {
    let ends = ends(rendered, budget);
    let total = ends.len();
    let starts = [0].into_iter().chain(ends.iter().copied());
    let bytes = starts.zip(&ends).map(|(start, end)| start..*end);
    bytes.enumerate().map(|(index, bytes)| covering(rendered, index, total, bytes)).collect()
}

/// The offsets at which chunks end.
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

/// Where a chunk ends after which there is more text than fits.
fn next_end(rendered: &Rendered, budget: ChunkBudget, start: usize) -> usize {
    let starts = rendered.starts();
    let limit = start.saturating_add(budget.max());
    // The first message that does not fit is the last that starts within the limit.
    let after = starts.partition_point(|message| *message <= limit);
    let message = after.checked_sub(1).and_then(|last| starts.get(last)).copied().unwrap_or(0);
    let message_end = starts.get(after).copied().unwrap_or(rendered.len());
    let open = message.saturating_sub(start);
    let is_oversized = message_end - message > budget.max();
    if open > 0 && (!is_oversized || open >= budget.aim()) {
        return message;
    }
    cut(rendered, start, budget)
}

/// The best place to cut a text that goes on beyond the limit of a chunk.
fn cut(text: &str, start: usize, budget: ChunkBudget) -> usize {
    let target = start.saturating_add(budget.aim());
    let limit = start.saturating_add(budget.max());
    if let Some(border) = best_border(text, target, limit) {
        return border;
    }
    let border = border_before(text, target);
    if border > start {
        return border;
    }
    // The first character is longer than the target. It goes alone, even if it exceeds the limit.
    let first = text.get(start..).and_then(|rest| rest.chars().next());
    first.map_or(text.len(), |first| start + first.len_utf8())
}

/// The last offset of `target..=limit` behind a blank line, else behind a line, else a space.
fn best_border(text: &str, target: usize, limit: usize) -> Option<usize> {
    // A border lies behind the character that makes it one, so the window opens one byte earlier.
    let opens = border_before(text, target.saturating_sub(1));
    let window = text.get(opens..border_before(text, limit))?;
    let is_blank = |line_end: usize| {
        let before = text.get(..line_end).unwrap_or_default();
        before.strip_suffix('\r').unwrap_or(before).ends_with('\n')
    };
    let mut lines = window.rmatch_indices('\n').map(|(at, _)| opens + at).peekable();
    let last_line = lines.peek().copied();
    let blank = lines.find(|line_end| is_blank(*line_end));
    let space = || window.rfind(' ').map(|at| opens + at);
    blank.or(last_line).or_else(space).map(|at| at + 1)
}

fn covering(rendered: &Rendered, index: usize, total: usize, bytes: Range<usize>) -> ChunkRange {
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
    ChunkRange { index, total, bytes, messages: first..end, starts_inside, ends_inside }
}
