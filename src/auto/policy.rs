//! What a host decides about automatic compaction.

use serde::{Deserialize, Serialize};

use super::pressure::Pressure;
use crate::message::ContextWindow;

/// When the thread is compacted ahead of need, and how far.
///
/// ```
/// use threadfold::auto::{AutoPolicy, Target, Threshold};
///
/// // In settings, what is not named is as by default.
/// let settings = r#"{"threshold": {"remaining": 20000}, "target": {"fraction": 0.4}}"#;
/// let policy: AutoPolicy = serde_json::from_str(settings)?;
/// let (threshold, target) = (Threshold::Remaining(20_000), Target::Fraction(0.4));
/// assert_eq!(policy, AutoPolicy { threshold, target, ..AutoPolicy::default() });
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AutoPolicy {
    /// Whether it is at all. What the window cannot hold is compacted all the same.
    pub enabled: bool,
    /// From which size on.
    pub threshold: Threshold,
    /// To which size.
    pub target: Target,
    /// Tokens of the window that are kept for the answer. The threshold is of what is left.
    pub output_reserve: u64,
    /// How long nothing fires after a success, in milliseconds.
    pub cooldown_ms: u64,
    /// What to do while no provider has said how full the context is.
    pub unknown_usage: UnknownUsage,
    /// After how many failures in a row there is a pause.
    pub max_consecutive_failures: u32,
    /// How long the first such pause is, in milliseconds. Every further failure doubles it.
    pub failure_pause_ms: u64,
    /// How many compactions may be tried for one request that the window cannot hold, and how many
    /// for one that the provider refuses as too long. A turn may have many such requests.
    pub max_reactive: u32,
    /// Whether a finished turn may be compacted too, for hosts that are idle then.
    pub after_turn: bool,
}

/// From which size on the soft trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Threshold {
    /// From this share of the window on: 0 to 1. Source: the common practice of agents, at 0.8.
    Fraction(f64),
    /// From this many tokens on.
    Tokens(u64),
    /// As soon as no more than this many tokens are left.
    Remaining(u64),
    /// When the messages alone have more than this share of the window, less system prompt, tools
    /// and output reserve. Only estimates count.
    MessagesOver(f64),
}

/// To which size a compaction is to bring the context.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Target {
    /// This share of the window: 0 to 1.
    Fraction(f64),
    /// This many tokens.
    Tokens(u64),
}

/// What to do while no provider has said how full the context is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownUsage {
    /// The soft trigger waits. The hard check estimates anyway.
    #[default]
    Skip,
    /// The soft trigger goes by the estimate.
    Estimate,
}

/// Why a policy cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A share is not one.
    #[error("a share of the window is between 0 and 1, not {found}")]
    Share {
        /// What was given.
        found: f64,
    },
}

impl Default for AutoPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            threshold: Threshold::Fraction(0.8),
            target: Target::Fraction(0.5),
            output_reserve: 0,
            cooldown_ms: 60_000,
            unknown_usage: UnknownUsage::Skip,
            max_consecutive_failures: 3,
            failure_pause_ms: 60_000,
            max_reactive: 2,
            after_turn: false,
        }
    }
}

impl AutoPolicy {
    /// Checks that every share is one: 80 is not 0.8.
    ///
    /// ```
    /// use threadfold::auto::{AutoPolicy, Threshold};
    ///
    /// let policy = AutoPolicy { threshold: Threshold::Fraction(80.0), ..AutoPolicy::default() };
    /// let error = policy.check().unwrap_err();
    /// assert_eq!(error.to_string(), "a share of the window is between 0 and 1, not 80");
    /// ```
    ///
    /// # Errors
    ///
    /// [`PolicyError::Share`].
    pub fn check(&self) -> Result<(), PolicyError> {
        let threshold = match self.threshold {
            Threshold::Fraction(share) | Threshold::MessagesOver(share) => Some(share),
            Threshold::Tokens(_) | Threshold::Remaining(_) => None,
        };
        let target = match self.target {
            Target::Fraction(share) => Some(share),
            Target::Tokens(_) => None,
        };
        let wrong = |share: &f64| !(0.0..=1.0).contains(share);
        match [threshold, target].into_iter().flatten().find(wrong) {
            Some(found) => Err(PolicyError::Share { found }),
            None => Ok(()),
        }
    }

    /// Whether the soft trigger is over its threshold. Without a window or a count it never is.
    pub(super) fn is_over(&self, pressure: &Pressure) -> bool {
        let Some(level) = self.level(pressure) else { return false };
        if let Threshold::MessagesOver(share) = self.threshold {
            let all = pressure.window.map_or(0, |window| window.tokens());
            let around = self.output_reserve.saturating_add(pressure.overhead);
            let room = down(all, share).checked_sub(around).filter(|room| *room > 0);
            return room.is_none_or(|room| pressure.messages() > room);
        }
        let tokens = match (pressure.reported, self.unknown_usage) {
            (None, UnknownUsage::Skip) => return false,
            (Some(_), _) | (None, UnknownUsage::Estimate) => pressure.tokens(),
        };
        tokens >= level
    }

    /// Whether the soft trigger goes by estimates where nobody counts.
    pub(super) fn estimates(&self) -> bool {
        matches!(self.threshold, Threshold::MessagesOver(_))
            || self.unknown_usage == UnknownUsage::Estimate
    }

    /// Whether the soft trigger fires however much is taken out of the thread.
    pub(super) fn is_hopeless(&self, pressure: &Pressure) -> bool {
        let least = Pressure { reported: Some(0), since: 0, thread: pressure.newest, ..*pressure };
        self.is_over(&least)
    }

    /// From how many tokens of a whole request on the soft trigger fires.
    pub(super) fn level(&self, pressure: &Pressure) -> Option<u64> {
        let room = self.room(pressure)?;
        Some(match self.threshold {
            // Rounded up: at 0.8 of 101, 81 tokens are over and 80 are not.
            Threshold::Fraction(share) => up(room, share),
            Threshold::Tokens(tokens) => tokens,
            Threshold::Remaining(tokens) => room.saturating_sub(tokens),
            Threshold::MessagesOver(share) => {
                let all = pressure.window.map_or(0, ContextWindow::tokens);
                down(all, share).saturating_sub(self.output_reserve).saturating_add(1)
            }
        })
    }

    /// How many tokens the thread should have after a compaction, next to what stands around it,
    /// where a request of so many fits.
    pub(super) fn target(&self, pressure: &Pressure, fits: u64, aim: Aim) -> u64 {
        let floor = pressure.floor();
        let room = self.room(pressure).unwrap_or(u64::MAX).min(fits);
        // A target at or over the threshold would fire again at once. Where the threshold cannot be
        // met, what fits has to do.
        let silent = self.level(pressure).unwrap_or(u64::MAX).saturating_sub(1).min(fits);
        let most = if floor < silent { silent } else { fits };
        let wanted = match self.target {
            Target::Fraction(share) => down(room, share),
            Target::Tokens(tokens) => tokens,
        };
        let wanted = wanted.min(most);
        let halfway = |from: u64| from.saturating_add(most.saturating_sub(from) / 2);
        let whole = match aim {
            // Nothing brings the thread below its newest turn.
            Aim::Wanted if wanted <= floor => halfway(floor),
            Aim::Wanted => wanted,
            Aim::Halfway => halfway(wanted.max(floor)),
            Aim::Fits => fits,
        };
        whole.saturating_sub(pressure.overhead).saturating_sub(pressure.pending)
    }

    /// What is left of the window beside the output reserve.
    pub(super) fn room(&self, pressure: &Pressure) -> Option<u64> {
        Some(pressure.window?.tokens().saturating_sub(self.output_reserve))
    }
}

/// How far a compaction is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// To the target of the policy, or as near as can be reached.
    Wanted,
    /// Half as far: the target was missed before.
    Halfway,
    /// So far that the request fits, and no further.
    Fits,
}

fn down(tokens: u64, share: f64) -> u64 {
    exact(tokens, share).floor() as u64
}

fn up(tokens: u64, share: f64) -> u64 {
    exact(tokens, share).ceil() as u64
}

/// The share as it was written: 0.55 of 200,000 is 110,000, although the floats say a little more.
fn exact(tokens: u64, share: f64) -> f64 {
    let product = tokens as f64 * share;
    if (product - product.round()).abs() < 1e-6 { product.round() } else { product }
}
