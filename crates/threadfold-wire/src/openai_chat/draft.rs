//! One assistant message in the making.

use super::{
    calls,
    marks::{CODEC, REASONING, marked, reopen, wire_fields},
    write_content::{content, message_field, piece, refusal_form},
};
use crate::{
    contract::Change,
    ids::Ids,
    notes::Notes,
    openai_content::Piece,
    raw::Raw,
    tree::{Object, Tree},
};
use threadfold_core::message::{
    ContentBlock, Json, Message, Opaque, Role, Text, Thinking, ToolUse,
};

/// An assistant message in the making.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) index: usize,
    /// Unknown fields.
    pub(super) fields: Object,
    /// The form in which the content came.
    pub(super) form: Option<Text>,
    pub(super) pieces: Vec<Piece>,
    /// Reasoning, each with the field that it goes to.
    pub(super) thoughts: Vec<(&'static str, Text)>,
    pub(super) refusal: Option<Text>,
    pub(super) calls: Vec<Tree>,
    pub(super) function_call: Option<Tree>,
    pub(super) audio: Option<Tree>,
}

impl Draft {
    pub(super) fn new(index: usize, message: &Message, notes: &mut Notes) -> Self {
        let mut fields = wire_fields(&message.extra, notes);
        for key in ["tool_calls", "function_call"] {
            if fields.get(key).is_some_and(|field| calls_nothing(key, field)) {
                fields.remove(key);
                let (codec, fields) = (CODEC.into(), vec![key.into()]);
                notes.note(Change::FieldsDropped { codec, fields });
            }
        }
        Self {
            index,
            fields,
            form: marked(&message.extra, "~content"),
            pieces: Vec::new(),
            thoughts: Vec::new(),
            refusal: None,
            calls: Vec::new(),
            function_call: None,
            audio: None,
        }
    }

    pub(super) fn add(
        &mut self,
        block: &ContentBlock,
        deprecated: bool,
        ids: &Ids,
        notes: &mut Notes,
    ) {
        match block {
            ContentBlock::Thinking(thinking) => self.add_thought(thinking, notes),
            ContentBlock::RedactedThinking(_) => {
                let reason = "it is encrypted for another provider".into();
                notes.note(Change::ReasoningDropped { reason });
            }
            ContentBlock::ToolUse(call) => self.add_call(call, deprecated, ids, notes),
            ContentBlock::Opaque(field) if message_field(field).is_some() => {
                self.add_field(field, notes);
            }
            ContentBlock::Text(text)
                if self.refusal.is_none()
                    && refusal_form(text).is_some_and(|form| form == "refusal") =>
            {
                self.refusal = Some(text.text.clone());
            }
            ContentBlock::Text(_)
            | ContentBlock::Image(_)
            | ContentBlock::Document(_)
            | ContentBlock::ToolResult(_)
            | ContentBlock::ServerToolUse(_)
            | ContentBlock::ServerToolResult(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_)
            | ContentBlock::Opaque(_) => self.add_piece(block, notes),
        }
    }

    fn add_thought(&mut self, thinking: &Thinking, notes: &mut Notes) {
        let key = marked(&thinking.extra, "~as").filter(|_| thinking.signature.is_none());
        match key.and_then(|key| REASONING.into_iter().find(|known| key == **known)) {
            Some(key) => self.thoughts.push((key, thinking.text.clone())),
            None => {
                let reason = "it comes from another provider".into();
                notes.note(Change::ReasoningDropped { reason });
            }
        }
    }

    fn add_call(&mut self, call: &ToolUse, deprecated: bool, ids: &Ids, notes: &mut Notes) {
        if deprecated {
            if self.function_call.is_some() {
                notes.drop_block("opaque", "the message calls otherwise already");
            }
            self.function_call = Some(calls::write_deprecated(call, notes).into());
            return;
        }
        if let Some(to) = ids.shortened(&call.id) {
            notes.note(Change::IdRewritten { from: call.id.clone(), to: to.clone() });
        }
        self.calls.push(calls::write(call, ids.of(&call.id), notes).into());
    }

    fn add_field(&mut self, block: &Opaque, notes: &mut Notes) {
        let Some((name, value)) = message_field(block) else { return };
        match name.as_str() {
            "audio" if self.audio.is_none() => self.audio = Some(audio(&value)),
            "function_call" if self.function_call.is_none() => {
                self.function_call = Some(value.into());
            }
            _ => notes.drop_block("opaque", &format!("{name} has no place in this message")),
        }
    }

    fn add_piece(&mut self, block: &ContentBlock, notes: &mut Notes) {
        let Some(piece) = piece(Role::Assistant, block, notes) else { return };
        if self.calls() {
            let (kind, reason) = (block.kind().into(), "content stands before calls".into());
            notes.note(Change::BlockMoved { kind, reason });
        }
        self.pieces.push(piece);
    }

    /// Whether it calls tools.
    pub(super) fn calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Whether the content may be left out.
    fn is_excused(&self) -> bool {
        self.calls()
            || self.refusal.is_some()
            || self.function_call.is_some()
            || self.audio.is_some()
    }

    /// Whether nothing of the message is left.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.thoughts.is_empty() && !self.is_excused()
    }

    /// Returns the message.
    pub(super) fn into_object(self) -> Object {
        let excused = self.is_excused();
        let empty = match self.form.as_deref() {
            Some("absent") if excused => None,
            Some("empty_array") if excused => Some(Tree::Array(Vec::new())),
            Some("empty") => Some(Tree::Word("")),
            _ if excused => Some(Tree::Null),
            _ => Some(Tree::Word("")),
        };
        let mut object = self.fields.with("role", "assistant");
        object.set_some("content", content(self.pieces, self.form.as_deref()).or(empty));
        for key in REASONING {
            let of_key = self.thoughts.iter().filter(|(field, _)| *field == key);
            let texts: Vec<&str> = of_key.map(|(_, text)| text.as_str()).collect();
            if !texts.is_empty() {
                object.set(key, texts.join("\n\n"));
            }
        }
        object.set_some("refusal", self.refusal);
        object.set_some("audio", self.audio);
        object.set_some("function_call", self.function_call);
        if !self.calls.is_empty() {
            object.set("tool_calls", self.calls);
        }
        object
    }
}

/// Whether a field says that there is no call, which the provider refuses.
fn calls_nothing(key: &str, field: &Tree) -> bool {
    let Tree::Raw(json) = field else { return false };
    match key {
        "tool_calls" => json.as_str() == "[]",
        _ => calls::is_of_nothing(Raw::of(json)),
    }
}

/// An answer's audio comes with its sound; a request names it by its id alone.
fn audio(value: &Json) -> Tree {
    let object = reopen(Some(value));
    match object.get("id").filter(|_| object.get("data").is_some()) {
        Some(id) => Object::default().with("id", id.clone()).into(),
        None => value.clone().into(),
    }
}
