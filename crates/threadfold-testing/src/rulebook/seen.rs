//! What a rulebook saw and did.

use super::{bound::VoidReason, cache::CacheUse, rule::Violation};

/// What a rulebook saw and did, in all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Requests for answers and compactions.
    pub requests: u64,
    /// Answers.
    pub answered: u64,
    /// Compactions of the vendor.
    pub compactions: u64,
    /// Requests that did not fit the window.
    pub overflows: u64,
    /// What was illegal, one for each request.
    pub violations: Vec<Violation>,
    /// Reasoning that was sent but void: dropped, or the cause of a refusal.
    pub void: u64,
    /// Reasoning that reached the model.
    pub arrived: u64,
    /// The tokens of all prompts.
    pub input: CacheUse,
    /// The tokens of all answers.
    pub output: u64,
    /// The price of all prompts, in uncached tokens.
    pub price: f64,
    /// The last request.
    pub last: Last,
}

/// What happened to the last request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Last {
    /// How it ended.
    pub outcome: Outcome,
    /// The reasoning in it that is void, by its path in the request, in order.
    pub void: Vec<(String, VoidReason)>,
    /// The reasoning in it that reached the model, by its path.
    pub arrived: Vec<String>,
    /// The tokens of its prompt.
    pub tokens: u64,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// There was none, or it was only counted.
    #[default]
    None,
    /// It was answered.
    Answered,
    /// It broke a rule.
    Illegal,
    /// It did not fit the window.
    TooLong,
    /// It continued a thread that the server does not have.
    NotFound,
}
