//! Reading JSON objects field by field, without losing any.
//!
//! An object is read one level deep: its keys, and the raw text of its values. What a codec knows
//! it takes out; what is left becomes the [`Extra`] of the message or block.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, de};

use super::{
    contract::WireError,
    raw::{Raw, Scanned},
};
use threadfold_core::message::{Json, Text, unescaped};

/// Where in a body something stands. Written out only when an error needs it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'p> {
    /// The whole body.
    Body,
    /// A field of an object.
    Field(&'p Path<'p>, &'p str),
    /// An item of an array.
    Item(&'p Path<'p>, usize),
}

/// The fields of one JSON object, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, Raw<'a>)>);

impl<'a> Fields<'a> {
    /// Reads an object, one level deep. A key that comes twice counts once, with its last value.
    pub(super) fn read(raw: Raw<'a>, path: Path<'_>) -> Result<Self, WireError> {
        Self::of(raw).ok_or_else(|| path.mismatch("an object", raw))
    }

    /// Reads an object, one level deep; `None` if it is something else.
    pub(super) fn of(raw: Raw<'a>) -> Option<Self> {
        /// Most objects have no more keys.
        const USUAL: usize = 8;
        let Some(mut parts) = raw.parts() else { return Self::parse(raw.get()) };
        if !raw.get().starts_with('{') {
            return None;
        }
        let mut fields = Vec::with_capacity(USUAL);
        while let Some(key) = parts.next() {
            push(&mut fields, word(key)?, parts.next()?);
        }
        Some(Self(fields))
    }

    /// Reads the text of an object, one level deep; `None` if it is something else.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Reads a whole body.
    pub(super) fn body(body: &'a Scanned<'_>) -> Result<Self, WireError> {
        if let Some(whole) = body.whole() {
            return Self::read(whole, Path::Body);
        }
        if let Ok(fields) = serde_json::from_slice(body.body) {
            return Ok(fields);
        }
        let raw: Raw<'_> = serde_json::from_slice(body.body)
            .map_err(|error| WireError::NotJson { reason: error.to_string() })?;
        Self::read(raw, Path::Body)
    }

    /// Reads a whole response body, which says no error.
    pub(super) fn answer(body: &'a Scanned<'_>) -> Result<Self, WireError> {
        let fields = Self::body(body)?;
        match fields.get("error").filter(|error| error.get() != "null") {
            Some(error) => {
                let path = Path::Field(&Path::Body, "error");
                Err(path.mismatch("an answer without an error", error))
            }
            None => Ok(fields),
        }
    }

    /// The raw value of a field.
    pub(super) fn get(&self, key: &str) -> Option<Raw<'a>> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, raw)| *raw)
    }

    /// Takes the raw value of a field out.
    pub(super) fn take(&mut self, key: &str) -> Option<Raw<'a>> {
        let index = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(index).1)
    }

    /// Takes a text out. Of another shape, or `null`, it stays.
    pub(super) fn take_text(&mut self, key: &str) -> Option<Text> {
        let text = text(self.get(key).filter(|raw| is_text(*raw))?)?;
        self.take(key);
        Some(text)
    }

    /// Takes a text out that is looked at and not kept. Of another shape it stays.
    pub(super) fn take_word(&mut self, key: &str) -> Option<Cow<'a, str>> {
        let word = word(self.get(key).filter(|raw| is_text(*raw))?)?;
        self.take(key);
        Some(word)
    }

    /// Takes a field of any shape out, as JSON.
    pub(super) fn take_json(&mut self, key: &str) -> Option<Json> {
        self.take(key).map(Raw::json)
    }

    /// How many fields were not taken.
    pub(super) fn left(&self) -> usize {
        self.0.len()
    }

    /// The fields that were not taken.
    pub(super) fn rest(&self) -> impl Iterator<Item = (&str, Raw<'a>)> {
        self.0.iter().map(|(key, raw)| (key.as_ref(), *raw))
    }
}

/// Adds a field; in the place of an earlier one of this name.
fn push<'a>(fields: &mut Vec<(Cow<'a, str>, Raw<'a>)>, key: Cow<'a, str>, raw: Raw<'a>) {
    // Objects of a wire format have a dozen keys at most, but hostile ones may have many: only
    // short ones are searched for a key that comes twice.
    let searched = if fields.len() < 64 { fields.as_mut_slice() } else { &mut [] };
    match searched.iter_mut().find(|(name, _)| *name == key) {
        Some(earlier) => earlier.1 = raw,
        None => fields.push((key, raw)),
    }
}

/// Reads a JSON string that is looked at and not kept; `None` if it is something else.
pub(super) fn word(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    match raw.plain_text() {
        Some(word) => Some(Cow::Borrowed(word)),
        None => serde_json::from_str(raw.get()).ok().map(Cow::Owned),
    }
}

/// Whether a raw value is a JSON string.
pub(super) fn is_text(raw: Raw<'_>) -> bool {
    raw.get().starts_with('"')
}

/// Reads a JSON string; `None` if it is something else.
pub(super) fn text(raw: Raw<'_>) -> Option<Text> {
    match raw.plain_text() {
        Some(text) => Some(text.into()),
        None if raw.is_scanned() => {
            let text = raw.get().strip_prefix('"')?.strip_suffix('"')?;
            Some(unescaped(text)?.into())
        }
        None => serde_json::from_str(raw.get()).ok(),
    }
}

/// Reads an array, one level deep; `None` if it is something else.
pub(super) fn items(raw: Raw<'_>) -> Option<Vec<Raw<'_>>> {
    match raw.parts() {
        Some(parts) => raw.get().starts_with('[').then(|| parts.collect()),
        None => serde_json::from_str(raw.get()).ok(),
    }
}

impl Path<'_> {
    /// Says that something else was expected here.
    pub(super) fn mismatch(self, expected: &'static str, found: Raw<'_>) -> WireError {
        WireError::Shape { path: self.to_string(), expected, found: abridged(found.get()) }
    }

    /// Says that something is missing here.
    pub(super) fn missing(self, expected: &'static str) -> WireError {
        WireError::Shape { path: self.to_string(), expected, found: "nothing".to_owned() }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body => f.write_str("body"),
            Self::Field(Path::Body, key) => f.write_str(key),
            Self::Field(parent, key) => write!(f, "{parent}.{key}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

fn abridged(text: &str) -> String {
    const MAX: usize = 60;
    let mut kept: String = text.chars().take(MAX).collect();
    if kept.len() < text.len() {
        kept.push_str("...");
    }
    kept
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> de::Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some((Key(key), raw)) = map.next_entry()? {
            push(&mut fields, key, raw);
        }
        Ok(Fields(fields))
    }
}

/// A key, borrowed where it holds no escapes. (`Cow` alone would always be owned.)
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> de::Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E: de::Error>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E: de::Error>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_taken_stays_in_order() {
        let mut fields =
            Fields::parse(r#"{"z":1,"text":"hi","a":null,"n":{"b":1,"a":2}}"#).unwrap();
        assert_eq!(fields.take_text("text"), Some(Text::from("hi")));
        assert_eq!(fields.take_text("a"), None);
        let kept: Vec<(&str, &str)> = fields.rest().map(|(key, raw)| (key, raw.get())).collect();
        assert_eq!(kept, [("z", "1"), ("a", "null"), ("n", r#"{"b":1,"a":2}"#)]);
    }

    #[test]
    fn an_error_says_where_and_what() {
        let messages = Path::Field(&Path::Body, "messages");
        let raw = serde_json::from_str("5").unwrap();
        let error = Fields::read(raw, Path::Item(&messages, 3)).unwrap_err();
        assert_eq!(error.to_string(), "messages[3]: expected an object, found 5");
    }

    #[test]
    fn a_key_that_comes_twice_counts_once_with_its_last_value() {
        let fields = Fields::parse(r#"{"a":1,"b":2,"a":3}"#).unwrap();
        let kept: Vec<&str> = fields.rest().map(|(_, raw)| raw.get()).collect();
        assert_eq!(kept, ["3", "2"]);
    }
}
