//! Writing results as `functionResponse` parts.

use super::{
    calls,
    draft::{CallPart, Written},
    marks::{self, CODEC, Spelling, has_mark, marked, take_inner, wire_fields},
    read_results,
    write::{Writer, with_rest},
};
use crate::{
    contract::Change,
    fields::Fields,
    names,
    openai::document_text,
    texts::wire_text,
    tree::{Object, Tree},
};
use threadfold_core::message::{ContentBlock, Json, MediaSource, Role, Text, ToolResult};

/// What a result says, in the making.
#[derive(Default)]
struct Said {
    texts: Vec<Text>,
    /// Pictures and documents that go within.
    parts: Vec<Tree>,
    /// Those that go behind.
    behind: Vec<Written>,
}

impl Writer {
    /// Returns a result, and behind it the pictures and documents that have no place in it.
    pub(super) fn result(&mut self, result: &ToolResult) -> Vec<Written> {
        let mut rest = wire_fields(&result.extra, &mut self.notes);
        let mut data = take_inner(&mut rest, marks::FUNCTION_RESPONSE);
        let call = self.calls.get(&result.tool_use_id).cloned();
        self.write_name(result, call.as_ref(), &mut data);
        let said = self.said(result);
        let other = data.get("response").is_some() && said.texts.is_empty();
        if !other {
            data.set("response", response(result, &said.texts));
        }
        if !said.parts.is_empty() {
            data.set("parts", said.parts);
        }
        let key = Spelling::of(&result.extra).key(marks::FUNCTION_RESPONSE);
        let mut written =
            Written::new("tool_result", with_rest(Object::default().with(key, data), rest));
        let named = said.behind.is_empty();
        let label = call.as_ref().map_or(&result.tool_use_id, |call| &call.name);
        let label = Tree::from(format!("From the result of {label}:"));
        written.call = call.map(|call| self.as_answered(result, call));
        let label = (!named).then(|| Written::text(label));
        [written].into_iter().chain(label).chain(said.behind).collect()
    }

    /// A result goes by order where neither it nor its call has an id.
    fn as_answered(&self, result: &ToolResult, call: CallPart) -> CallPart {
        CallPart { unnamed: call.unnamed && !has_mark(&result.extra, "~id"), ..call }
    }

    fn write_name(&self, result: &ToolResult, call: Option<&CallPart>, data: &mut Object) {
        let unnamed = call.is_some_and(|call| call.unnamed);
        if let Some(came) = result.extra.get(CODEC, "~id") {
            data.set("id", came.clone());
        } else if !unnamed && !has_mark(&result.extra, "~no_id") && data.get("id").is_none() {
            data.set("id", result.tool_use_id.clone());
        }
        if !names::is_legal(data.get("name"), &calls::TOOLS) {
            // It stands where it stands when it is written again, whatever was in its place.
            data.remove("name");
            let name = call.map_or(&result.tool_use_id, |call| &call.name);
            data.set("name", name.clone());
        }
    }

    fn said(&mut self, result: &ToolResult) -> Said {
        let within = has_mark(&result.extra, "~parts");
        let mut said = Said::default();
        for block in &result.content {
            if is_text(block) {
                said.texts.extend(self.text_of(block));
                continue;
            }
            let Some(written) = self.medium(block, within) else { continue };
            if within {
                said.parts.push(written);
            } else {
                let kind = block.kind();
                let reason = "not every model takes it in a result".into();
                self.notes.note(Change::BlockMoved { kind: kind.into(), reason });
                said.behind.push(Written::new(kind, written));
            }
        }
        said
    }

    fn text_of(&mut self, block: &ContentBlock) -> Option<Text> {
        if let ContentBlock::Document(document) = block {
            let MediaSource::Text { text, .. } = &document.source else { return None };
            return document_text(document, text, &mut self.notes);
        }
        let (text, extra) = wire_text(Role::User, block)?;
        let _ = self.notes.own_fields(extra).count();
        Some(text)
    }

    fn medium(&mut self, block: &ContentBlock, within: bool) -> Option<Tree> {
        match block {
            ContentBlock::Image(image) => self.image(image),
            ContentBlock::Document(document) => self.document(document),
            ContentBlock::Opaque(opaque) if within => self.opaque(opaque),
            ContentBlock::Text(_)
            | ContentBlock::Thinking(_)
            | ContentBlock::RedactedThinking(_)
            | ContentBlock::ToolUse(_)
            | ContentBlock::ToolResult(_)
            | ContentBlock::ServerToolUse(_)
            | ContentBlock::ServerToolResult(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_)
            | ContentBlock::Opaque(_) => self.drop_block(block, "a result cannot hold it"),
        }
    }
}

/// Whether a block becomes a part of the text of a result.
fn is_text(block: &ContentBlock) -> bool {
    if let ContentBlock::Document(document) = block {
        matches!(document.source, MediaSource::Text { .. })
    } else {
        wire_text(Role::User, block).is_some()
    }
}

/// The response of a result: the object that its text is, or its text under the key that says how
/// it went.
fn response(result: &ToolResult, texts: &[Text]) -> Tree {
    let whole = marked(&result.extra, "~as").is_some_and(|form| form == "response");
    if let Some(json) = texts.first().filter(|_| whole && texts.len() == 1).and_then(object)
        && Fields::parse(json.as_str())
            .is_some_and(|fields| read_results::says_error(&fields) == result.is_error)
    {
        return json.into();
    }
    let key = if result.is_error { "error" } else { "output" };
    let texts: Vec<&str> = texts.iter().map(Text::as_str).collect();
    Object::default().with(key, texts.join("\n\n")).into()
}

fn object(text: &Text) -> Option<Json> {
    Json::parse(text).ok().filter(Json::is_object)
}
