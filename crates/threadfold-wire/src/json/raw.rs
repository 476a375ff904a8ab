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

/// The number of levels of a text that was not scanned.
fn depth_of(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Replaces escaped halves of characters (surrogates without their other half) by the escape of
/// U+FFFD, and returns their number. No text can hold such a half; programs in JavaScript write
/// them when they cut a text within a character.
#[must_use]
pub fn without_halves(text: &[u8]) -> (Cow<'_, [u8]>, u64) {
    let (mut replaced, mut count) = (Cow::Borrowed(text), 0);
    let may_have = |text: &str| text.contains("\\ud") || text.contains("\\uD");
    if str::from_utf8(text).is_ok_and(|text| !may_have(text)) {
        return (replaced, count);
    }
    let mut at = 0;
    while let Some(next) = escape_after(text, at) {
        let unit = unit_at(text, next);
        at = match unit {
            Some(0xd800..0xdc00) if matches!(unit_at(text, next + 6), Some(0xdc00..0xe000)) => {
                next + 12
            }
            Some(0xd800..0xe000) => {
                count += 1;
                if let Some(escape) = replaced.to_mut().get_mut(next..next + 6) {
                    escape.copy_from_slice(b"\\ufffd");
                }
                next + 6
            }
            Some(_) => next + 6,
            None => next + 2,
        };
    }
    (replaced, count)
}

/// The position of the next backslash.
fn escape_after(text: &[u8], at: usize) -> Option<usize> {
    text.get(at..)?.iter().position(|byte| *byte == b'\\').map(|length| at + length)
}

/// The unit of an escape `\uXXXX` at this position.
fn unit_at(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    u16::from_str_radix(digits, 16).ok()
}

pub(crate) fn not_json(error: impl Display) -> WireError {
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
            None => self.text.trim_start().starts_with('[').then(|| outer(self.text)).flatten(),
        }
    }

    /// The number of items of an array; 0 for other values.
    pub(crate) fn count(self) -> usize {
        if !self.text.starts_with('[') {
            return 0;
        }
        self.parts().map_or_else(|| self.items().map_or(0, |items| items.len()), Iterator::count)
    }

    /// The number of levels of arrays and objects. Takes time in proportion to the text.
    pub(crate) fn depth(self) -> usize {
        if self.nodes.is_empty() {
            return depth_of(self.text);
        }
        let (mut open, mut deepest): (Vec<usize>, usize) = (Vec::new(), 0);
        for (at, node) in self.nodes.iter().enumerate() {
            while open.pop_if(|end| *end <= at).is_some() {}
            if node.span > 1 {
                open.push(at + node.span as usize);
                deepest = deepest.max(open.len());
            }
        }
        deepest
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
    fn halves_of_characters_are_replaced_and_pairs_stay() {
        let rows = [
            (r#"["\ud83d\ude00"]"#, r#"["\ud83d\ude00"]"#, 0),
            (r#"["\ud83d"]"#, r#"["\ufffd"]"#, 1),
            (r#"["\uDE00\ud83d\uD83D\uDE00"]"#, r#"["\ufffd\ufffd\uD83D\uDE00"]"#, 2),
            (r#"["\\ud83d","\n\u00e9"]"#, r#"["\\ud83d","\n\u00e9"]"#, 0),
            (r#"["\\\ud83d x\\"]"#, r#"["\\\ufffd x\\"]"#, 1),
            (r#"["\ud8"#, r#"["\ud8"#, 0),
        ];
        for (text, expected, count) in rows {
            let (replaced, found) = without_halves(text.as_bytes());
            assert_eq!((str::from_utf8(&replaced), found), (Ok(expected), count), "{text}");
        }
    }

    #[test]
    fn levels_and_items_are_counted_with_nodes_and_without() {
        let rows =
            [("1", 0, 0), ("[]", 0, 0), (r#"{"a":[{"b":"[[["}]}"#, 3, 0), ("[1,[2],3]", 2, 3)];
        for (text, depth, count) in rows {
            let of = |raw: Raw<'_>| (raw.depth(), raw.count());
            assert_eq!(
                read_whole(text.as_bytes(), |raw| Ok(of(raw))),
                Ok((depth, count)),
                "{text}"
            );
            let unread: Raw<'_> = serde_json::from_str(text).unwrap();
            assert_eq!(unread.count(), count, "{text}");
            assert!(unread.depth().abs_diff(depth) <= 1, "{text}");
        }
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
