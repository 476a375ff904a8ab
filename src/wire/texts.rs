//! The kinds that travel as texts, both ways.

use super::contract::Recognise;
use crate::message::{
    Checkpoint, ContentBlock, Extra, Role, Summary, SystemReminder, Text, TextBlock, markup,
};

/// The text by which a block travels, if it travels as text, and its extra fields.
pub(super) fn wire_text(role: Role, block: &ContentBlock) -> Option<(Text, &Extra)> {
    match block {
        ContentBlock::Text(block) => Some((block.text.clone(), &block.extra)),
        ContentBlock::SystemReminder(block) => {
            Some((markup::reminder(&block.text).into(), &block.extra))
        }
        ContentBlock::ContextUpdate(block) => {
            Some((markup::context_update(block).into(), &block.extra))
        }
        ContentBlock::Checkpoint(block) => {
            Some((markup::checkpoint(block.id).into(), &block.extra))
        }
        ContentBlock::Summary(block) => Some((markup::summary(role, block), &block.extra)),
        ContentBlock::Image(_)
        | ContentBlock::Document(_)
        | ContentBlock::Thinking(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::ToolUse(_)
        | ContentBlock::ToolResult(_)
        | ContentBlock::ServerToolUse(_)
        | ContentBlock::ServerToolResult(_)
        | ContentBlock::Opaque(_) => None,
    }
}

/// Turns texts of a user message into the kinds that they are the wire form of.
pub(super) fn recognise(blocks: &mut [ContentBlock], asked: Recognise) {
    let last = blocks.len().saturating_sub(1);
    for (index, block) in blocks.iter_mut().enumerate() {
        // All of them are in tags.
        if let ContentBlock::Text(text) = block
            && text.text.starts_with('<')
        {
            *block = recognised(text.clone(), asked, index == last);
        }
    }
}

/// Whose blocks are read, and which texts become kinds again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speaker {
    pub(super) role: Role,
    pub(super) recognise: Recognise,
}

impl Speaker {
    /// Returns a text, or the kind that it is the wire form of.
    pub(super) fn text(self, block: TextBlock, last: bool) -> ContentBlock {
        match self.role {
            Role::User => recognised(block, self.recognise, last),
            Role::Assistant | Role::System => block.into(),
        }
    }
}

/// Returns a text of a user message, or the kind that it is the wire form of. Only the last block
/// of a message is a checkpoint.
fn recognised(block: TextBlock, asked: Recognise, last: bool) -> ContentBlock {
    let TextBlock { text, extra } = block;
    if asked.checkpoints
        && last
        && let Some(id) = markup::read_checkpoint(&text)
    {
        Checkpoint { id, extra }.into()
    } else if asked.reminders
        && let Some(text) = markup::read_reminder(&text).filter(says_something)
    {
        SystemReminder { text, extra }.into()
    } else if asked.summaries
        && let Some(text) = markup::read_summary(&text).filter(says_something)
    {
        Summary { extra, ..Summary::new(text) }.into()
    } else {
        TextBlock { text, extra }.into()
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
