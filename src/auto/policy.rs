//! The settings of automatic compaction.

use serde::{Deserialize, Serialize};

use super::pressure::Pressure;
use crate::{
    compact::Prices,
    message::{ContextWindow, InvalidValue},
};

options! {
    /// When a thread is compacted before it exceeds the window, and to which size.
    ///
    /// ```
    /// use threadfold::auto::{AutoPolicy, Threshold};
    ///
    /// // Fields that the settings do not name keep their defaults.
    /// let settings = r#"{"threshold": {"remaining": 20000}, "target": {"fraction": 0.4}}"#;
    /// let policy: AutoPolicy = serde_json::from_str(settings)?;
    /// let (threshold, target) = (Threshold::Remaining(20_000), Threshold::Fraction(0.4));
    /// assert_eq!(policy, AutoPolicy { threshold, target, ..AutoPolicy::default() });
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct AutoPolicy {
        /// Enables the soft trigger. Requests that exceed the window are compacted regardless.
        pub enabled: bool = true,
        /// The size at which the soft trigger fires.
        pub threshold: Threshold = Threshold::Fraction(0.8),
        /// The size that a compaction should reach.
        pub target: Threshold = Threshold::Fraction(0.5),
        /// The minimum number of tokens of the window that are kept for the answer. If a request
        /// asks for a longer answer (`max_output`), its `max_output` is kept, but at most a quarter
        /// of the window: a provider that refuses a request whose prompt and `max_output` together
        /// exceed the window gets a smaller
        /// [`max_output`](super::AutoCompactor::max_output). The threshold is a share of the rest. If
        /// what no compaction can remove does not fit the rest, nothing is kept for the answer, and
        /// [`Output::ShortAnswer`](super::Output::ShortAnswer) says so.
        pub output_reserve: u64 = 0,
        /// The share of the window by which the context must grow after a compaction before the soft
        /// trigger fires again, 0 to 1; at most half of the trigger's size. So a compaction that
        /// could not free much is not followed by the next one at once: each is a paid call and
        /// breaks the provider's cache. Until then only a request that does not fit is compacted. With
        /// [`prices`](Self::prices), which weigh just that, a fifth of this growth is enough if
        /// compactions may be [`early`](Self::early).
        pub min_growth: f64 = 0.25,
        /// Whether the soft trigger estimates the context while no provider has counted it;
        /// otherwise it waits. The hard check estimates in any case.
        pub estimates_usage: bool = true,
        /// The number of consecutive failures after which automatic compaction pauses.
        pub max_consecutive_failures: u32 = 3,
        /// The length of the first pause after failures, in milliseconds. Every further failure
        /// doubles it.
        pub failure_pause_ms: u64 = 60_000,
        /// The maximum number of compactions for one request that does not fit, by the estimate or
        /// because the provider refused it. A turn may have many such requests. Whatever this is,
        /// one request is sent at most [three times](super::MAX_SENDS).
        pub max_reactive: u32 = 2,
        /// Whether the soft trigger also runs after a turn, for hosts that are idle then.
        pub after_turn: bool = false,
        /// The prices of the model. With them, reports state what a compaction costs, and the soft
        /// trigger fires when it pays: before the threshold if the requests since the last
        /// compaction have paid for it or the provider's cache is cold anyway. `None` by default:
        /// then only the threshold decides.
        pub prices: Option<Prices> = None,
        /// With prices: whether the soft trigger may fire before the threshold if that pays.
        /// Otherwise prices only decide about pauses of the user.
        pub early: bool = true,
        /// With prices: whether the last prompt may be sent again while the user is away, to keep the
        /// provider's cache alive. Each time is a paid request.
        pub keep_alive: bool = true,
        /// With prices: the minimum number of tokens that a compaction by the soft trigger must
        /// save.
        pub min_gain: u64 = 0,
        /// With prices: the number of requests that the host still expects, if it knows. A
        /// compaction that costs more than they would save is skipped as long as they fit.
        pub requests_left: Option<u64> = None,
        /// With prices: the expected tokens of a model's summary. The model also reads the whole
        /// prompt to write it. 0 for a strategy that calls no model.
        pub summary_tokens: u64 = 2_000,
    }
}

/// A size of the next request: at which the soft trigger fires, or which a compaction should reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Threshold {
    /// This share of the window, 0 to 1. Most coding agents use about 0.8 for the trigger.
    Fraction(f64),
    /// This many tokens.
    Tokens(u64),
    /// The window minus this many tokens.
    Remaining(u64),
    /// The messages exceed this share of what the system prompt, the tools and the output reserve
    /// leave of the window. The trigger uses only estimates for this.
    MessagesOver(f64),
}

impl AutoPolicy {
    /// Checks that every share is between 0 and 1 (0.8, not 80) and that no price is negative.
    ///
    /// ```
    /// use threadfold::auto::{AutoPolicy, Threshold};
    ///
    /// let policy = AutoPolicy { threshold: Threshold::Fraction(80.0), ..AutoPolicy::default() };
    /// let error = policy.check().unwrap_err();
    /// assert!(error.to_string().starts_with("\"80\" is not a share of the window"));
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] for a share that is not between 0 and 1, or a negative price.
    pub fn check(&self) -> Result<(), InvalidValue> {
        let [threshold, target] = [self.threshold, self.target].map(|size| match size {
            Threshold::Fraction(share) | Threshold::MessagesOver(share) => Some(share),
            Threshold::Tokens(_) | Threshold::Remaining(_) => None,
        });
        self.prices.map_or(Ok(()), |prices| prices.check())?;
        let mut shares = [threshold, target, Some(self.min_growth)].into_iter().flatten();
        match shares.find(|share| !(0.0..=1.0).contains(share)) {
            Some(found) => {
                let rule = "expected a number from 0 to 1";
                Err(InvalidValue::new("a share of the window", rule, &found.to_string()))
            }
            None => Ok(()),
        }
    }

    /// Whether the soft trigger is over its threshold. Without a window or a count it never is.
    pub(super) fn is_over(&self, pressure: &Pressure) -> bool {
        let Some(level) = self.level(pressure) else { return false };
        if let Threshold::MessagesOver(share) = self.threshold {
            let all = pressure.window.map_or(0, |window| window.tokens());
            let around = self.reserve(pressure).saturating_add(pressure.overhead);
            let room = down(all, share).checked_sub(around).filter(|room| *room > 0);
            return room.is_none_or(|room| pressure.messages() > room);
        }
        (pressure.reported.is_some() || self.estimates_usage) && pressure.tokens() >= level
    }

    /// Whether the soft trigger uses estimates while no provider has reported a count.
    pub(super) fn estimates(&self) -> bool {
        matches!(self.threshold, Threshold::MessagesOver(_)) || self.estimates_usage
    }

    /// Whether the context would be over the threshold even if everything removable were removed.
    pub(super) fn is_hopeless(&self, pressure: &Pressure) -> bool {
        let least = Pressure { reported: Some(0), since: 0, thread: pressure.newest, ..*pressure };
        self.is_over(&least)
    }

    /// The size of a request, in tokens, from which the soft trigger fires.
    pub(super) fn level(&self, pressure: &Pressure) -> Option<u64> {
        let room = self.room(pressure)?;
        Some(match self.threshold {
            // Rounded up: at 0.8 of 101, 81 tokens are over and 80 are not.
            Threshold::Fraction(share) => up(room, share),
            // The first size above the threshold.
            Threshold::MessagesOver(_) => self.size(self.threshold, pressure, 0).saturating_add(1),
            Threshold::Tokens(_) | Threshold::Remaining(_) => {
                self.size(self.threshold, pressure, room)
            }
        })
    }

    /// The size of a request that a threshold states, rounded down, if `room` tokens fit.
    fn size(&self, threshold: Threshold, pressure: &Pressure, room: u64) -> u64 {
        match threshold {
            Threshold::Fraction(share) => down(room, share),
            Threshold::Tokens(tokens) => tokens,
            Threshold::Remaining(tokens) => room.saturating_sub(tokens),
            Threshold::MessagesOver(share) => {
                let all = pressure.window.map_or(0, ContextWindow::tokens);
                down(all, share).saturating_sub(self.reserve(pressure))
            }
        }
    }

    /// The size that a compaction should reach if a request of `fits` tokens fits.
    pub(super) fn goal(&self, pressure: &Pressure, fits: u64) -> Goal {
        // Unread results that exceed what fits are cut to as much as fits.
        let floor = pressure.floor().saturating_add(pressure.said).min(fits);
        let room = self.room(pressure).unwrap_or(u64::MAX).min(fits);
        // At the threshold the trigger would fire again at once. If the floor alone is over the
        // threshold, fitting the window is all that a compaction can achieve.
        let silent = self.level(pressure).unwrap_or(u64::MAX).saturating_sub(1).min(fits);
        let most = if floor < silent { silent } else { fits };
        let wanted = self.size(self.target, pressure, room).min(most);
        // No compaction brings the thread below its floor, so for a lower target aim halfway
        // between floor and limit.
        let near = floor.saturating_add(most.saturating_sub(floor) / 2);
        let target = if wanted <= floor { near } else { wanted };
        Goal { target: pressure.of_thread(target), limit: pressure.of_thread(most) }
    }

    /// The tokens that fit: the window without the output reserve, or the whole window if the
    /// reserve leaves too little for what no compaction can remove.
    pub(super) fn room(&self, pressure: &Pressure) -> Option<u64> {
        let window = pressure.window?.tokens();
        let room = window.saturating_sub(self.reserve(pressure));
        Some(if self.waives_reserve(pressure) { window } else { room })
    }

    /// Whether the reserve leaves too little for what no compaction can remove, so that nothing is
    /// kept for the answer.
    pub(super) fn waives_reserve(&self, pressure: &Pressure) -> bool {
        let reserve = self.reserve(pressure);
        let Some(window) = pressure.window.map(ContextWindow::tokens) else { return false };
        // A summary, and the calls that unread results answer, need some room too.
        let needed = pressure.floor().saturating_add(pressure.said).saturating_add(window / 16);
        reserve > 0 && needed > window.saturating_sub(reserve)
    }

    /// The tokens that are kept for the answer.
    fn reserve(&self, pressure: &Pressure) -> u64 {
        let most = pressure.window.map_or(u64::MAX, |window| window.tokens() / 4);
        self.output_reserve.max(pressure.output.min(most))
    }

    /// The window of which this many tokens are left beside the output reserve.
    pub(super) fn window_of(&self, room: u64, pressure: &Pressure) -> u64 {
        room.saturating_add(self.output_reserve.max(pressure.output.min(room / 3)))
    }

    /// The growth in tokens after a compaction from which the soft trigger may fire again.
    pub(super) fn growth(&self, pressure: &Pressure) -> u64 {
        // With prices, the planner knows better what a compaction costs.
        let share = if self.prices.is_some() && self.early {
            self.min_growth / 5.0
        } else {
            self.min_growth
        };
        let share = up(pressure.window.map_or(0, ContextWindow::tokens), share);
        share.min(self.level(pressure).unwrap_or(u64::MAX) / 2)
    }
}

/// The sizes for which a compaction aims, in tokens of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Goal {
    /// The policy's target, or the nearest size that can be reached.
    pub(super) target: u64,
    /// The largest size at which the trigger does not fire and the request fits.
    pub(super) limit: u64,
}

fn down(tokens: u64, share: f64) -> u64 {
    exact(tokens, share).floor() as u64
}

fn up(tokens: u64, share: f64) -> u64 {
    exact(tokens, share).ceil() as u64
}

/// The share of the tokens, with the float error removed: 0.55 of 200,000 is 110,000, but the
/// product of the floats is slightly more.
fn exact(tokens: u64, share: f64) -> f64 {
    let product = tokens as f64 * share;
    if (product - product.round()).abs() < 1e-6 { product.round() } else { product }
}
