//! What a host decides about automatic compaction.

use serde::{Deserialize, Serialize};

use super::pressure::Pressure;

/// When the thread is compacted ahead of need, and how far.
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
    /// How many compactions a turn may have that a request too long for the window called for.
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
        let Some(window) = self.room(pressure) else { return false };
        if let Threshold::MessagesOver(share) = self.threshold {
            let all = pressure.window.map_or(0, |window| window.tokens());
            let around = self.output_reserve.saturating_add(pressure.overhead);
            let room = part(all, share).checked_sub(around).filter(|room| *room > 0);
            return room.is_none_or(|room| pressure.messages() > room);
        }
        let tokens = match (pressure.reported, self.unknown_usage) {
            (None, UnknownUsage::Skip) => return false,
            (Some(_), _) | (None, UnknownUsage::Estimate) => pressure.tokens(),
        };
        tokens >= self.level(window)
    }

    /// Whether the soft trigger goes by estimates where nobody counts.
    pub(super) fn estimates(&self) -> bool {
        matches!(self.threshold, Threshold::MessagesOver(_))
            || self.unknown_usage == UnknownUsage::Estimate
    }

    /// From how many tokens on the soft trigger fires.
    pub(super) fn level(&self, window: u64) -> u64 {
        match self.threshold {
            // Rounded up: at 0.8 of 101, 81 tokens are over and 80 are not.
            Threshold::Fraction(share) | Threshold::MessagesOver(share) => {
                (window as f64 * share).ceil() as u64
            }
            Threshold::Tokens(tokens) => tokens,
            Threshold::Remaining(tokens) => window.saturating_sub(tokens),
        }
    }

    /// How many tokens the thread should have after a compaction, next to what stands around it.
    pub(super) fn target(&self, pressure: &Pressure) -> Option<u64> {
        let window = self.room(pressure)?;
        let whole = match self.target {
            Target::Fraction(share) => part(window, share),
            Target::Tokens(tokens) => tokens,
        };
        // A target at or over the threshold would fire again at once.
        let whole = whole.min(self.level(window).saturating_sub(1));
        Some(whole.saturating_sub(pressure.overhead).saturating_sub(pressure.pending))
    }

    /// What is left of the window beside the output reserve.
    pub(super) fn room(&self, pressure: &Pressure) -> Option<u64> {
        Some(pressure.window?.tokens().saturating_sub(self.output_reserve))
    }
}

fn part(tokens: u64, share: f64) -> u64 {
    (tokens as f64 * share) as u64
}
