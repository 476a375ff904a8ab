//! The forms and ids of calls, and the calls that are left out because their result has no form.

use std::collections::{HashMap, HashSet};

use super::{kinds, marks::*};
use crate::kit::*;

/// The maximum length of the id of a call, in characters.
const MAX_ID: usize = 64;

/// The form of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CallKind {
    /// A function, whose input is JSON.
    #[default]
    Function,
    /// A custom tool, whose input is text.
    Custom,
    /// A call in a special form; the type of its result.
    Client(&'static str),
}

impl CallKind {
    /// The form in which a call is written: the one in which it was read, if it was not changed.
    pub(super) fn of(call: &ToolUse) -> Self {
        let Some(kind) = marked(&call.extra, "~as") else { return Self::Function };
        if kind == kinds::CUSTOM {
            return Self::Custom;
        }
        let ToolInput::Json(json) = &call.input else { return Self::Function };
        let came = Fields::parse(json.as_str()).and_then(|fields| fields.text("type"));
        let output = kinds::client_output(&kind).filter(|_| came.as_ref() == Some(&kind));
        output.map_or(Self::Function, Self::Client)
    }
}

/// The calls of a thread, by their written ids.
#[derive(Debug, Default)]
pub(super) struct Calls {
    kinds: HashMap<Text, CallKind>,
    /// The rewritten ids, each with the id before.
    before: HashMap<Text, Text>,
}

impl Calls {
    /// Gives every call a unique id, and leaves out those whose results cannot be written.
    pub(super) fn of(thread: &mut Thread, notes: &mut Notes) -> Self {
        let mut calls = Self { before: distinguish(thread, notes), ..Self::default() };
        let mut lost = HashSet::new();
        for block in thread.iter().flat_map(|(_, message)| &message.content) {
            if let ContentBlock::ToolUse(call) = block {
                calls.kinds.insert(call.id.clone(), CallKind::of(call));
            } else if let ContentBlock::ToolResult(result) = block
                && !is_writable(calls.kind(&result.tool_use_id), result)
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
                let id = call_id(block).filter(|id| lost.contains(*id));
                id.map_or(Ok(None), |_| Err(notes.leave_out(block.kind(), reason)))
            });
        }
        thread.retain(|(_, message)| !message.content.is_empty());
        calls
    }

    /// The form of a call.
    pub(super) fn kind(&self, id: &Text) -> CallKind {
        self.kinds.get(id).copied().unwrap_or_default()
    }

    /// The id of a call before it was rewritten.
    pub(super) fn id_before(&self, id: &Text) -> Text {
        self.before.get(id).unwrap_or(id).clone()
    }
}

/// Rewrites the ids of calls that are empty, too long, or used by an earlier call: results may be
/// anywhere after their calls, so ids must be unique in the whole input. Returns each new id with
/// the id before.
fn distinguish(thread: &mut Thread, notes: &mut Notes) -> HashMap<Text, Text> {
    let calls = || thread.iter().flat_map(|(_, message)| message.tool_uses());
    // Nearly always all ids are legal and unique.
    let mut taken = HashSet::with_capacity(calls().count());
    let are_unique = calls().all(|call| is_legal(&call.id) && taken.insert(call.id.clone()));
    if are_unique {
        return HashMap::new();
    }
    taken.extend(calls().map(|call| call.id.clone()));
    let mut numbers: HashMap<Text, usize> = HashMap::new();
    let (mut latest, mut before) = (HashMap::new(), HashMap::new());
    for (at, message) in thread {
        notes.turn_to(*at);
        fit_blocks(message, |block| {
            let Some(id) = call_id(block).cloned() else { return Ok(None) };
            if is_call(block) {
                let number = numbers.entry(id.clone()).or_insert(0);
                *number += 1;
                let mut name = id.clone();
                if *number > 1 || !is_legal(&id) {
                    name = numbered(&id, *number);
                    while !taken.insert(name.clone()) {
                        *number += 1;
                        name = numbered(&id, *number);
                    }
                    notes.note(Change::IdRewritten { from: id.clone(), to: name.clone() });
                    before.insert(name.clone(), id.clone());
                }
                latest.insert(id.clone(), name);
            }
            let name = latest.get(&id).filter(|name| **name != id);
            Ok(name.map(|name| with_call_id(block, name.clone())))
        });
    }
    before
}

fn is_legal(id: &str) -> bool {
    !id.is_empty() && id.chars().count() <= MAX_ID
}

/// The name of the call of this number with an id. A long id alone needs no number: its hash tells
/// it from others.
fn numbered(id: &str, number: usize) -> Text {
    let name = match (id, number) {
        ("", _) => format!("call-{number}"),
        (_, 1) => id.to_owned(),
        (_, _) => format!("{id}-{number}"),
    };
    if is_legal(&name) { name.into() } else { short(&name, MAX_ID, 0) }
}

/// Whether a result can be written for a call of this form.
fn is_writable(kind: CallKind, result: &ToolResult) -> bool {
    let CallKind::Client(output) = kind else { return true };
    let came_as = marked(&result.extra, "~as");
    if came_as.as_deref() != Some(output) {
        // It is written as a function's result, if it was read so or the provider is known to
        // accept that.
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
