//! How likely the agent needs a name again: one table of weights.
//!
//! `tests/fidelity/weights.py` fits them on real threads, by hindsight, and prints how good they
//! are on the agents that it left out.

/// What is known of a name from the old part of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Features {
    /// The messages in which the agent used it in calls.
    pub(super) calls: u32,
    /// The answers that have it.
    pub(super) answers: u32,
    /// The results that have it.
    pub(super) results: u32,
    /// Whether the user typed it.
    pub(super) typed: bool,
    /// Where it was last used, from 0 at the start of the old part to 1 at its end.
    pub(super) last: f64,
    /// Where the agent last used it.
    pub(super) last_own: f64,
    /// Whether a result that has it failed.
    pub(super) failed: bool,
    /// Whether it has a slash or an ending, as paths and files have.
    pub(super) is_path: bool,
    /// Whether it consists of digits.
    pub(super) is_number: bool,
}

const BASE: f64 = -5.0;
const CALLED: f64 = 1.3;
const CALLS: f64 = 0.5;
const ANSWERED: f64 = 1.2;
const ANSWERS: f64 = 0.4;
const RESULTS: f64 = 0.3;
const TYPED: f64 = 0.8;
const LAST: f64 = 1.2;
const LAST_OWN: f64 = 1.2;
const FAILED: f64 = 0.2;
const PATH: f64 = 0.4;
const NUMBER: f64 = -0.8;

/// The probability that the agent needs the name again.
pub(super) fn value(features: &Features) -> f64 {
    let any = |count: u32| f64::from(u8::from(count > 0));
    let many = |count: u32| f64::from(count).ln_1p();
    let is = |flag: bool| f64::from(u8::from(flag));
    let sum = BASE
        + CALLED * any(features.calls)
        + CALLS * many(features.calls)
        + ANSWERED * any(features.answers)
        + ANSWERS * many(features.answers)
        + RESULTS * many(features.results)
        + TYPED * is(features.typed)
        + LAST * features.last
        + LAST_OWN * features.last_own
        + FAILED * is(features.failed)
        + PATH * is(features.is_path)
        + NUMBER * is(features.is_number);
    1.0 / (1.0 + (-sum).exp())
}
