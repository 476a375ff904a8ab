//! Checkpoints: named positions in a thread.
//!
//! If something reads them, every user message ends with one, so that an agent or a person can say
//! "replace everything from here to there". On the wire a checkpoint is a text block of its own,
//! `<checkpoint:a1b2c3>`.

use std::{
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
};

use rand::{Rng, SeedableRng, rngs::Xoshiro256PlusPlus};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{cow_str::CowStr, invalid::InvalidValue};

const LENGTH: usize = 6;

/// The name of a position in a thread: six characters of `a` to `z` and `0` to `9`.
///
/// ```
/// use threadfold::CheckpointId;
///
/// let id: CheckpointId = "a1b2c3".parse()?;
/// assert_eq!(id.to_string(), "a1b2c3");
/// assert!("A1B2C3".parse::<CheckpointId>().is_err());
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CheckpointId([u8; LENGTH]);

impl CheckpointId {
    /// The six characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // The constructors accept only ASCII, so the default is never used.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl FromStr for CheckpointId {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let id = <[u8; LENGTH]>::try_from(text.as_bytes()).ok();
        let id = id.filter(|id| id.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9')));
        let rule = "expected six characters from a to z and 0 to 9";
        id.map(Self).ok_or_else(|| InvalidValue::new("a checkpoint id", rule, text))
    }
}

impl CheckpointId {
    /// The id in base 36, its first character the lowest digit. Different ids have different
    /// numbers.
    #[doc(hidden)]
    pub fn number(self) -> u64 {
        self.0.iter().rev().fold(0, |number, sign| {
            let digit = if sign.is_ascii_digit() { sign - b'0' + 26 } else { sign - b'a' };
            number * 36 + u64::from(digit)
        })
    }

    fn from_number(mut number: u64) -> Self {
        Self(std::array::from_fn(|_| {
            let digit = (number % 36) as u8;
            number /= 36;
            if digit < 26 { b'a' + digit } else { b'0' + digit - 26 }
        }))
    }
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckpointId({self})")
    }
}

impl Serialize for CheckpointId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for CheckpointId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The characters of an id need no escapes, so the text is borrowed from the input.
        let CowStr(text) = CowStr::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl Hash for CheckpointId {
    /// Hashes the id as one number. Every user message is looked up twice, and a byte slice costs
    /// three hashing steps.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.number());
    }
}

/// A seeded generator of checkpoint ids. The same seed gives the same ids on every platform.
///
/// ```
/// use threadfold::{ContentBlock, Message, message::{Checkpoint, CheckpointIds}};
///
/// let mut ids = CheckpointIds::new(7);
/// let first = ids.draw(|_| false);
/// let second = ids.draw(|id| id == first);
/// let mut message = Message::user("Fix the parser.");
/// message.make_mut().content.push(ContentBlock::Checkpoint(Checkpoint::new(second)));
/// assert!(first != second && second.as_str().len() == 6);
/// ```
#[derive(Clone, Debug)]
pub struct CheckpointIds {
    random: Xoshiro256PlusPlus,
}

impl CheckpointIds {
    /// Returns the generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { random: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// Returns the next id for which `in_use` is `false`.
    ///
    /// There are about two billion ids. After 10,000 draws in a row of ids in use, the next one is
    /// returned unchecked, so that a closure that always returns `true` causes no endless loop.
    pub fn draw(&mut self, in_use: impl Fn(CheckpointId) -> bool) -> CheckpointId {
        let mut id = self.next();
        for _ in 0..10_000 {
            if !in_use(id) {
                break;
            }
            id = self.next();
        }
        id
    }

    fn next(&mut self) -> CheckpointId {
        CheckpointId::from_number(self.random.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_id_is_quoted_in_the_error() {
        let error = "<b>bold".parse::<CheckpointId>().unwrap_err();
        assert_eq!(error.found, "<b>bold");
        for text in ["", "aaaaa", "aaaaaaa", "aaaaaA", "äaaaa", "aaaaa "] {
            assert!(text.parse::<CheckpointId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_same_seed_always_gives_the_same_ids() {
        let mut ids = CheckpointIds::new(0);
        let first: Vec<String> = (0..3).map(|_| ids.draw(|_| false).to_string()).collect();
        assert_eq!(first, ["9t3fx8", "5wnmjt", "22dxz6"]);
    }
}
