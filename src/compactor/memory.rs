//! The memory of messages that the thread no longer holds: their rules and facts.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    ledger::Ledger,
    message::{ContentBlock, ContextWindow, Message, Redactor, Summary, fnv1a, markup},
    prose::{Kind, Speaker, passages_of},
    retention::{Facts, RetentionPolicy},
};

/// The standing rules and the facts of all messages that were read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    pub(super) rules: Ledger,
    /// The facts; `None` without a retention policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) facts: Option<Arc<Facts>>,
    messages: usize,
}

/// The memory right after a compaction, and how to find the compaction's messages again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AfterCompaction {
    pub(super) known: Memory,
    /// How many changes of the host's rules are in `known`.
    #[serde(default)]
    pub(super) changes: usize,
    /// The fingerprints of the texts that the compaction inserted, or of the first text that
    /// stayed.
    marks: BTreeSet<u64>,
    /// The fingerprints of all texts that the compaction left, in order.
    left: Vec<u64>,
}

impl Memory {
    /// Returns an empty memory for a thread in this window.
    pub(super) fn new(policy: Option<&RetentionPolicy>, window: Option<ContextWindow>) -> Self {
        let window = window.map(ContextWindow::tokens);
        let options = policy.map(|policy| policy.audit_options().within(window));
        let facts = options.map(|options| Arc::new(Facts::with_options(options)));
        Self { facts, ..Self::default() }
    }

    /// Reads the next message, redacted.
    pub(super) fn read(&mut self, message: &Message, redactor: Option<&dyn Redactor>) {
        let redacted = redactor.map(|redactor| message.redacted(redactor));
        let message = redacted.as_ref().unwrap_or(message);
        if let Some(facts) = &mut self.facts {
            Arc::make_mut(facts).read(message);
        }
        self.messages = self.messages.saturating_add(1);
    }
}

impl AfterCompaction {
    /// Returns the record of a compaction after which the thread has these messages, `new` of them
    /// inserted.
    pub(super) fn new<'m>(
        known: Memory,
        changes: usize,
        left: &[Message],
        new: impl IntoIterator<Item = &'m Message>,
    ) -> Self {
        let mut marks: BTreeSet<u64> = new.into_iter().flat_map(fingerprints).collect();
        if marks.is_empty() {
            marks.extend(left.iter().flat_map(fingerprints).next());
        }
        Self { known, changes, marks, left: left.iter().flat_map(fingerprints).collect() }
    }

    /// Whether these messages follow from the compaction.
    pub(super) fn leads_to(&self, messages: &[Message]) -> bool {
        messages.iter().flat_map(fingerprints).any(|text| self.marks.contains(&text))
    }

    /// Returns the message with the texts of this compaction's summaries turned into summary
    /// blocks, because codecs read them as texts in tags. Other texts in such tags stay, because a
    /// user may have typed them.
    pub(super) fn recognised(&self, mut message: Message) -> Message {
        for index in 0..message.content.len() {
            let Some(ContentBlock::Text(block)) = message.content.get(index) else { continue };
            let Some(text) = markup::read_summary(&block.text) else { continue };
            let summary = Summary::new(text).into();
            let is_ours = fingerprint(&summary).is_some_and(|text| self.marks.contains(&text));
            if is_ours && let Some(block) = message.make_mut().content.get_mut(index) {
                *block = summary;
            }
        }
        message
    }

    /// Returns the messages that `known` does not include. Each text that the compaction left
    /// matches only one text here, so a later repetition of it counts as new.
    pub(super) fn unread<'m>(&self, messages: &'m [Message]) -> Vec<&'m Message> {
        let mut left: HashMap<u64, usize> = HashMap::new();
        for text in &self.left {
            *left.entry(*text).or_default() += 1;
        }
        let mut unread = Vec::new();
        for message in messages {
            let mut is_new = false;
            for text in fingerprints(message) {
                match left.get_mut(&text).filter(|count| **count > 0) {
                    Some(count) => *count -= 1,
                    None => is_new = true,
                }
            }
            unread.extend(is_new.then_some(message));
        }
        unread
    }
}

/// Returns a fingerprint of each text block, call and result of a message. They are per block,
/// because a request body that is written and read again may divide its messages differently.
fn fingerprints(message: &Message) -> impl Iterator<Item = u64> {
    message.content.iter().filter(|block| !block.is_reasoning()).filter_map(fingerprint)
}

/// Returns the FNV-1a hash of a block's texts, cut to the bits that every JSON reader keeps; `None`
/// for a block without text. It is stored, so it must never change.
fn fingerprint(block: &ContentBlock) -> Option<u64> {
    let (mut hash, mut is_blank) = (fnv1a::START, true);
    if let ContentBlock::Text(block) = block {
        // A summary that was read from a request body is still in its tags.
        let summary = markup::read_summary(&block.text);
        let text = summary.as_ref().unwrap_or(&block.text).trim();
        (hash, is_blank) = (fnv1a::hash(hash, text.as_bytes()), text.is_empty());
    } else {
        passages_of(Speaker::Tool, block, &mut |_, kind, text| {
            let text = if kind == Kind::Mark { "" } else { text.trim() };
            (hash, is_blank) = (fnv1a::hash(hash, text.as_bytes()), is_blank && text.is_empty());
        });
    }
    (!is_blank).then_some(hash & ((1 << 53) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{CheckpointId, Role, ToolResult};

    #[test]
    fn the_stored_form_and_its_fingerprints_never_change() {
        let mut known = Memory::new(None, None);
        let rule = Message::user("Never touch the lexer.");
        known.read(&rule, None);
        let summary = Message::summary(Role::User, Summary::new("They talked."));
        let past = AfterCompaction::new(known, 0, &[summary.clone(), rule], [&summary]);
        let stored = r#"{"known":{"rules":{"rules":[],"left_out":0},"messages":1},"changes":0,"marks":[8181261424462088],"left":[8181261424462088,5601497326880383]}"#;
        assert_eq!(serde_json::to_string(&past).unwrap(), stored);
        let read: AfterCompaction = serde_json::from_str(stored).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), stored);
    }

    #[test]
    fn only_texts_have_a_fingerprint_and_a_summary_has_the_same_in_its_tags() {
        let of = |block: ContentBlock| fingerprint(&block);
        let summary = Summary::new("They </b> talked.");
        let tagged = markup::summary(Role::User, &summary);
        assert_eq!(of(ContentBlock::text(tagged)), of(summary.into()));
        let result = ToolResult::text("t1", "They talked.").into();
        assert_eq!(of(result), of(ContentBlock::text(" They talked.\n")));
        assert_ne!(of(ContentBlock::text("one")), of(ContentBlock::text("two")));
        let id: CheckpointId = "aaaaaa".parse().unwrap();
        assert_eq!(of(ContentBlock::checkpoint(id)), None);
        assert_eq!(of(ContentBlock::reminder("Be brief.")), None);
        assert_eq!(of(ContentBlock::text(" ")), None);
    }
}
