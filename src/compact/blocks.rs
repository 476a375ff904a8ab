//! The blocks of a message that stay.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Blocks of a message, by index. What a stored plan says may be in any order, and is refused where
/// the plan is applied.
///
/// Nearly always they are neighbours, and those are held as two numbers.
///
/// ```
/// use threadfold::compact::Blocks;
///
/// let blocks = Blocks::from([1, 2, 5]);
/// assert_eq!(blocks.iter().collect::<Vec<_>>(), [1, 2, 5]);
/// assert_eq!(serde_json::to_string(&blocks)?, "[1,2,5]");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks(Held);

/// Neighbours are always held as a run, so that equal blocks are equal values.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    Run { first: u32, count: u32 },
    List(Vec<u32>),
}

impl Blocks {
    /// Returns the first so many blocks of a message.
    pub(super) fn first_of(count: usize) -> Self {
        Self(Held::Run { first: 0, count: u32::try_from(count).unwrap_or(u32::MAX) })
    }

    /// How many they are.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Held::Run { count, .. } => *count as usize,
            Held::List(list) => list.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The indices, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + Clone {
        let (first, count, list) = match &self.0 {
            Held::Run { first, count } => (*first, *count, [].as_slice()),
            Held::List(list) => (0, 0, list.as_slice()),
        };
        (0..count).map(move |offset| first + offset).chain(list.iter().copied())
    }

    /// The first index.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// The last index.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        match &self.0 {
            Held::Run { first, count } => count.checked_sub(1).map(|offset| first + offset),
            Held::List(list) => list.last().copied(),
        }
    }

    /// Whether each index is greater than the one before.
    pub(super) fn is_ascending(&self) -> bool {
        match &self.0 {
            Held::Run { .. } => true,
            Held::List(list) => list.is_sorted_by(|one, next| one < next),
        }
    }

    /// Returns the items that stand at these indices. Neighbours are cloned as one slice.
    pub(super) fn of<T: Clone>(&self, items: &[T]) -> Vec<T> {
        match &self.0 {
            Held::Run { first, count } => {
                let end = (*first as usize).saturating_add(*count as usize).min(items.len());
                items.get(*first as usize..end).unwrap_or_default().to_vec()
            }
            Held::List(list) => {
                list.iter().filter_map(|block| items.get(*block as usize)).cloned().collect()
            }
        }
    }

    /// Adds others behind them.
    pub(super) fn extend(&mut self, more: Self) {
        match (&mut self.0, &more.0) {
            // What was no run cannot become one.
            (Held::List(list), _) => list.extend(more.iter()),
            (Held::Run { first, count }, Held::Run { first: next, count: more })
                if next.checked_sub(*first) == Some(*count) =>
            {
                *count = count.saturating_add(*more);
            }
            (Held::Run { .. }, _) => *self = self.iter().chain(more.iter()).collect(),
        }
    }
}

impl FromIterator<u32> for Blocks {
    fn from_iter<I: IntoIterator<Item = u32>>(blocks: I) -> Self {
        let mut blocks = blocks.into_iter();
        let Some(first) = blocks.next() else { return Self::first_of(0) };
        let mut count = 1;
        for block in blocks.by_ref() {
            if block.checked_sub(first) != Some(count) {
                let run = (0..count).map(|offset| first + offset);
                return Self(Held::List(run.chain([block]).chain(blocks).collect()));
            }
            count += 1;
        }
        Self(Held::Run { first, count })
    }
}

impl From<Vec<u32>> for Blocks {
    fn from(blocks: Vec<u32>) -> Self {
        blocks.into_iter().collect()
    }
}

impl<const N: usize> From<[u32; N]> for Blocks {
    fn from(blocks: [u32; N]) -> Self {
        blocks.into_iter().collect()
    }
}

impl Serialize for Blocks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Blocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_given_is_held_to_the_letter() {
        const MAX: u32 = u32::MAX;
        let lists: [&[u32]; 8] =
            [&[], &[0], &[3, 4, 5], &[3, 5], &[5, 4], &[0, 0], &[MAX], &[MAX - 1, MAX, 0]];
        for list in lists {
            let blocks = Blocks::from(list.to_vec());
            assert_eq!(blocks.iter().collect::<Vec<_>>(), list);
            assert_eq!((blocks.len(), blocks.is_empty()), (list.len(), list.is_empty()));
            let ends = (list.first().copied(), list.last().copied());
            assert_eq!((blocks.first(), blocks.last()), ends);
            assert_eq!(blocks.is_ascending(), list.is_sorted_by(|one, next| one < next));
            let text = serde_json::to_string(list).unwrap();
            assert_eq!(serde_json::to_string(&blocks).unwrap(), text);
            assert_eq!(serde_json::from_str::<Blocks>(&text).unwrap(), blocks);
        }
    }

    #[test]
    fn what_is_not_there_is_left_out() {
        let items = ["a", "b", "c"];
        for blocks in [Blocks::from([1, 2, 3]), Blocks::from([1, 2, 7]), Blocks::from([1, 9, 2])] {
            assert_eq!(blocks.of(&items), ["b", "c"]);
        }
        assert_eq!(Blocks::from([7, 8]).of(&items), [""; 0]);
    }

    #[test]
    fn joined_neighbours_are_a_run_again() {
        let mut blocks = Blocks::from([1, 2]);
        blocks.extend([3].into());
        assert_eq!(blocks.0, Held::Run { first: 1, count: 3 });
        blocks.extend([5].into());
        assert_eq!(blocks, Blocks::from([1, 2, 3, 5]));
    }
}
