//! Earlier summaries with all of their batches, for the model that writes the next one.
//!
//! The text of a batch summary shows only the first and the last batches; the others travel with it
//! as data. A strategy that replaces such a summary must read all of them, or their content would
//! be lost.

use std::borrow::Cow;

use super::fold_batches::FoldBatches;
use crate::message::{ContentBlock, Message, Summary};

/// Returns the text of a summary with all of its batches.
pub(super) fn text(summary: &Summary) -> Cow<'_, str> {
    if summary.batches.iter().all(|batch| summary.text.contains(batch.text.trim())) {
        return Cow::Borrowed(&summary.text);
    }
    let all = FoldBatches { clip_first: usize::MAX, ..FoldBatches::default() };
    Cow::Owned(all.view(&summary.batches))
}

/// Returns the messages with these texts. A message whose summaries show all their batches is not
/// copied.
pub(super) fn messages<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
) -> impl Iterator<Item = Message> {
    messages.into_iter().map(|message| {
        let mut message = message.clone();
        for index in 0..message.content.len() {
            let Some(ContentBlock::Summary(summary)) = message.content.get(index) else { continue };
            let Cow::Owned(text) = text(summary) else { continue };
            let summary = Summary { text: text.into(), ..summary.clone() };
            if let Some(block) = message.make_mut().content.get_mut(index) {
                *block = summary.into();
            }
        }
        message
    })
}
