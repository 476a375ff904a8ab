//! What the quotes of a model change in the rules, after each quote was checked.

use serde::{Deserialize, Serialize};

use crate::message::{Author, Redactor, Text, redact::redacted_text};

/// The changes of the standing rules that the quotes in a summary's answer made, after each was
/// checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuotedChanges {
    /// The user's sentences that became standing rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<QuotedRule>,
    /// What the user took back with a later sentence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lifted: Vec<TakenBack>,
    /// The number of quotes that the user did not type.
    #[serde(skip_serializing_if = "is_zero")]
    pub refused: usize,
}

/// A sentence of the user that a model quoted as a standing rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotedRule {
    /// The words as typed, on one line.
    pub text: Text,
    /// The person who typed them, if the message has an author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    /// The number of the user's message among all messages ever appended; `None` if the message is
    /// not known any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
}

/// A statement of the user, and the later one that takes it back, as a model quoted both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenBack {
    /// The earlier sentences, as typed, on one line.
    pub earlier: Text,
    /// The later sentences, as typed, on one line.
    pub later: Text,
    /// The person who typed the later sentences, if the message has an author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    /// Whether only what the same author said is taken back, because the author is no
    /// [moderator](super::Moderators).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_only: bool,
    /// The number of the message with the later sentences, among all messages ever appended; `None`
    /// if the message is not known any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl QuotedChanges {
    /// Whether nothing was quoted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl TakenBack {
    /// Whether a rule of this author is among the earlier sentences and not repeated by the later
    /// ones.
    #[doc(hidden)]
    #[must_use]
    pub fn lifts(&self, author: Option<&Author>, rule: &str) -> bool {
        self.concerns(author) && self.earlier.contains(rule) && !self.later.contains(rule)
    }

    /// Whether it takes back what this author said.
    pub(crate) fn concerns(&self, author: Option<&Author>) -> bool {
        !self.own_only || author == self.author.as_ref()
    }

    /// Returns it without what a redactor removes.
    #[doc(hidden)]
    #[must_use]
    pub fn redacted(&self, redactor: &dyn Redactor) -> Self {
        let [earlier, later] =
            [&self.earlier, &self.later].map(|text| redacted_text(text, redactor));
        Self { earlier, later, ..self.clone() }
    }

    /// Whether both take back the same statement with the same words of the same author.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let of = |pair: &'_ Self| Self { position: None, ..pair.clone() };
        of(self) == of(other)
    }
}
