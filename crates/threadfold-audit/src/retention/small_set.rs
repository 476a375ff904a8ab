//! A set of small numbers in one machine word, which rules most numbers out at little cost.

/// A set of numbers. All numbers from 127 on count as the same one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SmallSet(u128);

impl SmallSet {
    pub(super) fn contains(self, number: usize) -> bool {
        self.0 & Self::bit(number) != 0
    }

    fn bit(number: usize) -> u128 {
        1 << number.min(127)
    }
}

impl FromIterator<usize> for SmallSet {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        Self(numbers.into_iter().fold(0, |bits, number| bits | Self::bit(number)))
    }
}
