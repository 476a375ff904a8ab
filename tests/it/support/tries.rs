//! The number of cases of a property.

use proptest::test_runner::Config;

/// Returns the settings for this many cases, multiplied by `THREADFOLD_TRIES` if that is set.
pub(crate) fn tries(count: u32) -> Config {
    let more = std::env::var("THREADFOLD_TRIES").ok().and_then(|more| more.parse().ok());
    Config { cases: count.saturating_mul(more.unwrap_or(1)), ..Config::default() }
}
