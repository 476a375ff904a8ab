//! Turning texts back into the kinds that they are the wire form of.

use super::contract::Recognise;
use crate::message::{Checkpoint, ContentBlock, Summary, SystemReminder, Text, TextBlock, markup};

/// Turns texts of a user message into the kinds that they are the wire form of.
pub(super) fn recognise(blocks: &mut [ContentBlock], asked: Recognise) {
    let last = blocks.len().saturating_sub(1);
    for (index, block) in blocks.iter_mut().enumerate() {
        let ContentBlock::Text(TextBlock { text, extra }) = block else { continue };
        let extra = extra.clone();
        if asked.checkpoints
            && index == last
            && let Some(id) = markup::read_checkpoint(text)
        {
            *block = Checkpoint { id, extra }.into();
        } else if asked.reminders
            && let Some(text) = markup::read_reminder(text).filter(says_something)
        {
            *block = SystemReminder { text, extra }.into();
        } else if asked.summaries
            && let Some(text) = markup::read_summary(text).filter(says_something)
        {
            *block = Summary { extra, ..Summary::new(text) }.into();
        }
    }
}

/// Blank ones would be taken out of the thread as blocks that say nothing.
fn says_something(text: &Text) -> bool {
    !text.is_blank()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_block_becomes_a_checkpoint() {
        let marker = ContentBlock::text("<checkpoint:a1b2c3>");
        let mut blocks = vec![marker.clone(), marker.clone()];
        recognise(&mut blocks, Recognise::default());
        assert_eq!(blocks, [marker, ContentBlock::checkpoint("a1b2c3".parse().unwrap())]);
    }
}
