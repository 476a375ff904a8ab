//! Compaction before the window is full.

use threadfold::{
    ContextWindow,
    auto::{AutoCompactor, AutoPolicy, Input, Output, Threshold},
    message::Timestamp,
};

use crate::support::bench::{bench, say};

#[test]
fn s004_04_the_default_is_80_percent_and_reaching_it_counts() {
    assert_eq!(AutoPolicy::default().threshold, Threshold::Fraction(0.8));
}

#[test]
fn s004_05_the_threshold_is_a_setting() {
    let policy = AutoPolicy { threshold: Threshold::Fraction(0.6), ..AutoPolicy::default() };
    assert!(policy.check().is_ok());
}

#[test]
fn s004_06_the_window_of_current_models_is_known_by_name() {
    for name in ["claude-3-5-sonnet-20241022", "claude-sonnet-4-20250514", "claude-3-opus-20240229"]
    {
        assert_eq!(ContextWindow::for_model(name), Some(ContextWindow::new(200_000)), "{name}");
    }
}

#[test]
fn s004_07_the_second_generation_has_half_of_it() {
    assert_eq!(ContextWindow::for_model("claude-2.0"), Some(ContextWindow::new(100_000)));
}

#[test]
fn s004_08_the_table_is_public() {
    assert_eq!(ContextWindow::for_model("a-model-of-nobody"), None);
}

#[test]
fn s004_22_the_check_is_apart_from_the_adapter() {
    // A value without a model, a thread or a clock.
    let mut check = AutoCompactor::new(AutoPolicy::default()).unwrap();
    check.model_changed();
    assert_eq!(check.policy(), &AutoPolicy::default());
    let _: fn(&mut AutoCompactor, Timestamp, Input) -> Option<Output> = AutoCompactor::handle;
}

#[test]
fn s004_23_a_profile_sets_the_threshold() {
    let policy: AutoPolicy = serde_json::from_str(r#"{"threshold": {"fraction": 0.7}}"#).unwrap();
    assert_eq!(policy.threshold, Threshold::Fraction(0.7));
}

#[test]
fn s004_20_a_page_sees_the_count_and_a_warning() {
    let mut bench = bench(["Hello!"], |builder| builder);
    say(&mut bench.session, "Hi.").unwrap();
    let usage = bench.session.token_usage();
    assert!(usage.context_tokens > 0 && !usage.near_limit);
    assert_eq!(usage.context_limit, Some(200_000));
}
