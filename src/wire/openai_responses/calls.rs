//! Which form each call has, and which calls cannot go out because their answer has none.

use std::collections::{HashMap, HashSet};

use super::{kinds, marks::marked};
use crate::{
    message::{ContentBlock, Message, Text, ToolInput, ToolResult, ToolUse},
    wire::fields::{Fields, text},
};

/// The form of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CallKind {
    /// A function, whose input is JSON.
    #[default]
    Function,
    /// A custom tool, whose input is text.
    Custom,
    /// A call in a form of its own; the type of its answer.
    Client(&'static str),
}

impl CallKind {
    /// The form in which a call is written: that in which it came, if it still has it.
    pub(super) fn of(call: &ToolUse) -> Self {
        let Some(kind) = marked(&call.extra, "~as") else { return Self::Function };
        if kind == kinds::CUSTOM {
            return Self::Custom;
        }
        let ToolInput::Json(json) = &call.input else { return Self::Function };
        let came =
            Fields::parse(json.as_str()).and_then(|fields| fields.get("type").and_then(text));
        let output = kinds::client_output(&kind).filter(|_| came.as_ref() == Some(&kind));
        output.map_or(Self::Function, Self::Client)
    }
}

/// The calls of a thread. An id may come again, so a call is known by its message too.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The latest call of each id that was written.
    latest: HashMap<Text, (usize, CallKind)>,
    lost: HashSet<(usize, Text)>,
}

impl Calls {
    /// Finds the calls whose answer has no form: both are left out.
    pub(super) fn new(messages: &[(usize, Message)]) -> Self {
        let mut calls = Self::default();
        for (place, (_, message)) in messages.iter().enumerate() {
            for block in &message.content {
                if let ContentBlock::ToolUse(call) = block {
                    calls.latest.insert(call.id.clone(), (place, CallKind::of(call)));
                } else if let ContentBlock::ToolResult(result) = block
                    && let Some((place, kind)) = calls.latest.get(&result.tool_use_id)
                    && !is_writable(*kind, result)
                {
                    calls.lost.insert((*place, result.tool_use_id.clone()));
                }
            }
        }
        calls.latest.clear();
        calls
    }

    /// Notes that a call is at work, which stands at this place of the thread.
    pub(super) fn turn_to(&mut self, place: usize, call: &ToolUse) -> CallKind {
        let kind = CallKind::of(call);
        self.latest.insert(call.id.clone(), (place, kind));
        kind
    }

    /// The form of the latest call of this id.
    pub(super) fn kind(&self, id: &Text) -> CallKind {
        self.latest.get(id).map(|(_, kind)| *kind).unwrap_or_default()
    }

    /// Whether the latest call of this id is left out.
    pub(super) fn is_lost(&self, id: &Text) -> bool {
        let place = self.latest.get(id).map(|(place, _)| *place);
        place.is_some_and(|place| self.lost.contains(&(place, id.clone())))
    }
}

/// Whether a result can be written for a call of this form.
fn is_writable(kind: CallKind, result: &ToolResult) -> bool {
    let CallKind::Client(output) = kind else { return true };
    let came_as = marked(&result.extra, "~as");
    if came_as.as_deref() != Some(output) {
        // As the answer to a function, where it came so, and where that is known to be accepted.
        let of_function = came_as.as_deref() == Some(kinds::FUNCTION_OUTPUT);
        return of_function || output == kinds::LOCAL_SHELL_OUTPUT;
    }
    let form = marked(&result.extra, "~content");
    match result.content.as_slice() {
        [] => form.is_some() || kinds::takes_text(output),
        [ContentBlock::Opaque(_)] => form.as_deref() == Some("whole") && !result.is_error,
        [ContentBlock::Text(_)] => kinds::takes_text(output),
        [..] => false,
    }
}
