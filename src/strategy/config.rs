//! A strategy as a setting: its name, and the options that differ from its defaults.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::Value;

/// A strategy by name, with the options that differ from its defaults.
///
/// Its serde form is the name, or an object with the name as the only key and the options as its
/// value, which reads well in any settings format.
///
/// ```
/// use threadfold::strategy::{StrategyConfig, StrategyRegistry};
///
/// let config: StrategyConfig = serde_json::from_str(
///     r#"{"ladder": {"rungs": [{"summarize": {"messages": 4}}, "digest"], "too_long": "chunked"}}"#,
/// )?;
/// assert_eq!(config.name(), "ladder");
/// assert_eq!(StrategyRegistry::default().build(&config)?.name(), "ladder");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategyConfig {
    name: String,
    options: Option<Value>,
}

impl StrategyConfig {
    /// Returns the setting of a strategy with its default options.
    ///
    /// ```
    /// use threadfold::strategy::{StrategyConfig, StrategyRegistry};
    ///
    /// let strategy = StrategyRegistry::default().build(&StrategyConfig::new("keep-recent"))?;
    /// assert_eq!(strategy.name(), "keep-recent");
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), options: None }
    }

    /// The strategy's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The options, if any are set.
    pub(super) fn options(&self) -> Option<&Value> {
        self.options.as_ref()
    }
}

impl From<&str> for StrategyConfig {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl Serialize for StrategyConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(options) = &self.options else { return serializer.serialize_str(&self.name) };
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(&self.name, options)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for StrategyConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ConfigVisitor)
    }
}

struct ConfigVisitor;

impl<'de> Visitor<'de> for ConfigVisitor {
    type Value = StrategyConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a strategy, or an object with the name as its only key")
    }

    fn visit_str<E>(self, name: &str) -> Result<StrategyConfig, E> {
        Ok(StrategyConfig::new(name))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StrategyConfig, A::Error> {
        let Some((name, options)) = map.next_entry::<String, Value>()? else {
            return Err(A::Error::custom("an empty object names no strategy"));
        };
        match map.next_key::<String>()? {
            None => Ok(StrategyConfig { name, options: Some(options) }),
            Some(second) => Err(A::Error::custom(format_args!(
                "an object names one strategy, this one {name} and {second}"
            ))),
        }
    }
}
