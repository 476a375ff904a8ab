//! Strategies by name.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    chunked::Chunked, config::StrategyConfig, contract::CompactionStrategy, digest::Digest,
    fold_batches::FoldBatches, keep_recent::KeepRecent, ladder::Ladder, summarize::Summarize,
    trim_tool_results::TrimToolResults,
};

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
///     "there is no strategy \"magic\"; there are chunked, digest, fold-batches, keep-recent, \
///      ladder, summarize, trim-tool-results",
/// );
/// # Ok::<(), threadfold::strategy::RegistryError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StrategyRegistry {
    entries: BTreeMap<String, Entry>,
}

/// A strategy with its default options, and a function that builds it with others.
#[derive(Clone, Debug)]
struct Entry {
    strategy: Arc<dyn CompactionStrategy>,
    build: Option<Build>,
}

/// Builds a strategy from options. A ladder looks its rungs up in the registry.
type Build = fn(&StrategyRegistry, &str, &Value) -> Result<Built, RegistryError>;

type Built = Arc<dyn CompactionStrategy>;

/// Why a strategy cannot be registered, found or built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name is already registered.
    #[error("there is a strategy {name:?} already; there are {}", .known.join(", "))]
    Duplicate {
        /// The name.
        name: String,
        /// All registered names, sorted.
        known: Vec<String>,
    },
    /// No strategy has this name.
    #[error("there is no strategy {name:?}; there are {}", .known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// All registered names, sorted.
        known: Vec<String>,
    },
    /// The strategy was registered as a value, so it takes no options.
    #[error("the strategy {name:?} takes no options")]
    NoOptions {
        /// The name.
        name: String,
    },
    /// The options do not fit the strategy.
    #[error("the options of strategy {name:?}: {reason}")]
    Options {
        /// The name.
        name: String,
        /// What is wrong with the options.
        reason: String,
    },
}

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
        Self { entries: BTreeMap::new() }
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
    /// # Ok::<(), threadfold::strategy::RegistryError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RegistryError::Duplicate`] if the name is taken.
    pub fn register(&mut self, strategy: Arc<dyn CompactionStrategy>) -> Result<(), RegistryError> {
        self.insert(Entry { strategy, build: None })
    }

    /// Registers a strategy under its name with its default options. Settings can set others, in
    /// the strategy's serde form.
    ///
    /// ```
    /// use threadfold::strategy::{KeepRecent, StrategyConfig, StrategyRegistry};
    ///
    /// let mut registry = StrategyRegistry::empty();
    /// registry.register_configurable::<KeepRecent>()?;
    /// let config: StrategyConfig = serde_json::from_str(r#"{"keep-recent": {"messages": 4}}"#)?;
    /// assert!(registry.build(&config).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RegistryError::Duplicate`] if the name is taken.
    pub fn register_configurable<S>(&mut self) -> Result<(), RegistryError>
    where
        S: CompactionStrategy + Default + DeserializeOwned + 'static,
    {
        self.insert(configurable::<S>())
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
    /// assert!(error.starts_with("there is no strategy \"summarise\"; there are "));
    /// # Ok::<(), threadfold::strategy::RegistryError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RegistryError::Unknown`], which lists the registered names.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn CompactionStrategy>, RegistryError> {
        Ok(&self.entry(name)?.strategy)
    }

    /// Builds the strategy of a setting. See [`StrategyConfig`].
    ///
    /// ```
    /// use threadfold::strategy::{StrategyConfig, StrategyRegistry};
    ///
    /// let registry = StrategyRegistry::default();
    /// let config: StrategyConfig = serde_json::from_str(r#"{"keep-recent": {"mesages": 4}}"#)?;
    /// let error = registry.build(&config).unwrap_err().to_string();
    /// assert!(error.starts_with("the options of strategy \"keep-recent\": unknown field `mesages`"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RegistryError::Unknown`], which lists the registered names; [`RegistryError::NoOptions`]
    /// and [`RegistryError::Options`] if the strategy does not take the given options.
    pub fn build(
        &self,
        config: &StrategyConfig,
    ) -> Result<Arc<dyn CompactionStrategy>, RegistryError> {
        let entry = self.entry(config.name())?;
        let Some(options) = config.options() else { return Ok(Arc::clone(&entry.strategy)) };
        let name = config.name();
        let Some(build) = entry.build else {
            return Err(RegistryError::NoOptions { name: name.to_owned() });
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
        self.entries.keys().map(String::as_str)
    }

    fn insert(&mut self, entry: Entry) -> Result<(), RegistryError> {
        let name = entry.strategy.name().to_owned();
        if self.entries.contains_key(&name) {
            return Err(RegistryError::Duplicate { name, known: self.all_names() });
        }
        self.entries.insert(name, entry);
        Ok(())
    }

    fn entry(&self, name: &str) -> Result<&Entry, RegistryError> {
        let own = if name == "ai-summarize" { "summarize" } else { name };
        let entry = self.entries.get(name).or_else(|| self.entries.get(own));
        entry.ok_or_else(|| RegistryError::Unknown {
            name: name.to_owned(),
            known: self.all_names(),
        })
    }

    fn all_names(&self) -> Vec<String> {
        self.names().map(str::to_owned).collect()
    }
}

impl Default for StrategyRegistry {
    /// The built-in strategies with their default options.
    fn default() -> Self {
        let ladder = Entry { strategy: Arc::new(Ladder::default()), build: Some(ladder) };
        let built_in = [
            configurable::<Chunked>(),
            configurable::<Digest>(),
            configurable::<FoldBatches>(),
            configurable::<KeepRecent>(),
            ladder,
            configurable::<Summarize>(),
            configurable::<TrimToolResults>(),
        ];
        let named = built_in.into_iter().map(|entry| (entry.strategy.name().to_owned(), entry));
        Self { entries: named.collect() }
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
    rungs: Vec<StrategyConfig>,
    #[serde(default)]
    too_long: Option<StrategyConfig>,
}

fn ladder(
    registry: &StrategyRegistry,
    name: &str,
    options: &Value,
) -> Result<Built, RegistryError> {
    let options: LadderOptions = read(name, options)?;
    let rungs: Result<Vec<_>, _> = options.rungs.iter().map(|rung| registry.build(rung)).collect();
    let ladder = Ladder::new(rungs?);
    Ok(match options.too_long {
        Some(config) => Arc::new(ladder.with_too_long(registry.build(&config)?)),
        None => Arc::new(ladder),
    })
}

fn read<T: DeserializeOwned>(name: &str, options: &Value) -> Result<T, RegistryError> {
    T::deserialize(options).map_err(|error| RegistryError::Options {
        name: name.to_owned(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(json: &str) -> Result<String, String> {
        let config = serde_json::from_str(json).map_err(|error| error.to_string())?;
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
            (r#""magic""#, "there is no strategy \"magic\"; there are chunked, "),
            (
                r#"{"keep-recent": {"mesages": 4}}"#,
                "the options of strategy \"keep-recent\": unknown field `mesages`",
            ),
            (r#"{"ladder": {"rungs": ["magic"]}}"#, "there is no strategy \"magic\""),
            (r#"{"ladder": {}}"#, "the options of strategy \"ladder\": missing field `rungs`"),
            (
                r#"{"digest": {}, "chunked": {}}"#,
                "an object names one strategy, this one digest and chunked",
            ),
            ("{}", "an empty object names no strategy"),
            ("7", "invalid type: integer `7`, expected the name of a strategy"),
        ];
        for (json, words) in rows {
            let error = build(json).unwrap_err();
            assert!(error.starts_with(words), "{json}: {error}");
        }
        let mut own = StrategyRegistry::empty();
        own.register(Arc::new(KeepRecent::default())).unwrap();
        let config = serde_json::from_str(r#"{"keep-recent": {}}"#).unwrap();
        let error = own.build(&config).unwrap_err();
        assert_eq!(error, RegistryError::NoOptions { name: "keep-recent".into() });
    }

    #[test]
    fn every_name_builds_and_the_other_name_of_summarize_does_too() {
        let registry = StrategyRegistry::default();
        for name in registry.names() {
            assert_eq!(registry.build(&StrategyConfig::new(name)).unwrap().name(), name);
        }
        assert_eq!(registry.get("ai-summarize").unwrap().name(), "summarize");
    }
}
