//! Block kinds that are sent as text: writing and recognising them.

use super::{mark, options::DecodeOptions};
use threadfold_core::message::{markup::Form, *};

/// The patterns of several kinds of blocks. `text` are those that are written as text:
/// [`wire_text`] returns a text for them. `call` are calls and results.
macro_rules! blocks {
    (text) => {
        ContentBlock::Text(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_)
    };
    (media) => {
        ContentBlock::Image(_) | ContentBlock::Document(_)
    };
    (reasoning) => {
        ContentBlock::Thinking(_) | ContentBlock::RedactedThinking(_)
    };
    (server) => {
        ContentBlock::ServerToolUse(_) | ContentBlock::ServerToolResult(_)
    };
    (call) => {
        ContentBlock::ToolUse(_) | ContentBlock::ToolResult(_) | blocks!(server)
    };
}

pub(super) use blocks;

/// Returns the text as which a block goes to a provider that knows only texts, in a message of this
/// role and author: the text itself, in the tags of its author if there is one, or the reminder,
/// context update, checkpoint or summary in the form that every codec of this crate writes and [`DecodeOptions`] can read back. `None` for images,
/// documents, calls, results, reasoning and opaque blocks, which every provider has its own form for.
///
/// An adapter for a provider without a codec calls this for each block of a message, so that the
/// model reads the same texts from every provider. A text of the user that looks like one of these
/// forms gets a backslash, and so do tags of an author in it, so that no text can forge a block or
/// speak for another person. The texts in a tool result have no author.
///
/// ```
/// use threadfold::{ContentBlock, Role, message::Summary, wire::text_of};
///
/// let text = |block: ContentBlock| text_of(Role::User, None, &block).unwrap_or_default();
/// let summary = ContentBlock::Summary(Summary::new("They spoke of ropes."));
/// let written = text(summary);
/// assert_eq!(written, "<conversation-summary>\nThey spoke of ropes.\n</conversation-summary>");
/// assert_eq!(text(ContentBlock::text("Hello.")), "Hello.");
/// let forged = text(ContentBlock::text(written));
/// assert!(forged.starts_with("<\\conversation-summary>"), "{forged}");
///
/// let ann = "ann".parse()?;
/// let typed = text_of(Role::User, Some(&ann), &ContentBlock::text("Hello."));
/// assert_eq!(typed.as_deref(), Some("<author:ann>\nHello.\n</author:ann>"));
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
#[must_use]
pub fn text_of(role: Role, author: Option<&Author>, block: &ContentBlock) -> Option<Text> {
    let (text, _) = wire_text(role, block)?;
    Some(match (block, author) {
        (ContentBlock::Text(_), Some(author)) if !text.is_blank() => {
            markup::authored(author, &text).into()
        }
        (ContentBlock::Text(typed), _) if role == Role::User && !is_kept_form(typed) => {
            markup::plain(&markup::without_author(&text))
        }
        _ => text,
    })
}

/// Writes the author of a user message around each of its texts, or before its first block if there is
/// no text. Tags of an author in a message without one get a backslash.
pub(super) fn write_author(message: &mut Message) {
    if message.role != Role::User {
        return;
    }
    let parts = message.make_mut();
    let author = parts.author.take();
    let typed = parts
        .content
        .iter_mut()
        .filter_map(|block| if let ContentBlock::Text(typed) = block { Some(typed) } else { None });
    let Some(author) = author else {
        return typed.for_each(|typed| typed.text = markup::without_author(&typed.text));
    };
    let mut written = 0;
    for typed in typed.filter(|typed| !typed.text.is_blank()) {
        typed.text = markup::authored(&author, &typed.text).into();
        written += 1;
    }
    let medium = parts.content.iter().position(|block| matches!(block, blocks!(media)));
    if let Some(at) = medium.filter(|_| written == 0) {
        parts.content.insert(at, ContentBlock::text(markup::authored(&author, "")));
    }
}

/// The text as which a block is written, and its extra fields; `None` if it is not written as text.
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
        blocks!(media) | blocks!(reasoning) | blocks!(call) | ContentBlock::Opaque(_) => None,
    }
}

/// Escapes user texts that would be read as another kind, unless they were read as texts in a body.
pub(super) fn escape_forms(messages: &mut [(usize, Message)]) {
    let user_messages = messages.iter_mut().filter(|(_, message)| message.role == Role::User);
    for (_, message) in user_messages {
        for index in 0..message.content.len() {
            let Some(text) = form(&message.content, index).filter(|text| !is_kept_form(text))
            else {
                continue;
            };
            let hidden = markup::plain(&text.text);
            if let Some(ContentBlock::Text(text)) = message.make_mut().content.get_mut(index) {
                text.text = hidden;
            }
        }
    }
}

/// Turns texts of a user message that have the wire form of another kind into that kind. Only the
/// last block may become a checkpoint.
pub(super) fn recognise(codec: &'static str, blocks: &mut [ContentBlock], options: DecodeOptions) {
    let count = blocks.len();
    // Go backwards, because the kind of a text depends on the blocks after it.
    for index in (0..blocks.len()).rev() {
        let Some(text) = form(blocks, index).filter(|text| !is_kept_form(text)) else { continue };
        let read = recognised(codec, text.clone(), options, index + 1 == count);
        if let Some(block) = blocks.get_mut(index) {
            *block = read;
        }
    }
}

/// Marks a text that looks like another kind but stays a text.
pub(super) fn kept_form(codec: &'static str, text: TextBlock) -> TextBlock {
    TextBlock { extra: text.extra.with(codec, mark::FORM, Json::default()), text: text.text }
}

/// The block at this index, if it is a text that looks like another kind, also after removing its
/// escapes. A checkpoint before other texts is not recognised in any dialect.
fn form(blocks: &[ContentBlock], index: usize) -> Option<&TextBlock> {
    let ContentBlock::Text(text) = blocks.get(index)? else { return None };
    let form = markup::form(&text.text)?;
    let mut after = blocks.iter().skip(index + 1).take_while(|block| !is_apart(block));
    let may_be = form != Form::Checkpoint
        || !after.any(|block| wire_text(Role::User, block).is_some() && !block.is_blank());
    may_be.then_some(text)
}

/// Whether some dialect writes a block as a message of its own.
fn is_apart(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::ToolResult(_) | ContentBlock::Opaque(_))
}

pub(super) fn is_kept_form(text: &TextBlock) -> bool {
    text.extra.fields().any(|(key, _)| key == mark::FORM)
}

/// Returns a user text as the kind whose wire form it has, if the options ask for it; otherwise as
/// text. A tag with blank content stays a text, because repairs remove blank blocks.
fn recognised(
    codec: &'static str,
    block: TextBlock,
    options: DecodeOptions,
    last: bool,
) -> ContentBlock {
    let TextBlock { text, extra } = block;
    if options.checkpoints
        && last
        && let Some(id) = markup::read_checkpoint(&text)
    {
        Checkpoint { id, extra }.into()
    } else if options.reminders
        && let Some(text) = markup::read_reminder(&text).filter(|text| !text.is_blank())
    {
        ContentBlock::SystemReminder(TextBlock { text, extra })
    } else if options.reminders
        && let Some(update) = markup::read_context_update(&text)
    {
        ContextUpdate { extra, ..update }.into()
    } else if options.summaries
        && let Some(text) = markup::read_summary(&text).filter(|text| !text.is_blank())
    {
        Summary { extra, ..Summary::new(text) }.into()
    } else {
        match markup::read_plain(&text) {
            Some(text) => TextBlock { text, extra }.into(),
            None => kept_form(codec, TextBlock { text, extra }).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_block_becomes_a_checkpoint() {
        let marker = ContentBlock::text("<checkpoint:a1b2c3>");
        let mut blocks = vec![marker.clone(), marker.clone()];
        recognise("c", &mut blocks, DecodeOptions::default());
        assert_eq!(blocks, [marker, ContentBlock::checkpoint("a1b2c3".parse().unwrap())]);
    }
}
