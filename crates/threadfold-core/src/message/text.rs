//! Shared text.
//!
//! A thread, its log, its snapshots and its forks hold the same bytes once. That requires that
//! cloning a text never copies it, so every text in a message is a [`Text`].

use std::{borrow::Borrow, fmt, ops::Deref, slice::SliceIndex, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Immutable text that is cheap to clone. It dereferences to `str`.
///
/// ```
/// use threadfold::message::Text;
///
/// let text = Text::from("hello");
/// let same = text.clone();
/// assert!(same.ptr_eq(&text));
/// assert_eq!(&same[..4], "hell");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<str>);

impl Text {
    /// The text as a string slice.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `true` if both handles share one allocation.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// `true` if the text is empty or white space. Providers refuse such text blocks.
    ///
    /// ```
    /// use threadfold::message::Text;
    ///
    /// assert!(Text::from(" \n\t").is_blank());
    /// assert!(!Text::from("hi").is_blank());
    /// ```
    #[must_use]
    pub fn is_blank(&self) -> bool {
        // Stops at the first other character; trimming would also look at the end.
        self.chars().all(char::is_whitespace)
    }
}

/// Returns a part of a text. Callers take the offsets from matches in this text, so the range is
/// always valid.
#[must_use]
pub fn slice<R: SliceIndex<str, Output = str>>(text: &str, range: R) -> &str {
    let part = text.get(range);
    debug_assert!(part.is_some(), "no part of the {} bytes of the text", text.len());
    part.unwrap_or_default()
}

/// Returns a number with separators, as a person reads it: `12,345`.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

/// Returns the last character boundary at or before a byte offset.
#[must_use]
pub fn boundary_before(text: &str, offset: usize) -> usize {
    let mut boundary = offset.min(text.len());
    while !text.is_char_boundary(boundary) {
        boundary -= 1;
    }
    boundary
}

impl Default for Text {
    fn default() -> Self {
        Self(Arc::from(""))
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self
    }
}

impl<S: Into<Arc<str>>> From<S> for Text {
    fn from(text: S) -> Self {
        Self(text.into())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A visitor, because going through `String` would copy the text twice.
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl de::Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text::from(text))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Text, E> {
        Ok(Text::from(text))
    }
}
