//! A circuit breaker: pauses attempts after several failures in a row.
//!
//! A strategy keeps no state between attempts, so the host counts failures. The breaker is that
//! counter, with the time as an argument. It opens after [`BreakerOptions::max_failures`] failures
//! in a row, allows one trial after a pause, and closes when a trial succeeds. Every failed trial
//! doubles the pause.

use serde::{Deserialize, Serialize};

use crate::message::Timestamp;

/// When a [`Breaker`] opens, and for how long it stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerOptions {
    /// Number of failures in a row that open it. Zero counts as one.
    pub max_failures: u32,
    /// First pause, in milliseconds.
    pub pause_ms: u64,
    /// Longest pause, in milliseconds.
    pub max_pause_ms: u64,
}

impl Default for BreakerOptions {
    fn default() -> Self {
        Self { max_failures: 3, pause_ms: 60_000, max_pause_ms: 3_600_000 }
    }
}

/// Counts failures in a row and reports whether another attempt is allowed.
///
/// ```
/// use threadfold::{message::Timestamp, strategy::Breaker};
///
/// let mut breaker = Breaker::default();
/// for second in 0..3 {
///     assert!(breaker.allows(Timestamp(second * 1_000)));
///     breaker.failed(Timestamp(second * 1_000));
/// }
/// assert!(!breaker.allows(Timestamp(3_000)));
/// assert!(breaker.allows(Timestamp(62_000)));
/// breaker.succeeded();
/// assert!(breaker.allows(Timestamp(62_001)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Breaker {
    options: BreakerOptions,
    failures: u32,
    /// Time of the last failure that opened it or kept it open.
    opened_at: Option<Timestamp>,
}

/// The breaker is open: there were too many failures in a row and the pause is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("paused after {failures} failures in a row, until {until}")]
#[non_exhaustive]
pub struct BreakerOpen {
    /// Number of failures in a row.
    pub failures: u32,
    /// When the next attempt is allowed.
    pub until: Timestamp,
}

impl Breaker {
    /// Returns a closed breaker.
    #[must_use]
    pub fn new(options: BreakerOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Number of failures since the last success.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether an attempt is allowed now: the breaker is closed, or its pause is over.
    ///
    /// ```
    /// use threadfold::{message::Timestamp, strategy::{Breaker, BreakerOptions}};
    ///
    /// let mut breaker = Breaker::new(BreakerOptions { max_failures: 1, ..BreakerOptions::default() });
    /// breaker.failed(Timestamp(100_000));
    /// assert!(!breaker.allows(Timestamp(159_999)));
    /// assert!(breaker.allows(Timestamp(160_000)), "the pause is over");
    /// assert!(breaker.allows(Timestamp(99_999)), "a clock that was set back keeps nobody waiting");
    /// ```
    #[must_use]
    pub fn allows(&self, now: Timestamp) -> bool {
        self.check(now).is_ok()
    }

    /// Like [`allows`](Self::allows), but returns the reason.
    ///
    /// ```
    /// use threadfold::{message::Timestamp, strategy::{Breaker, BreakerOptions}};
    ///
    /// let mut breaker = Breaker::new(BreakerOptions { max_failures: 2, ..BreakerOptions::default() });
    /// breaker.failed(Timestamp(0));
    /// assert!(breaker.check(Timestamp(1)).is_ok());
    /// breaker.failed(Timestamp(2));
    /// let open = breaker.check(Timestamp(3)).unwrap_err();
    /// assert!(breaker.allows(open.until));
    /// ```
    ///
    /// # Errors
    ///
    /// [`BreakerOpen`], with the end of the pause.
    pub fn check(&self, now: Timestamp) -> Result<(), BreakerOpen> {
        let Some(opened_at) = self.opened_at else { return Ok(()) };
        let until = Timestamp(opened_at.0.saturating_add(self.pause_ms()));
        // If the clock was set back, the pause would otherwise last until it catches up.
        if now >= until || now < opened_at {
            return Ok(());
        }
        Err(BreakerOpen { failures: self.failures, until })
    }

    /// Records a success: closes the breaker and resets the count.
    ///
    /// ```
    /// use threadfold::{message::Timestamp, strategy::Breaker};
    ///
    /// let mut breaker = Breaker::default();
    /// breaker.failed(Timestamp(0));
    /// breaker.succeeded();
    /// assert_eq!(breaker, Breaker::default());
    /// ```
    pub fn succeeded(&mut self) {
        *self = Self::new(self.options);
    }

    /// Records a failure at this time.
    ///
    /// ```
    /// use threadfold::{message::Timestamp, strategy::{Breaker, BreakerOptions}};
    ///
    /// let mut breaker = Breaker::new(BreakerOptions { max_failures: 1, ..BreakerOptions::default() });
    /// breaker.failed(Timestamp(0));
    /// assert!(breaker.allows(Timestamp(60_000)));
    /// breaker.failed(Timestamp(60_000));
    /// assert!(!breaker.allows(Timestamp(120_000)), "the second pause is twice as long");
    /// assert!(breaker.allows(Timestamp(180_000)));
    /// ```
    pub fn failed(&mut self, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= self.max_failures() {
            self.opened_at = Some(now);
        }
    }

    fn max_failures(&self) -> u32 {
        self.options.max_failures.max(1)
    }

    /// The pause, doubled for every failure after those that opened the breaker.
    fn pause_ms(&self) -> u64 {
        let trials = self.failures.saturating_sub(self.max_failures());
        let factor = 2_u64.checked_pow(trials).unwrap_or(u64::MAX);
        self.options.pause_ms.saturating_mul(factor).min(self.options.max_pause_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest_and_a_success_ends_them() {
        let options = BreakerOptions { max_failures: 2, pause_ms: 10, max_pause_ms: 35 };
        let mut breaker = Breaker::new(options);
        // The event, its time, and the end of the pause if the breaker is open afterwards.
        let rows = [
            ("fails", 0, None),
            ("fails", 5, Some(15)),
            ("fails", 15, Some(35)),
            ("fails", 35, Some(70)),
            ("fails", 70, Some(105)),
            ("works", 105, None),
            ("fails", 106, None),
            ("fails", 107, Some(117)),
        ];
        for (number, (event, now, until)) in rows.into_iter().enumerate() {
            assert!(breaker.allows(Timestamp(now)), "row {number}");
            if event == "fails" {
                breaker.failed(Timestamp(now));
            } else {
                breaker.succeeded();
            }
            let open = breaker.check(Timestamp(now)).err().map(|open| open.until.0);
            assert_eq!(open, until, "row {number}");
            if let Some(until) = until {
                assert!(!breaker.allows(Timestamp(until - 1)), "row {number}");
                assert!(breaker.allows(Timestamp(until)), "row {number}");
            }
        }
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_keep_it_open() {
        let mut breaker = Breaker::new(BreakerOptions { max_failures: 0, ..Default::default() });
        breaker.failed(Timestamp(1_000_000));
        assert!(!breaker.allows(Timestamp(1_000_000)));
        assert!(breaker.allows(Timestamp(5)));
    }

    #[test]
    fn no_number_of_failures_overflows_the_pause() {
        let stored = r#"{"failures":4294967295,"opened_at":18446744073709551615}"#;
        let mut breaker: Breaker = serde_json::from_str(stored).unwrap();
        breaker.failed(Timestamp(u64::MAX - 1));
        let open = BreakerOpen { failures: u32::MAX, until: Timestamp(u64::MAX) };
        assert_eq!(breaker.check(Timestamp(u64::MAX - 1)), Err(open));
        let text = serde_json::to_string(&breaker).unwrap();
        assert_eq!(serde_json::from_str::<Breaker>(&text).unwrap(), breaker);
    }

    #[test]
    fn an_open_breaker_says_until_when() {
        let open = BreakerOpen { failures: 3, until: Timestamp(60_000) };
        let expected = "paused after 3 failures in a row, until 1970-01-01T00:01:00.000Z";
        assert_eq!(open.to_string(), expected);
    }
}
