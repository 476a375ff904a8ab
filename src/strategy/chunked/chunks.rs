//! The chunks of a run, and where one that is too long is cut.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{render::read_back, strategy::ask::Tried};

/// The chunks, of which the first are finished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Chunks {
    /// Their bytes in the rendering.
    pub(super) all: Vec<Range<usize>>,
    /// Number of finished chunks, which is the index of the current one.
    pub(super) done: usize,
    /// The retries of the current call.
    pub(super) tried: Tried,
}

impl Chunks {
    /// The chunk that the next call is about; `None` once all are finished.
    pub(super) fn current(&self) -> Option<&Range<usize>> {
        self.all.get(self.done)
    }

    /// Cuts the current chunk into two at this byte.
    pub(super) fn divide(&mut self, middle: usize) {
        let Some(Range { start, end }) = self.current().cloned() else { return };
        self.all.splice(self.done..=self.done, [start..middle, middle..end]);
    }
}

/// Returns the start of the message nearest to the middle of a rendering; `None` if no message starts
/// inside it.
pub(super) fn border(text: &str) -> Option<usize> {
    let lines = text.match_indices("\n# ").map(|(line_end, _)| line_end + 1);
    let starts = lines.filter(|at| text.get(*at..).is_some_and(read_back::starts_message));
    starts.min_by_key(|at| at.abs_diff(text.len() / 2))
}

/// Returns the byte at which to cut: in the middle third after the last blank line, else after the
/// last line break, else after the last space, else at the first character border from the middle
/// on. `None` for a text of fewer than two characters.
pub(super) fn halve(text: &str) -> Option<usize> {
    let (start, end) = (border_from(text, text.len() / 3)?, border_from(text, text.len() * 2 / 3)?);
    let middle = text.get(start..end)?;
    let found = ["\n\n", "\n", " "]
        .into_iter()
        .find_map(|gap| middle.rfind(gap).map(|at| start + at + gap.len()));
    let found = found.or_else(|| border_from(text, text.len() / 2));
    found.filter(|at| (1..text.len()).contains(at))
}

/// Returns the first character border at or after an offset.
fn border_from(text: &str, offset: usize) -> Option<usize> {
    (offset..=text.len()).find(|at| text.is_char_boundary(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_border_is_the_start_of_the_message_nearest_to_the_middle() {
        assert_eq!(border("# user:\n\nA.\n\n# Title\n\nB.\n\n# assistant:\n\nC.\n\n"), Some(26));
        assert_eq!(border("# user:\n\nA.\n\n# user (ann):\n\nB.\n\n# user:\n\nC.\n\n"), Some(13));
        assert_eq!(border("# user:\n\nA.\n\n# Title\n"), None);
    }

    #[test]
    fn the_cut_is_at_the_best_border_of_the_middle_third() {
        assert_eq!(halve("aaaa\n\nbb bb\ncccc"), Some(6));
        assert_eq!(halve("aaaaaa bbbbb"), Some(7));
        assert_eq!(halve("aaaaaa"), Some(3));
        assert_eq!(halve("漢漢漢"), Some(6));
        assert_eq!(halve("a"), None);
        assert_eq!(halve(""), None);
    }
}
