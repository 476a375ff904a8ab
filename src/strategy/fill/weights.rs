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

/// The weights of [`Features::numbers`], in their order.
const WEIGHTS: [f64; 12] = [-3.8, 0.4, 0.5, 0.35, 0.4, 0.0, 1.1, 1.6, 0.3, -0.4, 0.7, 0.3];

impl Features {
    /// The features as numbers, the first of them 1.
    pub(super) fn numbers(&self) -> [f64; 12] {
        let is = |flag: bool| f64::from(u8::from(flag));
        let many = |count: u32| f64::from(count).ln_1p();
        [
            1.0,
            is(self.calls > 0),
            many(self.calls),
            is(self.answers > 0),
            many(self.answers),
            many(self.results),
            is(self.typed),
            self.last,
            self.last_own,
            is(self.failed),
            is(self.is_path),
            is(self.is_number),
        ]
    }
}

/// The probability that the agent needs the name again.
pub(super) fn value(features: &Features) -> f64 {
    let sum: f64 = features.numbers().iter().zip(WEIGHTS).map(|(it, weight)| it * weight).sum();
    1.0 / (1.0 + (-sum).exp())
}
