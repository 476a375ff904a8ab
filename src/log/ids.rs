//! A set of compaction ids.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::message::CompactionId;

/// A set of compaction ids, as ascending ranges. Most logs number their compactions without gaps,
/// so the set does not grow with them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Ids(Vec<RangeInclusive<u64>>);

impl Ids {
    pub(super) fn contains(&self, id: CompactionId) -> bool {
        self.0.get(self.position(id)).is_some_and(|range| range.contains(&id.0))
    }

    pub(super) fn insert(&mut self, id: CompactionId) {
        if self.contains(id) {
            return;
        }
        let at = self.position(id);
        let mut range = id.0..=id.0;
        if let Some(next) = self.0.get(at).filter(|next| id.0.checked_add(1) == Some(*next.start()))
        {
            range = id.0..=*next.end();
            self.0.remove(at);
        }
        match at.checked_sub(1).and_then(|before| self.0.get_mut(before)) {
            Some(before) if before.end().checked_add(1) == Some(id.0) => {
                *before = *before.start()..=*range.end();
            }
            Some(_) | None => self.0.insert(at, range),
        }
    }

    /// The index of the first range that does not end before this id.
    fn position(&self, id: CompactionId) -> usize {
        self.0.partition_point(|range| *range.end() < id.0)
    }
}

impl Extend<CompactionId> for Ids {
    fn extend<I: IntoIterator<Item = CompactionId>>(&mut self, ids: I) {
        ids.into_iter().for_each(|id| self.insert(id));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_a_set_holds_and_ids_without_gaps_take_one_range(
            numbers in prop::collection::vec(prop_oneof![0_u64..20, Just(u64::MAX)], 0..30),
        ) {
            let mut ids = Ids::default();
            ids.extend(numbers.iter().copied().map(CompactionId));
            let expected: BTreeSet<u64> = numbers.iter().copied().collect();
            let held: BTreeSet<u64> = ids.0.iter().cloned().flatten().collect();
            prop_assert_eq!(&held, &expected);
            for number in (0..20).chain([u64::MAX]) {
                prop_assert_eq!(ids.contains(CompactionId(number)), expected.contains(&number));
            }
            let gaps = expected.iter().filter(|number| {
                number.checked_add(1).is_none_or(|next| !expected.contains(&next))
            });
            prop_assert_eq!(ids.0.len(), gaps.count());
        }
    }
}
