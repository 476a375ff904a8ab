//! JSON that was not yet looked into.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::scan::{Node, scan, scan_outer};
use threadfold_core::message::{Json, Text, unescaped};

/// A body, and where everything in it stands.
#[derive(Debug)]
pub(crate) struct Scanned<'a> {
    pub(crate) body: &'a [u8],
    text: &'a str,
    nodes: Vec<Node>,
}

impl<'a> Scanned<'a> {
    /// Scans a body, whatever it is.
    pub(crate) fn new(body: &'a [u8]) -> Self {
        let text = str::from_utf8(body).unwrap_or_default();
        Self { body, text, nodes: scan(text).unwrap_or_default() }
    }

    /// The whole body; `None` where the scan gave up. That does not say that it is no JSON.
    pub(crate) fn whole(&self) -> Option<Raw<'_>> {
        let nodes = self.nodes.as_slice();
        let whole = nodes.first()?;
        Some(Raw { text: slice(self.text, whole, 0)?, nodes })
    }
}

/// A JSON value as text.
///
/// One of a scanned body knows where everything in it stands. Any other one is read when it is
/// asked: its parts are texts alone again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    text: &'a str,
    /// The value and all within it; none where it was not scanned.
    nodes: &'a [Node],
}

impl<'a> Raw<'a> {
    /// Returns JSON that was kept as what it was.
    pub(crate) fn of(json: &'a Json) -> Self {
        Self { text: json.as_str(), nodes: &[] }
    }

    /// The text.
    pub(crate) fn get(self) -> &'a str {
        self.text
    }

    /// The value as it is kept.
    pub(crate) fn json(self) -> Json {
        if self.is_compact() { Json::from_compact(self.text) } else { Json::from_valid(self.text) }
    }

    /// Adds the value to a text, as it is kept.
    pub(crate) fn add_to(self, json: &mut String) {
        if self.is_compact() {
            json.push_str(self.text);
        } else {
            json.push_str(self.json().as_str());
        }
    }

    /// Whether it is known to have no white space between its tokens. Strings have none that could go.
    fn is_compact(self) -> bool {
        self.text.starts_with('"') || self.nodes.first().is_some_and(|node| node.is_plain)
    }

    /// Whether it is an object.
    pub(crate) fn is_object(self) -> bool {
        self.text.starts_with('{')
    }

    /// Whether it is a string.
    pub(crate) fn is_text(self) -> bool {
        self.text.starts_with('"')
    }

    /// Reads a string that is looked at and not kept; `None` if it is something else.
    pub(crate) fn word(self) -> Option<Cow<'a, str>> {
        match self.plain_text() {
            Some(word) => Some(Cow::Borrowed(word)),
            None => serde_json::from_str(self.text).ok().map(Cow::Owned),
        }
    }

    /// Reads a string; `None` if it is something else.
    pub(crate) fn text(self) -> Option<Text> {
        match self.plain_text() {
            Some(text) => Some(text.into()),
            None if self.nodes.is_empty() => serde_json::from_str(self.text).ok(),
            None => {
                let text = self.text.strip_prefix('"')?.strip_suffix('"')?;
                Some(unescaped(text)?.into())
            }
        }
    }

    /// Reads an array, one level deep; `None` if it is something else.
    pub(crate) fn items(self) -> Option<Vec<Raw<'a>>> {
        match self.parts() {
            Some(parts) => self.text.starts_with('[').then(|| parts.collect()),
            None => outer(self.text).filter(|_| self.text.trim_start().starts_with('[')),
        }
    }

    /// Reads every item of an array with this function; `None` if it is no array, or empty, or if one
    /// of the items does not read.
    pub(crate) fn all<T>(self, read: impl FnMut(Raw<'a>) -> Option<T>) -> Option<Vec<T>> {
        let items = self.items().filter(|items| !items.is_empty())?;
        items.into_iter().map(read).collect()
    }

    /// What a string without escapes says.
    fn plain_text(self) -> Option<&'a str> {
        let inner = self.text.strip_prefix('"')?.strip_suffix('"')?;
        let scanned = self.nodes.first().map(|node| node.is_plain);
        scanned.unwrap_or_else(|| !inner.contains('\\')).then_some(inner)
    }

    /// The items of an array, or the keys and values of an object in turns; `None` where it was not
    /// scanned.
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

/// The items of an array, or the keys and values of an object in turns, as texts alone; `None` if the text
/// is not JSON.
pub(crate) fn outer(text: &str) -> Option<Vec<Raw<'_>>> {
    let nodes = scan_outer(text)?;
    let inner = nodes.iter().skip(1);
    inner.map(|node| Some(Raw { text: slice(text, node, 0)?, nodes: &[] })).collect()
}

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

    /// Everything that a reader sees of a value.
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
            let scanned = Scanned::new(body.as_bytes());
            let unread: Raw<'_> = serde_json::from_str(body).unwrap();
            assert!(unread.parts().is_none());
            assert_eq!(seen(scanned.whole().unwrap()), seen(unread));
        }
    }
}
