//! What was spent, and when.

use std::{
    fmt,
    ops::{Add, AddAssign},
};

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
///
/// `Display` writes it as RFC 3339 has it, in UTC.
///
/// ```
/// use threadfold::message::Timestamp;
///
/// assert_eq!(Timestamp(1_709_164_799_042).to_string(), "2024-02-28T23:59:59.042Z");
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, millis) = (self.0 / 86_400_000, self.0 % 86_400_000);
        let (year, month, day) = date(days);
        let (hour, minute) = (millis / 3_600_000, millis / 60_000 % 60);
        let (second, milli) = (millis / 1_000 % 60, millis % 1_000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

/// Returns year, month and day, so many days after the epoch, in the Gregorian calendar. A year is
/// taken to begin in March, so that the leap day is its last; 400 of them have always 146,097 days.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let rows = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_735_689_599_999, "2024-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (millis, text) in rows {
            assert_eq!(Timestamp(millis).to_string(), text);
        }
        assert!(Timestamp(u64::MAX).to_string().ends_with('Z'));
    }
}
