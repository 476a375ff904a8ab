//! JSON values as text, parsed on demand.

use std::{borrow::Cow, fmt::Display};

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::scan::{Node, scan, scan_outer};
use crate::contract::{Result, WireError};
use threadfold_core::message::{Json, Text, unescaped};

/// Reads a whole JSON text with this function.
///
/// The positions of all values in it are found first. A text that is too large for that, or that is
/// not JSON, is read by `serde_json`, whose errors name line and column.
pub(crate) fn read_whole<T>(text: &[u8], read: impl FnOnce(Raw<'_>) -> Result<T>) -> Result<T> {
    let text = str::from_utf8(text).map_err(not_json)?;
    let nodes = scan(text).unwrap_or_default();
    match nodes.first().and_then(|whole| slice(text, whole, 0)) {
        Some(text) => read(Raw { text, nodes: &nodes }),
        None => read(serde_json::from_str(text).map_err(not_json)?),
    }
}

fn not_json(error: impl Display) -> WireError {
    WireError::NotJson { reason: error.to_string() }
}

/// A JSON value as text.
///
/// A value of a scanned body knows the positions of all values in it. Any other value is scanned
/// one level deep when its parts are read.
///
/// The small methods are inlined, because dialects call them for each value: without inlining,
/// decoding takes 5 % longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    text: &'a str,
    /// The node of the value and of all values in it; empty if it was not scanned.
    nodes: &'a [Node],
}

impl<'a> Raw<'a> {
    /// Returns stored JSON as a raw value.
    pub(crate) fn of(json: &'a Json) -> Self {
        Self { text: json.as_str(), nodes: &[] }
    }

    /// The text.
    #[inline]
    pub(crate) fn get(self) -> &'a str {
        self.text
    }

    /// The value as stored JSON.
    pub(crate) fn json(self) -> Json {
        if self.is_compact() { Json::from_compact(self.text) } else { Json::from_valid(self.text) }
    }

    /// Whether the value is known to have no white space between tokens. A string has no tokens
    /// within.
    #[inline]
    fn is_compact(self) -> bool {
        self.text.starts_with('"') || self.nodes.first().is_some_and(|node| node.is_plain)
    }

    /// Whether it is an object.
    #[inline]
    pub(crate) fn is_object(self) -> bool {
        self.text.starts_with('{')
    }

    /// Whether it is a string.
    #[inline]
    pub(crate) fn is_text(self) -> bool {
        self.text.starts_with('"')
    }

    /// Reads a string without copying it, if it has no escapes; `None` for other values.
    #[inline]
    pub(crate) fn word(self) -> Option<Cow<'a, str>> {
        let inner = self.text.strip_prefix('"')?.strip_suffix('"')?;
        let scanned = self.nodes.first().map(|node| node.is_plain);
        if scanned.unwrap_or_else(|| !inner.contains('\\')) {
            return Some(Cow::Borrowed(inner));
        }
        unescaped(inner).map(Cow::Owned)
    }

    /// Reads a string; `None` if it is something else.
    pub(crate) fn text(self) -> Option<Text> {
        self.word().map(Text::from)
    }

    /// Reads a whole number of at least zero; `None` if it is something else, or too large.
    pub(crate) fn whole_number(self) -> Option<u64> {
        self.text.parse().ok()
    }

    /// Reads a number; `None` if it is something else, or too large.
    pub(crate) fn number(self) -> Option<f64> {
        self.text.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// Reads an array, one level deep; `None` if it is something else.
    pub(crate) fn items(self) -> Option<Vec<Raw<'a>>> {
        match self.parts() {
            Some(parts) => self.text.starts_with('[').then(|| parts.collect()),
            None => outer(self.text).filter(|_| self.text.trim_start().starts_with('[')),
        }
    }

    /// Reads every item of an array with this function; `None` if it is no array, is empty, or
    /// holds an item that does not read.
    pub(crate) fn all<T>(self, read: impl FnMut(Raw<'a>) -> Option<T>) -> Option<Vec<T>> {
        let items = self.items().filter(|items| !items.is_empty())?;
        items.into_iter().map(read).collect()
    }

    /// The items of an array, or alternating keys and values of an object; `None` if it was not
    /// scanned.
    #[inline]
    pub(crate) fn parts(self) -> Option<impl Iterator<Item = Raw<'a>>> {
        let (whole, mut rest) = self.nodes.split_first()?;
        let offset = whole.start;
        Some(std::iter::from_fn(move || {
            let next = rest.first()?;
            let (nodes, after) = rest.split_at_checked(next.span as usize)?;
            rest = after;
            Some(Raw { text: slice(self.text, next, offset)?, nodes })
        }))
    }
}

/// The items of an array, or alternating keys and values of an object, without nodes; `None` if the
/// text is not JSON.
pub(crate) fn outer(text: &str) -> Option<Vec<Raw<'_>>> {
    let nodes = scan_outer(text)?;
    let inner = nodes.iter().skip(1);
    inner.map(|node| Some(Raw { text: slice(text, node, 0)?, nodes: &[] })).collect()
}

#[inline]
fn slice<'a>(text: &'a str, node: &Node, offset: u32) -> Option<&'a str> {
    text.get((node.start - offset) as usize..(node.end - offset) as usize)
}

impl<'de> Deserialize<'de> for Raw<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| Self { text: raw.get(), nodes: &[] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Fields;

    /// Returns everything that a reader can read from a value.
    fn seen(raw: Raw<'_>) -> String {
        let fields = Fields::of(raw).map(|fields| {
            fields.rest().map(|(key, raw)| format!("{key}={}", seen(raw))).collect::<Vec<_>>()
        });
        let items = raw.items().map(|items| items.into_iter().map(seen).collect::<Vec<_>>());
        format!("{} {:?} {fields:?} {items:?} {}", raw.get(), raw.text(), raw.json())
    }

    #[test]
    fn a_scanned_value_reads_as_one_that_was_not() {
        for body in [
            r#"{"a":1,"b":[{"c":"\n\"\u00e9\ud83d\ude00"}, [ ],{}],"a":"é", "d" : null}"#,
            r#"[{"\u0061":1,"a":2},{"\ud800":1},{"a":"\udc00"},"", "\ud800x", -0.0, true]"#,
            r#"{"abcz":1,"abdz":2,"":3,"é":4,"a":5,"ab":{"abcz":6}}"#,
            r#"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"a":10}"#,
            r#"{}"#,
            " \"a b\" ",
        ] {
            let unread: Raw<'_> = serde_json::from_str(body).unwrap();
            assert!(unread.parts().is_none());
            assert_eq!(read_whole(body.as_bytes(), |raw| Ok(seen(raw))), Ok(seen(unread)));
        }
    }
}
