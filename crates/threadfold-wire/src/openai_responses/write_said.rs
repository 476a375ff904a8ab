//! Writing what the host and the user say, and what tools gave.

use super::{
    calls::CallKind,
    draft::{Item, Kind},
    kinds,
    marks::{CODEC, Kept, item_fields, kept, marked},
    write_content::piece,
    writer::Writer,
};
use crate::{
    contract::Change,
    notes::is_form,
    openai::check_result_block,
    openai_content::{Piece, content, mark_error, no_content},
    tree::Object,
};
use threadfold_core::message::{ContentBlock, Json, Message, Opaque, Role, Text, ToolResult};

/// Writes a message of the host or of the user: an item for what stands together, and one for each
/// result and each item that is kept whole.
pub(super) fn write(at: usize, message: &Message, writer: &mut Writer) {
    let fields = item_fields(&message.extra, &mut writer.notes);
    let mut said = Said { at, message, fields: Some(fields), pieces: Vec::new() };
    for block in &message.content {
        if let ContentBlock::ToolResult(result) = block {
            said.flush(writer);
            write_result(at, result, writer);
        } else if let ContentBlock::Opaque(opaque) = block
            && let Some((json, led)) = whole(opaque)
        {
            said.flush(writer);
            writer.items.push(Item::whole(at, json, led));
        } else {
            said.pieces.extend(piece(message.role, block, &mut writer.notes));
        }
    }
    said.flush(writer);
    if said.fields.is_some() {
        let lost = message.extra.of(CODEC).map(|(key, _)| key).filter(|key| !is_form(key));
        let fields: Vec<Text> = lost.map(Text::from).collect();
        if !fields.is_empty() {
            writer.notes.note(Change::FieldsDropped { codec: CODEC.into(), fields });
        }
    }
}

/// The item and what led to it, if a block of this codec is an item of its own.
pub(super) fn whole(opaque: &Opaque) -> Option<(Json, Option<Text>)> {
    let own = opaque.codec == CODEC;
    match own.then(|| kept(&opaque.value))? {
        Kept::Item(json, led) => Some((json, led)),
        Kept::Part(_) => None,
    }
}

/// A message in the making.
struct Said<'m> {
    at: usize,
    message: &'m Message,
    /// Its unknown fields, until they are written.
    fields: Option<Object>,
    pieces: Vec<Piece>,
}

impl Said<'_> {
    fn flush(&mut self, writer: &mut Writer) {
        let pieces = std::mem::take(&mut self.pieces);
        let form = marked(&self.message.extra, "~content");
        let Some(content) = content(pieces, form.as_deref(), "input_text") else { return };
        let mut object = self.fields.take().unwrap_or_default();
        object.set("role", role(self.message));
        object.set("content", content);
        writer.items.push(Item::new(self.at, Kind::Said, object, None));
    }
}

fn role(message: &Message) -> &'static str {
    match message.role {
        Role::User => "user",
        Role::System if marked(&message.extra, "~role").is_some() => "developer",
        Role::System => "system",
        Role::Assistant => "assistant",
    }
}

fn write_result(at: usize, result: &ToolResult, writer: &mut Writer) {
    let kind = writer.calls.kind(&result.tool_use_id);
    if writer.calls.is_lost(&result.tool_use_id) {
        writer.notes.drop_block("tool_result", "its call has another form of answer");
        return;
    }
    let came_as = marked(&result.extra, "~as");
    let kind = match kind {
        CallKind::Function => kinds::FUNCTION_OUTPUT,
        CallKind::Custom => kinds::CUSTOM_OUTPUT,
        CallKind::Client(output) if came_as.as_deref() == Some(output) => output,
        CallKind::Client(_) => kinds::FUNCTION_OUTPUT,
    };
    let mut pieces: Vec<Piece> = Vec::new();
    for block in &result.content {
        if check_result_block(block, &mut writer.notes).is_some() {
            pieces.extend(piece(Role::User, block, &mut writer.notes));
        }
    }
    if result.is_error {
        mark_error(&mut pieces);
    }
    let form = marked(&result.extra, "~content");
    let output = content(pieces, form.as_deref(), "input_text");
    let mut object = item_fields(&result.extra, &mut writer.notes);
    object.set("type", kind);
    let named = marked(&result.extra, "~named").filter(|_| kind == kinds::LOCAL_SHELL_OUTPUT);
    let key = if named.is_some() { "id" } else { "call_id" };
    object.set(key, writer.calls.name(&result.tool_use_id));
    // The answer to a function has an output, whatever the answer had as which it came.
    let of_function = kind == kinds::FUNCTION_OUTPUT || kind == kinds::CUSTOM_OUTPUT;
    let form = form.filter(|form| form != "absent" || !of_function);
    object.set_some("output", output.or_else(|| no_content(form.as_deref())));
    let mut item = Item::new(at, Kind::Output, object, None);
    if named.is_some() {
        // It is the call's, so that it may come twice.
        item.id = None;
    }
    writer.items.push(item);
}
