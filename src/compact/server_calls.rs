//! Calls that the provider answers itself, and its answers.
//!
//! An answer need not stand in the turn of its call: a call that waits for an approval, and a
//! program that calls tools of the host, are answered turns later. So calls and answers are paired
//! over the whole thread, each answer with the latest call of its id before it.

use std::collections::HashMap;

use super::{position::Position, turns::Mention};
use crate::message::{ContentBlock, Message, Text};

/// Returns every answer of a provider to a call of its own, in order, with that call; without one
/// where the call is missing. Takes a look at the messages that hold such blocks, and at none where
/// nothing is answered.
pub(super) fn answers(messages: &[Message]) -> Vec<(Option<Mention<'_>>, Mention<'_>)> {
    if !messages.iter().any(|message| message.sketch().has_server_results()) {
        return Vec::new();
    }
    let mut latest: HashMap<&Text, Mention<'_>> = HashMap::new();
    let mut answers = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let known = message.sketch();
        if !known.has_server_calls() && !known.has_server_results() {
            continue;
        }
        for (number, block) in message.content.iter().enumerate() {
            let mention = |id| Mention { at: Position { message: index, block: number }, id };
            match block {
                _ if !message.role.may_send(block) => {}
                ContentBlock::ServerToolUse(call) => {
                    latest.insert(&call.id, mention(&call.id));
                }
                ContentBlock::ServerToolResult(result) => {
                    let id = &result.tool_use_id;
                    answers.push((latest.get(id).copied(), mention(id)));
                }
                ContentBlock::Text(_)
                | ContentBlock::Image(_)
                | ContentBlock::Document(_)
                | ContentBlock::Thinking(_)
                | ContentBlock::RedactedThinking(_)
                | ContentBlock::ToolUse(_)
                | ContentBlock::ToolResult(_)
                | ContentBlock::SystemReminder(_)
                | ContentBlock::ContextUpdate(_)
                | ContentBlock::Checkpoint(_)
                | ContentBlock::Summary(_)
                | ContentBlock::Opaque(_) => {}
            }
        }
    }
    answers
}

/// Returns the calls of a provider with their answers, in the order of the answers.
pub(super) fn pairs(messages: &[Message]) -> impl Iterator<Item = (Mention<'_>, Mention<'_>)> {
    answers(messages).into_iter().filter_map(|(call, answer)| Some((call?, answer)))
}

/// Returns the earliest message with a call of the provider that this message answers, which would
/// come after these.
pub(crate) fn earliest_answered(thread: &[Message], message: &Message) -> Option<usize> {
    let answered = |block: &ContentBlock| {
        let ContentBlock::ServerToolResult(result) = block else { return None };
        thread.iter().rposition(|before| {
            before.sketch().has_server_calls()
                && before.content.iter().any(|block| {
                    matches!(block, ContentBlock::ServerToolUse(call) if call.id == result.tool_use_id)
                })
        })
    };
    message.content.iter().filter_map(answered).min()
}
