//! An estimate that adapts its bytes per token to the counts that providers report.

use serde::{Deserialize, Serialize};

use super::{counter::TokenCounter, estimate::ByteEstimate};

/// The minimum and maximum ratio, in thousandths of a byte per token.
const BOUNDS: (u64, u64) = (1_000, 6_000);

/// A report raises the ratio of the base by at most one part in this many: a provider that counts
/// only a part of its prompt makes nothing look much smaller than it is.
const LIGHTER: u64 = 3;

/// The range of reported ratios that are learned from, in thousandths of a byte per token. A ratio
/// outside it means that the provider counted something else: images, or only a part of the prompt.
const PLAUSIBLE: (u64, u64) = (1_000, 8_000);

/// A report of more tokens than expected moves the ratio by one part in this many of the difference,
/// and one of fewer by half as much: a thread that looks too small is refused, and one that looks too
/// large is compacted a little early.
const SMOOTHING: u64 = 4;

/// A [`ByteEstimate`] whose ratio follows the counts that providers report. The ratio stays between
/// 1 byte per token and a third above the base, so that a provider that counts only a part of its
/// prompt does little harm, and a report moves it by a quarter of the difference at most, so that one
/// odd report has little effect.
///
/// All arithmetic is in integers: the same reports in the same order give the same ratio
/// everywhere.
///
/// # With a thread
///
/// A `Thread` counts each message once, when it is appended. If its counter changed later, the
/// thread would have to count all messages again. So let the thread count with the
/// [`base`](Self::base), which never changes, and [`scale`](Self::scale) the sums:
///
/// ```
/// use std::sync::Arc;
/// use threadfold::{Message, Thread, Usage, tokens::Calibrated};
///
/// let mut ratio = Calibrated::default();
/// let mut thread = Thread::new(Arc::new(ratio.base()));
/// thread.push(Message::user("x".repeat(2_988)));
/// assert_eq!(thread.size().tokens, 1_000);
///
/// // The model read the prompt as 1,200 tokens. Its answer is not in the estimate yet.
/// let usage = Usage::new(1_200, 80);
/// assert!(ratio.learn(thread.size().tokens, usage.input));
/// assert_eq!(ratio.bytes_per_token(), 2.875);
/// assert_eq!(ratio.scale(thread.size().tokens), 1_044);
/// ```
///
/// As a [`TokenCounter`] it counts text with its current ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Calibrated {
    base: ByteEstimate,
    /// Thousandths of a byte per token, within the bounds.
    ratio: u64,
}

/// The serde form. It may come from elsewhere, so deserializing bounds the ratio again.
#[derive(Serialize, Deserialize)]
struct Stored {
    base: u64,
    ratio: u64,
}

impl Calibrated {
    /// Returns a counter that starts with the ratio of an estimate, between 1 and 6 bytes per token.
    ///
    /// ```
    /// use threadfold::tokens::{ByteEstimate, Calibrated};
    ///
    /// assert_eq!(Calibrated::new(ByteEstimate::CHUNK).bytes_per_token(), 4.0);
    /// assert_eq!(Calibrated::new(ByteEstimate::new(100)).bytes_per_token(), 6.0);
    /// ```
    #[must_use]
    pub fn new(base: ByteEstimate) -> Self {
        let ratio = base.bytes_per_token().saturating_mul(1_000);
        Self { base, ratio: ratio.clamp(BOUNDS.0, BOUNDS.1) }
    }

    /// The estimate that it started with. [`learn`](Self::learn) and [`scale`](Self::scale) expect
    /// counts of this estimate.
    #[must_use]
    pub fn base(&self) -> ByteEstimate {
        self.base
    }

    /// The current ratio in bytes per token: at least 1, at most 6 and a third more than the base.
    #[must_use]
    pub fn bytes_per_token(&self) -> f64 {
        self.ratio as f64 / 1_000.0
    }

    /// Learns from one call: `estimated` is the base's count of the whole prompt (system prompt,
    /// tools and messages) in tokens, `reported` the provider's,
    /// [`Usage::input`](crate::Usage::input).
    ///
    /// Returns `false` and learns nothing if the report is implausible: zero tokens, fewer than one
    /// per eight bytes, or more than one per byte.
    ///
    /// ```
    /// use threadfold::tokens::Calibrated;
    ///
    /// let mut ratio = Calibrated::default();
    /// assert!(ratio.learn(1_000, 1_111));
    /// assert!(!ratio.learn(1_000, 0));
    /// assert!(!ratio.learn(1_000, 300), "ten bytes per token are implausible");
    /// assert_eq!(ratio.bytes_per_token(), 2.925);
    /// ```
    pub fn learn(&mut self, estimated: u64, reported: u64) -> bool {
        let Some(observed) = self.observed(estimated, reported) else { return false };
        let step = observed.abs_diff(self.ratio) / SMOOTHING;
        if observed < self.ratio {
            self.ratio -= step;
        } else {
            self.ratio += step / 2;
        }
        true
    }

    /// Learns from a refusal that states the size of the prompt: like [`learn`](Self::learn), but if
    /// the prompt is larger than it was thought to be, the ratio takes the whole difference, because
    /// the next request must fit.
    ///
    /// ```
    /// use threadfold::tokens::Calibrated;
    ///
    /// let mut ratio = Calibrated::default();
    /// assert!(ratio.learn_refusal(1_000, 1_500));
    /// assert_eq!(ratio.scale(1_000), 1_500);
    /// ```
    pub fn learn_refusal(&mut self, estimated: u64, found: u64) -> bool {
        match self.observed(estimated, found) {
            Some(observed) if observed < self.ratio => {
                self.ratio = observed;
                true
            }
            _ => self.learn(estimated, found),
        }
    }

    /// The ratio of a report, within the bounds; `None` if it is implausible.
    fn observed(&self, estimated: u64, reported: u64) -> Option<u64> {
        let thousandths = u128::from(estimated).saturating_mul(self.base_ratio());
        let observed = thousandths.checked_div(u128::from(reported))?;
        let observed = u64::try_from(observed).ok()?;
        (PLAUSIBLE.0..=PLAUSIBLE.1).contains(&observed).then(|| self.bounded(observed))
    }

    /// Converts tokens of the base estimate to tokens as providers report them, rounded up.
    ///
    /// ```
    /// use threadfold::tokens::{ByteEstimate, Calibrated};
    ///
    /// let ratio = Calibrated::new(ByteEstimate::TRIGGER);
    /// assert_eq!(ratio.scale(100), 100);
    /// ```
    #[must_use]
    pub fn scale(&self, estimated: u64) -> u64 {
        let thousandths = u128::from(estimated).saturating_mul(self.base_ratio());
        u64::try_from(thousandths.div_ceil(u128::from(self.ratio))).unwrap_or(u64::MAX)
    }

    /// Returns the greatest base estimate that stays within `reported` tokens of the provider: the
    /// inverse of [`scale`](Self::scale).
    ///
    /// ```
    /// use threadfold::tokens::Calibrated;
    ///
    /// let mut ratio = Calibrated::default();
    /// ratio.learn(1_000, 1_200);
    /// assert_eq!((ratio.unscale(1_044), ratio.scale(1_000)), (1_000, 1_044));
    /// ```
    #[must_use]
    pub fn unscale(&self, reported: u64) -> u64 {
        let thousandths = u128::from(reported).saturating_mul(u128::from(self.ratio));
        u64::try_from(thousandths / self.base_ratio()).unwrap_or(u64::MAX)
    }

    /// The nearest ratio that this counter may have.
    fn bounded(&self, ratio: u64) -> u64 {
        let own = Self::new(self.base).ratio;
        ratio.clamp(BOUNDS.0, own.saturating_add(own / LIGHTER).clamp(BOUNDS.0, BOUNDS.1))
    }

    /// The ratio of the base in thousandths of a byte per token; at least 1,000.
    fn base_ratio(&self) -> u128 {
        u128::from(self.base.bytes_per_token()) * 1_000
    }
}

impl Default for Calibrated {
    /// Starts with [`ByteEstimate::TRIGGER`].
    fn default() -> Self {
        Self::new(ByteEstimate::TRIGGER)
    }
}

impl TokenCounter for Calibrated {
    fn text(&self, text: &str) -> u64 {
        (text.len() as u64).saturating_mul(1_000).div_ceil(self.ratio)
    }
}

impl From<Stored> for Calibrated {
    fn from(stored: Stored) -> Self {
        let new = Self::new(ByteEstimate::new(stored.base));
        Self { ratio: new.bounded(stored.ratio), ..new }
    }
}

impl From<Calibrated> for Stored {
    fn from(calibrated: Calibrated) -> Self {
        Self { base: calibrated.base.bytes_per_token(), ratio: calibrated.ratio }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taught(reports: &[(u64, u64)]) -> u64 {
        let mut calibrated = Calibrated::default();
        for (estimated, reported) in reports {
            assert!(calibrated.learn(*estimated, *reported), "{estimated} {reported}");
        }
        calibrated.ratio
    }

    #[test]
    fn the_ratio_converges_to_the_reported_one() {
        // 27,000 bytes and 10,000 tokens: the ratio of coding threads.
        assert_eq!(taught(&[(9_000, 10_000)]), 2_925);
        assert_eq!(taught(&[(9_000, 10_000); 30]), 2_703);
        assert_eq!(taught(&[(9_000, 7_500); 30]), 3_586, "more slowly upwards");
    }

    #[test]
    fn no_report_moves_the_ratio_out_of_its_bounds() {
        assert_eq!(taught(&[(1_000, 3_000); 100]), 1_003);
        assert_eq!(taught(&[(8_000, 3_000); 100]), 3_993);
    }

    #[test]
    fn an_implausible_report_changes_nothing() {
        let mut calibrated = Calibrated::default();
        let absurd = [(0, 0), (0, 5), (5, 0), (1_000, 300), (1_000, 374), (1_000, 3_001)];
        let huge = [(u64::MAX, 1), (1, u64::MAX), (u64::MAX, 0)];
        for (estimated, reported) in absurd.into_iter().chain(huge) {
            assert!(!calibrated.learn(estimated, reported), "{estimated} {reported}");
        }
        assert_eq!(calibrated, Calibrated::default());
        assert!(calibrated.learn(u64::MAX, u64::MAX));
        assert!(!Calibrated::new(ByteEstimate::new(u64::MAX)).learn(u64::MAX, u64::MAX));
    }

    #[test]
    fn a_sum_is_scaled_without_overflow() {
        let mut calibrated = Calibrated::default();
        assert!(calibrated.learn(1_000, 1_200));
        let counted = calibrated.text(&"x".repeat(300_000));
        assert_eq!((counted, calibrated.scale(100_000)), (104_348, 104_348));
        assert_eq!(calibrated.scale(u64::MAX), u64::MAX);
        assert_eq!(Calibrated::new(ByteEstimate::new(u64::MAX)).scale(u64::MAX), u64::MAX);
    }

    #[test]
    fn what_a_report_leaves_room_for_never_exceeds_it() {
        for (estimated, reported) in [(1_000, 1_200), (1_000, 3_000), (1_000, 1_000), (1_000, 400)]
        {
            let mut calibrated = Calibrated::default();
            (0..9).for_each(|_| assert!(calibrated.learn(estimated, reported)));
            for tokens in [0, 1, 2, 999, 1_000, 200_000, u64::MAX / 4] {
                let limit = calibrated.unscale(tokens);
                assert!(limit <= tokens + tokens / LIGHTER);
                assert!(calibrated.scale(limit) <= tokens, "{reported} {tokens}");
                assert!(calibrated.scale(limit + 1) > tokens, "{reported} {tokens}");
            }
        }
    }

    #[test]
    fn a_stored_ratio_round_trips_and_a_corrupt_one_is_bounded() {
        let mut calibrated = Calibrated::default();
        assert!(calibrated.learn(1_000, 1_200));
        let stored = serde_json::to_string(&calibrated).unwrap();
        assert_eq!(stored, r#"{"base":3,"ratio":2875}"#);
        assert_eq!(serde_json::from_str::<Calibrated>(&stored).unwrap(), calibrated);
        let spoilt: Calibrated = serde_json::from_str(r#"{"base":0,"ratio":0}"#).unwrap();
        assert_eq!((spoilt.base.text("abcd"), spoilt.text("abc"), spoilt.scale(3)), (4, 3, 3));
    }
}
