//! What a provider reports about the reasoning of a request that it did not accept.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::text::Text;

/// One block of reasoning in a request that failed a check of its provider.
///
/// Sources: `response.input_transformations` of OpenAI (SDK openai 3.57) and of Anthropic (beta
/// `thinking-binding-controls-2026-08-01`, SDK anthropic 2.14).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withheld {
    /// Which block: the id of the item (OpenAI), or its path in the request body (Anthropic,
    /// `messages.3.content.0`).
    pub at: Text,
    /// The check that it failed.
    pub reason: WithheldReason,
    /// Whether the model saw the block all the same, because the provider does not enforce the check
    /// for this account.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shown: bool,
}

/// The check that a block of reasoning failed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithheldReason {
    /// The messages before the block are not those on which it was made: one was changed, removed or
    /// inserted.
    Prefix,
    /// Another model made the block.
    Model,
    /// Another organization's request made the block.
    Organization,
    /// A request for another end user made the block.
    EndUser,
    /// The provider drops reasoning at the end of its turn (OpenAI).
    TurnBoundary,
    /// A reason that this crate does not know, in the provider's word.
    Other(Text),
}

impl From<&str> for WithheldReason {
    /// Reads the word of either provider.
    fn from(word: &str) -> Self {
        match word {
            "prefix_mismatch" | "prefix_binding_mismatch" => Self::Prefix,
            "model_mismatch" | "model_binding_mismatch" => Self::Model,
            "organization_mismatch" | "organization_binding_mismatch" => Self::Organization,
            "end_user_mismatch" | "end_user_binding_mismatch" => Self::EndUser,
            "turn_boundary" => Self::TurnBoundary,
            other => Self::Other(other.into()),
        }
    }
}

impl fmt::Display for WithheldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prefix => "the messages before it were changed",
            Self::Model => "another model made it",
            Self::Organization => "another organization made it",
            Self::EndUser => "it was made for another user",
            Self::TurnBoundary => "its turn is over",
            Self::Other(word) => word,
        })
    }
}

impl Withheld {
    /// Returns one line on the blocks that the model did not see, with their number for each reason;
    /// `None` if it saw all.
    ///
    /// ```
    /// use threadfold::message::{Withheld, WithheldReason};
    ///
    /// let block = |at: &str| Withheld { at: at.into(), reason: WithheldReason::Prefix, shown: false };
    /// let line = Withheld::line(&[block("rs_1"), block("rs_2")]).unwrap_or_default();
    /// assert_eq!(line, "The provider left out 2 blocks of the model's reasoning: \
    ///     the messages before it were changed (2).");
    /// assert_eq!(Withheld::line(&[]), None);
    /// ```
    #[must_use]
    pub fn line(blocks: &[Self]) -> Option<String> {
        let mut counts: BTreeMap<&WithheldReason, usize> = BTreeMap::new();
        for block in blocks.iter().filter(|block| !block.shown) {
            *counts.entry(&block.reason).or_default() += 1;
        }
        let all: usize = counts.values().sum();
        let noun = if all == 1 { "block" } else { "blocks" };
        let reasons: Vec<String> =
            counts.iter().map(|(reason, count)| format!("{reason} ({count})")).collect();
        let reasons = reasons.join(", ");
        (all > 0).then(|| {
            format!("The provider left out {all} {noun} of the model's reasoning: {reasons}.")
        })
    }
}
