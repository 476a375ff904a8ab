//! What was spent, and when.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// Tokens of one model call, normalised over the providers.
///
/// `input` is the whole prompt *including* what was read from or written to a cache, for every
/// provider: Anthropic and Bedrock report the three apart and their codecs add them up. `output`
/// includes the reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the whole prompt.
    pub input: u64,
    /// Tokens of the whole answer.
    pub output: u64,
    /// Tokens of the prompt that came from a cache.
    pub cache_read: u64,
    /// Tokens of the prompt that were written to a cache.
    pub cache_write: u64,
    /// Tokens of the answer that were reasoning.
    pub reasoning: u64,
}

impl Usage {
    /// Returns a usage without cache and reasoning.
    #[must_use]
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, ..Self::default() }
    }

    /// Tokens in the context after the call: prompt and answer.
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Whether nothing was reported: providers that do not count answer with zeros.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.context_tokens() == 0
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), Add::add)
    }
}

/// Milliseconds since the Unix epoch. Always handed in: nothing below the drivers knows a clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);
