//! Reading the wait that the headers of an error response ask for.

use std::time::Duration;

use super::error_body::{duration, is_sane};
use threadfold_core::message::Timestamp;

/// Returns the wait that the headers of a response ask for, counted from `now`. Pass names and
/// values as the HTTP client returns them; case does not matter.
///
/// | header, in the order of precedence | value |
/// |---|---|
/// | `retry-after-ms` | milliseconds |
/// | `retry-after` | seconds, or a date of HTTP in any of its three forms |
/// | `x-ratelimit-reset-*`, `x-ratelimit-reset`, `anthropic-ratelimit-*-reset` | `6m0s`, `20ms`, seconds, seconds or milliseconds since 1970, or a time of RFC 3339 |
///
/// If there are several limits, the one whose `remaining` is zero counts. If several are zero, the
/// one that is reset last counts; if none is, the one that is reset first. `None` if no header
/// states a wait, or if the wait is more than a day.
///
/// ```
/// use std::time::Duration;
/// use threadfold::{message::Timestamp, wire::{classify_error, retry_after}};
///
/// let headers = [("Retry-After", "20"), ("content-type", "application/json")];
/// let wait = retry_after(headers, Timestamp(0));
/// assert_eq!(wait, Some(Duration::from_secs(20)));
/// let error = classify_error(429, b"slow down").with_retry_after(wait);
/// assert!(error.is_retryable());
/// ```
#[must_use]
pub fn retry_after<'h>(
    headers: impl IntoIterator<Item = (&'h str, &'h str)>,
    now: Timestamp,
) -> Option<Duration> {
    let (mut millis, mut after, mut limits) = (None, None, Limits::default());
    for (name, value) in headers {
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "retry-after-ms" => millis = millis.or_else(|| milliseconds(value)),
            "retry-after" => after = after.or_else(|| seconds_or_date(value, now)),
            name => limits.read(name, value, now),
        }
    }
    millis.or(after).or_else(|| limits.wait())
}

/// Limits by name: whether each is used up, and the time until it is reset.
#[derive(Default)]
struct Limits {
    remaining: Vec<(String, bool)>,
    resets: Vec<(String, Duration)>,
}

impl Limits {
    fn read(&mut self, name: &str, value: &str, now: Timestamp) {
        // There are two families of header names: one ends with the name of the limit, the other
        // begins with it.
        let own = name.strip_prefix("x-ratelimit-").and_then(|rest| {
            let (word, limit) = rest.split_once('-').unwrap_or((rest, ""));
            Some((limit, word)).filter(|(_, word)| matches!(*word, "remaining" | "reset"))
        });
        match own.or_else(|| name.strip_prefix("anthropic-ratelimit-")?.rsplit_once('-')) {
            Some((limit, "remaining")) => {
                let is_spent = value.parse::<f64>().is_ok_and(|left| left <= 0.0);
                self.remaining.push((limit.to_owned(), is_spent));
            }
            Some((limit, "reset")) => {
                self.resets.extend(reset(value, now).map(|wait| (limit.to_owned(), wait)));
            }
            Some(_) | None => {}
        }
    }

    fn wait(&self) -> Option<Duration> {
        let spent = self.resets.iter().filter(|(limit, _)| {
            self.remaining.iter().any(|(name, is_spent)| *is_spent && name == limit)
        });
        let last = spent.map(|(_, wait)| *wait).max();
        last.or_else(|| self.resets.iter().map(|(_, wait)| *wait).min())
    }
}

fn milliseconds(value: &str) -> Option<Duration> {
    let millis = value.parse::<f64>().ok()?;
    Duration::try_from_secs_f64(millis / 1_000.0).ok().filter(is_sane)
}

fn seconds_or_date(value: &str, now: Timestamp) -> Option<Duration> {
    duration(value).or_else(|| until(http_date(value)?, now))
}

fn reset(value: &str, now: Timestamp) -> Option<Duration> {
    // No wait is this long, so larger numbers are times since 1970.
    const SECONDS: f64 = 1e9;
    const MILLISECONDS: f64 = 1e12;
    if let Ok(time) = value.parse::<Timestamp>() {
        return until(time, now);
    }
    match value.parse::<f64>() {
        Ok(number) if number >= MILLISECONDS => until(Timestamp(number as u64), now),
        Ok(number) if number >= SECONDS => until(Timestamp((number * 1_000.0) as u64), now),
        Ok(_) | Err(_) => duration(value),
    }
}

/// The time from `now` until `then`; zero if it is over.
fn until(then: Timestamp, now: Timestamp) -> Option<Duration> {
    Some(Duration::from_millis(then.0.saturating_sub(now.0))).filter(is_sane)
}

/// Reads a date of HTTP: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or
/// `Sun Nov  6 08:49:37 1994`.
fn http_date(text: &str) -> Option<Timestamp> {
    let words = text.split([' ', ',', '-']).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.take(7).collect();
    let (day, month, year, time) = match words.as_slice() {
        [_, day, month, year, time, "GMT" | "UTC"] => (day, month, year, time),
        [_, month, day, time, year] => (day, month, year, time),
        _ => return None,
    };
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? + 1;
    let year: u64 = year.parse().ok()?;
    // This form has two-digit years, which are read as years from 2000 on.
    let year = if year < 100 { 2_000 + year } else { year };
    let day: u64 = day.parse().ok()?;
    format!("{year:04}-{month:02}-{day:02}T{time}Z").parse().ok()
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-22T05:00:00Z
    const NOW: Timestamp = Timestamp(1_795_323_600_000);

    type Headers = &'static [(&'static str, &'static str)];

    #[test]
    fn every_header_is_read() {
        let rows: [(Headers, Option<u64>); 23] = [
            (&[], None),
            (&[("retry-after", "20")], Some(20_000)),
            (&[("Retry-After", " 1.5 ")], Some(1_500)),
            (&[("retry-after", "0")], Some(0)),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "100000")], None),
            (&[("retry-after-ms", "250.5"), ("retry-after", "20")], Some(250)),
            (&[("retry-after-ms", "NaN"), ("retry-after", "20")], Some(20_000)),
            (&[("retry-after", "Sun, 22 Nov 2026 05:00:30 GMT")], Some(30_000)),
            (&[("retry-after", "Sunday, 22-Nov-26 05:00:30 GMT")], Some(30_000)),
            (&[("retry-after", "Sun Nov 22 05:00:30 2026")], Some(30_000)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], Some(0)),
            (&[("retry-after", "Sun, 31 Feb 2027 08:49:37 GMT")], None),
            (&[("x-ratelimit-reset-requests", "6m0s")], Some(360_000)),
            (&[("x-ratelimit-reset-tokens", "20ms")], Some(20)),
            (&[("x-ratelimit-reset", "1795323607000")], Some(7_000)),
            (&[("x-ratelimit-reset", "1795323607")], Some(7_000)),
            (&[("x-ratelimit-reset", "7")], Some(7_000)),
            (&[("anthropic-ratelimit-input-tokens-reset", "2026-11-22T05:00:07Z")], Some(7_000)),
            // A limit that is used up counts; of several the last one; otherwise the first to be
            // reset.
            (
                &[
                    ("x-ratelimit-remaining-requests", "99"),
                    ("x-ratelimit-remaining-tokens", "0"),
                    ("x-ratelimit-reset-requests", "1s"),
                    ("x-ratelimit-reset-tokens", "2m59.56s"),
                ],
                Some(179_560),
            ),
            (
                &[("x-ratelimit-reset-requests", "3m"), ("x-ratelimit-reset-tokens", "7.66s")],
                Some(7_660),
            ),
            (&[("x-ratelimit-limit-requests", "99"), ("x-ratelimit-", "1")], None),
        ];
        for (headers, millis) in rows {
            let wait = retry_after(headers.iter().copied(), NOW).map(|wait| wait.as_millis());
            assert_eq!(wait, millis.map(u128::from), "{headers:?}");
        }
    }
}
