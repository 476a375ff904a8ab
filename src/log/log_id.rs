//! The id of a stored log, which distinguishes it from other logs of the same thread.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

use crate::message::InvalidValue;

/// The id of a stored log. A thread that is deleted and created again has the same
/// [`ThreadId`](crate::message::ThreadId), and its new log may hold equal events with equal times,
/// but it has another `LogId`.
///
/// As text and in serde it is 16 digits of `0` to `9` and `a` to `f`.
///
/// ```
/// use threadfold::log::LogId;
///
/// assert_eq!(LogId(255).to_string(), "00000000000000ff");
/// assert_eq!("00000000000000ff".parse(), Ok(LogId(255)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LogId(pub u64);

impl LogId {
    /// Returns a random id, from the random keys of the standard library's hash maps. It
    /// distinguishes logs; it is not a secret.
    ///
    /// ```
    /// use threadfold::log::LogId;
    ///
    /// assert_ne!(LogId::random(), LogId::random());
    /// ```
    #[must_use]
    pub fn random() -> Self {
        Self(RandomState::new().hash_one(0_u8))
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for LogId {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let lower = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let id = u64::from_str_radix(text, 16).ok().filter(|_| lower && text.len() == 16);
        let rule = "expected 16 digits from 0 to 9 and a to f";
        id.map(Self).ok_or_else(|| InvalidValue::new("the id of a log", rule, text))
    }
}

impl TryFrom<String> for LogId {
    type Error = InvalidValue;

    fn try_from(text: String) -> Result<Self, InvalidValue> {
        text.parse()
    }
}

impl From<LogId> for String {
    fn from(id: LogId) -> Self {
        id.to_string()
    }
}
