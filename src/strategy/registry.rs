//! Strategies by name.

use std::sync::Arc;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    chunked::Chunked, clear_results::ClearResults, contract::CompactionStrategy, digest::Digest,
    keep_recent::KeepRecent, ladder::Ladder, native::Native, rolling::Rolling, rollover::Rollover,
    summarize::Summarize,
};
use crate::{compact::TrimToolResults, message::InvalidValue};

/// Strategies by name, for commands, settings and logs.
///
/// ```
/// use threadfold::strategy::StrategyRegistry;
///
/// let registry = StrategyRegistry::default();
/// assert_eq!(registry.get("keep-recent")?.name(), "keep-recent");
/// let error = registry.get("magic").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "\"magic\" is not a registered strategy; expected one of chunked, clear-results, digest, \
///      keep-recent, ladder, native, rolling, rollover, summarize, trim-tool-results",
/// );
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
#[derive(Clone, Debug)]
pub struct StrategyRegistry {
    /// In the order of their names.
    entries: Vec<Entry>,
}

/// A strategy with its default options, and a function that builds it with other options.
#[derive(Clone, Debug)]
struct Entry {
    strategy: Arc<dyn CompactionStrategy>,
    build: Option<Build>,
}

/// Builds a strategy from options. A ladder looks its rungs up in the registry.
type Build = fn(&StrategyRegistry, &str, &Value) -> Result<Built, InvalidValue>;

type Built = Arc<dyn CompactionStrategy>;

impl StrategyRegistry {
    /// Returns an empty registry.
    ///
    /// ```
    /// use threadfold::strategy::StrategyRegistry;
    ///
    /// let registry = StrategyRegistry::empty();
    /// assert_eq!(registry.names().count(), 0);
    /// assert!(registry.get("summarize").is_err());
    /// ```
    #[must_use]
    pub fn empty() -> Self {
        Self { entries: Vec::new() }
    }

    /// Registers a strategy under its name. Settings can name it but cannot set its options.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use threadfold::strategy::{KeepRecent, StrategyRegistry};
    ///
    /// let mut registry = StrategyRegistry::empty();
    /// registry.register(Arc::new(KeepRecent::default()))?;
    /// assert!(registry.register(Arc::new(KeepRecent::default())).is_err());
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if the name is taken.
    pub fn register(&mut self, strategy: Arc<dyn CompactionStrategy>) -> Result<(), InvalidValue> {
        self.insert(Entry { strategy, build: None })
    }

    /// Returns the strategy of this name with its default options. `ai-summarize` is an alias of
    /// `summarize`.
    ///
    /// ```
    /// use threadfold::strategy::StrategyRegistry;
    ///
    /// let registry = StrategyRegistry::default();
    /// assert_eq!(registry.get("ai-summarize")?.name(), "summarize");
    /// let error = registry.get("summarise").unwrap_err().to_string();
    /// assert!(error.starts_with("\"summarise\" is not a registered strategy; expected one of "));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidValue`], which lists the registered names.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn CompactionStrategy>, InvalidValue> {
        Ok(&self.entry(name)?.strategy)
    }

    /// Builds a strategy from a setting: either its name, or an object whose only key is the name
    /// and whose value holds the options that differ from the defaults.
    ///
    /// ```
    /// use serde_json::json;
    /// use threadfold::strategy::StrategyRegistry;
    ///
    /// let registry = StrategyRegistry::default();
    /// let rungs = json!([{"summarize": {"messages": 4}}, "digest"]);
    /// let ladder = registry.build(&json!({"ladder": {"rungs": rungs, "too_long": "chunked"}}))?;
    /// assert_eq!(ladder.name(), "ladder");
    /// let error = registry.build(&json!({"keep-recent": {"mesages": 4}})).unwrap_err().to_string();
    /// let expected = "\"keep-recent\" is not a strategy with these options; \
    ///                 unknown field `mesages`";
    /// assert!(error.starts_with(expected));
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] for another form, for options that the strategy does not take, and for a
    /// name that is not registered; the error then lists the registered names.
    pub fn build(&self, setting: &Value) -> Result<Arc<dyn CompactionStrategy>, InvalidValue> {
        let (name, options) = name_and_options(setting)?;
        let entry = self.entry(name)?;
        let Some(options) = options else { return Ok(Arc::clone(&entry.strategy)) };
        let Some(build) = entry.build else {
            let rule = "it was registered as a value";
            return Err(InvalidValue::new("a strategy with options", rule, name));
        };
        build(self, name, options)
    }

    /// The registered names, sorted.
    ///
    /// ```
    /// use threadfold::strategy::StrategyRegistry;
    ///
    /// let registry = StrategyRegistry::default();
    /// assert_eq!(registry.names().next(), Some("chunked"));
    /// assert!(registry.names().is_sorted());
    /// ```
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.strategy.name())
    }

    fn insert(&mut self, entry: Entry) -> Result<(), InvalidValue> {
        let name = entry.strategy.name();
        let Err(place) = self.place(name) else {
            let rule = format!("the registered names are {}", self.all_names());
            return Err(InvalidValue::new("a new name of a strategy", rule, name));
        };
        self.entries.insert(place, entry);
        Ok(())
    }

    fn entry(&self, name: &str) -> Result<&Entry, InvalidValue> {
        let own = if name == "ai-summarize" { "summarize" } else { name };
        let place = self.place(name).or_else(|_| self.place(own));
        place.ok().and_then(|place| self.entries.get(place)).ok_or_else(|| {
            let rule = format!("expected one of {}", self.all_names());
            InvalidValue::new("a registered strategy", rule, name)
        })
    }

    /// The index of a name, or else that of a new one.
    fn place(&self, name: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.strategy.name().cmp(name))
    }

    fn all_names(&self) -> String {
        self.names().collect::<Vec<_>>().join(", ")
    }
}

impl Default for StrategyRegistry {
    /// The built-in strategies with their default options.
    fn default() -> Self {
        let ladder = Entry { strategy: Arc::new(Ladder::default()), build: Some(ladder) };
        let built_in = [
            configurable::<Chunked>(),
            configurable::<ClearResults>(),
            configurable::<Digest>(),
            configurable::<Rolling>(),
            configurable::<Rollover>(),
            configurable::<KeepRecent>(),
            ladder,
            configurable::<Native>(),
            configurable::<Summarize>(),
            configurable::<TrimToolResults>(),
        ];
        let mut registry = Self::empty();
        for entry in built_in {
            // Their names differ, so each finds a place.
            let _ = registry.insert(entry);
        }
        registry
    }
}

fn configurable<S>() -> Entry
where
    S: CompactionStrategy + Default + DeserializeOwned + 'static,
{
    let build: Build = |_, name, options| Ok(Arc::new(read::<S>(name, options)?));
    Entry { strategy: Arc::new(S::default()), build: Some(build) }
}

/// The options of a ladder.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LadderOptions {
    rungs: Vec<Value>,
    bound: Option<Value>,
    too_long: Option<Value>,
}

fn ladder(registry: &StrategyRegistry, name: &str, options: &Value) -> Result<Built, InvalidValue> {
    let options: LadderOptions = read(name, options)?;
    let build = |setting: &Value| registry.build(setting);
    Ok(Arc::new(Ladder {
        rungs: options.rungs.iter().map(build).collect::<Result<_, _>>()?,
        too_long: options.too_long.as_ref().map(build).transpose()?,
        bound: options.bound.as_ref().map(build).transpose()?,
    }))
}

fn read<T: DeserializeOwned>(name: &str, options: &Value) -> Result<T, InvalidValue> {
    T::deserialize(options).map_err(|error| {
        InvalidValue::new("a strategy with these options", error.to_string(), name)
    })
}

/// Returns the name in a setting, and the options if it sets any.
pub(super) fn name_and_options(setting: &Value) -> Result<(&str, Option<&Value>), InvalidValue> {
    let rule = match setting {
        Value::String(name) => return Ok((name, None)),
        Value::Object(fields) => {
            let mut fields = fields.iter();
            match (fields.next(), fields.next()) {
                (Some((name, options)), None) => return Ok((name, Some(options))),
                (None, _) => {
                    "expected an object with one strategy, found an empty object".to_owned()
                }
                (Some((name, _)), Some((second, _))) => {
                    format!("expected an object with one strategy, found {name} and {second}")
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            "expected the name of a strategy or an object with the name as its only key".to_owned()
        }
    };
    Err(InvalidValue::new("the setting of a strategy", rule, &setting.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(json: &str) -> Result<String, String> {
        let config: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let built = StrategyRegistry::default().build(&config);
        built.map(|strategy| format!("{strategy:?}")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_setting_is_a_name_or_a_name_with_options() {
        let keep = |messages| KeepRecent { messages, ..KeepRecent::default() };
        assert_eq!(build(r#""keep-recent""#), Ok(format!("{:?}", KeepRecent::default())));
        assert_eq!(build(r#"{"keep-recent": {"messages": 4}}"#), Ok(format!("{:?}", keep(4))));
        let options =
            build(r#"{"ladder": {"rungs": ["digest", {"keep-recent": {"messages": 4}}]}}"#);
        assert!(options.unwrap().contains(&format!("{:?}", keep(4))));
    }

    #[test]
    fn a_wrong_setting_says_what_is_wrong() {
        let rows = [
            (r#""magic""#, "\"magic\" is not a registered strategy; expected one of chunked, "),
            (
                r#"{"keep-recent": {"mesages": 4}}"#,
                "\"keep-recent\" is not a strategy with these options; unknown field `mesages`",
            ),
            (r#"{"ladder": {"rungs": ["magic"]}}"#, "\"magic\" is not a registered strategy"),
            (
                r#"{"ladder": {}}"#,
                "\"ladder\" is not a strategy with these options; missing field `rungs`",
            ),
            (
                r#"{"digest": {}, "chunked": {}}"#,
                "\"{\\\"chunked\\\":{},\\\"digest\\\":{}}\" is not the setting of a strategy; expected an object \
                 with one strategy, found chunked and digest",
            ),
            (
                "{}",
                "\"{}\" is not the setting of a strategy; expected an object with one strategy, found an empty object",
            ),
            (
                "7",
                "\"7\" is not the setting of a strategy; expected the name of a strategy or an object",
            ),
        ];
        for (json, words) in rows {
            let error = build(json).unwrap_err();
            assert!(error.starts_with(words), "{json}: {error}");
        }
        let mut own = StrategyRegistry::empty();
        own.register(Arc::new(KeepRecent::default())).unwrap();
        let config = serde_json::from_str(r#"{"keep-recent": {}}"#).unwrap();
        let error = own.build(&config).unwrap_err();
        assert_eq!(error.rule.as_str(), "it was registered as a value");
    }

    #[test]
    fn every_name_builds_and_the_other_name_of_summarize_does_too() {
        let registry = StrategyRegistry::default();
        for name in registry.names() {
            assert_eq!(registry.build(&name.into()).unwrap().name(), name);
        }
        assert_eq!(registry.get("ai-summarize").unwrap().name(), "summarize");
    }
}
