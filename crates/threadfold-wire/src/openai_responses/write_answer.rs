//! Writing what the model says, thinks and calls.

use super::{
    calls::CallKind,
    draft::{Item, Kind},
    kinds,
    marks::{CODEC, item_fields, marked, reopen, wire_fields},
    read_answer,
    write_said::whole,
    writer::Writer,
};
use crate::{
    contract::Change,
    openai::{document_text, input_text},
    openai_content::{Piece, content},
    raw::Raw,
    texts::wire_text,
    tree::{Object, Tree},
};
use threadfold_core::message::{
    ContentBlock, Document, Extra, Json, MediaSource, Message, Role, Text, Thinking, ToolInput,
    ToolUse,
};

/// Writes a message of the model. `place` is where it stands in the thread that is written.
pub(super) fn write(place: usize, at: usize, message: &Message, writer: &mut Writer) {
    let mut answer = Answer { at, message, open: None };
    for block in &message.content {
        if let Some((text, extra)) = wire_text(Role::Assistant, block) {
            answer.text(text, extra, writer);
            continue;
        }
        if let ContentBlock::Document(document) = block
            && let Some(text) = readable(document)
        {
            if let Some(text) = document_text(document, text, &mut writer.notes) {
                answer.text(text, &Extra::default(), writer);
            }
            continue;
        }
        answer.close(writer);
        answer.item(place, block, writer);
    }
    answer.close(writer);
    // Nothing of this dialect stands there but marks.
    let _ = wire_fields(&message.extra, &mut writer.notes);
}

/// The text of a document that can stand in an answer: its own, or its address.
fn readable(document: &Document) -> Option<&Text> {
    match &document.source {
        MediaSource::Text { text, .. } => Some(text),
        MediaSource::Url { url } => Some(url),
        MediaSource::Base64 { .. } | MediaSource::File { .. } | MediaSource::Opaque { .. } => None,
    }
}

/// A message of the model in the making.
struct Answer<'m> {
    at: usize,
    message: &'m Message,
    /// The item that further texts may join.
    open: Option<Open>,
}

/// An item of texts in the making.
struct Open {
    fields: Object,
    form: Form,
    led: Option<Text>,
    pieces: Vec<Piece>,
}

/// Where an item of texts comes from, and with it the form of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The provider: a string.
    String,
    /// The provider: parts.
    Parts,
    /// From here: whatever is shorter.
    Ours,
}

impl Answer<'_> {
    fn text(&mut self, text: Text, extra: &Extra, writer: &mut Writer) {
        let begins = extra.get(CODEC, "~item").is_some();
        let joins = extra.get(CODEC, "~joins").is_some();
        // A text of no item joins none of the provider's.
        let is_ours = self.open.as_ref().is_some_and(|open| open.form == Form::Ours);
        if begins || self.open.is_none() || (!joins && !is_ours) {
            self.close(writer);
            let mut fields = reopen(extra.get(CODEC, "~item"));
            fields.extend_unset(reopen(extra.get(CODEC, "item")));
            let form = match marked(extra, "~content") {
                Some(_) => Form::String,
                None if begins => Form::Parts,
                None => Form::Ours,
            };
            let led = marked(extra, "~led");
            self.open = Some(Open { fields, form, led, pieces: Vec::new() });
        }
        let piece = part(text, extra, writer);
        if let Some(open) = &mut self.open {
            open.pieces.push(piece);
        }
    }

    fn close(&mut self, writer: &mut Writer) {
        let Some(open) = self.open.take() else { return };
        let mut object = open.fields;
        let form = (open.form == Form::Parts).then_some("array");
        let Some(content) = content(open.pieces, form, "output_text") else { return };
        if matches!(content, Tree::Array(_)) && open.form == Form::Ours {
            object.set("type", "message");
        }
        object.set("role", "assistant");
        object.set("content", content);
        writer.items.push(Item::new(self.at, Kind::Answer, object, open.led));
    }

    fn item(&self, place: usize, block: &ContentBlock, writer: &mut Writer) {
        match block {
            ContentBlock::Thinking(thinking) => self.thinking(thinking, writer),
            ContentBlock::RedactedThinking(_) => {
                let reason = "it is encrypted for another provider".into();
                writer.notes.note(Change::ReasoningDropped { reason });
            }
            ContentBlock::ToolUse(call) => self.call(place, call, writer),
            ContentBlock::ServerToolUse(call) => {
                self.of_server(block.kind(), &call.extra, &call.input, writer);
            }
            ContentBlock::ServerToolResult(result) => {
                self.of_server(block.kind(), &result.extra, &result.content, writer);
            }
            ContentBlock::Opaque(opaque) => match whole(opaque) {
                Some((json, led)) => writer.items.push(Item::whole(self.at, json, led)),
                None => {
                    let reason = match opaque.codec.as_str() {
                        CODEC => "it is no item of its own".to_owned(),
                        codec => format!("only {codec} understands it"),
                    };
                    writer.notes.drop_block(block.kind(), &reason);
                }
            },
            ContentBlock::Text(_)
            | ContentBlock::Image(_)
            | ContentBlock::Document(_)
            | ContentBlock::ToolResult(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_) => {
                writer.notes.drop_block(block.kind(), "the dialect has no form for it here");
            }
        }
    }

    fn thinking(&self, thinking: &Thinking, writer: &mut Writer) {
        if let Some(reason) = fault(thinking, self.message, writer.binds_reasoning) {
            writer.notes.note(Change::ReasoningDropped { reason: reason.into() });
            return;
        }
        let mut object = item_fields(&thinking.extra, &mut writer.notes);
        object.set("type", "reasoning");
        object.set_some("encrypted_content", thinking.signature.clone());
        let next = marked(&thinking.extra, "~next");
        writer.items.push(Item::new(self.at, Kind::Reasoning(next), object, None));
    }

    fn call(&self, place: usize, call: &ToolUse, writer: &mut Writer) {
        let kind = writer.calls.turn_to(place, call);
        if writer.calls.is_lost(&call.id) {
            writer.notes.drop_block("tool_use", "its result has no form in this dialect");
            return;
        }
        let id = writer.calls.name(&call.id);
        if id != call.id {
            let (from, to) = (call.id.clone(), id.clone());
            writer.notes.note(Change::IdRewritten { from, to });
        }
        let object = match (kind, &call.input) {
            (CallKind::Client(_), ToolInput::Json(json)) => reopen(Some(json)).with("call_id", id),
            (CallKind::Custom, _) => function(call, id, (kinds::CUSTOM, "input"), writer),
            (CallKind::Function | CallKind::Client(_), _) => {
                function(call, id, (kinds::FUNCTION, "arguments"), writer)
            }
        };
        let led = marked(&call.extra, "~led");
        writer.items.push(Item::new(self.at, Kind::Call(call.id.clone()), object, led));
    }

    /// Writes a call that the provider answers itself, or its answer: each is kept as an item.
    fn of_server(&self, kind: &str, extra: &Extra, item: &Json, writer: &mut Writer) {
        if extra.codec() != Some(CODEC) {
            writer.notes.drop_block(kind, "only another provider has this tool");
            return;
        }
        writer.items.push(Item::whole(self.at, item.clone(), marked(extra, "~led")));
    }
}

/// Writes a text as a part of an answer.
fn part(text: Text, extra: &Extra, writer: &mut Writer) -> Piece {
    let mut fields = wire_fields(extra, &mut writer.notes);
    fields.remove("item");
    if extra.get(CODEC, "~annotations").is_some() {
        fields.set("annotations", Vec::new());
    }
    let (kind, key) = match marked(extra, "~as").as_deref() {
        Some("refusal") => ("refusal", "refusal"),
        Some("input_text") => ("input_text", "text"),
        Some(_) | None => ("output_text", "text"),
    };
    if kind == "output_text" && fields == Object::default() {
        return Piece::Plain(text);
    }
    fields.set("type", kind);
    fields.set(key, text);
    Piece::Part(fields.into())
}

fn function(
    call: &ToolUse,
    id: Text,
    (kind, key): (&'static str, &'static str),
    writer: &mut Writer,
) -> Object {
    let mut object = item_fields(&call.extra, &mut writer.notes);
    object.set("type", kind);
    object.set("call_id", id);
    object.set("name", call.name.clone());
    object.set(key, input_text(call, &mut writer.notes));
    object
}

/// Returns why reasoning cannot go back, if it cannot: it must be this provider's, and unchanged.
fn fault(thinking: &Thinking, message: &Message, binds: bool) -> Option<&'static str> {
    let elsewhere = message.origin.as_ref().is_some_and(|origin| origin.provider != CODEC);
    if thinking.extra.codec() != Some(CODEC) || elsewhere {
        return Some("it comes from another provider");
    }
    let field = |key: &str| thinking.extra.get(CODEC, key).map(Raw::of);
    let was_signed = marked(&thinking.extra, "~signed").is_some();
    let said = read_answer::thought(field("summary"), field("content"));
    if said.as_ref() != Some(&thinking.text) || was_signed != thinking.signature.is_some() {
        return Some("it was changed");
    }
    (binds && message.prefix_rewritten).then_some("what it was thought on was rewritten")
}
