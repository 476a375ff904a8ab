//! In which messages something was said.

/// So many positions are kept of each fact, so that what is said in every message of a long thread
/// does not fill the memory, nor every report.
pub(super) const KEPT: usize = 64;

/// The first of some indices that came in ascending order, the last, and how many there were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Positions {
    /// All but the last are the first ones; the last is the last.
    kept: Vec<usize>,
    count: usize,
}

impl Positions {
    pub(super) fn of(index: usize) -> Self {
        Self { kept: vec![index], count: 1 }
    }

    /// Adds an index that is not before those that are there.
    pub(super) fn add(&mut self, index: usize) {
        if self.kept.last() == Some(&index) {
            return;
        }
        self.count += 1;
        if self.kept.len() < KEPT {
            self.kept.push(index);
        } else if let Some(last) = self.kept.last_mut() {
            *last = index;
        }
    }

    /// How many there were. Of two put together that were more than are kept, it is the least there
    /// can have been.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn first(&self) -> Option<usize> {
        self.kept.first().copied()
    }

    pub(super) fn last(&self) -> usize {
        self.kept.last().copied().unwrap_or_default()
    }

    /// Puts others among them.
    pub(super) fn merge(&mut self, others: &Self) {
        self.kept.extend(&others.kept);
        self.kept.sort_unstable();
        self.kept.dedup();
        self.count = self.count.max(others.count).max(self.kept.len());
        if let Some(last) = self.kept.last().copied().filter(|_| self.kept.len() > KEPT) {
            self.kept.truncate(KEPT - 1);
            self.kept.push(last);
        }
    }

    /// The first ones, and the last.
    pub(super) fn into_kept(self) -> Vec<usize> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_the_first_and_the_last_are_kept() {
        let mut positions = Positions::of(0);
        (0..20_000).for_each(|index| positions.add(index));
        let expected: Vec<usize> = (0..KEPT - 1).chain([19_999]).collect();
        assert_eq!((positions.count(), positions.last()), (20_000, 19_999));
        let mut others = Positions::of(3);
        others.add(30_000);
        positions.merge(&others);
        let merged: Vec<usize> = (0..KEPT - 1).chain([30_000]).collect();
        assert_eq!((positions.count(), positions.into_kept()), (20_000, merged));
        assert_eq!(expected.len(), KEPT);
    }
}
