//! Writing user messages: results first, then their pictures, then the rest.

use super::{
    marks::{CODEC, marked, wire_fields},
    write_content::{content, message_field, piece},
};
use crate::{
    contract::Change,
    ids::Ids,
    names,
    notes::Notes,
    openai::check_result_block,
    openai_content::{Piece, mark_error, no_content},
    tree::{Object, Tree},
};
use threadfold_core::message::{ContentBlock, Message, Role, Text, ToolResult, ToolUse};

/// Returns the messages of a run of user messages. `deprecated` is the call before it, if that is
/// written as the deprecated `function_call`.
pub(super) fn write(
    run: &[(usize, Message)],
    deprecated: Option<&ToolUse>,
    ids: &Ids,
    notes: &mut Notes,
) -> Vec<Tree> {
    let (results, media, rest) = (Vec::new(), Vec::new(), Vec::new());
    let mut turn = Turn { deprecated, ids, results, media, rest, other: false };
    for (index, message) in run {
        notes.turn_to(*index);
        turn.add(message, notes);
    }
    let pictures = content(turn.media, None);
    let pictures =
        pictures.map(|content| Object::default().with("role", "user").with("content", content));
    turn.results.into_iter().chain(pictures.map(Tree::from)).chain(turn.rest).collect()
}

/// What the user says between two answers, in the making.
struct Turn<'a> {
    deprecated: Option<&'a ToolUse>,
    ids: &'a Ids,
    results: Vec<Tree>,
    /// Pictures and files of results.
    media: Vec<Piece>,
    /// Messages of everything else.
    rest: Vec<Tree>,
    /// Whether anything but a result has come.
    other: bool,
}

impl Turn<'_> {
    fn add(&mut self, message: &Message, notes: &mut Notes) {
        let mut fields = wire_fields(&message.extra, notes);
        let form = marked(&message.extra, "~content");
        let mut pieces = Vec::new();
        for block in &message.content {
            if let ContentBlock::ToolResult(result) = block {
                self.add_result(result, notes);
            } else if let Some(whole) = whole_message(block) {
                self.rest.push(whole);
                self.other = true;
            } else if let Some(piece) = piece(Role::User, block, notes) {
                pieces.push(piece);
                self.other = true;
            }
        }
        if let Some(content) = content(pieces, form.as_deref()) {
            fields.set("role", "user");
            fields.set("content", content);
            self.rest.push(fields.into());
        } else if fields != Object::default() {
            let names = fields.into_fields().into_iter().map(|(key, _)| Text::from(key)).collect();
            notes.note(Change::FieldsDropped { codec: CODEC.into(), fields: names });
        }
    }

    fn add_result(&mut self, result: &ToolResult, notes: &mut Notes) {
        if self.other {
            notes.moved("tool_result", "results come right behind their calls");
        }
        let fields = wire_fields(&result.extra, notes);
        let mut pieces = Vec::new();
        let mut media = Vec::new();
        for block in &result.content {
            if check_result_block(block, notes).is_none() {
                continue;
            }
            match piece(Role::User, block, notes) {
                Some(Piece::Part(part)) if is_media(block) => {
                    notes.moved(block.kind(), "results are text only");
                    media.push(Piece::Part(part));
                }
                written => pieces.extend(written),
            }
        }
        if !media.is_empty() {
            let id = self.ids.of(&result.tool_use_id);
            self.media.push(Piece::Plain(format!("From the result of call {id}:").into()));
            self.media.extend(media);
        }
        if result.is_error {
            mark_error(&mut pieces);
        }
        let form = marked(&result.extra, "~content");
        let content = content(pieces, form.as_deref()).or_else(|| no_content(form.as_deref()));
        self.results.push(self.result_message(result, fields, content).into());
    }

    fn result_message(
        &self,
        result: &ToolResult,
        mut fields: Object,
        content: Option<Tree>,
    ) -> Object {
        let deprecated = self.deprecated.filter(|call| call.id == result.tool_use_id);
        let role = if deprecated.is_some() { "function" } else { "tool" };
        fields.set("role", role);
        fields.set_some("content", content);
        if let Some(call) = deprecated {
            if !names::is_legal(fields.get("name"), &names::TOOLS) {
                fields.set("name", call.name.clone());
            }
            return fields;
        }
        // A message that named no call, or named it by a number, goes back so.
        let id = self.ids.of(&result.tool_use_id);
        let unnamed =
            marked(&result.extra, "~id").is_some() || fields.get("tool_call_id").is_some();
        if !id.is_empty() || !unnamed {
            fields.set("tool_call_id", id);
        }
        fields
    }
}

/// The message, if a block is one that was kept whole.
fn whole_message(block: &ContentBlock) -> Option<Tree> {
    let ContentBlock::Opaque(opaque) = block else { return None };
    let (name, whole) = message_field(opaque)?;
    (name == "message").then(|| whole.into())
}

fn is_media(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Image(_) | ContentBlock::Document(_))
}
