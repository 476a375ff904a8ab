//! What this provider cannot use because another one made it.

use std::collections::HashSet;

use super::{forms::NAME, target::Target};
use crate::message::{ContentBlock, Extra, Message, Role, Text};

/// Returns the ids of the server calls that another provider made or answered. Call and result
/// are left out together, so an id stands for both.
pub(super) fn server_calls(messages: &[(usize, Message)]) -> HashSet<Text> {
    let calls = messages.iter().flat_map(|(_, message)| {
        let calls = message.content.iter().filter_map(server_call);
        calls.filter(|(extra, _)| is_foreign(message, extra)).map(|(_, id)| id.clone())
    });
    calls.collect()
}

/// Whether something that its codec tagged, or the provider of its message, is another's.
fn is_foreign(message: &Message, extra: &Extra) -> bool {
    let origin = message.origin.as_ref().map(|origin| origin.provider.as_str());
    extra.codec().or(origin).is_some_and(|owner| owner != NAME)
}

fn server_call(block: &ContentBlock) -> Option<(&Extra, &Text)> {
    match block {
        ContentBlock::ServerToolUse(call) => Some((&call.extra, &call.id)),
        ContentBlock::ServerToolResult(result) => Some((&result.extra, &result.tool_use_id)),
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
        | ContentBlock::Opaque(_) => None,
    }
}

/// Returns why the reasoning of a message would be refused, if it would.
pub(super) fn reasoning_fault(message: &Message, target: &Target) -> Option<&'static str> {
    let other = message.origin.as_ref().is_some_and(|origin| origin.provider != NAME);
    if other {
        return Some("another provider signed it");
    }
    if message.role != Role::Assistant {
        return Some("only the model thinks");
    }
    let bound = target.traits.binds_reasoning && message.prefix_rewritten;
    bound.then_some("what it was thought on was rewritten")
}

/// Returns why reasoning without a signature would be refused, if it would. Models of some
/// families sign nothing, so what came from here goes back.
pub(super) fn unsigned_fault(message: &Message, target: &Target) -> Option<&'static str> {
    (!came_from_here(message) || target.signs_reasoning()).then_some("it is not signed")
}

/// Whether this provider made the message.
pub(super) fn came_from_here(message: &Message) -> bool {
    message.origin.as_ref().is_some_and(|origin| origin.provider == NAME)
}
