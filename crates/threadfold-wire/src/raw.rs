//! JSON that was not yet looked into.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::scan::{Node, scan};
use threadfold_core::message::Json;

/// A body, and where everything in it stands.
#[derive(Debug)]
pub(super) struct Scanned<'a> {
    pub(super) body: &'a [u8],
    text: &'a str,
    nodes: Vec<Node>,
}

impl<'a> Scanned<'a> {
    /// Scans a body, whatever it is.
    pub(super) fn new(body: &'a [u8]) -> Self {
        let text = str::from_utf8(body).unwrap_or_default();
        Self { body, text, nodes: scan(text).unwrap_or_default() }
    }

    /// The whole body; `None` where the scan gave up. That does not say that it is no JSON.
    pub(super) fn whole(&self) -> Option<Raw<'_>> {
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
pub(super) struct Raw<'a> {
    text: &'a str,
    /// The value and all within it; none where it was not scanned.
    nodes: &'a [Node],
}

impl<'a> Raw<'a> {
    /// Returns JSON that was kept as what it was.
    pub(super) fn of(json: &'a Json) -> Self {
        Self { text: json.as_str(), nodes: &[] }
    }

    /// The text.
    pub(super) fn get(self) -> &'a str {
        self.text
    }

    /// The value as it is kept.
    pub(super) fn json(self) -> Json {
        if self.is_compact() { Json::from_compact(self.text) } else { Json::from_valid(self.text) }
    }

    /// Adds the value to a text, as it is kept.
    pub(super) fn add_to(self, json: &mut String) {
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

    /// Whether it is known where everything in it stands.
    pub(super) fn is_scanned(self) -> bool {
        !self.nodes.is_empty()
    }

    /// What a string says, where it was scanned and has no escapes.
    pub(super) fn plain_text(self) -> Option<&'a str> {
        let is_plain = self.nodes.first()?.is_plain;
        self.text.strip_prefix('"')?.strip_suffix('"').filter(|_| is_plain)
    }

    /// The items of an array, or the keys and values of an object in turns; `None` where it was not
    /// scanned.
    pub(super) fn parts(self) -> Option<impl Iterator<Item = Raw<'a>>> {
        let (whole, mut rest) = self.nodes.split_first()?;
        let offset = whole.start;
        Some(std::iter::from_fn(move || {
            let next = rest.first()?;
            let (nodes, behind) = rest.split_at_checked(next.span as usize)?;
            rest = behind;
            Some(Raw { text: slice(self.text, next, offset)?, nodes })
        }))
    }
}

/// An object of a scanned body, with a note on each of its keys.
///
/// Readers ask an object of four keys for a dozen, so a key is compared by a few bytes first, which
/// takes two thirds of the instructions of a step from key to key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object<'a> {
    text: &'a str,
    /// Where the text begins in the body.
    offset: u32,
    /// The keys and values, and all within them.
    nodes: &'a [Node],
    keys: [Key; MAX_KEYS],
    len: usize,
}

/// How many keys an object has at most, but for rare ones.
pub(super) const MAX_KEYS: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Key {
    sign: u32,
    node: u32,
}

impl<'a> Object<'a> {
    /// Reads an object; `None` if it is something else or was not scanned, and for one of many keys,
    /// of keys with escapes, or with a key that comes twice.
    pub(super) fn of(raw: Raw<'a>) -> Option<Self> {
        let (whole, nodes) = raw.nodes.split_first()?;
        if !raw.text.starts_with('{') {
            return None;
        }
        let (offset, keys) = (whole.start, [Key::default(); MAX_KEYS]);
        let mut object = Self { text: raw.text, offset, nodes, keys, len: 0 };
        let mut at = 0;
        while let Some(key) = nodes.get(at) {
            let name = object.name(key).filter(|_| key.is_plain)?;
            if object.find(name).is_some() {
                return None;
            }
            let node = u32::try_from(at).ok()?;
            *object.keys.get_mut(object.len)? = Key { sign: sign(name), node };
            object.len += 1;
            at += 1 + nodes.get(at + 1)?.span as usize;
        }
        Some(object)
    }

    /// How many fields there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The place of a field among the others.
    #[inline]
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let sign = sign(name);
        let is_it = |key: &Key| {
            let found = self.nodes.get(key.node as usize).and_then(|node| self.name(node));
            found == Some(name)
        };
        self.keys.iter().take(self.len).position(|key| key.sign == sign && is_it(key))
    }

    /// The value of the field at this place.
    #[inline]
    pub(super) fn value(&self, place: usize) -> Option<Raw<'a>> {
        let nodes = self.nodes.get(self.keys.get(place)?.node as usize + 1..)?;
        let value = nodes.first()?;
        let text = slice(self.text, value, self.offset)?;
        Some(Raw { text, nodes: nodes.get(..value.span as usize)? })
    }

    /// The fields, in order.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'a str, Raw<'a>)> {
        let keys = self.keys.iter().take(self.len).enumerate();
        keys.filter_map(|(place, key)| {
            Some((self.name(self.nodes.get(key.node as usize)?)?, self.value(place)?))
        })
    }

    /// What stands between the quotes of a key.
    #[inline]
    fn name(&self, key: &Node) -> Option<&'a str> {
        let (start, end) = (key.start - self.offset, key.end - self.offset);
        self.text.get(start as usize + 1..end as usize - 1)
    }
}

/// What tells a name from most others: its length and three of its bytes.
#[inline]
fn sign(name: &str) -> u32 {
    let byte = |at: usize| name.as_bytes().get(at).copied().unwrap_or_default();
    u32::from_le_bytes([name.len() as u8, byte(0), byte(1), byte(name.len().wrapping_sub(1))])
}

#[inline]
fn slice<'a>(text: &'a str, node: &Node, offset: u32) -> Option<&'a str> {
    text.get((node.start - offset) as usize..(node.end - offset) as usize)
}

impl<'a> From<&'a RawValue> for Raw<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self { text: raw.get(), nodes: &[] }
    }
}

impl<'de> Deserialize<'de> for Raw<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{Fields, items, text};

    /// Everything that a reader sees of a value.
    fn seen(raw: Raw<'_>) -> String {
        let fields = Fields::of(raw).map(|fields| {
            fields.rest().map(|(key, raw)| format!("{key}={}", seen(raw))).collect::<Vec<_>>()
        });
        let items = items(raw).map(|items| items.into_iter().map(seen).collect::<Vec<_>>());
        format!("{} {:?} {fields:?} {items:?} {}", raw.get(), text(raw), raw.json())
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

    #[test]
    fn what_was_taken_is_gone_in_either_form() {
        for keys in [4, 9] {
            let body: Vec<String> = (0..keys).map(|key| format!("\"k{key}\":{key}")).collect();
            let body = format!("{{{}}}", body.join(","));
            let scanned = Scanned::new(body.as_bytes());
            let mut fields = Fields::of(scanned.whole().unwrap()).unwrap();
            assert_eq!(fields.take("k2").map(Raw::get), Some("2"));
            assert!(fields.take("k2").is_none() && fields.get("k2").is_none());
            assert!(fields.get("k").is_none());
            let rest: Vec<&str> = fields.rest().map(|(_, raw)| raw.get()).collect();
            let numbers: Vec<String> = (0..keys).map(|key| key.to_string()).collect();
            let expected: Vec<&String> = numbers.iter().filter(|key| *key != "2").collect();
            assert_eq!(rest, expected);
        }
    }

    #[test]
    fn a_name_that_looks_like_another_one_is_not_there() {
        let scanned = Scanned::new(br#"{"abcz":1}"#);
        let fields = Fields::of(scanned.whole().unwrap()).unwrap();
        assert!(fields.get("abdz").is_none());
        assert_eq!(fields.get("abcz").map(Raw::get), Some("1"));
    }
}
