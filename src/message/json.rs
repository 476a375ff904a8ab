//! JSON that keeps its text.
//!
//! `serde_json::Value` sorts the keys of objects and rewrites numbers. Tool inputs and unknown
//! fields go back to the provider that wrote them, so they are kept as they came: the raw text,
//! without the white space between its tokens.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, value::RawValue};

use super::word::Word;

/// A piece of valid JSON: shared, compact, with the key order and the number text it came with.
///
/// ```
/// use threadfold::message::Json;
///
/// let json = Json::parse(r#"{ "b": 1.0, "a": [ 1e2 ] }"#)?;
/// assert_eq!(json.as_str(), r#"{"b":1.0,"a":[1e2]}"#);
/// assert_eq!(json.to_value()?["b"], 1.0);
/// # Ok::<(), threadfold::message::JsonError>(())
/// ```
///
/// In serde it is the JSON itself. Formats other than `serde_json`, and containers that buffer
/// (`#[serde(untagged)]`, `#[serde(flatten)]`), give a `Value` first, so there the keys are sorted.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

/// Why a text is not JSON that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not usable as JSON: {reason}")]
pub struct JsonError {
    reason: Box<str>,
}

impl JsonError {
    pub(super) fn not_an_object() -> Self {
        Self { reason: "a JSON object is expected here".into() }
    }
}

impl Json {
    /// Returns the text as JSON, without the white space between tokens.
    ///
    /// # Errors
    ///
    /// [`JsonError`] if the text is not one JSON value.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        let raw: &RawValue = serde_json::from_str(text)?;
        Ok(Self::from_raw(raw))
    }

    /// Returns a raw value of `serde_json` as JSON, without the white space between tokens.
    pub(crate) fn from_raw(raw: &RawValue) -> Self {
        let compacted = compact(raw.get());
        let boxed = compacted.and_then(|text| RawValue::from_string(text).ok());
        Self(boxed.unwrap_or_else(|| raw.to_owned()).into())
    }

    /// Returns JSON text that has no white space between its tokens, as we write it ourselves.
    pub(crate) fn from_compact(text: String) -> Result<Self, JsonError> {
        Ok(Self(RawValue::from_string(text)?.into()))
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Whether it is a JSON object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }

    /// Returns it as a tree.
    ///
    /// # Errors
    ///
    /// [`JsonError`] if it nests deeper than `serde_json` reads (128 levels) or holds a number
    /// that no float can.
    pub fn to_value(&self) -> Result<Value, JsonError> {
        Ok(serde_json::from_str(self.as_str())?)
    }

    /// The raw value, for the readers of a codec.
    pub(crate) fn as_raw(&self) -> &RawValue {
        &self.0
    }
}

/// Returns the JSON text without white space between tokens, or `None` if there is none.
fn compact(text: &str) -> Option<String> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
    let mut in_string = false;
    let mut escaped = false;
    let mut keep = |byte: &u8| {
        if in_string {
            let closes = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            in_string = !closes;
            return true;
        }
        in_string = *byte == b'"';
        !is_space(byte)
    };
    let first = text.bytes().position(|byte| !keep(&byte))?;
    let mut kept = Vec::with_capacity(text.len());
    kept.extend_from_slice(text.as_bytes().get(..first)?);
    kept.extend(text.bytes().skip(first + 1).filter(keep));
    // Only ASCII was left out, so what stays is still UTF-8.
    String::from_utf8(kept).ok()
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        // `Value` displays as compact JSON, so this cannot fail; `null` stands for the impossible.
        let raw = RawValue::from_string(value.to_string()).unwrap_or_default();
        Self(raw.into())
    }
}

impl Default for Json {
    /// `null`.
    fn default() -> Self {
        Self(Box::<RawValue>::default().into())
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

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self { reason: error.to_string().into() }
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_ref().serialize(serializer)
    }
}

/// The name by which `serde_json` recognises that raw text is asked for. Were it ever renamed, the
/// visitor below would be handed the value itself, and only the key order would suffer.
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
            Some(Word(key)) if key == RAW_VALUE => {
                // Parsed again, because whoever calls may be another format with such a key.
                let Word(raw) = map.next_value()?;
                Json::parse(&raw).map_err(de::Error::custom)
            }
            Some(Word(key)) => {
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
    fn a_container_that_buffers_still_reads_it() {
        #[derive(serde::Deserialize)]
        struct Holder {
            #[serde(flatten)]
            rest: std::collections::BTreeMap<String, Json>,
        }
        let holder: Holder = serde_json::from_str(r#"{"a":{"c":1,"b":[2]}}"#).unwrap();
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
