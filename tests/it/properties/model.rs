//! A slow reference implementation of compaction, block by block.

use std::ops::Range;

use threadfold::{
    ContentBlock, Message, Role,
    compact::{CompactOptions, Position},
    legality,
};

/// Returns the thread with these ranges, which are in order, replaced by these messages.
pub(crate) fn compact(
    thread: &[Message],
    ranges: &[(Range<Position>, Vec<Message>)],
    strip: &CompactOptions,
) -> Vec<Message> {
    let Some(first) = ranges.first().map(|(range, _)| range.start.message) else {
        return thread.to_vec();
    };
    let open_loop = legality::open_loop(thread).filter(|_| strip.keep_open_loop);
    let loop_from = open_loop.unwrap_or(thread.len());
    let mut built: Vec<Message> = thread[..first].to_vec();
    let mut waiting = ranges.iter().peekable();
    // The first message that is replaced, or before which one is inserted.
    let mut changed: Option<usize> = None;
    for (index, message) in thread.iter().enumerate().skip(first) {
        let mut part: Vec<ContentBlock> = Vec::new();
        let mut own: Vec<usize> = Vec::new();
        let start = built.len();
        for (block, content) in message.content.iter().enumerate() {
            let at = Position { message: index, block };
            while let Some((_, insert)) = waiting.next_if(|(range, _)| range.end <= at) {
                if !insert.is_empty() {
                    changed.get_or_insert(start);
                    close(message, &mut part, &mut built, &mut own);
                }
                built.extend(insert.iter().cloned());
            }
            let taken = waiting.peek().filter(|(range, _)| range.contains(&at));
            if let Some((_, insert)) = taken {
                changed.get_or_insert(start);
                // Messages are inserted at the start of the range, which completes the message
                // before it. Without an insertion that message continues after the range.
                if !insert.is_empty() {
                    close(message, &mut part, &mut built, &mut own);
                }
            } else if !stripped(message.role, content, strip, index < loop_from) {
                part.push(content.clone());
            } else {
                changed.get_or_insert(start);
            }
        }
        close(message, &mut part, &mut built, &mut own);
        // The usage of a divided answer counts once, on its last part.
        own.pop();
        for part in own {
            let parts = built[part].make_mut();
            (parts.usage, parts.stop_reason) = (None, None);
        }
        let end = Position { message: index, block: message.content.len() };
        while let Some((_, insert)) = waiting.next_if(|(range, _)| range.end <= end) {
            if !insert.is_empty() {
                changed.get_or_insert(built.len());
            }
            built.extend(insert.iter().cloned());
        }
    }
    waiting.for_each(|(_, insert)| built.extend(insert.iter().cloned()));
    for message in built.iter_mut().skip(changed.unwrap_or(usize::MAX)) {
        message.prefix_rewritten |= message.content.iter().any(ContentBlock::is_reasoning);
    }
    built
}

fn stripped(role: Role, block: &ContentBlock, strip: &CompactOptions, outside_loop: bool) -> bool {
    let reminder = matches!(block, ContentBlock::SystemReminder(_));
    (role == Role::User && strip.strip_reminders && reminder)
        || (role == Role::Assistant && strip.strip_thinking && outside_loop && block.is_reasoning())
}

fn close(
    source: &Message,
    part: &mut Vec<ContentBlock>,
    built: &mut Vec<Message>,
    own: &mut Vec<usize>,
) {
    if part.is_empty() {
        return;
    }
    let mut message = source.clone();
    message.make_mut().content = std::mem::take(part);
    own.push(built.len());
    built.push(message);
}
