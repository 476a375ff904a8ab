//! Where each checkpoint of a live thread is.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hasher, RandomState},
};

use crate::{
    compact::{Place, Position},
    message::CheckpointId,
};

/// The places just behind the markers of each checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places(HashMap<CheckpointId, Markers, Secret>);

/// The markers of one name. Nearly every name is given once, and needs no list.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Markers {
    One(Position),
    Several(Vec<Position>),
}

impl Places {
    /// Adds a marker, which lies behind all others.
    pub(super) fn push(&mut self, id: CheckpointId, position: Position) {
        let add = |markers: &mut Markers| match markers {
            Markers::One(first) => *markers = Markers::Several(vec![*first, position]),
            Markers::Several(positions) => positions.push(position),
        };
        self.0.entry(id).and_modify(add).or_insert(Markers::One(position));
    }

    /// Whether there is a marker of this name.
    pub(super) fn holds(&self, id: CheckpointId) -> bool {
        self.0.contains_key(&id)
    }

    /// Where the checkpoint of this name is.
    pub(super) fn place(&self, id: CheckpointId) -> Place {
        match self.0.get(&id) {
            None => Place::Unknown,
            Some(Markers::One(position)) => Place::At(*position),
            Some(Markers::Several(_)) => Place::Ambiguous,
        }
    }

    /// Drops the markers in all messages from this one on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.0.retain(|_, markers| {
            if let Markers::Several(positions) = markers {
                positions.retain(|position| position.message < len);
                let [first] = positions.as_slice() else { return !positions.is_empty() };
                *markers = Markers::One(*first);
            }
            !matches!(markers, Markers::One(position) if position.message >= len)
        });
    }
}

/// Hashes with two secret numbers: a product and a sum in 128 bits, of which the upper half is
/// taken, and its bits mixed. Whoever chooses the names cannot know which of them meet, as with the
/// hasher of the standard library, at a small part of its 150 instructions; a name is looked up
/// twice for each user message.
///
/// Without the mixing any two names would meet just as seldom, but all of a pattern together: what a
/// table looks at are the lower bits, and numbers in steps go round in those in steps too, so that
/// four factors in a hundred put hundreds of them on top of one another. Mixing loses no bit, so two
/// names are as independent after it as before.
#[derive(Clone, Copy, Debug)]
struct Secret {
    factor: u128,
    summand: u128,
}

/// A [`Secret`] at work.
#[derive(Clone, Copy, Debug)]
struct Mixer {
    secret: Secret,
    hash: u64,
}

impl Default for Secret {
    fn default() -> Self {
        let random = RandomState::new();
        let half = |number: u8| u128::from(random.hash_one(number));
        Self { factor: half(0) << 64 | half(1), summand: half(2) << 64 | half(3) }
    }
}

impl BuildHasher for Secret {
    type Hasher = Mixer;

    fn build_hasher(&self) -> Mixer {
        Mixer { secret: *self, hash: 0 }
    }
}

impl Hasher for Mixer {
    /// All that a [`CheckpointId`] writes is one number.
    fn write_u64(&mut self, number: u64) {
        let number = u128::from(self.hash ^ number);
        let product = self.secret.factor.wrapping_mul(number);
        self.hash = (product.wrapping_add(self.secret.summand) >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        let mixed = (self.hash ^ self.hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> CheckpointId {
        text.parse().unwrap()
    }

    fn at(message: usize) -> Position {
        Position { message, block: 1 }
    }

    #[test]
    fn a_name_that_is_given_again_is_ambiguous_until_only_one_marker_is_left() {
        let mut places = Places::default();
        places.push(id("aaaaaa"), at(0));
        places.push(id("bbbbbb"), at(1));
        places.push(id("aaaaaa"), at(2));
        places.push(id("aaaaaa"), at(3));
        let seen = |places: &Places| ["aaaaaa", "bbbbbb"].map(|name| places.place(id(name)));
        assert_eq!(seen(&places), [Place::Ambiguous, Place::At(at(1))]);
        places.truncate(3);
        assert_eq!(seen(&places), [Place::Ambiguous, Place::At(at(1))]);
        places.truncate(1);
        assert_eq!(seen(&places), [Place::At(at(0)), Place::Unknown]);
        assert!(places.holds(id("aaaaaa")) && !places.holds(id("bbbbbb")));
        places.truncate(0);
        assert_eq!(places, Places::default());
    }

    #[test]
    fn names_of_one_pattern_hardly_meet() {
        let names: Vec<CheckpointId> =
            (0..10_000_u32).map(|number| id(&format!("a{number:05}"))).collect();
        for _ in 0..40 {
            let secret = Secret::default();
            // What tells entries apart: the lower bits choose the bucket. By chance 48 would meet.
            let buckets: std::collections::HashSet<u64> =
                names.iter().map(|name| secret.hash_one(name) & 0xf_ffff).collect();
            assert!(buckets.len() > 9_800, "{} for {secret:?}", buckets.len());
        }
    }
}
