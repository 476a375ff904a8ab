//! The soft trigger with a policy that has prices: when it fires.

use threadfold::{
    ContextWindow,
    auto::{AutoCompactor, AutoPolicy, Input, Output, Pressure},
    compact::Prices,
    message::{CompactionReason, Timestamp},
};

const LIFE: u64 = 300_000;

fn policy() -> AutoPolicy {
    let prices = Prices {
        input: 3.0,
        cached: 0.3,
        cache_write: 3.75,
        output: 15.0,
        cache_life_ms: LIFE,
        cache_min: 1_024,
        cache_block: 1,
    };
    AutoPolicy {
        prices: Some(prices),
        summary_tokens: 0,
        estimates_usage: true,
        ..AutoPolicy::default()
    }
}

fn with(change: &dyn Fn(&mut AutoPolicy)) -> AutoPolicy {
    let mut policy = policy();
    change(&mut policy);
    policy
}

fn pressure(thread: u64, since: u64) -> Pressure {
    let window = Some(ContextWindow::new(200_000));
    Pressure { window, thread, since, newest: 100, ..Pressure::default() }
}

/// A compactor whose last compaction left 100,000 tokens.
fn compacted(policy: AutoPolicy) -> AutoCompactor {
    let mut auto = AutoCompactor::new(policy).unwrap();
    auto.handle(Timestamp(0), Input::Compacted { reason: CompactionReason::Threshold });
    assert_eq!(auto.handle(Timestamp(0), Input::BeforeRequest(pressure(100_000, 0))), None);
    auto
}

/// Whether the trigger fires at the second of two requests, this many milliseconds after the first.
fn fires(policy: AutoPolicy, second: Pressure, after: u64) -> bool {
    let mut auto = compacted(policy);
    let output = auto.handle(Timestamp(after), Input::BeforeRequest(second));
    matches!(output, Some(Output::Compact { reason: CompactionReason::Threshold, .. }))
}

#[test]
fn a_cold_cache_lets_it_fire_before_the_threshold_if_much_is_saved() {
    assert!(fires(policy(), pressure(140_000, 0), LIFE));
    assert!(!fires(policy(), pressure(140_000, 0), LIFE - 1), "the cache is warm");
    assert!(!fires(policy(), pressure(114_000, 0), LIFE), "less than an eighth would be saved");
    let without = AutoPolicy { prices: None, ..policy() };
    assert!(!fires(without, pressure(140_000, 0), LIFE), "without prices it does not fire early");
}

#[test]
fn it_waits_for_the_least_gain() {
    let least = |min_gain| with(&|cost| cost.min_gain = min_gain);
    assert!(fires(least(60_000), pressure(160_000, 0), 1));
    assert!(!fires(least(60_001), pressure(160_000, 0), 1));
    assert!(!fires(least(60_000), pressure(140_000, 0), LIFE));
}

#[test]
fn it_does_not_fire_if_few_requests_are_left_and_they_fit() {
    let left = |requests| with(&|cost| cost.requests_left = Some(requests));
    // 160,000 to 100,000 tokens: 375,000 - 48,000 millionths once, 18,000 saved a request.
    assert!(!fires(left(19), pressure(160_000, 1_000), 1));
    assert!(fires(left(20), pressure(160_000, 1_000), 1));
    assert!(fires(left(19), pressure(160_000, 3_000), 1), "it would not fit");
    assert!(fires(left(19), pressure(160_000, 1_000), LIFE), "it pays at once");
}

#[test]
fn it_fires_once_the_requests_have_paid_for_it() {
    // Each request reads 20,000 tokens too many: 6,000 millionths. Writing 100,000 tokens anew
    // costs 375,000 - 36,000 millionths, and the trigger waits for a quarter more.
    let mut auto = compacted(policy());
    let mut fired = (0..200).map(|second| {
        let input = Input::BeforeRequest(pressure(120_000, 0));
        auto.handle(Timestamp(second), input).is_some()
    });
    assert_eq!(fired.position(|fired| fired), Some(71));
    let input = Input::Compacted { reason: CompactionReason::Threshold };
    assert_eq!(auto.handle(Timestamp(300), input), None);
}

#[test]
fn the_cost_of_a_summary_by_a_model_is_included() {
    let mut auto = compacted(with(&|cost| cost.summary_tokens = 2_000));
    let mut fired = (0..200).map(|second| {
        let input = Input::BeforeRequest(pressure(120_000, 0));
        auto.handle(Timestamp(second), input).is_some()
    });
    // Besides what is written anew, 36,000 for reading 120,000 tokens and 30,000 for the summary.
    assert_eq!(fired.position(|fired| fired), Some(85));
}

#[test]
fn it_uses_the_size_that_the_last_compaction_left() {
    // 40,000 tokens are left of a target of 100,000, so the same requests pay for more.
    let requests = |left: u64| {
        let mut auto = AutoCompactor::new(policy()).unwrap();
        auto.handle(Timestamp(0), Input::Compacted { reason: CompactionReason::Threshold });
        auto.handle(Timestamp(0), Input::BeforeRequest(pressure(left, 0)));
        let mut fired = (0..200).map(|second| {
            let input = Input::BeforeRequest(pressure(120_000, 0));
            auto.handle(Timestamp(second), input).is_some()
        });
        fired.position(|fired| fired)
    };
    // 24,000 a request against 150,000 - 36,000 and a quarter.
    assert_eq!(requests(40_000), Some(6));
    assert_eq!(requests(100_000), Some(71));
}
