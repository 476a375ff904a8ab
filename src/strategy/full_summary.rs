//! Earlier summaries with all of their batches, for the model that writes the next one.
//!
//! The text of a batch summary shows only the first and the last batches; its data holds all of
//! them. A strategy that replaces such a summary must read all batches, or their content would be
//! lost.

use std::borrow::Cow;

use super::{batches, brief::Brief};
use crate::{
    ledger::without_titled,
    message::{ContentBlock, Message, Summary},
    notes,
    prose::without_typed,
    retention::RetentionPolicy,
};

/// Returns the text of a summary with all of its batches.
pub(super) fn text(summary: &Summary) -> Cow<'_, str> {
    if summary.batches.iter().all(|batch| summary.text.contains(batch.text.trim())) {
        return Cow::Borrowed(&summary.text);
    }
    Cow::Owned(batches::view(&summary.batches, usize::MAX, 0))
}

/// Returns the messages with these texts. Reasoning after a text that changes is marked: it was
/// thought on another one.
pub(super) fn messages<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
) -> impl Iterator<Item = Message> {
    let mut is_changed = false;
    messages.into_iter().map(move |message| {
        is_changed |= message.summaries().any(|it| matches!(text(it), Cow::Owned(_)));
        let mut message = with_summaries(message, |summary| match text(summary) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(Summary { text: text.into(), ..summary.clone() }),
        });
        if is_changed && message.has_reasoning() {
            message.prefix_rewritten = true;
        }
        message
    })
}

/// Returns the message with changed summaries, or the same handle if none changes.
pub(super) fn with_summaries(
    message: &Message,
    change: impl Fn(&Summary) -> Option<Summary>,
) -> Message {
    if !message.is_summary() {
        return message.clone();
    }
    let mut is_changed = false;
    let blocks = message.content.iter().map(|block| {
        let ContentBlock::Summary(summary) = block else { return block.clone() };
        let Some(summary) = change(summary) else { return block.clone() };
        is_changed = true;
        summary.into()
    });
    let blocks = blocks.collect();
    if is_changed { message.with_content(blocks) } else { message.clone() }
}

/// Returns the text of the earlier summary and all other messages, so that the next summary can be
/// an update of it. `None` if there is no such summary or no message after it, if there is a second
/// one, or if a message before it was not typed by the user: only typed messages are kept word for
/// word.
///
/// If settling adds rules and the user's words to the next summary, the text is without those that
/// it added to this one.
pub(super) fn split(messages: &[Message], brief: &Brief) -> Option<(String, Vec<Message>)> {
    let at = messages.iter().position(Message::is_summary)?;
    let (before, rest) = messages.split_at(at);
    let (message, after) = rest.split_first()?;
    let is_only = before.iter().all(Message::is_typed) && !after.iter().any(Message::is_summary);
    if !is_only || after.is_empty() {
        return None;
    }
    let mut texts = message.summaries().map(|summary| &summary.text);
    let (text, is_one) = (texts.next()?, texts.next().is_none());
    let adds = brief.retention.as_ref().is_some_and(RetentionPolicy::lists_typed);
    let text = notes::without(text);
    let own = if adds { without_typed(&without_titled(&text)) } else { text };
    (is_one && !own.trim().is_empty()).then(|| (own, [before, after].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Batch, BatchId, CompactionId, Role, Thinking};

    #[test]
    fn reasoning_after_a_summary_that_is_shown_whole_is_marked() {
        let thought = || {
            let thought = Thinking::new("Hm.", Some("signature".into()));
            Message::new(Role::Assistant, vec![thought.into(), ContentBlock::text("So.")])
        };
        let id = BatchId { compaction: CompactionId::default(), index: 0 };
        let batches = [Batch::new(id, "They read the lexer.")];
        let marked = |text: &str| {
            let summary = Summary { batches: batches.clone().into(), ..Summary::new(text) };
            let thread = [thought(), Message::summary(Role::User, summary), thought()];
            messages(&thread).map(|message| message.prefix_rewritten).collect::<Vec<_>>()
        };
        assert_eq!(marked("They read."), [false, false, true]);
        assert_eq!(marked("They read the lexer."), [false; 3]);
    }
}
