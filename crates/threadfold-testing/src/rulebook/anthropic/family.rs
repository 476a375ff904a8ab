//! What differs between Anthropic's models.

use super::super::cache::{CacheMarks, CacheRules};
use super::rules;

/// A family of models, read from a name such as `claude-opus-5-5` or `claude-sonnet-4-5-20250929`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    /// `None` if the name is not one of Anthropic's.
    version: Option<(u32, u32)>,
    name: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Opus,
    Sonnet,
    Haiku,
    /// Fable and Mythos.
    Tale,
    Other,
}

impl Family {
    pub(crate) fn of(model: &str) -> Self {
        let names = [
            ("opus", Name::Opus),
            ("sonnet", Name::Sonnet),
            ("haiku", Name::Haiku),
            ("fable", Name::Tale),
            ("mythos", Name::Tale),
        ];
        let name = names.into_iter().find(|(word, _)| model.contains(word));
        let name = name.map_or(Name::Other, |(_, name)| name);
        // Dates are longer.
        let numbers = model.split(['-', '@', '.']).filter(|part| part.len() < 3);
        let mut numbers = numbers.filter_map(|part| part.parse().ok());
        let version = model.contains("claude").then(|| numbers.next()).flatten();
        Self { version: version.map(|major| (major, numbers.next().unwrap_or(0))), name }
    }

    pub(crate) fn binds(self) -> bool {
        let first = if self.name == Name::Tale { (5, 1) } else { (5, 5) };
        self.version.is_some_and(|version| version >= first)
    }

    pub(crate) fn refuses_prefill(self) -> bool {
        self.version.is_some_and(|version| version >= (4, 6))
    }

    pub(super) fn refuses_inner_system(self) -> bool {
        let first = if self.name == Name::Opus { (4, 8) } else { (5, 0) };
        self.version.is_some_and(|version| version < first)
    }

    /// Its thinking is not tied to the model (AWS, "Preserved thinking").
    pub(crate) fn is_read_by_all(self) -> bool {
        self.name == Name::Haiku && self.version == Some((5, 5))
    }

    fn cache_minimum(self) -> u64 {
        match (self.name, self.version) {
            (Name::Opus | Name::Tale, Some(version)) if version >= (5, 0) => 512,
            (Name::Opus, Some((4, 7))) => 2_048,
            (Name::Opus, Some((4, 5 | 6))) | (Name::Haiku, Some((4, 5))) => 4_096,
            _ => 1_024,
        }
    }
}

/// Returns the cache rules of a model of Anthropic. The shortest prefix of the models since 5.5 was
/// found nowhere; it is that of their predecessors.
pub(crate) fn anthropic_cache(model: &str) -> CacheRules {
    let family = Family::of(model);
    let is_cheap = family.name == Name::Sonnet && family.version == Some((5, 5));
    CacheRules {
        minimum: family.cache_minimum(),
        marks: CacheMarks::Explicit { lookback: 20 },
        read_price: if is_cheap { 0.05 } else { 0.1 },
        write_price: 1.25,
        hour_write_price: 2.0,
        rule: &rules::CACHE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rulebook::cache::CacheUse;

    #[test]
    fn the_shortest_cached_prefix_depends_on_the_model() {
        assert_eq!(anthropic_cache("claude-haiku-4-5").minimum, 4_096);
        assert_eq!(anthropic_cache("claude-opus-5").minimum, 512);
    }

    #[test]
    fn a_prompt_is_priced_by_what_the_cache_did() {
        let used = CacheUse { plain: 100, read: 1_000, written: 200, written_hour: 0 };
        let rules = anthropic_cache("claude-opus-5-5");
        assert_eq!(used.price(&rules), 100.0 + 100.0 + 250.0);
    }

    #[test]
    fn versions_are_read_without_dates() {
        let version = |name| Family::of(name).version;
        assert_eq!(version("claude-sonnet-4-5-20250929"), Some((4, 5)));
        assert_eq!(version("claude-opus-5"), Some((5, 0)));
        assert_eq!(version("claude-3-5-haiku-20241022"), Some((3, 5)));
        assert_eq!(version("unheard-of-4-5"), None);
    }

    #[test]
    fn the_documented_models_bind() {
        for name in ["claude-fable-5-1", "claude-mythos-5-2", "claude-opus-5-5", "claude-haiku-5-5"]
        {
            assert!(Family::of(name).binds(), "{name}");
        }
        for name in ["claude-opus-5", "claude-fable-5", "claude-sonnet-4-6", "m"] {
            assert!(!Family::of(name).binds(), "{name}");
        }
    }
}
