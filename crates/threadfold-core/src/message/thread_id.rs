//! The name of a thread in logs and stores.

use std::{
    borrow::Borrow,
    fmt,
    hash::{BuildHasher, RandomState},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{invalid::InvalidValue, text::Text};

/// The maximum length of a thread id in bytes.
const MAX_BYTES: usize = 128;

/// The name of a thread: 1 to 128 characters of `a` to `z`, `A` to `Z`, `0` to `9`, `.`, `_` and
/// `-`, without a leading dot. It is a valid file name on every platform. Ids are case-sensitive.
///
/// ```
/// use threadfold::message::ThreadId;
///
/// let id: ThreadId = "lace_20250808_a1b2c3.1".parse()?;
/// assert_eq!(id.as_str(), "lace_20250808_a1b2c3.1");
/// assert!("../secrets".parse::<ThreadId>().is_err());
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(Text);

impl ThreadId {
    /// Returns a random id of 128 bits, from the random keys of the standard library's hash maps.
    /// It distinguishes threads; it is not a secret.
    ///
    /// ```
    /// use threadfold::message::ThreadId;
    ///
    /// assert_ne!(ThreadId::random(), ThreadId::random());
    /// ```
    #[must_use]
    pub fn random() -> Self {
        let [one, two] = [RandomState::new(), RandomState::new()].map(|keys| keys.hash_one(0_u8));
        Self(format!("thread-{one:016x}{two:016x}").into())
    }

    /// The beginning of a [random](Self::random) id, with 32 of its bits, which a person or a model can
    /// repeat; any other id whole.
    ///
    /// ```
    /// use threadfold_core::message::ThreadId;
    ///
    /// let id: ThreadId = "thread-0123456789abcdef0123456789abcdef".parse()?;
    /// assert_eq!(id.short(), "thread-01234567");
    /// assert_eq!("main".parse::<ThreadId>()?.short(), "main");
    /// # Ok::<(), threadfold_core::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn short(&self) -> &str {
        let is_random = self.0.strip_prefix("thread-").is_some_and(|bits| {
            bits.len() == 32 && bits.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        self.0.get(..15).filter(|_| is_random).unwrap_or(&self.0)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ThreadId {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        if (1..=MAX_BYTES).contains(&text.len())
            && !text.starts_with('.')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        {
            return Ok(Self(text.into()));
        }
        let rule = "expected 1 to 128 letters, digits, dots, underscores and hyphens, not beginning with a dot";
        Err(InvalidValue::new("a thread id", rule, text))
    }
}

impl Borrow<str> for ThreadId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThreadId({self})")
    }
}

impl Serialize for ThreadId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ThreadId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_could_escape_its_folder_is_refused() {
        let long = "a".repeat(129);
        for text in ["", ".", "..", ".hidden", "a/b", "a\\b", "a b", "a:b", "\u{e4}", &long] {
            assert!(text.parse::<ThreadId>().is_err(), "{text:?}");
        }
        assert!("a".repeat(128).parse::<ThreadId>().is_ok());
    }
}
