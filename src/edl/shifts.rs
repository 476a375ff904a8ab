//! Where the places of a loaded text are now.
//!
//! Line numbers in a script mean the lines of the file as it was loaded, whatever the script has
//! done to it since. Every edit moves the places behind it and buries those within what it
//! replaced. Instead of a log that each lookup walks through, this keeps the sum of all edits: a
//! list of runs of places that moved together. New edits are summed up in a short list of their
//! own and folded into the long one now and then, so neither edits nor lookups grow with the
//! number of edits before them.

use super::rope::Edit;

/// How long the list of recent runs may grow before it is folded into the other.
const RECENT_RUNS: usize = 256;

/// A map from places of the loaded text to places of the current one.
#[derive(Clone, Debug)]
pub(crate) struct Shifts {
    settled: Runs,
    recent: Runs,
}

impl Shifts {
    /// Starts with no edits to a text of this length.
    pub(crate) fn new(len: usize) -> Self {
        Self { settled: Runs::identity(len), recent: Runs::identity(usize::MAX) }
    }

    /// Takes in edits that are made at once. They are in order and do not overlap.
    pub(crate) fn edit(&mut self, edits: &[Edit<'_>]) {
        self.recent = self.recent.then(&Runs::of(edits));
        if self.recent.0.len() > RECENT_RUNS {
            self.settled = self.settled.then(&self.recent);
            self.recent = Runs::identity(usize::MAX);
        }
    }

    /// Returns where a place is now, or `None` if it lay within a text that was replaced.
    ///
    /// The edges of a replaced text are not within it. What was inserted at a place comes after it.
    pub(crate) fn now(&self, place: usize) -> Option<usize> {
        self.recent.image(self.settled.image(place)?)
    }
}

/// Places `from..=to` that moved together, and where the first of them went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    from: usize,
    to: usize,
    image: usize,
}

/// Runs in order. Places outside all of them are gone. Images never decrease.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Runs(Vec<Run>);

impl Runs {
    fn identity(to: usize) -> Self {
        Self(vec![Run { from: 0, to, image: 0 }])
    }

    fn of(edits: &[Edit<'_>]) -> Self {
        let mut runs = Vec::with_capacity(edits.len() + 1);
        let (mut from, mut image) = (0, 0);
        for edit in edits {
            if from <= edit.start {
                runs.push(Run { from, to: edit.start, image });
                image += edit.start - from;
                from = edit.start;
            }
            // A place where something is inserted stays before it; the next place moves.
            let step = usize::from(edit.start == edit.end);
            image = image + edit.text.len() + step - (from - edit.start);
            from = edit.end + step;
        }
        runs.push(Run { from, to: usize::MAX, image });
        Self(runs)
    }

    fn image(&self, place: usize) -> Option<usize> {
        let after = self.0.partition_point(|run| run.from <= place);
        let run = self.0.get(after.checked_sub(1)?)?;
        (place <= run.to).then(|| run.image + (place - run.from))
    }

    /// The map that does this one first and `next` after it, in one walk over both.
    fn then(&self, next: &Self) -> Self {
        let mut joined = Vec::with_capacity(self.0.len() + next.0.len());
        let mut first = 0;
        for run in &self.0 {
            let last_image = run.image.saturating_add(run.to - run.from);
            first += next
                .0
                .get(first..)
                .unwrap_or_default()
                .iter()
                .take_while(|it| it.to < run.image)
                .count();
            for other in next.0.get(first..).unwrap_or_default() {
                if other.from > last_image {
                    break;
                }
                let low = other.from.max(run.image);
                let high = other.to.min(last_image);
                joined.push(Run {
                    from: run.from + (low - run.image),
                    to: run.from.saturating_add(high - run.image),
                    image: other.image + (low - other.from),
                });
            }
        }
        Self(joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(start: usize, end: usize, text: &str) -> Edit<'_> {
        Edit { start, end, text }
    }

    #[test]
    fn places_move_with_the_text_before_them() {
        let mut shifts = Shifts::new(5_000);
        shifts.edit(&[edit(30, 35, "ab")]);
        shifts.edit(&[edit(10, 15, "ab")]);
        assert_eq!([20, 40, 5].map(|place| shifts.now(place)), [Some(17), Some(34), Some(5)]);
    }

    #[test]
    fn places_within_a_replaced_text_are_gone() {
        let mut shifts = Shifts::new(5_000);
        shifts.edit(&[edit(5, 10, "fifteen letters")]);
        let now = [3, 5, 12, 7, 10].map(|place| shifts.now(place));
        assert_eq!(now, [Some(3), Some(5), Some(22), None, Some(20)]);
    }

    #[test]
    fn edits_at_once_agree_with_edits_one_by_one_from_the_last() {
        let edits =
            [edit(0, 0, "x"), edit(1, 2, "yy"), edit(2, 4, ""), edit(4, 4, "z"), edit(4, 4, "w")];
        let mut at_once = Shifts::new(5_000);
        at_once.edit(&edits);
        let mut one_by_one = Shifts::new(5_000);
        for one in edits.iter().rev() {
            one_by_one.edit(&[*one]);
        }
        for place in 0..8 {
            assert_eq!(at_once.now(place), one_by_one.now(place), "{place}");
        }
    }

    #[test]
    fn recent_runs_are_folded_when_there_are_too_many() {
        for (count, recent, settled) in [(1, 2, 1), (255, 256, 1), (256, 1, 257), (999, 1, 1_000)] {
            let edits: Vec<_> = (0..count).map(|at| edit(at * 3, at * 3 + 1, "ab")).collect();
            let mut shifts = Shifts::new(5_000);
            shifts.edit(&edits);
            assert_eq!((shifts.recent.0.len(), shifts.settled.0.len()), (recent, settled));
        }
    }

    #[test]
    fn many_edits_agree_with_a_log() {
        let mut shifts = Shifts::new(5_000);
        let mut log = Vec::new();
        for index in 0..2_000_usize {
            let start = index * 7_919 % 5_000;
            let edit = edit(start, start + index % 4, "abc");
            shifts.edit(&[edit]);
            log.push(edit);
        }
        for place in 0..5_000 {
            let mut now = Some(place);
            for edit in &log {
                now = match now {
                    Some(at) if at <= edit.start => Some(at),
                    Some(at) if at < edit.end => None,
                    at => at.map(|at| at + edit.text.len() - (edit.end - edit.start)),
                };
            }
            assert_eq!(shifts.now(place), now, "{place}");
        }
    }
}
