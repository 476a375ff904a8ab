//! What the machine takes and what it returns.

use crate::message::{CompactionReason, ModelErrorKind, Timestamp};

use super::pressure::Pressure;

/// An event that the machine reacts to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input {
    /// The next request is about to be sent: a prompt, which is appended then, or tool results, which
    /// were appended.
    BeforeRequest(Pressure),
    /// A turn ended with an answer. The counts of attempts start anew, and the soft trigger fires if
    /// [`after_turn`](super::AutoPolicy::after_turn) says so.
    TurnEnded(Pressure),
    /// A turn ended with an error, or was dropped. The counts of attempts start anew, and nothing is
    /// compacted.
    TurnFailed(Pressure),
    /// The provider refused the request as too long.
    Overflowed {
        /// How full the context is.
        pressure: Pressure,
        /// What the refusal states.
        refusal: Refusal,
    },
    /// The window cut the answer off, so prompt and answer together fill it.
    CutOff(Pressure),
    /// A compaction was carried out.
    Compacted {
        /// The reason of the compaction.
        reason: CompactionReason,
    },
    /// A compaction failed or was cancelled.
    Failed {
        /// The reason of the compaction.
        reason: CompactionReason,
    },
}

/// The tokens that a refusal states; `None` where it states nothing.
///
/// ```
/// use threadfold::{auto::Refusal, message::ModelErrorKind};
///
/// let kind = ModelErrorKind::Overflow { limit: Some(8_000), found: Some(9_000), output: None };
/// let stated = Refusal { limit: Some(8_000), found: Some(9_000), output: None };
/// assert_eq!(Refusal::of(&kind), Some(stated));
/// assert_eq!(Refusal::of(&ModelErrorKind::Other), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The window.
    pub limit: Option<u64>,
    /// The tokens of the prompt, as the provider counted them.
    pub found: Option<u64>,
    /// The tokens that the provider reserves for the answer.
    pub output: Option<u64>,
}

impl Refusal {
    /// What this error states, if it is a refusal for the length.
    #[must_use]
    pub fn of(error: &ModelErrorKind) -> Option<Self> {
        let ModelErrorKind::Overflow { limit, found, output } = error else { return None };
        Some(Self { limit: *limit, found: *found, output: *output })
    }

    /// Whether the provider's own count exceeds the limit.
    pub(super) fn is_counted(&self) -> bool {
        let output = self.output.unwrap_or(0);
        let exceeds = |(found, limit): (u64, u64)| found.saturating_add(output) > limit;
        self.found.zip(self.limit).is_some_and(exceeds)
    }

    /// The limit, if a request of this many tokens exceeds it.
    pub(super) fn stated(&self, sent: u64) -> Option<u64> {
        let found = self.found.unwrap_or(sent).saturating_add(self.output.unwrap_or(0));
        self.limit.filter(|limit| (1..found).contains(limit))
    }
}

/// The next action of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Compact now, before anything is sent.
    Compact {
        /// The reason of the compaction.
        reason: CompactionReason,
        /// The size that the thread should have afterwards, in tokens: the policy's target, or more
        /// if that cannot be reached. `None` if the window is unknown.
        target: Option<u64>,
        /// The largest size of the compacted thread, in tokens, that still helps: with a larger
        /// one, the request does not fit or the trigger fires again at once. `None` if any
        /// reduction helps.
        limit: Option<u64>,
    },
    /// Tell the user that the soft trigger rests, for one of three reasons. If a compaction left the
    /// context over the threshold, the trigger waits until the context has grown by
    /// [`min_growth`](super::AutoPolicy::min_growth). If the next one does too, it waits
    /// until the context is under the threshold for another reason, or the user compacts. If the
    /// part that no compaction can remove exceeds the threshold by itself, the trigger waits until
    /// that part is smaller.
    Suspended {
        /// The tokens of the next request.
        tokens: u64,
        /// The tokens at which the trigger fires.
        threshold: u64,
    },
    /// Tell the user that the soft trigger pauses, because too many compactions failed in a row.
    Paused {
        /// The number of failures.
        failures: u32,
        /// When the pause ends.
        until: Timestamp,
    },
    /// Tell the user that the window of the model is unknown. The soft trigger does not fire until
    /// the host sets a window or a refusal of the provider states one.
    UnknownWindow,
    /// Tell the user that the answer may be cut short: what no compaction can remove leaves less
    /// room in the window than the tokens that are reserved for the answer.
    ShortAnswer {
        /// The tokens of the next request.
        tokens: u64,
        /// The tokens that it reserves for the answer.
        output: u64,
        /// The window.
        window: u64,
    },
    /// Send the same request again. A request of its length was answered a short while ago, so the
    /// refusal is doubted.
    SendAgain,
    /// Give the request up: the provider refuses it whatever its size. The driver undoes the
    /// compactions that the refusals of this request led to, and passes the refusal on.
    TakeBack,
    /// The request cannot be sent, and no compaction helps.
    CannotFit {
        /// The tokens of the smallest possible request: system prompt, tools, what the model has
        /// not read yet except tool results, and messages that are appended before the request.
        floor: u64,
        /// The tokens of the request.
        tokens: u64,
        /// The tokens that fit the window.
        limit: u64,
    },
}
