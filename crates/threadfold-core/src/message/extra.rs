//! Wire fields that a codec does not know.
//!
//! Providers add fields often. Fields that have no counterpart in this crate are kept here, in
//! order, under the name of the codec that read them. That codec writes them back; another codec
//! reports that it drops them.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{json::Json, text::Text};

/// Unknown wire fields of one message or block, tagged by the codec that read them.
///
/// Empty for almost every block; an empty one takes the memory of one pointer.
///
/// ```
/// use threadfold::message::{Extra, Json};
///
/// let extra = Extra::new("anthropic-messages", [("cache_control", Json::parse("{}")?)]);
/// assert_eq!(extra.get("anthropic-messages", "cache_control").map(Json::as_str), Some("{}"));
/// assert_eq!(extra.get("openai-chat", "cache_control"), None);
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra(Option<Arc<Tagged>>);

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Tagged {
    codec: Name,
    fields: Fields,
}

/// A map that keeps the order of its entries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fields(Vec<(Name, Json)>);

/// The name of a codec or a field. Most messages have an `extra`, so names that codecs know in
/// advance are static instead of allocated.
#[doc(hidden)]
#[derive(Clone)]
pub enum Name {
    /// A name that is part of the program.
    Known(&'static str),
    /// A name that was read from a body or a log.
    Read(Text),
}

impl Extra {
    /// Returns these fields, tagged with the name of their codec; the empty value if there are
    /// none.
    ///
    /// ```
    /// use threadfold::message::{Extra, Json};
    ///
    /// let none: [(&str, Json); 0] = [];
    /// assert_eq!(Extra::new("anthropic-messages", none), Extra::default());
    /// ```
    #[must_use]
    pub fn new<K: Into<Text>>(
        codec: impl Into<Text>,
        fields: impl IntoIterator<Item = (K, Json)>,
    ) -> Self {
        let fields = fields.into_iter().map(|(key, json)| (Name::Read(key.into()), json));
        Self::named(Name::Read(codec.into()), fields.collect())
    }

    /// Returns these fields, tagged with the name of their codec, like [`new`](Self::new).
    #[doc(hidden)]
    pub fn named(codec: Name, fields: Vec<(Name, Json)>) -> Self {
        if fields.is_empty() {
            return Self(None);
        }
        Self(Some(Arc::new(Tagged { codec, fields: Fields(fields) })))
    }

    /// Returns the fields of this codec and one more. Fields of another codec are dropped.
    #[doc(hidden)]
    pub fn with(&self, codec: &'static str, key: &'static str, json: Json) -> Self {
        let fields = self.of(codec).map(|(key, json)| (Name::Read(key.into()), json.clone()));
        Self::named(Name::Known(codec), fields.chain([(Name::Known(key), json)]).collect())
    }

    /// `true` if there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The codec that read the fields; `None` if there are no fields.
    #[must_use]
    pub fn codec(&self) -> Option<&str> {
        self.0.as_deref().map(|tagged| tagged.codec.as_str())
    }

    /// The fields in the order in which they were received.
    ///
    /// ```
    /// use threadfold::message::{Extra, Json};
    ///
    /// let fields = [("user", Json::parse("\"u1\"")?), ("store", Json::parse("true")?)];
    /// let extra = Extra::new("openai-chat", fields);
    /// let names: Vec<&str> = extra.fields().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["user", "store"]);
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Json)> {
        let tagged = self.0.as_deref().into_iter();
        tagged.flat_map(|tagged| tagged.fields.0.iter().map(|(key, json)| (key.as_str(), json)))
    }

    /// The fields if this codec read them; otherwise an empty iterator.
    ///
    /// ```
    /// use threadfold::message::{Extra, Json};
    ///
    /// let extra = Extra::new("openai-chat", [("store", Json::parse("true")?)]);
    /// assert_eq!(extra.of("openai-chat").count(), 1);
    /// assert_eq!(extra.of("anthropic-messages").count(), 0);
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    pub fn of(&self, codec: &str) -> impl Iterator<Item = (&str, &Json)> {
        let own = self.codec() == Some(codec);
        self.fields().filter(move |_| own)
    }

    /// The value of one field, if this codec read it.
    ///
    /// ```
    /// use threadfold::message::{Extra, Json};
    ///
    /// let extra = Extra::new("openai-chat", [("user", Json::parse("\"u1\"")?)]);
    /// assert!(extra.get("openai-chat", "user").is_some());
    /// assert!(extra.get("anthropic-messages", "user").is_none());
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn get(&self, codec: &str, key: &str) -> Option<&Json> {
        self.of(codec).find(|(name, _)| *name == key).map(|(_, json)| json)
    }
}

impl Name {
    fn as_str(&self) -> &str {
        match self {
            Self::Known(name) => name,
            Self::Read(name) => name,
        }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(Self::Read)
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_deref().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tagged = Option::<Tagged>::deserialize(deserializer)?;
        Ok(Self(tagged.filter(|tagged| !tagged.fields.0.is_empty()).map(Arc::new)))
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, json)| (key, json)))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> de::Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Vec::new();
        while let Some(entry) = map.next_entry()? {
            fields.push(entry);
        }
        Ok(Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_name_equals_the_same_name_read_from_a_body() {
        let known = Extra::named(Name::Known("c"), vec![(Name::Known("a"), Json::default())]);
        assert_eq!(known, Extra::new("c", [("a", Json::default())]));
        assert_eq!(
            format!("{known:?}"),
            format!("{:?}", Extra::new("c", [("a", Json::default())]))
        );
    }

    #[test]
    fn serde_keeps_the_order_of_fields() {
        let text = r#"{"codec":"c","fields":{"z":1,"a":2}}"#;
        let extra: Extra = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&extra).unwrap(), text);
    }
}
