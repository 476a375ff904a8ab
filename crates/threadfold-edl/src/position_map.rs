//! The positions of a loaded file after edits.
//!
//! Line numbers in a script refer to the file as it was loaded. An edit moves the positions after
//! it and removes those within the text that it replaces. A lookup in a list of all edits would
//! read the whole list, so this map keeps their combined effect: spans of positions that moved
//! together.

/// A range of a text and the text that replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edit<'t> {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) text: &'t str,
}

/// A map from positions in the loaded text to positions in the current one.
///
/// The spans are in order. A position outside all of them was replaced.
#[derive(Clone, Debug)]
pub(crate) struct PositionMap(Vec<Span>);

/// The positions `first..=last`, which moved together, and the new position of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first: usize,
    last: usize,
    now: usize,
}

impl PositionMap {
    /// Returns the map of a text of this length before any edit.
    pub(crate) fn new(len: usize) -> Self {
        Self(vec![Span { first: 0, last: len, now: 0 }])
    }

    /// Adds edits that are made at once, in order and without overlaps.
    pub(crate) fn edit(&mut self, edits: &[Edit<'_>]) {
        let moves = moves(edits);
        let mut joined = Vec::with_capacity(self.0.len() + moves.len());
        let mut skipped = 0;
        for span in &self.0 {
            let last_now = span.now + (span.last - span.first);
            skipped += moves.iter().skip(skipped).take_while(|it| it.last < span.now).count();
            for moved in moves.iter().skip(skipped).take_while(|it| it.first <= last_now) {
                let low = moved.first.max(span.now);
                let high = moved.last.min(last_now);
                joined.push(Span {
                    first: span.first + (low - span.now),
                    last: span.first + (high - span.now),
                    now: moved.now + (low - moved.first),
                });
            }
        }
        self.0 = joined;
    }

    /// Returns the new position, or `None` if the position lay within text that was replaced.
    ///
    /// The edges of a replaced text are not within it. A position stays before text that is
    /// inserted at it.
    pub(crate) fn now(&self, position: usize) -> Option<usize> {
        let after = self.0.partition_point(|span| span.first <= position);
        let span = self.0.get(after.checked_sub(1)?)?;
        (position <= span.last).then(|| span.now + (position - span.first))
    }
}

/// Returns the positions that edits keep, with their new positions.
fn moves(edits: &[Edit<'_>]) -> Vec<Span> {
    let mut spans = Vec::with_capacity(edits.len() + 1);
    let (mut first, mut now) = (0, 0);
    for edit in edits {
        if first <= edit.start {
            spans.push(Span { first, last: edit.start, now });
            now += edit.start - first;
            first = edit.start;
        }
        // The position of an insertion stays before the new text. The next position moves.
        let step = usize::from(edit.start == edit.end);
        now = now + edit.text.len() + step - (first - edit.start);
        first = edit.end + step;
    }
    spans.push(Span { first, last: usize::MAX, now });
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(start: usize, end: usize, text: &str) -> Edit<'_> {
        Edit { start, end, text }
    }

    #[test]
    fn positions_move_with_the_text_before_them() {
        let mut map = PositionMap::new(5_000);
        map.edit(&[edit(30, 35, "ab")]);
        map.edit(&[edit(10, 15, "ab")]);
        assert_eq!([20, 40, 5].map(|position| map.now(position)), [Some(17), Some(34), Some(5)]);
    }

    #[test]
    fn positions_within_replaced_text_do_not_exist() {
        let mut map = PositionMap::new(5_000);
        map.edit(&[edit(5, 10, "fifteen letters")]);
        let now = [3, 5, 12, 7, 10].map(|position| map.now(position));
        assert_eq!(now, [Some(3), Some(5), Some(22), None, Some(20)]);
    }

    #[test]
    fn edits_at_once_agree_with_edits_one_by_one_from_the_last() {
        let edits =
            [edit(0, 0, "x"), edit(1, 2, "yy"), edit(2, 4, ""), edit(4, 4, "z"), edit(4, 4, "w")];
        let mut at_once = PositionMap::new(5_000);
        at_once.edit(&edits);
        let mut one_by_one = PositionMap::new(5_000);
        for one in edits.iter().rev() {
            one_by_one.edit(&[*one]);
        }
        for position in 0..8 {
            assert_eq!(at_once.now(position), one_by_one.now(position), "{position}");
        }
    }

    #[test]
    fn many_edits_agree_with_a_log() {
        let mut map = PositionMap::new(5_000);
        let mut log = Vec::new();
        for index in 0..2_000_usize {
            let start = index * 7_919 % 5_000;
            let edit = edit(start, start + index % 4, "abc");
            map.edit(&[edit]);
            log.push(edit);
        }
        for position in 0..5_000 {
            let mut now = Some(position);
            for edit in &log {
                now = match now {
                    Some(at) if at <= edit.start => Some(at),
                    Some(at) if at < edit.end => None,
                    at => at.map(|at| at + edit.text.len() - (edit.end - edit.start)),
                };
            }
            assert_eq!(map.now(position), now, "{position}");
        }
    }
}
