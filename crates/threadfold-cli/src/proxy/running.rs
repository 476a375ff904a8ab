//! A proxy that runs, as the other commands on its folder see it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use threadfold::message::Timestamp;

use super::tally::Counts;

/// How often a proxy writes what it did, if that changed.
pub(super) const BEAT: Duration = Duration::from_secs(2);

/// A proxy that did nothing says that it runs after so many beats.
const QUIET: u64 = 15;

/// A proxy that was not heard of for this many milliseconds runs no more.
const GONE: u64 = 90_000;

/// What a proxy wrote last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Running {
    pub(crate) address: String,
    pub(crate) since: Timestamp,
    pub(crate) at: Timestamp,
    pub(crate) counts: Counts,
}

impl Running {
    pub(super) fn new(address: String, now: Timestamp) -> Self {
        Self { address, since: now, at: now, counts: Counts::default() }
    }

    /// Takes the counters of this time. Returns whether they are to be written.
    pub(super) fn beats(&mut self, counts: Counts, now: Timestamp) -> bool {
        let quiet = QUIET * u64::try_from(BEAT.as_millis()).unwrap_or(u64::MAX);
        if self.counts == counts && now.0.saturating_sub(self.at.0) < quiet {
            return false;
        }
        (self.counts, self.at) = (counts, now);
        true
    }

    pub(super) fn is_gone(&self, now: Timestamp) -> bool {
        now.0.saturating_sub(self.at.0) > GONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_that_does_nothing_is_written_seldom_and_one_that_is_silent_is_gone() {
        let mut running = Running::new("127.0.0.1:1".to_owned(), Timestamp(0));
        let counts = Counts { requests: 1, ..Counts::default() };
        assert!(running.beats(counts, Timestamp(2_000)));
        assert!(!running.beats(counts, Timestamp(4_000)));
        assert!(running.beats(counts, Timestamp(32_000)));
        assert!(!running.is_gone(Timestamp(64_000)));
        assert!(running.is_gone(Timestamp(122_001)));
    }
}
