//! The number of a compaction, and why it runs.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::text::Text;

/// The number of a compaction within its thread. Compactions are numbered in the order in which
/// they start.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct CompactionId(pub u64);

impl fmt::Display for CompactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl CompactionId {
    /// The next number. The largest number is its own successor.
    #[doc(hidden)]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Why a thread is compacted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CompactionReason {
    /// The context exceeded the threshold of the policy.
    Threshold,
    /// A request exceeds the window: the provider refused it, or the check before sending found it
    /// too long.
    Overflow,
    /// A person asked for it.
    Manual {
        /// What the summary should concentrate on, if the person named something.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<Text>,
    },
    /// The agent asked for it through a tool.
    AgentTool,
    /// The thread continues with a model whose window is smaller.
    ModelSwitch,
    /// The compaction was prepared in the background before it was needed.
    Background,
    /// The user is away, and the provider's cache of the prompt was about to expire.
    Idle,
}

impl Default for CompactionReason {
    /// A manual compaction without instructions.
    fn default() -> Self {
        Self::Manual { instructions: None }
    }
}

impl CompactionReason {
    /// `true` if a person asked for the compaction. A compaction through the agent's tool is
    /// neither manual nor [automatic](Self::is_automatic).
    #[must_use]
    pub fn is_manual(&self) -> bool {
        matches!(self, Self::Manual { .. })
    }

    /// The kind of reason as one word, the `type` of its serde form. It does not include the instructions.
    ///
    /// ```
    /// use threadfold::message::CompactionReason;
    ///
    /// let reason = CompactionReason::Manual { instructions: Some("the parser".into()) };
    /// assert_eq!(reason.as_str(), "manual");
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Threshold => "threshold",
            Self::Overflow => "overflow",
            Self::Manual { .. } => "manual",
            Self::AgentTool => "agent_tool",
            Self::ModelSwitch => "model_switch",
            Self::Background => "background",
            Self::Idle => "idle",
        }
    }

    /// `true` if neither a person nor the agent asked for the compaction.
    ///
    /// ```
    /// use threadfold::message::CompactionReason;
    ///
    /// assert!(CompactionReason::Threshold.is_automatic());
    /// assert!(!CompactionReason::AgentTool.is_automatic());
    /// ```
    #[must_use]
    pub fn is_automatic(&self) -> bool {
        match self {
            Self::Threshold
            | Self::Overflow
            | Self::ModelSwitch
            | Self::Background
            | Self::Idle => true,
            Self::Manual { .. } | Self::AgentTool => false,
        }
    }

    /// What the summary should concentrate on, if a person asked for the compaction and named
    /// something.
    ///
    /// ```
    /// use threadfold::message::CompactionReason;
    ///
    /// let reason = CompactionReason::Manual { instructions: Some("the parser".into()) };
    /// assert_eq!(reason.instructions().map(|text| text.as_str()), Some("the parser"));
    /// assert_eq!(CompactionReason::Overflow.instructions(), None);
    /// ```
    #[must_use]
    pub fn instructions(&self) -> Option<&Text> {
        if let Self::Manual { instructions } = self { instructions.as_ref() } else { None }
    }
}
