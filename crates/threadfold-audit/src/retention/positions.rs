//! The indices of the messages that state a fact.

use std::collections::HashSet;

/// The maximum number of indices that are kept for a fact. Without it, a fact in every message of a
/// long thread would fill the memory and every report.
pub(super) const KEPT: usize = 64;

/// The first 63 indices, the last one, and the total count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Positions {
    kept: Vec<usize>,
    count: usize,
}

impl Positions {
    pub(super) fn of(index: usize) -> Self {
        Self { kept: vec![index], count: 1 }
    }

    /// Restores positions from stored indices, in order, and the stored count; `None` if there are
    /// no indices.
    pub(super) fn stored(kept: Vec<usize>, count: usize) -> Option<Self> {
        let mut positions = Self::of(*kept.first()?);
        positions.merge(&Self { kept, count });
        Some(positions)
    }

    /// Adds an index, which must not be less than the last one.
    pub(super) fn add(&mut self, index: usize) {
        if self.kept.last() == Some(&index) {
            return;
        }
        self.count = self.count.saturating_add(1);
        if self.kept.len() < KEPT {
            self.kept.push(index);
        } else if let Some(last) = self.kept.last_mut() {
            *last = index;
        }
    }

    /// Returns how many indices were added. After a [`merge`](Self::merge) of more than 64 indices
    /// it is a lower bound.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn first(&self) -> Option<usize> {
        self.kept.first().copied()
    }

    /// Whether one of these indices is among them, as far as they are kept.
    pub(super) fn any(&self, of: &HashSet<usize>) -> bool {
        !of.is_empty() && self.kept.iter().rev().any(|index| of.contains(index))
    }

    pub(super) fn last(&self) -> usize {
        self.kept.last().copied().unwrap_or_default()
    }

    /// Merges the indices of another fact into these.
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

    /// Returns the first 63 indices and the last.
    pub(super) fn into_kept(self) -> Vec<usize> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_indices_and_the_last_are_kept() {
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
