//! What a provider cannot use because another one made it.

use std::collections::HashSet;

use super::{
    contract::Change,
    notes::{Fitted, Gone, Notes},
};
use threadfold_core::message::{ContentBlock, Extra, Message, Opaque, Text};

/// Returns the ids of the server calls that another provider made, or answered with a kind of result
/// that this one does not know. Call and result are left out together, so an id stands for both.
pub(super) fn server_calls(
    codec: &str,
    messages: &[(usize, Message)],
    knows: impl Fn(&str) -> bool,
) -> HashSet<Text> {
    let is_unknown = |block: &ContentBlock| matches!(block, ContentBlock::ServerToolResult(result) if !knows(&result.kind));
    let mut ids = HashSet::new();
    for (_, message) in messages {
        for block in &message.content {
            let Some((extra, id)) = server_call(block) else { continue };
            if is_foreign(codec, message, extra) || is_unknown(block) {
                ids.insert(id.clone());
            }
        }
    }
    ids
}

/// Leaves the server call of this id out, if it is among these.
pub(super) fn check_server_call(
    foreign: &HashSet<Text>,
    kind: &str,
    id: &Text,
    notes: &mut Notes,
) -> Result<(), Gone> {
    if !foreign.contains(id) {
        return Ok(());
    }
    Err(notes.leave_out(kind, "another provider's server tool"))
}

/// Leaves reasoning out, if it has to be: for this fault, or because another provider signed it.
pub(super) fn check_reasoning(
    fault: Option<&'static str>,
    extra: &Extra,
    notes: &mut Notes,
) -> Result<(), Gone> {
    let other = extra.codec().is_some_and(|codec| codec != notes.codec());
    let Some(reason) = fault.or(other.then_some("another provider signed it")) else {
        return Ok(());
    };
    notes.note(Change::ReasoningDropped { reason: reason.into() });
    Err(Gone)
}

/// Leaves an opaque block out, if another provider made it.
pub(super) fn check_opaque(opaque: &Opaque, notes: &mut Notes) -> Fitted {
    if opaque.codec == notes.codec() {
        return Ok(None);
    }
    Err(notes.leave_out("opaque", "only another provider understands it"))
}

/// Whether something that its codec tagged, or the provider of its message, is another's.
fn is_foreign(codec: &str, message: &Message, extra: &Extra) -> bool {
    let origin = message.origin.as_ref().map(|origin| origin.provider.as_str());
    extra.codec().or(origin).is_some_and(|owner| owner != codec)
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
