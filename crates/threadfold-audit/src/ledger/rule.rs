//! One rule: its words, its position and its status.

use serde::{Deserialize, Serialize};

use crate::message::{Author, Text};

/// A standing rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rule {
    /// The id: sixteen hexadecimal digits that depend only on author and words, so the same words of
    /// the same author always have the same id.
    pub id: Text,
    /// The words as typed, on one line.
    pub text: Text,
    /// The person who typed it, if the message has an author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    /// The index of the user's message that a model quoted; `None` for a rule of the host. In a log,
    /// it counts all messages ever appended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// Whether the rule is active.
    pub status: RuleStatus,
}

impl Rule {
    /// Whether the rule is active.
    #[must_use]
    pub fn holds(&self) -> bool {
        match self.status {
            RuleStatus::Active => true,
            RuleStatus::Revoked => false,
        }
    }
}

/// Whether a rule is active.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuleStatus {
    /// The rule applies.
    Active,
    /// The user or the host revoked it.
    Revoked,
}

/// Returns the id of a rule with this hash.
pub(super) fn id_of(hash: u64) -> Text {
    format!("{hash:016x}").into()
}
