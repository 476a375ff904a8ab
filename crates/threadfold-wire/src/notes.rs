//! The adjustments of an encoding, and the changes that every codec makes first.

use super::{contract::*, json::*, texts};
use threadfold_core::{compact::legality, legality::Repair, message::*};

/// The text of the user message before a thread that begins with an answer.
pub(super) const BEGIN: &str = "The conversation goes on from here.";
/// The text of the user message after an answer that the model may not continue, and of an empty
/// thread.
pub(super) const CONTINUE: &str = "Please continue.";

/// The messages to write, each with its index in the request.
pub(super) type Thread = Vec<(usize, Message)>;

/// Returns the repaired messages, and the repairs as the first adjustments.
pub(super) fn prepare(messages: &[Message], codec: &'static str) -> (Thread, Notes) {
    let (mut messages, repairs) = legality::repair_numbered(messages.to_vec());
    texts::escape_forms(&mut messages);
    let mut notes = Notes { codec, message: None, adjustments: Vec::new() };
    notes.adjustments = repairs
        .into_iter()
        .map(|repair| Adjustment::at(repair.message(), Change::Repaired { repair }))
        .collect();
    (messages, notes)
}

/// Whether the thread had messages but none is written. The caller must then write a user message,
/// so that the body still asks for an answer; that message is reported here.
pub(super) fn is_emptied(messages: &[Message], written: usize, notes: &mut Notes) -> bool {
    let is_emptied = written == 0 && !messages.is_empty();
    if is_emptied {
        notes.turn_to(messages.len()).note(Change::UserInserted);
    }
    is_emptied
}

/// Returns the open calls at the end of the thread, each with the index of its message.
pub(super) fn open_calls(messages: &[(usize, Message)]) -> Vec<(usize, Text)> {
    let spoken = messages.iter().rposition(|(_, message)| message.role != Role::Assistant);
    let mut calls = Vec::new();
    for (at, message) in messages.iter().skip(spoken.map_or(0, |last| last + 1)) {
        calls.extend(message.tool_uses().map(|call| (*at, call.id.clone())));
    }
    calls
}

/// Answers the open calls at the end with error results in a message with this index: every
/// provider refuses open calls.
pub(super) fn answer_open_calls(messages: &mut Thread, at: usize, notes: &mut Notes) {
    let calls = open_calls(messages);
    if calls.is_empty() {
        return;
    }
    let mut results = Vec::with_capacity(calls.len());
    for (message, id) in calls {
        notes.turn_to(message);
        results.push(ToolResult::error(id.clone(), legality::NO_RESULT).into());
        notes.note(Change::Repaired { repair: Repair::ResultAdded { message, id } });
    }
    messages.push((at, Message::new(Role::User, results)));
}

/// Makes the input of a call an object. An input that is no object is wrapped in one: as JSON if it
/// parses, else as text.
pub(super) fn make_object(call: &mut ToolUse, notes: &mut Notes) {
    let json = match (&call.input, call.input.json()) {
        (ToolInput::Json(_), Ok(_)) => return,
        (ToolInput::Text(_), Ok(json)) => json,
        (input, Err(_)) => {
            notes.note(Change::InputWrapped { id: call.id.clone() });
            let parsed = Json::parse(input.as_str());
            Object::of("input", parsed.map_or_else(|_| input.into(), Tree::Raw)).into_json()
        }
    };
    call.input = ToolInput::Json(json);
}

/// The adjustments so far, and the message that the next ones concern.
#[derive(Debug)]
pub(super) struct Notes {
    codec: &'static str,
    message: Option<usize>,
    adjustments: Vec<Adjustment>,
}

impl Notes {
    /// Sets the message of the next adjustments; `None` for the request as a whole.
    pub(super) fn turn_to(&mut self, message: impl Into<Option<usize>>) -> &mut Self {
        self.message = message.into();
        self
    }

    /// The name of the codec.
    pub(super) fn codec(&self) -> &'static str {
        self.codec
    }

    /// Reports a change to the current message.
    pub(super) fn note(&mut self, change: Change) {
        self.adjustments.push(Adjustment { message: self.message, change });
    }

    /// Reports a block as left out. Returns `false`, as the rule for that block does.
    pub(super) fn drop_block(&mut self, kind: &str, reason: &str) -> bool {
        self.note(Change::BlockDropped { kind: kind.into(), reason: reason.into() });
        false
    }

    /// Reports reasoning as left out. Returns `false`, as the rule for that block does.
    pub(super) fn drop_reasoning(&mut self, reason: &str) -> bool {
        self.note(Change::ReasoningDropped { reason: reason.into() });
        false
    }

    /// Reports a block as moved.
    pub(super) fn moved(&mut self, kind: &str, reason: &str) {
        self.note(Change::BlockMoved { kind: kind.into(), reason: reason.into() });
    }

    /// Reports a parameter as left out.
    pub(super) fn drop_parameter(&mut self, name: &str) {
        self.note(Change::ParameterDropped { name: name.into() });
    }

    /// Reports fields of this codec as left out.
    pub(super) fn drop_fields<T: Into<Text>>(&mut self, names: impl IntoIterator<Item = T>) {
        let fields = names.into_iter().map(Into::into).collect();
        self.note(Change::FieldsDropped { codec: self.codec.into(), fields });
    }

    /// Reports the wire fields of a value as left out. Marks are not reported, because they only
    /// describe the form that was read.
    pub(super) fn report_lost(&mut self, extra: &Extra) {
        let wire = extra.fields().map(|(key, _)| key).filter(|key| !is_mark(key));
        let fields: Vec<Text> = wire.map(Text::from).collect();
        if let Some(codec) = extra.codec().filter(|_| !fields.is_empty()) {
            self.note(Change::FieldsDropped { codec: codec.into(), fields });
        }
    }

    /// Removes the fields of another codec, and reports them.
    pub(super) fn clear(&mut self, extra: &mut Extra) {
        if extra.codec().is_some_and(|codec| codec != self.codec) {
            self.report_lost(extra);
            *extra = Extra::default();
        }
    }

    /// The extra fields of this codec. Those of another codec are reported as left out.
    pub(super) fn own_fields<'e>(
        &mut self,
        extra: &'e Extra,
    ) -> impl Iterator<Item = (&'e str, &'e Json)> + use<'e> {
        if extra.codec().is_some_and(|codec| codec != self.codec) {
            self.report_lost(extra);
        }
        extra.of(self.codec)
    }

    /// The adjustments, in the order of the thread.
    pub(super) fn finish(mut self) -> Vec<Adjustment> {
        self.adjustments.sort_by_key(|adjustment| adjustment.message.unwrap_or(usize::MAX));
        self.adjustments
    }
}
