//! What differs between OpenAI's models.

use super::super::{
    cache::CacheRules,
    openai::{cache_rules, version},
};
use super::rules;

/// Whether a model binds reasoning to its prefix.
pub(super) fn binds(model: &str) -> bool {
    version(model).is_some_and(|version| version >= (6, 2))
}

/// Returns the cache rules of a model of OpenAI, with implicit marks.
///
/// ```
/// use threadfold_testing::rulebook::openai_cache;
///
/// assert_eq!(openai_cache("gpt-6.2-sol").write_price, 1.25);
/// assert_eq!(openai_cache("gpt-5.2").write_price, 1.0);
/// ```
#[must_use]
pub fn openai_cache(model: &str) -> CacheRules {
    cache_rules(model, &rules::CACHE)
}
