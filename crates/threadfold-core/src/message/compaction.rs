//! Names for compactions.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::text::Text;

/// The number of a compaction within its thread, in the order of their start.
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
    /// The number behind it; the last one stays the last.
    #[doc(hidden)]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Why a thread is compacted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CompactionReason {
    /// The context passed the threshold of the policy.
    Threshold,
    /// The provider refused a request, or would have, because it was too long.
    Overflow,
    /// A person asked for it.
    Manual {
        /// What the summary should attend to, if the person said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        focus: Option<Text>,
    },
    /// The agent asked for it through a tool.
    AgentTool,
    /// The thread goes on with a model whose window is smaller.
    ModelSwitch,
    /// Prepared ahead of need while the thread goes on.
    Background,
}

impl Default for CompactionReason {
    /// A person asked for it and said no more.
    fn default() -> Self {
        Self::Manual { focus: None }
    }
}

impl CompactionReason {
    /// The kind of reason in a word, the `type` of its serde form. What a person said is not in it.
    ///
    /// ```
    /// use threadfold::message::CompactionReason;
    ///
    /// let reason = CompactionReason::Manual { focus: Some("the parser".into()) };
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
        }
    }

    /// Whether nobody asked for it: neither a person nor the agent.
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
            Self::Threshold | Self::Overflow | Self::ModelSwitch | Self::Background => true,
            Self::Manual { .. } | Self::AgentTool => false,
        }
    }

    /// What the summary should attend to, if a person said.
    ///
    /// ```
    /// use threadfold::message::CompactionReason;
    ///
    /// let reason = CompactionReason::Manual { focus: Some("the parser".into()) };
    /// assert_eq!(reason.focus().map(|text| text.as_str()), Some("the parser"));
    /// assert_eq!(CompactionReason::Overflow.focus(), None);
    /// ```
    #[must_use]
    pub fn focus(&self) -> Option<&Text> {
        if let Self::Manual { focus } = self { focus.as_ref() } else { None }
    }
}
