//! A circuit breaker: pauses attempts after several failures in a row.
//!
//! A strategy keeps no state between attempts, so somebody else has to count failures. The breaker
//! opens after `max_failures` of them in a row, allows one trial after a pause, and closes when a
//! trial succeeds. Every failed trial doubles the pause.

use crate::message::Timestamp;

/// The longest pause, unless the first one is longer.
const MAX_PAUSE_MS: u64 = 3_600_000;

/// Counts failures in a row and reports whether another attempt is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Breaker {
    /// Number of failures in a row that open it. Zero counts as one.
    max_failures: u32,
    /// First pause, in milliseconds.
    pause_ms: u64,
    /// Longest pause, in milliseconds.
    max_pause_ms: u64,
    failures: u32,
    /// Time of the last failure that opened it or kept it open.
    opened_at: Option<Timestamp>,
}

impl Breaker {
    /// Returns a closed breaker, which this many failures in a row open for this long at first.
    pub(super) fn new(max_failures: u32, pause_ms: u64) -> Self {
        let max_pause_ms = MAX_PAUSE_MS.max(pause_ms);
        Self { max_failures, pause_ms, max_pause_ms, ..Self::default() }
    }

    /// Number of failures since the last success.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether an attempt is allowed now: the breaker is closed, or its pause is over.
    pub(super) fn allows(&self, now: Timestamp) -> bool {
        self.paused_until(now).is_none()
    }

    /// Returns the end of the pause; `None` if an attempt is allowed now.
    pub(super) fn paused_until(&self, now: Timestamp) -> Option<Timestamp> {
        let opened_at = self.opened_at?;
        let until = Timestamp(opened_at.0.saturating_add(self.pause_ms()));
        // If the clock was set back, the pause would otherwise last until it catches up.
        (opened_at..until).contains(&now).then_some(until)
    }

    /// Records a success: closes the breaker and resets the count.
    pub(super) fn succeeded(&mut self) {
        (self.failures, self.opened_at) = (0, None);
    }

    /// Records a failure at this time.
    pub(super) fn failed(&mut self, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= self.max_failures.max(1) {
            self.opened_at = Some(now);
        }
    }

    /// The pause, doubled for every failure after those that opened the breaker.
    fn pause_ms(&self) -> u64 {
        let trials = self.failures.saturating_sub(self.max_failures.max(1));
        let factor = 2_u64.checked_pow(trials).unwrap_or(u64::MAX);
        self.pause_ms.saturating_mul(factor).min(self.max_pause_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest_and_a_success_ends_them() {
        let mut breaker = Breaker { max_pause_ms: 35, ..Breaker::new(2, 10) };
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
            let open = breaker.paused_until(Timestamp(now)).map(|until| until.0);
            assert_eq!(open, until, "row {number}");
            if let Some(until) = until {
                assert!(!breaker.allows(Timestamp(until - 1)), "row {number}");
                assert!(breaker.allows(Timestamp(until)), "row {number}");
            }
        }
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_keep_it_open() {
        let mut breaker = Breaker::new(0, 60_000);
        breaker.failed(Timestamp(1_000_000));
        assert!(!breaker.allows(Timestamp(1_000_000)));
        assert!(breaker.allows(Timestamp(5)));
    }

    #[test]
    fn no_number_of_failures_overflows_the_pause() {
        let opened_at = Some(Timestamp(u64::MAX));
        let mut breaker = Breaker { failures: u32::MAX, opened_at, ..Breaker::new(3, 60_000) };
        breaker.failed(Timestamp(u64::MAX - 1));
        let until = breaker.paused_until(Timestamp(u64::MAX - 1));
        assert_eq!((breaker.failures(), until), (u32::MAX, Some(Timestamp(u64::MAX))));
    }
}
