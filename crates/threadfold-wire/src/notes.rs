//! What every codec does before and while it encodes: repair the thread, and note each change.

use super::{
    contract::{Adjustment, Change},
    json::{Object, Tree, is_mark},
    texts,
};
use threadfold_core::{
    compact::legality::{self, Repair},
    message::{ContentBlock, Extra, Json, Message, Role, Text, ToolInput, ToolResult, ToolUse},
};

/// The user's words before a thread that begins with an answer.
pub(super) const BEGIN: &str = "The conversation goes on from here.";
/// The user's words after an answer that the model may not continue, and in an empty thread.
pub(super) const CONTINUE: &str = "Please continue.";

/// Returns the messages as some provider accepts them, each with its index in the request, and
/// the notes on what that took.
pub(super) fn prepare(messages: &[Message], codec: &'static str) -> (Vec<(usize, Message)>, Notes) {
    let (mut messages, repairs) = legality::repair_numbered(messages.to_vec());
    texts::escape_forms(&mut messages);
    let mut notes = Notes { codec, message: None, adjustments: Vec::new() };
    notes.adjustments = repairs
        .into_iter()
        .map(|repair| Adjustment::at(repair.message(), Change::Repaired { repair }))
        .collect();
    (messages, notes)
}

/// Whether no message of the thread is written although it had some. Then a user message is written
/// instead, which is noted, so that the body still asks for an answer.
pub(super) fn is_emptied(messages: &[Message], written: usize, notes: &mut Notes) -> bool {
    let is_emptied = written == 0 && !messages.is_empty();
    if is_emptied {
        notes.turn_to(messages.len()).note(Change::UserInserted);
    }
    is_emptied
}

/// Returns the calls at the end that have no result, each with the index of its message.
pub(super) fn open_calls(messages: &[(usize, Message)]) -> Vec<(usize, Text)> {
    let spoken = messages.iter().rposition(|(_, message)| message.role != Role::Assistant);
    let mut calls = Vec::new();
    for (at, message) in messages.iter().skip(spoken.map_or(0, |last| last + 1)) {
        calls.extend(message.tool_uses().map(|call| (*at, call.id.clone())));
    }
    calls
}

/// Answers the calls at the end that have no result: no provider goes on with a thread that
/// has any. The answer stands at this index.
pub(super) fn answer_open_calls(
    messages: &mut Vec<(usize, Message)>,
    at: usize,
    notes: &mut Notes,
) {
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

/// Returns the input of a call as an object. One that is none is wrapped: as its JSON if it is some,
/// else as its text.
pub(super) fn input_object(call: &ToolUse, notes: &mut Notes) -> Tree {
    if let Ok(json) = call.input.json() {
        return json.into();
    }
    notes.note(Change::InputWrapped { id: call.id.clone() });
    let loose = match &call.input {
        ToolInput::Json(json) => json.clone().into(),
        ToolInput::Text(text) => Json::parse(text).map_or_else(|_| text.clone().into(), Tree::Raw),
    };
    Object::of("input", loose).into()
}

/// Returns a call with an object for its input; `None` if it has one.
pub(super) fn with_object(call: &ToolUse, notes: &mut Notes) -> Option<ToolUse> {
    let json = match &call.input {
        ToolInput::Json(json) if json.is_object() => return None,
        ToolInput::Json(_) | ToolInput::Text(_) => input_object(call, notes).into_json(),
    };
    Some(ToolUse { input: ToolInput::Json(json), ..call.clone() })
}

/// The block is left out, which was noted.
#[derive(Debug)]
pub(super) struct LeftOut;

/// What a rule makes of a block: another block, or `None` where the block stays as it is.
pub(super) type Fitted = Result<Option<ContentBlock>, LeftOut>;

/// The changes so far, and the message that the next ones concern.
#[derive(Debug)]
pub(super) struct Notes {
    codec: &'static str,
    message: Option<usize>,
    adjustments: Vec<Adjustment>,
}

impl Notes {
    /// Sets the message that the next notes concern; `None` for the request as a whole.
    pub(super) fn turn_to(&mut self, message: impl Into<Option<usize>>) -> &mut Self {
        self.message = message.into();
        self
    }

    /// The name of the codec at work.
    pub(super) fn codec(&self) -> &'static str {
        self.codec
    }

    /// Notes a change to the current message.
    pub(super) fn note(&mut self, change: Change) {
        self.adjustments.push(Adjustment { message: self.message, change });
    }

    /// Notes that a block is left out.
    pub(super) fn drop_block(&mut self, kind: &str, reason: &str) {
        self.note(Change::BlockDropped { kind: kind.into(), reason: reason.into() });
    }

    /// Notes that a block is left out, for a rule that says what becomes of it.
    pub(super) fn leave_out(&mut self, kind: &str, reason: &str) -> LeftOut {
        self.drop_block(kind, reason);
        LeftOut
    }

    /// Notes that reasoning is left out.
    pub(super) fn drop_reasoning(&mut self, reason: &str) -> LeftOut {
        self.note(Change::ReasoningDropped { reason: reason.into() });
        LeftOut
    }

    /// Notes that a block stands elsewhere than before.
    pub(super) fn moved(&mut self, kind: &str, reason: &str) {
        self.note(Change::BlockMoved { kind: kind.into(), reason: reason.into() });
    }

    /// Notes that a parameter is left out.
    pub(super) fn drop_parameter(&mut self, name: &str) {
        self.note(Change::ParameterDropped { name: name.into() });
    }

    /// Empty fields in place of another codec's, which is noted; `None` if the fields are this
    /// codec's own.
    pub(super) fn cleared(&mut self, extra: &Extra) -> Option<Extra> {
        let is_foreign = extra.codec().is_some_and(|codec| codec != self.codec);
        is_foreign.then(|| {
            self.own_fields(extra).for_each(drop);
            Extra::default()
        })
    }

    /// The extra fields if they are this codec's; another's are noted as left out.
    pub(super) fn own_fields<'e>(
        &mut self,
        extra: &'e Extra,
    ) -> impl Iterator<Item = (&'e str, &'e Json)> + use<'e> {
        if let Some(codec) = extra.codec().filter(|codec| *codec != self.codec) {
            let lost = extra.fields().map(|(key, _)| key).filter(|key| !is_mark(key));
            let fields: Vec<Text> = lost.map(Text::from).collect();
            if !fields.is_empty() {
                self.note(Change::FieldsDropped { codec: codec.into(), fields });
            }
        }
        extra.of(self.codec)
    }

    /// The changes, in the order of the thread.
    pub(super) fn finish(mut self) -> Vec<Adjustment> {
        self.adjustments.sort_by_key(|adjustment| adjustment.message.unwrap_or(usize::MAX));
        self.adjustments
    }
}
