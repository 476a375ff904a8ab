//! A circuit breaker: pauses attempts after several failures in a row.
//!
//! A strategy keeps no state between attempts, so the breaker counts failures. It opens after
//! [`AutoPolicy::max_consecutive_failures`] in a row, allows one trial after a pause, and closes
//! when a trial succeeds. Every failed trial doubles the pause.

use super::policy::AutoPolicy;
use crate::message::Timestamp;

/// The longest pause, unless the first one is longer.
const MAX_PAUSE_MS: u64 = 3_600_000;

/// Counts failures in a row and reports whether another attempt is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Breaker {
    /// Number of failures since the last success.
    pub(super) failures: u32,
    /// Time of the last failure that opened the breaker or kept it open.
    opened_at: Option<Timestamp>,
}

impl Breaker {
    /// Returns the end of the pause; `None` if an attempt is allowed now: the breaker is closed, or
    /// its pause is over.
    pub(super) fn paused_until(&self, policy: &AutoPolicy, now: Timestamp) -> Option<Timestamp> {
        let opened_at = self.opened_at?;
        let until = Timestamp(opened_at.0.saturating_add(self.pause_ms(policy)));
        // A time before `opened_at` means that the clock was set back. The pause then ends, because
        // it could last arbitrarily long.
        (opened_at..until).contains(&now).then_some(until)
    }

    /// Records a failure at this time.
    pub(super) fn failed(&mut self, policy: &AutoPolicy, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= policy.max_consecutive_failures.max(1) {
            self.opened_at = Some(now);
        }
    }

    /// The pause, doubled for every failure after those that opened the breaker.
    fn pause_ms(&self, policy: &AutoPolicy) -> u64 {
        let AutoPolicy { max_consecutive_failures, failure_pause_ms, .. } = *policy;
        let trials = self.failures.saturating_sub(max_consecutive_failures.max(1));
        let factor = 2_u64.checked_pow(trials).unwrap_or(u64::MAX);
        failure_pause_ms.saturating_mul(factor).min(MAX_PAUSE_MS.max(failure_pause_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(max_consecutive_failures: u32, failure_pause_ms: u64) -> AutoPolicy {
        AutoPolicy { max_consecutive_failures, failure_pause_ms, ..AutoPolicy::default() }
    }

    #[test]
    fn pauses_grow_up_to_the_longest_and_a_success_ends_them() {
        let (policy, mut breaker) = (policy(2, 1_200_000), Breaker::default());
        let at = |minute: u64| Timestamp(minute * 60_000);
        // The event, its minute, and the end of the pause if the breaker is open afterwards.
        let rows = [
            ("fails", 0, None),
            ("fails", 5, Some(25)),
            ("fails", 25, Some(65)),
            ("fails", 65, Some(125)),
            ("fails", 125, Some(185)),
            ("works", 185, None),
            ("fails", 186, None),
            ("fails", 187, Some(207)),
        ];
        for (number, (event, now, until)) in rows.into_iter().enumerate() {
            let paused = |breaker: &Breaker, now| breaker.paused_until(&policy, now);
            assert_eq!(paused(&breaker, at(now)), None, "row {number}");
            if event == "fails" {
                breaker.failed(&policy, at(now));
            } else {
                breaker = Breaker::default();
            }
            assert_eq!(paused(&breaker, at(now)), until.map(at), "row {number}");
            if let Some(Timestamp(until)) = until.map(at) {
                assert!(paused(&breaker, Timestamp(until - 1)).is_some(), "row {number}");
                assert!(paused(&breaker, Timestamp(until)).is_none(), "row {number}");
            }
        }
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_keep_it_open() {
        let (policy, mut breaker) = (policy(0, 60_000), Breaker::default());
        breaker.failed(&policy, Timestamp(1_000_000));
        assert!(breaker.paused_until(&policy, Timestamp(1_000_000)).is_some());
        assert!(breaker.paused_until(&policy, Timestamp(5)).is_none());
    }

    #[test]
    fn no_number_of_failures_overflows_the_pause() {
        let opened_at = Some(Timestamp(u64::MAX));
        let (policy, mut breaker) = (policy(3, 60_000), Breaker { failures: u32::MAX, opened_at });
        breaker.failed(&policy, Timestamp(u64::MAX - 1));
        let until = breaker.paused_until(&policy, Timestamp(u64::MAX - 1));
        assert_eq!((breaker.failures, until), (u32::MAX, Some(Timestamp(u64::MAX))));
    }
}
