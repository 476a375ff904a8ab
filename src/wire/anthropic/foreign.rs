//! What this provider cannot use because another one made it.

use std::collections::HashSet;

use super::forms::NAME;
use crate::message::{ContentBlock, Extra, Message, Text};

/// Whether something that its codec tagged, or the provider of its message, is another's.
pub(super) fn is_foreign(message: &Message, extra: &Extra) -> bool {
    let origin = message.origin.as_ref().map(|origin| origin.provider.as_str());
    extra.codec().or(origin).is_some_and(|owner| owner != NAME)
}

/// Returns the ids of the server calls that another provider made or answered. Call and result
/// are left out together, so an id stands for both.
pub(super) fn server_calls(messages: &[(usize, Message)]) -> HashSet<Text> {
    let blocks = messages.iter().flat_map(|(_, message)| {
        message.content.iter().filter_map(move |block| server_call(message, block))
    });
    blocks.cloned().collect()
}

fn server_call<'m>(message: &Message, block: &'m ContentBlock) -> Option<&'m Text> {
    match block {
        ContentBlock::ServerToolUse(call) => is_foreign(message, &call.extra).then_some(&call.id),
        ContentBlock::ServerToolResult(result) => {
            is_foreign(message, &result.extra).then_some(&result.tool_use_id)
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
        | ContentBlock::Opaque(_) => None,
    }
}

/// Returns why the reasoning of a message would be refused, if it would.
pub(super) fn reasoning_fault(message: &Message, binds_reasoning: bool) -> Option<&'static str> {
    let other = message.origin.as_ref().is_some_and(|origin| origin.provider != NAME);
    if other {
        return Some("another provider signed it");
    }
    (binds_reasoning && message.prefix_rewritten).then_some("what it was thought on was rewritten")
}
