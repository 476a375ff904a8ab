//! The author of a message, for threads in which several people speak.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{cow_str::CowStr, invalid::InvalidValue};

/// The person who typed a message of the user, by a name that the host chooses: 1 to 64 ASCII
/// letters, digits, `_` and `-`. That is what OpenAI Chat Completions accepts as the `name` of a
/// message: it refuses any other with the pattern `^[a-zA-Z0-9_-]+$`, and names of more than 64
/// characters.
///
/// A name says who typed, so a host takes it from its login and never from a text. A
/// [`Redactor`](super::Redactor) does not see it: where names are secret, use an id.
///
/// ```
/// use threadfold::{Message, message::Author};
///
/// let ann: Author = "ann".parse()?;
/// let message = Message::user("Never push to main.").by(ann.clone());
/// assert_eq!(message.author, Some(ann));
///
/// let refused = "Ann Lee".parse::<Author>().unwrap_err();
/// let rule = "\"Ann Lee\" is not the name of an author; expected 1 to 64 letters, digits, `_` and `-`";
/// assert_eq!(refused.to_string(), rule);
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Author(
    /// One pointer, because every message has room for it.
    Arc<String>,
);

impl Author {
    /// The maximum length of a name, in characters.
    pub const MAX_LENGTH: usize = 64;

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Author {
    type Err = InvalidValue;

    fn from_str(name: &str) -> Result<Self, InvalidValue> {
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        match (1..=Self::MAX_LENGTH).contains(&name.len()) && name.bytes().all(is_sign) {
            true => Ok(Self(Arc::new(name.to_owned()))),
            false => {
                let rule = "expected 1 to 64 letters, digits, `_` and `-`";
                Err(InvalidValue::new("the name of an author", rule, name))
            }
        }
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Author({self})")
    }
}

impl Serialize for Author {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Author {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let CowStr(name) = CowStr::deserialize(deserializer)?;
        name.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_no_sign_that_could_end_a_tag_or_a_line() {
        let long = "x".repeat(65);
        for name in ["", "ann lee", "ann>", "a\nb", "änn", "a.b", "[ann]", &long] {
            assert!(name.parse::<Author>().is_err(), "{name:?}");
        }
        for name in ["a", "ann-2", "ANN_LEE", &long[1..]] {
            assert_eq!(name.parse::<Author>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn a_stored_name_is_checked_again() {
        let ann: Author = serde_json::from_str("\"ann\"").unwrap();
        assert_eq!(serde_json::to_string(&ann).unwrap(), "\"ann\"");
        assert!(serde_json::from_str::<Author>("\"ann>\"").is_err());
    }
}
