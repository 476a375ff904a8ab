//! The forms and ids of calls, and the calls that are left out because their result has no form.

use std::collections::{HashMap, HashSet};

use super::{kinds, marks::*};
use crate::kit::*;

/// The maximum length of the id of a call, in characters.
const MAX_ID: usize = 64;

/// The calls of a thread, by their written ids.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The types of the answers to these calls.
    outputs: HashMap<Text, &'static str>,
    /// The rewritten ids, each with the id before.
    before: HashMap<Text, Text>,
}

impl Calls {
    /// Gives every call a unique id, and leaves out those whose results cannot be written.
    pub(super) fn of(thread: &mut Thread, notes: &mut Notes) -> Self {
        let mut calls =
            Self { before: names::distinguish_ids(thread, MAX_ID, notes), ..Self::default() };
        let mut lost = HashSet::new();
        for block in thread.iter().flat_map(|(_, message)| &message.content) {
            if let ContentBlock::ToolUse(call) = block {
                calls.outputs.insert(call.id.clone(), output_of(call));
            } else if let ContentBlock::ToolResult(result) = block
                && !is_writable(calls.output(&result.tool_use_id), result)
            {
                lost.insert(result.tool_use_id.clone());
            }
        }
        for (at, message) in thread.iter_mut().filter(|_| !lost.is_empty()) {
            notes.turn_to(*at);
            fit_blocks(message, |block| {
                let reason = if is_call(block) {
                    "its result has no form in this dialect"
                } else {
                    "its call has another form of answer"
                };
                call_id(block).is_none_or(|id| !lost.contains(id))
                    || notes.drop_block(block.kind(), reason)
            });
        }
        thread.retain(|(_, message)| !message.content.is_empty());
        calls
    }

    /// The type of the answer to a call.
    pub(super) fn output(&self, id: &Text) -> &'static str {
        self.outputs.get(id).copied().unwrap_or(kinds::FUNCTION_OUTPUT)
    }

    /// The id of a call before it was rewritten.
    pub(super) fn id_before(&self, id: &Text) -> Text {
        self.before.get(id).unwrap_or(id).clone()
    }
}

/// The type of the answer to a call. It also determines the form of the written call, which is the
/// form in which the call was read if it was not changed.
fn output_of(call: &ToolUse) -> &'static str {
    let Some(kind) = marked(&call.extra, mark::AS) else { return kinds::FUNCTION_OUTPUT };
    // The input of a call in a special form is the whole item.
    let type_as_read = match &call.input {
        ToolInput::Json(item) => Fields::parse(item.as_str()).and_then(|item| item.text("type")),
        ToolInput::Text(_) => None,
    };
    let is_same = kind == kinds::CUSTOM || type_as_read.as_ref() == Some(&kind);
    kinds::output_of(&kind).filter(|_| is_same).unwrap_or(kinds::FUNCTION_OUTPUT)
}

/// Whether a result can be written for a call of this form.
fn is_writable(output: &str, result: &ToolResult) -> bool {
    if kinds::is_plain(output) {
        return true;
    }
    let type_as_read = marked(&result.extra, mark::AS);
    if type_as_read.as_deref() != Some(output) {
        // It is written as a function's result if it was read as one, or if the provider is known
        // to accept that.
        let of_function = type_as_read.as_deref() == Some(kinds::FUNCTION_OUTPUT);
        return of_function || output == kinds::LOCAL_SHELL_OUTPUT;
    }
    let form = marked(&result.extra, mark::CONTENT);
    match result.content.as_slice() {
        [] => form.is_some() || kinds::takes_text(output),
        [ContentBlock::Opaque(_)] => form.as_deref() == Some("whole") && !result.is_error,
        [ContentBlock::Text(_)] => kinds::takes_text(output),
        [..] => false,
    }
}
