//! Edits of a text, and where the places of the loaded text are after them.
//!
//! Line numbers in a script mean the lines of the file as it was loaded, whatever the script has
//! done to it since. Every edit moves the places after it and removes those within what it
//! replaced. Instead of a log that each lookup walks through, this keeps the sum of all edits: a
//! list of runs of places that moved together.

/// A range of a text and what to put in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edit<'t> {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) text: &'t str,
}

/// A map from places of the loaded text to places of the current one.
///
/// The runs are in order. A place outside all of them is gone.
#[derive(Clone, Debug)]
pub(crate) struct Shifts(Vec<Run>);

/// Places `from..=to` that moved together, and where the first of them went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    from: usize,
    to: usize,
    image: usize,
}

impl Shifts {
    /// Starts with no edits to a text of this length.
    pub(crate) fn new(len: usize) -> Self {
        Self(vec![Run { from: 0, to: len, image: 0 }])
    }

    /// Takes in edits that are made at once. They are in order and do not overlap.
    pub(crate) fn edit(&mut self, edits: &[Edit<'_>]) {
        let next = moved_by(edits);
        let mut joined = Vec::with_capacity(self.0.len() + next.len());
        let mut first = 0;
        for run in &self.0 {
            let last_image = run.image + (run.to - run.from);
            first += next.iter().skip(first).take_while(|it| it.to < run.image).count();
            for other in next.iter().skip(first).take_while(|it| it.from <= last_image) {
                let low = other.from.max(run.image);
                let high = other.to.min(last_image);
                joined.push(Run {
                    from: run.from + (low - run.image),
                    to: run.from + (high - run.image),
                    image: other.image + (low - other.from),
                });
            }
        }
        self.0 = joined;
    }

    /// Returns where a place is now, or `None` if it lay within a text that was replaced.
    ///
    /// The edges of a replaced text are not within it. What was inserted at a place comes after it.
    pub(crate) fn now(&self, place: usize) -> Option<usize> {
        let after = self.0.partition_point(|run| run.from <= place);
        let run = self.0.get(after.checked_sub(1)?)?;
        (place <= run.to).then(|| run.image + (place - run.from))
    }
}

/// The places that edits leave, and where they move them.
fn moved_by(edits: &[Edit<'_>]) -> Vec<Run> {
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
    runs
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
