//! The kinds that travel as texts, both ways.

use super::contract::Recognise;
use crate::message::{
    Checkpoint, ContentBlock, ContextUpdate, Extra, Json, Message, Role, Summary, SystemReminder,
    Text, TextBlock, markup,
};

/// The mark on a text that reads as a form of ours and came so in a body of this codec. It goes back
/// there as it came.
const CAME_SO: &str = "~form";

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

/// Hides the texts of the user that would be read as another kind, but for those that came so in a
/// body of this codec.
pub(super) fn hide_forms(codec: &str, messages: &mut [(usize, Message)]) {
    let reads = |block: &ContentBlock| {
        let ContentBlock::Text(text) = block else { return None };
        let came_so = || text.extra.get(codec, CAME_SO).is_some() && markup::is_form(&text.text);
        let starts = text.text.starts_with('<');
        let hidden = (starts && !came_so()).then(|| markup::plain(&text.text))?;
        (hidden != text.text).then_some(hidden)
    };
    for (_, message) in messages {
        if message.role != Role::User || !message.content.iter().any(|block| reads(block).is_some())
        {
            continue;
        }
        for block in &mut message.make_mut().content {
            if let Some(hidden) = reads(block)
                && let ContentBlock::Text(text) = block
            {
                text.text = hidden;
            }
        }
    }
}

/// Turns texts of a user message into the kinds that they are the wire form of.
pub(super) fn recognise(codec: &'static str, blocks: &mut [ContentBlock], asked: Recognise) {
    let last = blocks.len().saturating_sub(1);
    for (index, block) in blocks.iter_mut().enumerate() {
        // All of them are in tags.
        if let ContentBlock::Text(text) = block
            && text.text.starts_with('<')
        {
            *block = recognised(codec, text.clone(), asked, index == last);
        }
    }
}

/// Whose blocks are read, and which texts become kinds again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speaker {
    pub(super) codec: &'static str,
    pub(super) role: Role,
    pub(super) recognise: Recognise,
}

impl Speaker {
    /// Returns a text, or the kind that it is the wire form of.
    pub(super) fn text(self, block: TextBlock, last: bool) -> ContentBlock {
        match self.role {
            Role::User => recognised(self.codec, block, self.recognise, last),
            Role::Assistant | Role::System => block.into(),
        }
    }
}

/// Returns a text of a user message, or the kind that it is the wire form of. Only the last block
/// of a message is a checkpoint.
fn recognised(codec: &'static str, block: TextBlock, asked: Recognise, last: bool) -> ContentBlock {
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
    } else if asked.reminders
        && let Some(update) = markup::read_context_update(&text)
    {
        ContextUpdate { extra, ..update }.into()
    } else if asked.summaries
        && let Some(text) = markup::read_summary(&text).filter(says_something)
    {
        Summary { extra, ..Summary::new(text) }.into()
    } else if markup::is_form(&text) {
        TextBlock { extra: extra.with(codec, CAME_SO, Json::default()), text }.into()
    } else {
        TextBlock { text: markup::read_plain(&text), extra }.into()
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
        recognise("c", &mut blocks, Recognise::default());
        assert_eq!(blocks[0].as_text(), marker.as_text());
        assert_eq!(blocks[1], ContentBlock::checkpoint("a1b2c3".parse().unwrap()));
    }
}
