//! JSON that keeps its text.
//!
//! `serde_json::Value` sorts the keys of objects and rewrites numbers. Tool inputs and unknown
//! fields go back to the provider that wrote them, so this type keeps their raw text, without the
//! white space between tokens.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::{Value, value::RawValue};

use super::{
    cow_str::CowStr,
    invalid::InvalidValue,
    json_text::{compacted, push_string},
};

/// Valid JSON text: shared, without white space between tokens, with its original key order and
/// spelling of numbers.
///
/// ```
/// use threadfold::message::Json;
///
/// let json = Json::parse(r#"{ "b": 1.0, "a": [ 1e2 ] }"#)?;
/// assert_eq!(json.as_str(), r#"{"b":1.0,"a":[1e2]}"#);
/// assert_eq!(json.to_value()?["b"], 1.0);
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
///
/// In serde it is the JSON value itself. Formats other than `serde_json`, and containers that
/// buffer (`#[serde(untagged)]`, `#[serde(flatten)]`), hand over a `Value`, so there the keys are
/// sorted.
#[derive(Clone)]
pub struct Json(Arc<str>);

impl Json {
    /// Parses a text as JSON and drops the white space between tokens.
    ///
    /// ```
    /// use threadfold::message::Json;
    ///
    /// // The order of keys and the text of numbers stay.
    /// assert_eq!(Json::parse("{\"b\": 1.50, \"a\": 2}")?.as_str(), "{\"b\":1.50,\"a\":2}");
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if the text is not one JSON value.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| refused(text, error))?;
        Ok(Self::from_raw(raw))
    }

    /// Returns a raw value of `serde_json`, without the white space between tokens.
    #[doc(hidden)]
    pub fn from_raw(raw: &RawValue) -> Self {
        Self::from_valid(raw.get())
    }

    /// Returns text that the caller knows to be JSON, without the white space between tokens.
    #[doc(hidden)]
    pub fn from_valid(text: &str) -> Self {
        Self(compacted(text).map_or_else(|| text.into(), Arc::from))
    }

    /// Returns text that the caller knows to be JSON without white space between tokens.
    #[doc(hidden)]
    pub fn from_compact(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns a text as a JSON string.
    #[doc(hidden)]
    pub fn text(text: &str) -> Self {
        let mut json = String::with_capacity(text.len() + 2);
        push_string(&mut json, text);
        Self(json.into())
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `true` if it is a JSON object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }

    /// Parses it into a tree.
    ///
    /// ```
    /// use serde_json::json;
    /// use threadfold::message::Json;
    ///
    /// assert_eq!(Json::parse(r#"{"path": "a.rs"}"#)?.to_value()?, json!({"path": "a.rs"}));
    /// let deep = Json::parse(&("[".repeat(120) + &"]".repeat(120)))?;
    /// assert!(deep.to_value().is_ok());
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if it nests deeper than `serde_json` reads (128 levels) or contains a
    /// number that does not fit a float.
    pub fn to_value(&self) -> Result<Value, InvalidValue> {
        serde_json::from_str(self.as_str()).map_err(|error| refused(self.as_str(), error))
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        let json = Self::from(&value);
        drop_without_recursion(value);
        json
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        Self(to_json_text(value).into())
    }
}

/// Drops a tree with a work list. The derived drop recurses, so a deep tree would overflow the
/// stack.
fn drop_without_recursion(tree: Value) {
    let mut pending = vec![tree];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(fields) => pending.extend(fields.into_iter().map(|(_, value)| value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Serializes a tree as JSON text without white space. It keeps the open containers in a list
/// instead of recursing, so a deep tree does not overflow the stack.
fn to_json_text(value: &Value) -> String {
    enum Open<'v> {
        Items(std::slice::Iter<'v, Value>),
        Fields(serde_json::map::Iter<'v>),
    }
    let (mut json, mut open, mut next) = (String::new(), Vec::new(), Some(value));
    loop {
        match next.take() {
            Some(Value::Array(items)) => {
                json.push('[');
                open.push(Open::Items(items.iter()));
            }
            Some(Value::Object(fields)) => {
                json.push('{');
                open.push(Open::Fields(fields.iter()));
            }
            Some(Value::String(text)) => push_string(&mut json, text),
            Some(Value::Null) => json.push_str("null"),
            Some(Value::Bool(value)) => json.push_str(if *value { "true" } else { "false" }),
            Some(Value::Number(number)) => json.push_str(&number.to_string()),
            None => {}
        }
        let Some(container) = open.last_mut() else { return json };
        let first = json.ends_with(['[', '{']);
        let (item, end) = match container {
            Open::Items(items) => (items.next().map(|item| (None, item)), ']'),
            Open::Fields(fields) => (fields.next().map(|(key, item)| (Some(key), item)), '}'),
        };
        let Some((key, item)) = item else {
            json.push(end);
            open.pop();
            continue;
        };
        if !first {
            json.push(',');
        }
        if let Some(key) = key {
            push_string(&mut json, key);
            json.push(':');
        }
        next = Some(item);
    }
}

impl Default for Json {
    /// Returns `null`.
    fn default() -> Self {
        Self("null".into())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({})", self.as_str())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the error for text that is not JSON of the required kind. It states the length and the
/// first character instead of quoting the text, which may hold a secret.
pub(super) fn refused(text: &str, reason: impl fmt::Display) -> InvalidValue {
    let found = match text.trim_start().chars().next() {
        Some(first) => format!("{} bytes beginning with {first}", text.len()),
        None => "nothing".to_owned(),
    };
    InvalidValue::new("usable JSON", reason.to_string(), &found)
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.as_str()).map_err(ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// The name with which `serde_json` requests and delivers raw text. If a later version renames it,
/// the visitor below receives the value itself, and only the key order is lost.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(RAW_VALUE, JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> de::Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        match map.next_key()? {
            Some(CowStr(key)) if key == RAW_VALUE => {
                // Another format may deliver an object with this key, so its text is validated.
                let CowStr(raw) = map.next_value()?;
                Json::parse(&raw).map_err(de::Error::custom)
            }
            Some(CowStr(key)) => {
                let mut object = serde_json::Map::new();
                object.insert(key.into_owned(), map.next_value()?);
                while let Some((key, value)) = map.next_entry()? {
                    object.insert(key, value);
                }
                Ok(Json::from(Value::Object(object)))
            }
            None => Ok(Json::from(Value::Object(serde_json::Map::new()))),
        }
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Json, D::Error> {
        Value::deserialize(inner).map(Json::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_inside_strings_stays() {
        let json = Json::parse("{ \"a b\" : \"c \\\" d\" ,\n\"e\": [ ] }").unwrap();
        assert_eq!(json.as_str(), "{\"a b\":\"c \\\" d\",\"e\":[]}");
    }

    #[test]
    fn serde_keeps_key_order_and_number_text() {
        let text = r#"{"z":1.00,"a":{"y":12345678901234567890123,"b":-0.0}}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
    }

    #[test]
    fn json_is_read_through_a_container_that_buffers() {
        #[derive(serde::Deserialize)]
        struct Holder {
            #[serde(flatten)]
            rest: std::collections::BTreeMap<String, Json>,
        }
        // Sorted, because the container sorts the keys unless another crate lets it keep their order.
        let holder: Holder = serde_json::from_str(r#"{"a":{"b":[2],"c":1}}"#).unwrap();
        assert_eq!(holder.rest["a"].as_str(), r#"{"b":[2],"c":1}"#);
    }

    #[test]
    fn deep_json_is_kept_and_refused_as_a_tree() {
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        let json = Json::parse(&deep).unwrap();
        assert_eq!(json.as_str(), deep);
        assert!(json.to_value().is_err());
    }
}
