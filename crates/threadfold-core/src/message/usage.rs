//! Tokens spent, and times.

use std::{
    fmt,
    ops::{Add, AddAssign},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

use super::invalid::InvalidValue;

/// The tokens of one model call, with the same meaning for every provider.
///
/// `input` is the whole prompt *including* tokens read from or written to a cache. Anthropic and
/// Bedrock report the three separately, and their codecs add them up. `output` includes reasoning.
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
    /// Returns a usage without cache and reasoning tokens.
    ///
    /// ```
    /// use threadfold::Usage;
    ///
    /// assert_eq!(Usage::new(1_000, 50).context_tokens(), 1_050);
    /// ```
    #[must_use]
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, ..Self::default() }
    }

    /// Tokens in the context after the call: prompt and answer.
    ///
    /// ```
    /// use threadfold::Usage;
    ///
    /// // What was read from a cache is part of the prompt.
    /// let usage = Usage { cache_read: 800, ..Usage::new(900, 100) };
    /// assert_eq!(usage.context_tokens(), 1_000);
    /// ```
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// `true` if nothing was reported: providers that do not count tokens send zeros.
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

/// Milliseconds since the Unix epoch. Always an argument: only drivers read a clock.
///
/// `Display` writes RFC 3339 in UTC. `FromStr` accepts RFC 3339 with any offset from UTC and cuts
/// fractions after milliseconds.
///
/// ```
/// use threadfold::message::Timestamp;
///
/// let time = Timestamp(1_709_164_799_042);
/// assert_eq!(time.to_string(), "2024-02-28T23:59:59.042Z");
/// assert_eq!("2024-02-29T01:59:59.0429+02:00".parse(), Ok(time));
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

/// Returns year, month and day of the Gregorian calendar, from days since the epoch. Years are
/// counted from March, so that the leap day is the last; 400 years always have 146,097 days.
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

impl FromStr for Timestamp {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let rule = "expected a date and time of RFC 3339, not before 1970";
        parse(text).map(Self).ok_or_else(|| InvalidValue::new("a time", rule, text))
    }
}

/// Returns milliseconds since the epoch for a text of RFC 3339. Years may have more than the four
/// digits of the standard, because `Display` writes such years.
fn parse(text: &str) -> Option<u64> {
    let (day, time) = text.split_once(['T', 't', ' '])?;
    let mut day = day.split('-');
    let year = day.next().filter(|year| year.len() >= 4).and_then(digits)?;
    let (month, day_of_month) = (two_digits(day.next()?)?, two_digits(day.next()?)?);
    let starts = days(year, month, day_of_month).filter(|days| {
        day.next().is_none()
                // Rejects days that the month does not have: they convert back to another day.
        && date(*days) == (year, month, day_of_month)
    })?;
    let (clock, east, offset) = offset(time)?;
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut whole = whole.split(':');
    let (hour, minute) = (two_digits(whole.next()?)?, two_digits(whole.next()?)?);
    let second = two_digits(whole.next()?).filter(|_| whole.next().is_none())?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let millis = (hour * 3_600 + minute * 60 + second) * 1_000 + milliseconds(fraction)?;
    let local = starts.checked_mul(86_400_000)?.checked_add(millis)?;
    if east { local.checked_sub(offset) } else { local.checked_add(offset) }
}

/// Returns days since the epoch, the inverse of [`date`].
fn days(year: u64, month: u64, day_of_month: u64) -> Option<u64> {
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let (era, year) = (year / 400, year % 400);
    let day = (153 * month + 2) / 5 + day_of_month.checked_sub(1)?;
    let day = year * 365 + year / 4 - year / 100 + day;
    era.checked_mul(146_097)?.checked_add(day)?.checked_sub(719_468)
}

/// Splits the UTC offset off a time. Returns the time without it, whether the offset is east of
/// UTC, and its size in milliseconds.
fn offset(time: &str) -> Option<(&str, bool, u64)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock, false, 0));
    }
    let (clock, offset) = time.split_at_checked(time.len().checked_sub(6)?)?;
    let (east, offset) = match offset.split_at_checked(1)? {
        ("+", offset) => (true, offset),
        ("-", offset) => (false, offset),
        _ => return None,
    };
    let (hour, minute) = offset.split_once(':')?;
    let (hour, minute) = (two_digits(hour)?, two_digits(minute)?);
    (hour < 24 && minute < 60).then_some((clock, east, (hour * 60 + minute) * 60_000))
}

fn milliseconds(fraction: &str) -> Option<u64> {
    let number = digits(fraction.get(..3).unwrap_or(fraction))?;
    let rest_is_digits = fraction.bytes().skip(3).all(|byte| byte.is_ascii_digit());
    let scale = match fraction.len() {
        1 => 100,
        2 => 10,
        _ => 1,
    };
    rest_is_digits.then_some(number * scale)
}

fn two_digits(text: &str) -> Option<u64> {
    digits(text).filter(|_| text.len() == 2)
}

fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_gregorian_calendar() {
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
    #[test]
    fn display_and_parse_round_trip() {
        let near = |time: u64| [time.saturating_sub(1), time, time.saturating_add(1)];
        let days = (0..60_000).map(|day| day * 86_400_000);
        let bits = (0..64).map(|bit| 1_u64 << bit);
        for time in days.chain(bits).chain([u64::MAX]).flat_map(near).map(Timestamp) {
            assert_eq!(time.to_string().parse(), Ok(time));
        }
    }

    #[test]
    fn every_form_of_rfc_3339_is_read() {
        let rows = [
            ("1970-01-01T00:00:00Z", 0),
            ("1985-04-12T23:20:50.52Z", 482_196_050_520),
            ("1985-04-12t23:20:50.5z", 482_196_050_500),
            ("1996-12-19 16:39:57-08:00", 851_042_397_000),
            ("1990-12-31T23:59:60Z", 662_688_000_000),
            ("1970-01-01T01:00:00.001999999999+01:00", 1),
        ];
        for (text, millis) in rows {
            assert_eq!(text.parse(), Ok(Timestamp(millis)), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_time_is_refused() {
        let rows = [
            "",
            "now",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:59:59+01:00",
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-00-01T00:00:00Z",
            "2024-01-00T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:60:00Z",
            "2024-01-01T00:00:61Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00.1x1Z",
            "2024-01-01T00:00:00.123xZ",
            "2024-1-01T00:00:00Z",
            "+2024-01-01T00:00:00Z",
            "2024-01-01-T00:00:00Z",
            "2024-01-01T00:00:00:00Z",
            "2024-01-01T00:00:00+0100",
            "2024-01-01T00:00:00\u{e4}01:00",
            "024-01-01T00:00:00Z",
            "99999999999999999999-01-01T00:00:00Z",
            "18446744073709551615-01-01T00:00:00Z",
        ];
        for text in rows {
            assert!(text.parse::<Timestamp>().is_err(), "{text:?}");
        }
    }
}
