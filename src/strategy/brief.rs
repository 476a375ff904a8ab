//! The inputs of a strategy besides the thread.

use crate::{
    ledger::Moderators,
    message::{CompactionId, CompactionReason, Message, Redactor, Text, Timestamp},
    retention::RetentionPolicy,
};

/// The inputs of a strategy besides the thread: why it compacts, its target and its limits. Target and
/// limit are in tokens of the thread's counter; in a brief for a [`Compactor`](crate::Compactor), which
/// knows the ratio of the two, in tokens as the provider counts them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brief {
    /// Id of the compaction, if a log numbers compactions. It is stored in the new summaries.
    pub compaction: Option<CompactionId>,
    /// Why the thread is compacted, with the user's instructions.
    pub reason: CompactionReason,
    /// The user message that is sent right after the compaction.
    pub next_prompt: Option<Message>,
    /// Upper limit for the tokens of the compacted thread.
    pub target: Option<u64>,
    /// The tokens of messages that fit the window. A compacted thread may miss its target up to this
    /// limit, and messages that the model has not read are cut only if they exceed it. `None` for
    /// the window of the snapshot, if that is known.
    pub limit: Option<u64>,
    /// How much of the conversation's facts the compacted thread must keep, if that is audited.
    pub retention: Option<RetentionPolicy>,
    /// Whether the conversation's provider leaves reasoning out if a message before it was changed.
    pub binds_reasoning: bool,
    /// Who can lift the standing statements of others, in a thread of several people.
    pub moderators: Moderators,
    /// Time of the compaction.
    pub now: Timestamp,
}

impl From<u64> for Brief {
    /// A brief for a compaction that the user requested, with this target in tokens.
    fn from(target: u64) -> Self {
        Self { target: Some(target), ..Self::default() }
    }
}

impl Brief {
    /// Returns the brief with its instructions and next prompt redacted.
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

    /// Whether the next request cannot be sent without the compaction.
    pub(super) fn is_needed(&self) -> bool {
        match self.reason {
            CompactionReason::Overflow | CompactionReason::ModelSwitch => true,
            CompactionReason::Threshold
            | CompactionReason::Manual { .. }
            | CompactionReason::AgentTool
            | CompactionReason::Background
            | CompactionReason::Idle => false,
        }
    }

    /// The texts of the next prompt, joined by line breaks; `None` if it has none.
    pub(super) fn next_text(&self) -> Option<String> {
        let texts = self.next_prompt.iter().flat_map(Message::texts);
        let texts: Vec<&str> = texts.map(Text::as_str).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    /// Tokens of the target that a strategy leaves free for the addendum of missing facts: as many
    /// as the policy allows, at most a quarter of the target.
    pub(super) fn reserve(&self) -> u64 {
        let most = self.target.map_or(0, |target| target / 4);
        self.retention.as_ref().map_or(0, |policy| policy.addendum_tokens.min(most))
    }
}
