//! The result of a compaction in numbers.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{cost::CompactionCost, plan::Plan};
use crate::{
    message::{ContentBlock, Message, Text, thousands},
    retention::Retention,
    tokens::TokenCounter,
};

/// The size of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Size {
    /// The number of messages.
    pub messages: usize,
    /// The bytes of text in them.
    pub bytes: u64,
    /// The tokens, as the counter estimates them.
    pub tokens: u64,
}

/// The result of a compaction in numbers. `Display` writes one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CompactReport {
    /// The size of the thread before the compaction.
    pub before: Size,
    /// The size of the thread after the compaction.
    pub after: Size,
    /// The bytes of text in the inserted summaries.
    pub summary_bytes: u64,
    /// The number of remaining messages with content from a person.
    pub user_messages_preserved: usize,
    /// The number of reminders and reasoning blocks stripped in addition to those replaced.
    pub blocks_stripped: usize,
    /// If the conversation's provider binds reasoning to the messages before it (OpenAI since
    /// GPT-6.2, Anthropic since Claude 5.1): the reasoning in the compacted thread that was made on
    /// messages which were changed since. The provider does not show it to the model, so its codec
    /// leaves it out. Reasoning that the plan itself removes is not counted here but in
    /// [`blocks_stripped`](Self::blocks_stripped). Otherwise nothing.
    #[serde(skip_serializing_if = "VoidReasoning::is_none")]
    pub void_reasoning: VoidReasoning,
    /// How many facts of the earlier thread are still stated, and the most important missing ones;
    /// `None` if this was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Box<Retention>>,
    /// What the compaction costs and saves; `None` if the host named no prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Box<CompactionCost>>,
    /// What a person should know about the compaction, one sentence each: which part of the thread
    /// no model summarized, and why. Empty if nothing unusual happened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Text>,
}

/// Reasoning in a thread that a provider which binds it does not accept any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VoidReasoning {
    /// The number of blocks.
    pub blocks: usize,
    /// Their tokens, as the counter estimates them.
    pub tokens: u64,
}

impl VoidReasoning {
    /// Returns the void reasoning of these messages.
    ///
    /// ```
    /// use threadfold::{Message, Role, compact::VoidReasoning, message::Thinking};
    /// use threadfold::tokens::ByteEstimate;
    ///
    /// let thought = Thinking::new("They greeted me.", Some("signature".into()));
    /// let answer = Message::new(Role::Assistant, vec![thought.into()]).rewritten();
    /// let void = VoidReasoning::of(&[Message::user("Hi."), answer], &ByteEstimate::TRIGGER);
    /// assert_eq!(void.blocks, 1);
    /// ```
    #[must_use]
    pub fn of(messages: &[Message], counter: &dyn TokenCounter) -> Self {
        let marked = messages.iter().filter(|message| message.prefix_rewritten);
        let blocks = marked.flat_map(|message| &message.content);
        blocks.filter(|block| block.is_reasoning()).fold(Self::default(), |sum, block| Self {
            blocks: sum.blocks + 1,
            tokens: sum.tokens.saturating_add(counter.block(block)),
        })
    }

    /// Whether no reasoning is void.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.blocks == 0
    }
}

impl Size {
    /// Returns the size of these messages.
    ///
    /// ```
    /// use threadfold::{Message, compact::Size, tokens::ByteEstimate};
    ///
    /// let size = Size::of(&[Message::user("hello!")], &ByteEstimate::TRIGGER);
    /// assert_eq!((size.messages, size.bytes, size.tokens), (1, 6, 6));
    /// ```
    #[must_use]
    pub fn of(messages: &[Message], counter: &dyn TokenCounter) -> Self {
        let (mut bytes, mut tokens) = (0_u64, 0_u64);
        for message in messages {
            bytes = bytes.saturating_add(message.text_bytes());
            tokens = tokens.saturating_add(counter.message(message));
        }
        Self { messages: messages.len(), bytes, tokens }
    }
}

impl CompactReport {
    /// Returns the report on a plan, from the thread's size before and its messages after.
    ///
    /// ```
    /// use threadfold::{Message, Plan, Replacement, tokens::ByteEstimate};
    /// use threadfold::compact::{CompactOptions, CompactReport, Size};
    ///
    /// let mut thread = vec![Message::user("hi"), Message::assistant("hello")];
    /// let (before, counter) = (Size::of(&thread, &ByteEstimate::TRIGGER), &ByteEstimate::TRIGGER);
    /// let plan = Plan::new(&thread, &[Replacement::new("We said hello.")], &CompactOptions::default())?;
    /// let _ = plan.apply(&mut thread)?;
    /// let report = CompactReport::new(before, &thread, &plan, counter);
    /// assert_eq!((report.after.messages, report.summary_bytes), (1, 14));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new(before: Size, after: &[Message], plan: &Plan, counter: &dyn TokenCounter) -> Self {
        let summaries = plan.new_messages().flat_map(|message| &message.content);
        Self {
            before,
            after: Size::of(after, counter),
            summary_bytes: summaries.map(summary_bytes).sum(),
            user_messages_preserved: after.iter().filter(|message| message.is_typed()).count(),
            blocks_stripped: plan.blocks_stripped(),
            void_reasoning: VoidReasoning::default(),
            retention: None,
            cost: None,
            notes: Vec::new(),
        }
    }

    /// The tokens saved; negative if the thread grew.
    ///
    /// ```
    /// use threadfold::{Message, Replacement, compact};
    ///
    /// let longer = Replacement::new("They greeted each other, which took them no time at all.");
    /// let report = compact(&[Message::user("hi")], &[longer])?.report;
    /// assert!(report.tokens_saved() < 0);
    /// # Ok::<(), threadfold::compact::CompactError>(())
    /// ```
    #[must_use]
    pub fn tokens_saved(&self) -> i64 {
        self.before.tokens.cast_signed().saturating_sub(self.after.tokens.cast_signed())
    }
}

fn summary_bytes(block: &ContentBlock) -> u64 {
    if let ContentBlock::Summary(summary) = block { summary.text.len() as u64 } else { 0 }
}

impl fmt::Display for CompactReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, after, .. } = self;
        let saved = self.tokens_saved();
        let (tokens, direction) = (saved.unsigned_abs(), if saved < 0 { "more" } else { "saved" });
        write!(
            f,
            "{} to {} messages, about {} to {} tokens: {} {direction}",
            thousands(before.messages as u64),
            thousands(after.messages as u64),
            thousands(before.tokens),
            thousands(after.tokens),
            thousands(tokens)
        )?;
        if let Some(percent) = tokens.saturating_mul(100).checked_div(before.tokens) {
            write!(f, " ({percent} %)")?;
        }
        let VoidReasoning { blocks, tokens } = self.void_reasoning;
        if blocks > 0 {
            let noun = if blocks == 1 { "block" } else { "blocks" };
            write!(
                f,
                "; {} {noun} of reasoning (about {} tokens) void, because the provider binds it to \
                 earlier messages",
                thousands(blocks as u64),
                thousands(tokens)
            )?;
        }
        // One line, whatever a note quotes.
        self.notes
            .iter()
            .try_for_each(|note| write!(f, "; {}", note.replace(char::is_control, " ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_thread_causes_no_division_by_zero() {
        let report = CompactReport::default();
        assert_eq!(report.to_string(), "0 to 0 messages, about 0 to 0 tokens: 0 saved");
    }

    #[test]
    fn the_notes_follow_in_the_same_line() {
        let report =
            CompactReport { notes: vec!["a\nb".into(), "c".into()], ..CompactReport::default() };
        let expected = "0 to 0 messages, about 0 to 0 tokens: 0 saved; a b; c";
        assert_eq!(report.to_string(), expected);
    }

    #[test]
    fn the_number_of_saved_tokens_may_be_negative() {
        let size = |messages, tokens| Size { messages, tokens, bytes: 0 };
        let report = |before, after| CompactReport { before, after, ..CompactReport::default() };
        let (small, large) = (size(1, 30), size(4, 1_200));
        let texts = [report(large, small), report(small, large)]
            .map(|it| (it.tokens_saved(), it.to_string()));
        assert_eq!(
            texts,
            [
                (1_170, "4 to 1 messages, about 1,200 to 30 tokens: 1,170 saved (97 %)".to_owned()),
                (
                    -1_170,
                    "1 to 4 messages, about 30 to 1,200 tokens: 1,170 more (3900 %)".to_owned()
                ),
            ]
        );
    }
}
