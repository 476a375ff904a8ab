//! The plan of a call of the `compact` tool: the ranges that it names, and the call itself.
//!
//! The call is in the answer at the end of the thread, its result behind it. Where they stay, a
//! text takes the place of the call: a model that reads a request for ranges that are gone would
//! ask for them again. What else was called in the same answer stays with its results.

use super::{
    edit::{self, CompactError, Edit},
    edits::{self, CompactOptions, Strip},
    plan::Plan,
    position::Position,
    replacements::Replacement,
};
use crate::message::{ContentBlock, Message, MessageParts, Role, StopReason, SystemReminder, Text};

/// What stands in the place of the call.
const COMPACTED: &str = "I compacted the thread.";

impl Plan {
    /// Returns the plan of a call of the `compact` tool with this id, and of what is said to the
    /// model when it is done. The last two messages are the answer with the call and the user
    /// message with its result.
    pub(crate) fn of_call(
        messages: &[Message],
        id: &str,
        replacements: &[Replacement],
        options: &CompactOptions,
        said: &Text,
    ) -> Result<Self, CompactError> {
        let mut edits = edits::edits_of(messages, replacements, options)?;
        let ([.., answer, results], Some(at)) = (messages, messages.len().checked_sub(2)) else {
            return Self::from_edits(messages, edits, options);
        };
        let end = Position::before(messages.len());
        let alone = calls_beside(answer, id) == 0;
        match edits.iter_mut().find(|edit| edit::normal(messages, edit.range.end) == end) {
            Some(edit) => edit.insert.push(closing(results, None, said)),
            None => edits.push(Edit {
                range: Position::before(at)..end,
                insert: vec![without_call(answer, id), closing(results, Some(id), said)],
            }),
        }
        // Without another call the loop is over: what is said next begins anew.
        let keep_open_loop = options.strip.keep_open_loop && !alone;
        let strip = Strip { keep_open_loop, ..options.strip };
        Self::from_edits(messages, edits, &CompactOptions { strip, ..*options })
    }
}

fn calls_beside(answer: &Message, id: &str) -> usize {
    answer.tool_uses().filter(|call| call.id != *id).count()
}

/// The answer with a text in the place of the call. Its reasoning stays while other calls do.
fn without_call(answer: &Message, id: &str) -> Message {
    let alone = calls_beside(answer, id) == 0;
    let blocks = answer.content.iter().filter(|block| !(alone && block.is_reasoning()));
    let instead = |block: &ContentBlock| {
        let is_it = matches!(block, ContentBlock::ToolUse(call) if call.id == *id);
        if is_it { ContentBlock::text(COMPACTED) } else { block.clone() }
    };
    let mut parts = MessageParts { content: blocks.map(instead).collect(), ..(**answer).clone() };
    parts.prefix_rewritten |= parts.content.iter().any(ContentBlock::is_reasoning);
    if alone {
        parts.stop_reason = Some(StopReason::EndTurn);
    }
    Message::from(parts)
}

/// The user message behind it: what stays of the results, what is said, and the checkpoint.
/// Without an id nothing of the results stays.
fn closing(results: &Message, id: Option<&str>, said: &Text) -> Message {
    let is_marker = |block: &ContentBlock| matches!(block, ContentBlock::Checkpoint(_));
    let (markers, rest): (Vec<_>, Vec<_>) = results.content.iter().cloned().partition(is_marker);
    let of_call = |block: &ContentBlock, id: &str| matches!(block, ContentBlock::ToolResult(result) if result.tool_use_id == *id);
    let stays = rest.into_iter().filter(|block| id.is_some_and(|id| !of_call(block, id)));
    let said = ContentBlock::from(SystemReminder::new(said.clone()));
    Message::new(Role::User, stays.chain([said]).chain(markers).collect())
}
