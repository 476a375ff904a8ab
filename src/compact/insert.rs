//! What a splice puts in the place of messages.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::blocks::Blocks;
use crate::message::Message;

/// What comes in the place of messages.
///
/// In serde it is an object with one key, `message` or `part`. A `type` beside the fields would have
/// serde buffer the message, and inputs of calls in it would lose their text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Insert {
    /// A new message.
    Message {
        /// The message.
        message: Message,
    },
    /// Some blocks of one of the messages that go.
    Part {
        /// The message, by index.
        message: usize,
        /// Its blocks that stay, ascending.
        blocks: Blocks,
    },
}

/// What comes in one place, in order. Reads like a slice.
///
/// Most splices put in one thing, and a plan that trims a long thread has thousands of them, so one
/// is held without a vector.
///
/// ```
/// use threadfold::{Message, compact::{Insert, Inserts}};
///
/// let mut inserts = Inserts::from(Insert::Message { message: Message::user("hi") });
/// inserts.push(Insert::Part { message: 3, blocks: [0].into() });
/// assert_eq!(inserts.len(), 2);
/// assert!(Inserts::default().is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct Inserts(Held);

#[derive(Clone, Debug)]
enum Held {
    One(Insert),
    Many(Vec<Insert>),
}

impl Inserts {
    /// Adds one more behind the others.
    pub fn push(&mut self, insert: Insert) {
        self.0 = match std::mem::take(self).0 {
            Held::One(first) => Held::Many(vec![first, insert]),
            Held::Many(all) if all.is_empty() => Held::One(insert),
            Held::Many(mut all) => {
                all.push(insert);
                Held::Many(all)
            }
        };
    }
}

impl Default for Inserts {
    fn default() -> Self {
        Self(Held::Many(Vec::new()))
    }
}

impl Deref for Inserts {
    type Target = [Insert];

    fn deref(&self) -> &[Insert] {
        match &self.0 {
            Held::One(insert) => std::slice::from_ref(insert),
            Held::Many(all) => all,
        }
    }
}

impl DerefMut for Inserts {
    fn deref_mut(&mut self) -> &mut [Insert] {
        match &mut self.0 {
            Held::One(insert) => std::slice::from_mut(insert),
            Held::Many(all) => all,
        }
    }
}

impl PartialEq for Inserts {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Inserts {}

impl From<Insert> for Inserts {
    fn from(insert: Insert) -> Self {
        Self(Held::One(insert))
    }
}

impl From<Vec<Insert>> for Inserts {
    fn from(mut all: Vec<Insert>) -> Self {
        match all.pop() {
            Some(only) if all.is_empty() => only.into(),
            Some(last) => {
                all.push(last);
                Self(Held::Many(all))
            }
            None => Self::default(),
        }
    }
}

impl FromIterator<Insert> for Inserts {
    fn from_iter<I: IntoIterator<Item = Insert>>(inserts: I) -> Self {
        let mut inserts = inserts.into_iter();
        let (Some(first), second) = (inserts.next(), inserts.next()) else {
            return Self::default();
        };
        match second {
            None => first.into(),
            Some(second) => Self(Held::Many([first, second].into_iter().chain(inserts).collect())),
        }
    }
}

impl<'a> IntoIterator for &'a Inserts {
    type Item = &'a Insert;
    type IntoIter = std::slice::Iter<'a, Insert>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Inserts {
    type Item = &'a mut Insert;
    type IntoIter = std::slice::IterMut<'a, Insert>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl Serialize for Inserts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Inserts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(message: usize) -> Insert {
        Insert::Part { message, blocks: [0, 1].into() }
    }

    #[test]
    fn however_they_came_they_read_and_compare_as_a_slice() {
        for count in 0..4 {
            let all: Vec<Insert> = (0..count).map(part).collect();
            let mut pushed = Inserts::default();
            all.iter().cloned().for_each(|insert| pushed.push(insert));
            assert_eq!(pushed[..], all[..]);
            assert_eq!(pushed, Inserts::from(all.clone()));
            assert_eq!(pushed, all.iter().cloned().collect());
            let text = serde_json::to_string(&pushed).unwrap();
            assert_eq!(text, serde_json::to_string(&all).unwrap());
            assert_eq!(serde_json::from_str::<Inserts>(&text).unwrap(), pushed);
        }
    }

    #[test]
    fn one_is_held_in_no_more_room_than_a_vector_needs_beside_it() {
        assert_eq!(size_of::<Inserts>(), size_of::<Insert>());
    }
}
