//! What a strategy is told beside the thread.

use crate::{
    message::{CompactionId, CompactionReason, Message, Redactor, Timestamp},
    retention::RetentionPolicy,
};

/// What a strategy is told beside the thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brief {
    /// The number that the compaction will have, where a log numbers them. Summaries carry it.
    pub compaction: Option<CompactionId>,
    /// Why the thread is compacted, and what the person who asked wants kept in mind.
    pub reason: CompactionReason,
    /// What the user typed and is sent next, after the compaction.
    pub next_prompt: Option<Message>,
    /// The most tokens that the thread may have afterwards.
    pub target: Option<u64>,
    /// How much of what was ever said has to stand afterwards, where that is looked at.
    pub retention: Option<RetentionPolicy>,
    /// The time of the attempt.
    pub now: Timestamp,
}

impl Brief {
    /// Returns the brief without what the redactor takes out of the focus and the next prompt.
    ///
    /// ```
    /// use std::borrow::Cow;
    /// use threadfold::{Message, message::Redactor, strategy::Brief};
    ///
    /// #[derive(Debug)]
    /// struct Names;
    ///
    /// impl Redactor for Names {
    ///     fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
    ///         text.replace("Ada", "[name]").into()
    ///     }
    /// }
    ///
    /// let brief = Brief { next_prompt: Some(Message::user("I am Ada.")), ..Brief::default() };
    /// assert_eq!(brief.redacted(&Names).next_prompt, Some(Message::user("I am [name].")));
    /// ```
    #[must_use]
    pub fn redacted(&self, redactor: &dyn Redactor) -> Self {
        Self {
            reason: self.reason.redacted(redactor),
            next_prompt: self.next_prompt.as_ref().map(|prompt| prompt.redacted(redactor)),
            ..self.clone()
        }
    }

    /// How many tokens of the target a strategy leaves for what its summary will be found to lack:
    /// as many as the policy allows, but no more than a quarter.
    pub(super) fn reserve(&self) -> u64 {
        let most = self.target.map_or(0, |target| target / 4);
        self.retention.as_ref().map_or(0, |policy| policy.addendum_tokens.min(most))
    }
}
