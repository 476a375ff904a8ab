//! Writing blocks as parts.

use std::collections::HashMap;

use super::{
    draft::{CallPart, Draft, Written},
    marks::{
        self, CODEC, Name, SIGNATURE, Spelling, has_mark, is_own, marked, take_inner, wire_fields,
    },
    media, part,
};
use crate::{
    contract::Change,
    normal::as_user,
    notes::{Notes, input_object},
    openai::document_text,
    texts::wire_text,
    tree::{Object, Tree},
};
use threadfold_core::message::{
    ContentBlock, Document, Extra, Image, Json, MediaSource, Message, Opaque, Role, Text, Thinking,
    ToolUse,
};

/// Writes messages, and notes what it leaves out.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) notes: Notes,
    /// The latest call of each id.
    pub(super) calls: HashMap<Text, CallPart>,
    /// How many calls were written.
    pub(super) count: usize,
}

impl Writer {
    /// Returns a message as a content.
    pub(super) fn message(&mut self, at: usize, message: &Message) -> Draft {
        self.notes.turn_to(at);
        let reminder = (message.role == Role::System).then(|| as_user(message, &mut self.notes));
        let message = reminder.as_ref().unwrap_or(message);
        let mut draft = Draft::new(at, message, &mut self.notes);
        for block in &message.content {
            if let ContentBlock::ToolResult(result) = block {
                let parts = self.result(result);
                draft.parts.extend(parts);
            } else {
                draft.parts.extend(self.block(message, block));
            }
        }
        draft
    }

    /// Returns a block of the system prompt, which is text and what only this provider knows.
    pub(super) fn system_block(&mut self, block: &ContentBlock) -> Option<Tree> {
        if let ContentBlock::Opaque(opaque) = block {
            return self.opaque(opaque);
        }
        match wire_text(Role::System, block) {
            Some((text, extra)) if !text.is_blank() => Some(self.text(text, extra)),
            Some(_) => self.drop_block(block, "blank text"),
            None => self.drop_block(block, "a system prompt is text"),
        }
    }

    fn block(&mut self, message: &Message, block: &ContentBlock) -> Option<Written> {
        let body = match block {
            ContentBlock::Text(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_) => {
                let (text, extra) = wire_text(message.role, block)?;
                self.text(text, extra)
            }
            ContentBlock::Image(image) => self.image(image)?,
            ContentBlock::Document(document) => self.document(document)?,
            ContentBlock::Thinking(thinking) => self.thinking(message, thinking)?,
            ContentBlock::RedactedThinking(_) => {
                self.drop_reasoning("it is encrypted for another provider")?
            }
            ContentBlock::ToolUse(call) => return Some(self.call(message, call)),
            ContentBlock::ServerToolUse(call) => self.server(block, &call.extra, &call.input)?,
            ContentBlock::ServerToolResult(result) => {
                self.server(block, &result.extra, &result.content)?
            }
            ContentBlock::Opaque(opaque) => self.opaque(opaque)?,
            ContentBlock::ToolResult(_) => return None,
        };
        Some(Written::new(block.kind(), body))
    }

    fn text(&mut self, text: Text, extra: &Extra) -> Tree {
        let rest = wire_fields(extra, &mut self.notes);
        with_rest(Object::default().with("text", text), rest)
    }

    pub(super) fn image(&mut self, image: &Image) -> Option<Tree> {
        let mut rest = wire_fields(&image.extra, &mut self.notes);
        let written = media::write(&mut rest, &image.source, &image.extra, "image/jpeg");
        let written = written.map_err(|reason| self.notes.drop_block("image", reason)).ok()?;
        let key = Spelling::of(&image.extra).key(written.name);
        Some(with_rest(Object::default().with(key, written.object), rest))
    }

    pub(super) fn document(&mut self, document: &Document) -> Option<Tree> {
        if let MediaSource::Text { text, .. } = &document.source {
            let text = document_text(document, text, &mut self.notes)?;
            return Some(self.text(text, &Extra::default()));
        }
        let mut rest = wire_fields(&document.extra, &mut self.notes);
        let written = media::write(&mut rest, &document.source, &document.extra, "application/pdf");
        let mut written =
            written.map_err(|reason| self.notes.drop_block("document", reason)).ok()?;
        if !media::write_title(&mut written, document) {
            self.notes.drop_block("document title", "the dialect has no form for it");
        }
        if document.context.is_some() {
            self.notes.drop_block("document context", "the dialect has no form for it");
        }
        let key = Spelling::of(&document.extra).key(written.name);
        Some(with_rest(Object::default().with(key, written.object), rest))
    }

    fn thinking(&mut self, message: &Message, thinking: &Thinking) -> Option<Tree> {
        if is_foreign(message, &thinking.extra) {
            return self.drop_reasoning("it comes from another provider");
        }
        let signature = thinking.signature.clone();
        if thinking.text.is_empty() && signature.is_none() {
            return self.drop_reasoning("it says nothing");
        }
        let mut object = Object::default().with("text", thinking.text.clone());
        if marked(&thinking.extra, "~as").is_none_or(|form| form != "text") {
            object.set("thought", true);
        }
        object.set_some(Spelling::of(&thinking.extra).key(SIGNATURE), signature);
        Some(with_rest(object, wire_fields(&thinking.extra, &mut self.notes)))
    }

    fn drop_reasoning<T>(&mut self, reason: &str) -> Option<T> {
        self.notes.note(Change::ReasoningDropped { reason: reason.into() });
        None
    }

    fn call(&mut self, message: &Message, call: &ToolUse) -> Written {
        let unnamed = has_mark(&call.extra, "~no_id") || call.id.is_empty();
        let mut rest = wire_fields(&call.extra, &mut self.notes);
        let mut data = take_inner(&mut rest, marks::FUNCTION_CALL);
        if let Some(came) = call.extra.get(CODEC, "~id") {
            data.set("id", came.clone());
        } else if !unnamed {
            data.set("id", call.id.clone());
        }
        data.set("name", call.name.clone());
        if let Some(args) = self.args(call) {
            data.set("args", args);
        }
        let name = Spelling::of(&call.extra).key(marks::FUNCTION_CALL);
        let fact = CallPart {
            id: call.id.clone(),
            name: call.name.clone(),
            number: self.count,
            unnamed: unnamed || has_mark(&call.extra, "~id"),
            foreign: is_foreign(message, &call.extra),
        };
        self.count += 1;
        self.calls.insert(call.id.clone(), fact.clone());
        let part = with_rest(Object::default().with(name, data), rest);
        Written { call: Some(fact), ..Written::new("tool_use", part) }
    }

    /// The arguments of a call: a JSON object, or nothing where nothing came.
    fn args(&mut self, call: &ToolUse) -> Option<Tree> {
        match call.input.json() {
            Ok(json) if has_mark(&call.extra, "~args") && json == part::no_args() => None,
            Ok(_) | Err(_) => Some(input_object(call, &mut self.notes)),
        }
    }

    fn server(&mut self, block: &ContentBlock, extra: &Extra, value: &Json) -> Option<Tree> {
        let named = marked(extra, "~as");
        let known = |word: &Text| SERVER_DATA.into_iter().find(|name| *word == name.camel);
        let Some(name) = named.as_ref().and_then(known) else {
            return self.drop_block(block, "another provider's server tool");
        };
        let data = Object::default().with(Spelling::of(extra).key(name), value.clone());
        Some(with_rest(data, wire_fields(extra, &mut self.notes)))
    }

    pub(super) fn opaque(&mut self, opaque: &Opaque) -> Option<Tree> {
        if opaque.codec == CODEC {
            return Some(opaque.value.clone().into());
        }
        self.notes.drop_block("opaque", &format!("only {} understands it", opaque.codec));
        None
    }

    pub(super) fn drop_block<T>(&mut self, block: &ContentBlock, reason: &str) -> Option<T> {
        self.notes.drop_block(block.kind(), reason);
        None
    }
}

const SERVER_DATA: [Name; 4] =
    [marks::EXECUTABLE_CODE, marks::CODE_RESULT, marks::TOOL_CALL, marks::TOOL_RESPONSE];

/// Returns a part of this data, with what stands beside it behind it.
pub(super) fn with_rest(mut data: Object, rest: Object) -> Tree {
    data.extend_unset(rest);
    data.into()
}

/// Whether another provider made a block, or nobody says who did.
fn is_foreign(message: &Message, extra: &Extra) -> bool {
    let origin = message.origin.as_ref().map(|origin| origin.provider.as_str());
    !is_own(extra) && origin != Some(CODEC)
}
