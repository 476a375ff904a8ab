//! Which form and which name each call has, and which calls cannot go out because their answer has
//! no form.

use std::collections::{HashMap, HashSet};

use super::{kinds, marks::*};
use crate::kit::*;

/// The most characters that the API takes in the id of a call.
const MAX_ID: usize = 64;

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
    /// The form in which a call is written: the form in which it came, if it was not changed.
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

/// The calls of a thread. Several messages may use one id, so a call is identified by its message
/// and its id.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The latest call of each id that was written.
    latest: HashMap<Text, (usize, CallKind)>,
    /// The calls that are written with another id, because theirs is empty, too long, or used by an
    /// earlier call.
    names: HashMap<(usize, Text), Text>,
    /// The position of the message at work in the thread.
    pub(super) place: usize,
}

impl Calls {
    /// Leaves out the calls whose results cannot be written, and finds ids for the others.
    pub(super) fn new(thread: &mut Thread, notes: &mut Notes) -> Self {
        drop_lost(thread, notes);
        let names = names(thread);
        if !names.is_empty() {
            for (place, (at, message)) in thread.iter().enumerate() {
                notes.turn_to(*at);
                for from in message.tool_uses().map(|call| call.id.clone()) {
                    if let Some(to) = names.get(&(place, from.clone())).cloned() {
                        notes.note(Change::IdRewritten { from, to });
                    }
                }
            }
        }
        Self { names, ..Self::default() }
    }

    /// Records that a call is written now, and returns its form.
    pub(super) fn turn_to(&mut self, call: &ToolUse) -> CallKind {
        let kind = CallKind::of(call);
        self.latest.insert(call.id.clone(), (self.place, kind));
        kind
    }

    /// The form of the latest call of this id.
    pub(super) fn kind(&self, id: &Text) -> CallKind {
        self.latest.get(id).map(|(_, kind)| *kind).unwrap_or_default()
    }

    /// The id that is written for the latest call of this id.
    pub(super) fn name(&self, id: &Text) -> Text {
        let place = self.latest.get(id).filter(|_| !self.names.is_empty()).map(|(place, _)| *place);
        let name = place.and_then(|place| self.names.get(&(place, id.clone())));
        name.unwrap_or(id).clone()
    }
}

/// Leaves out the calls whose results cannot be written, with these results.
fn drop_lost(thread: &mut Thread, notes: &mut Notes) {
    let lost = lost(thread);
    if lost.is_empty() {
        return;
    }
    let mut latest = HashMap::new();
    for (place, (at, message)) in thread.iter_mut().enumerate() {
        notes.turn_to(*at);
        fit_blocks(message, |block| {
            if let ContentBlock::ToolUse(call) = block {
                latest.insert(call.id.clone(), place);
                if lost.contains(&(place, call.id.clone())) {
                    return Err(
                        notes.leave_out(block.kind(), "its result has no form in this dialect")
                    );
                }
            } else if let ContentBlock::ToolResult(ToolResult { tool_use_id: id, .. }) = block
                && latest.get(id).is_some_and(|place| lost.contains(&(*place, id.clone())))
            {
                return Err(notes.leave_out(block.kind(), "its call has another form of answer"));
            }
            Ok(None)
        });
    }
    thread.retain(|(_, message)| !message.content.is_empty());
}

/// Finds the calls with a special form of result that cannot be written in it.
fn lost(messages: &[(usize, Message)]) -> HashSet<(usize, Text)> {
    let (mut latest, mut lost) = (HashMap::new(), HashSet::new());
    for (place, (_, message)) in messages.iter().enumerate() {
        for block in &message.content {
            if let ContentBlock::ToolUse(call) = block {
                latest.insert(&call.id, (place, CallKind::of(call)));
            } else if let ContentBlock::ToolResult(result) = block
                && let Some((place, kind)) = latest.get(&result.tool_use_id)
                && !is_writable(*kind, result)
            {
                lost.insert((*place, result.tool_use_id.clone()));
            }
        }
    }
    lost
}

/// Finds names for the calls whose id is empty, too long, or used by an earlier call. Results may come
/// anywhere after their calls, so ids must differ in the whole input.
fn names(messages: &[(usize, Message)]) -> HashMap<(usize, Text), Text> {
    let calls = || {
        let places = messages.iter().enumerate();
        places.flat_map(|(place, (_, message))| message.tool_uses().map(move |call| (place, call)))
    };
    // Nearly always all ids are valid and differ.
    let mut seen = HashSet::with_capacity(calls().count());
    if calls().all(|(_, ToolUse { id, .. })| (1..=MAX_ID).contains(&id.len()) && seen.insert(id)) {
        return HashMap::new();
    }
    let ids = Renamed::long_ids(messages, MAX_ID);
    let mut taken: HashSet<Text> = calls().map(|(_, call)| ids.written(&call.id)).collect();
    let mut numbers: HashMap<&Text, usize> = HashMap::new();
    let mut names = HashMap::new();
    for (place, call) in calls() {
        let number = numbers.entry(&call.id).or_insert(0);
        *number += 1;
        let mut name = ids.written(&call.id);
        if *number > 1 || name.is_empty() {
            let mut numbers = *number..;
            let free = numbers.find(|number| taken.insert(numbered(&call.id, *number)));
            *number = free.unwrap_or(*number);
            name = numbered(&call.id, *number);
        }
        if name != call.id {
            names.insert((place, call.id.clone()), name);
        }
    }
    names
}

fn numbered(id: &str, number: usize) -> Text {
    let stem = if id.is_empty() { "call" } else { id };
    let name = format!("{stem}-{number}");
    if name.chars().count() > MAX_ID { short(&name, MAX_ID, 0) } else { name.into() }
}

/// Whether a result can be written for a call of this form.
fn is_writable(kind: CallKind, result: &ToolResult) -> bool {
    let CallKind::Client(output) = kind else { return true };
    let came_as = marked(&result.extra, "~as");
    if came_as.as_deref() != Some(output) {
        // Written as a function's result, if it came so or the provider is known to accept that.
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
