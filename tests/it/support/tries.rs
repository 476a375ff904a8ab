//! How often a property is tried.

use proptest::test_runner::Config;

/// Settings for this many tries, or for `THREADFOLD_TRIES` times as many where that is set.
pub(crate) fn tries(count: u32) -> Config {
    let more = std::env::var("THREADFOLD_TRIES").ok().and_then(|more| more.parse().ok());
    Config { cases: count.saturating_mul(more.unwrap_or(1)), ..Config::default() }
}
