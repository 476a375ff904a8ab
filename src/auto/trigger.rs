//! The soft trigger: fires before the window is full, and suspends itself if compactions do not
//! help.

/// The trigger suspends itself after this many compactions in a row that left the context over the
/// threshold.
const MAX_MISSES: u32 = 2;

/// The state of the soft trigger.
///
/// `misses` counts the compactions in a row after which the context was still over the threshold. A
/// reading is *under* the threshold, *over* it, or *hopeless*: over it even if a compaction removed
/// everything that can be removed. Only a provider's count shows whether a compaction helped.
///
/// | state | input | next state | signal |
/// |---|---|---|---|
/// | `Armed` | under | `Armed`, no misses if counted | |
/// | `Armed` | over, but disabled or paused | `Armed` | |
/// | `Armed` | over | `Fired` | fire |
/// | `Armed` | hopeless | `Overgrown` | rest |
/// | `Fired` | under, counted: not compacted, and no longer due | `Armed`, no misses | |
/// | `Fired` | any other reading | `Fired` | |
/// | `Fired` | failed | `Armed` | |
/// | `Fired`, `Armed`, `Quiet` | compacted | `Quiet` | |
/// | `Quiet`, not yet counted | not counted | `Quiet`, not yet counted | |
/// | `Quiet`, not yet counted | over, counted, the first miss | `Quiet` from this size on | rest |
/// | `Quiet`, not yet counted | hopeless, counted | `Overgrown` | rest |
/// | `Quiet`, not yet counted | over, counted, the second miss | `Suspended` | rest |
/// | `Quiet`, not yet counted | under, counted | `Quiet` from this size on, no misses | |
/// | `Quiet`, counted | the context did not grow by its share | `Quiet` | |
/// | `Quiet`, counted | the context grew by its share | as `Armed` | as `Armed` |
/// | `Overgrown` | hopeless | `Overgrown` | |
/// | `Overgrown` | any other | as `Armed` | as `Armed` |
/// | `Suspended` | under, counted | `Armed`, no misses | |
/// | `Suspended` | any other reading, compacted by itself | `Suspended` | |
/// | `Suspended`, `Overgrown` | compacted at the request of the user or the host | `Quiet`, no misses | |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// Fires at the threshold.
    Armed { misses: u32 },
    /// The trigger requested a compaction that has not ended.
    Fired { misses: u32 },
    /// A compaction succeeded, and the context has hardly grown since.
    Quiet {
        misses: u32,
        /// The first count after the compaction, in tokens; `None` until there is one.
        from: Option<u64>,
    },
    /// The part that no compaction can remove exceeds the threshold.
    Overgrown { misses: u32 },
    /// Compactions did not help.
    Suspended,
}

/// The input of the trigger before a request or after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) tokens: u64,
    pub(super) level: Level,
    /// Whether the size is a provider's count, or the policy trusts estimates.
    pub(super) counted: bool,
    /// Whether the trigger is enabled and no pause after failures is under way.
    pub(super) may_fire: bool,
    /// The growth of the context, in tokens, that ends the quiet time.
    pub(super) growth: u64,
}

/// The size of the context relative to the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Under,
    Over,
    /// Over the threshold, even if a compaction removed everything removable.
    Hopeless,
}

/// The output of the trigger for a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Nothing,
    /// Compact now.
    Fire,
    /// The trigger suspends itself. The host is notified once.
    Rest,
}

impl Default for Trigger {
    fn default() -> Self {
        Self::Armed { misses: 0 }
    }
}

impl Trigger {
    /// Takes a reading before a request or after a turn.
    pub(super) fn read(self, reading: &Reading) -> (Self, Signal) {
        let Reading { level, counted, may_fire, .. } = *reading;
        match (self, level) {
            (Self::Fired { .. } | Self::Suspended, Level::Under) if counted => {
                (Self::Armed { misses: 0 }, Signal::Nothing)
            }
            (Self::Fired { .. } | Self::Suspended, _) => (self, Signal::Nothing),
            (Self::Quiet { misses, from: None }, _) if counted => Self::judged(misses, reading),
            (Self::Quiet { from: None, .. }, _) => (self, Signal::Nothing),
            (Self::Quiet { from: Some(from), .. }, _)
                if reading.tokens < from.saturating_add(reading.growth) =>
            {
                (self, Signal::Nothing)
            }
            (Self::Armed { misses } | Self::Quiet { misses, .. }, Level::Under)
            | (Self::Overgrown { misses }, Level::Under) => {
                let misses = if counted { 0 } else { misses };
                (Self::Armed { misses }, Signal::Nothing)
            }
            (Self::Armed { .. } | Self::Quiet { .. } | Self::Overgrown { .. }, _) if !may_fire => {
                (self, Signal::Nothing)
            }
            (Self::Overgrown { .. }, Level::Hopeless) => (self, Signal::Nothing),
            (Self::Armed { misses } | Self::Quiet { misses, .. }, Level::Hopeless) => {
                (Self::Overgrown { misses }, Signal::Rest)
            }
            (
                Self::Armed { misses } | Self::Quiet { misses, .. } | Self::Overgrown { misses },
                Level::Over,
            ) => (Self::Fired { misses }, Signal::Fire),
        }
    }

    /// Decides from the first count after the last compaction whether it helped.
    fn judged(misses: u32, reading: &Reading) -> (Self, Signal) {
        let from = Some(reading.tokens);
        if reading.level == Level::Under {
            return Self::Quiet { misses: 0, from }.read(reading);
        }
        let misses = misses.saturating_add(1);
        let next = match reading.level {
            _ if misses >= MAX_MISSES => Self::Suspended,
            Level::Hopeless => Self::Overgrown { misses },
            Level::Under | Level::Over => Self::Quiet { misses, from },
        };
        (next, Signal::Rest)
    }

    /// Takes the success of a compaction, whatever its reason.
    pub(super) fn compacted(self, is_manual: bool) -> Self {
        match self {
            Self::Suspended | Self::Overgrown { .. } if !is_manual => self,
            Self::Suspended | Self::Overgrown { .. } => Self::Quiet { misses: 0, from: None },
            Self::Armed { misses } | Self::Fired { misses } | Self::Quiet { misses, .. } => {
                let misses = if is_manual { 0 } else { misses };
                Self::Quiet { misses, from: None }
            }
        }
    }

    /// Takes the failure of a compaction.
    pub(super) fn failed(self) -> Self {
        if let Self::Fired { misses } = self { Self::Armed { misses } } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARMED: Trigger = Trigger::Armed { misses: 0 };
    const QUIET: Trigger = Trigger::Quiet { misses: 0, from: Some(500) };
    const UNJUDGED: Trigger = Trigger::Quiet { misses: 0, from: None };

    fn reading(level: Level) -> Reading {
        Reading { tokens: 500, level, counted: true, may_fire: true, growth: 50 }
    }

    #[test]
    fn every_row_of_the_table_holds_for_readings() {
        use Level::{Hopeless, Over, Under};
        use Signal::{Fire, Nothing, Rest};
        let uncounted = |level| Reading { counted: false, ..reading(level) };
        let disabled = |level| Reading { may_fire: false, ..reading(level) };
        let grown = |level| Reading { tokens: 550, ..reading(level) };
        let armed = |misses| Trigger::Armed { misses };
        let fired = |misses| Trigger::Fired { misses };
        let overgrown = Trigger::Overgrown { misses: 0 };
        let quiet = |misses, from| Trigger::Quiet { misses, from };
        let rows = [
            (armed(1), reading(Under), ARMED, Nothing),
            (armed(1), uncounted(Under), armed(1), Nothing),
            (ARMED, disabled(Over), ARMED, Nothing),
            (ARMED, disabled(Hopeless), ARMED, Nothing),
            (armed(1), reading(Over), fired(1), Fire),
            (ARMED, reading(Hopeless), overgrown, Rest),
            (fired(1), reading(Under), ARMED, Nothing),
            (fired(0), uncounted(Under), fired(0), Nothing),
            (fired(0), reading(Over), fired(0), Nothing),
            (fired(0), reading(Hopeless), fired(0), Nothing),
            (UNJUDGED, uncounted(Over), UNJUDGED, Nothing),
            (UNJUDGED, reading(Over), quiet(1, Some(500)), Rest),
            (UNJUDGED, reading(Hopeless), Trigger::Overgrown { misses: 1 }, Rest),
            (quiet(1, None), reading(Over), Trigger::Suspended, Rest),
            (quiet(1, None), reading(Under), QUIET, Nothing),
            (QUIET, reading(Over), QUIET, Nothing),
            (QUIET, Reading { tokens: 549, ..reading(Over) }, QUIET, Nothing),
            (QUIET, grown(Over), fired(0), Fire),
            (quiet(1, Some(500)), reading(Over), quiet(1, Some(500)), Nothing),
            (quiet(1, Some(500)), grown(Over), fired(1), Fire),
            (QUIET, grown(Under), ARMED, Nothing),
            (QUIET, grown(Hopeless), overgrown, Rest),
            (QUIET, Reading { may_fire: false, ..grown(Over) }, QUIET, Nothing),
            (overgrown, reading(Hopeless), overgrown, Nothing),
            (overgrown, reading(Over), fired(0), Fire),
            (overgrown, reading(Under), ARMED, Nothing),
            (overgrown, disabled(Over), overgrown, Nothing),
            (Trigger::Suspended, reading(Under), ARMED, Nothing),
            (Trigger::Suspended, uncounted(Under), Trigger::Suspended, Nothing),
            (Trigger::Suspended, reading(Over), Trigger::Suspended, Nothing),
        ];
        for (row, (state, reading, next, signal)) in rows.into_iter().enumerate() {
            assert_eq!(state.read(&reading), (next, signal), "row {row}: {state:?} {reading:?}");
        }
    }

    #[test]
    fn every_row_of_the_table_holds_for_ends_of_compactions() {
        let overgrown = Trigger::Overgrown { misses: 1 };
        let unjudged = |misses| Trigger::Quiet { misses, from: None };
        let rows = [
            (Trigger::Armed { misses: 1 }, unjudged(1), unjudged(0)),
            (Trigger::Fired { misses: 1 }, unjudged(1), unjudged(0)),
            (Trigger::Quiet { misses: 1, from: Some(9) }, unjudged(1), unjudged(0)),
            (overgrown, overgrown, unjudged(0)),
            (Trigger::Suspended, Trigger::Suspended, unjudged(0)),
        ];
        for (state, by_itself, asked_for) in rows {
            assert_eq!(state.compacted(false), by_itself, "{state:?}");
            assert_eq!(state.compacted(true), asked_for, "{state:?}");
        }
        assert_eq!(Trigger::Fired { misses: 1 }.failed(), Trigger::Armed { misses: 1 });
        for state in [ARMED, QUIET, overgrown, Trigger::Suspended] {
            assert_eq!(state.failed(), state);
        }
    }
}
