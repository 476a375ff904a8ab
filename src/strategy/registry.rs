//! Strategies by name.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    chunked::Chunked, contract::CompactionStrategy, keep_recent::KeepRecent, summarize::Summarize,
};

/// Strategies by name, for commands, settings and logs.
///
/// ```
/// use threadfold::strategy::StrategyRegistry;
///
/// let registry = StrategyRegistry::default();
/// assert_eq!(registry.get("keep-recent")?.name(), "keep-recent");
/// let error = registry.get("magic").unwrap_err();
/// assert_eq!(error.to_string(), "there is no strategy \"magic\"; there are chunked, keep-recent, summarize");
/// # Ok::<(), threadfold::strategy::RegistryError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StrategyRegistry {
    strategies: BTreeMap<String, Arc<dyn CompactionStrategy>>,
}

/// Why a strategy cannot be registered or found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name is taken.
    #[error("there is a strategy {name:?} already; there are {}", .known.join(", "))]
    Duplicate {
        /// The name.
        name: String,
        /// All names, in order.
        known: Vec<String>,
    },
    /// Nothing has that name.
    #[error("there is no strategy {name:?}; there are {}", .known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// All names, in order.
        known: Vec<String>,
    },
}

impl StrategyRegistry {
    /// Returns a registry of nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self { strategies: BTreeMap::new() }
    }

    /// Adds a strategy under its name.
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
        let name = strategy.name().to_owned();
        if self.strategies.contains_key(&name) {
            return Err(RegistryError::Duplicate { name, known: self.known() });
        }
        self.strategies.insert(name, strategy);
        Ok(())
    }

    /// Returns the strategy of this name. `ai-summarize` is another name for `summarize`.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Unknown`], which lists what there is.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn CompactionStrategy>, RegistryError> {
        let unknown = || RegistryError::Unknown { name: name.to_owned(), known: self.known() };
        let own = if name == "ai-summarize" { "summarize" } else { name };
        self.strategies.get(name).or_else(|| self.strategies.get(own)).ok_or_else(unknown)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.strategies.keys().map(String::as_str)
    }

    fn known(&self) -> Vec<String> {
        self.names().map(str::to_owned).collect()
    }
}

impl Default for StrategyRegistry {
    /// The built-in strategies with their default settings.
    fn default() -> Self {
        let built_in: [Arc<dyn CompactionStrategy>; 3] = [
            Arc::new(Chunked::default()),
            Arc::new(KeepRecent::default()),
            Arc::new(Summarize::default()),
        ];
        let named = built_in.into_iter().map(|strategy| (strategy.name().to_owned(), strategy));
        Self { strategies: named.collect() }
    }
}
