//! Writing content blocks.

use std::collections::HashSet;

use super::{
    draft::{self, Block},
    forms::{self, NAME},
    ids::Ids,
    media::{self, Medium},
};
use crate::{
    message::{
        ContentBlock, Document, Extra, Image, Json, MediaSource, Message, Role, ServerToolResult,
        ServerToolUse, Text, Thinking, ToolResult, ToolUse,
    },
    wire::{
        contract::Change,
        foreign::{check_reasoning, check_server_call, write_opaque},
        notes::{Notes, input_object},
        texts::wire_text,
        tree::{Object, Tree},
    },
};

/// Writes blocks, and notes what it leaves out.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) notes: Notes,
    pub(super) ids: Ids,
    /// The server calls that another provider made or answered.
    pub(super) foreign_calls: HashSet<Text>,
    /// Whether the model refuses reasoning when something before it was rewritten.
    pub(super) binds_reasoning: bool,
}

impl Writer {
    /// Writes the blocks of a message within the thread.
    pub(super) fn blocks(&mut self, message: &Message) -> Vec<Block> {
        let fault = reasoning_fault(message, self.binds_reasoning);
        let write = |block| {
            let body = match message.role {
                Role::System => self.system_block(block),
                Role::User | Role::Assistant => self.block(message.role, block, fault),
            };
            Some(Block { kind: block.kind(), body: body? })
        };
        message.content.iter().filter_map(write).collect()
    }

    /// Writes a block of a system message, which holds text and what only this provider knows.
    pub(super) fn system_block(&mut self, block: &ContentBlock) -> Option<Tree> {
        if let ContentBlock::Opaque(opaque) = block {
            return write_opaque(opaque, &mut self.notes);
        }
        self.text(Role::System, block).or_else(|| {
            self.notes.drop_block(block.kind(), "a system message is text");
            None
        })
    }

    fn block(
        &mut self,
        role: Role,
        block: &ContentBlock,
        reasoning_fault: Option<&'static str>,
    ) -> Option<Tree> {
        match block {
            ContentBlock::Text(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_) => self.text(role, block),
            ContentBlock::Image(_) | ContentBlock::Document(_) if role != Role::User => {
                self.drop_block(block, "only users send it")
            }
            ContentBlock::Image(image) => self.image(image),
            ContentBlock::Document(document) => self.document(document),
            ContentBlock::Thinking(thinking) => self.thinking(thinking, reasoning_fault),
            ContentBlock::RedactedThinking(redacted) => {
                check_reasoning(reasoning_fault, &redacted.extra, &mut self.notes)?;
                let object = Object::typed("redacted_thinking").with("data", redacted.data.clone());
                Some(self.finish(object, &redacted.extra))
            }
            ContentBlock::ToolUse(call) => Some(self.tool_use(call)),
            ContentBlock::ToolResult(result) => Some(self.tool_result(result)),
            ContentBlock::ServerToolUse(call) => self.server_tool_use(call),
            ContentBlock::ServerToolResult(result) => self.server_tool_result(result),
            ContentBlock::Opaque(opaque) => write_opaque(opaque, &mut self.notes),
        }
    }

    /// Writes a block of a tool result.
    fn nested(&mut self, block: &ContentBlock) -> Option<Tree> {
        match block {
            ContentBlock::Text(text) if text.text.is_blank() => {
                self.drop_block(block, "blank text")
            }
            ContentBlock::Text(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_) => self.text(Role::User, block),
            ContentBlock::Image(image) => self.image(image),
            ContentBlock::Document(document) => self.document(document),
            ContentBlock::Opaque(opaque) => write_opaque(opaque, &mut self.notes),
            ContentBlock::Thinking(_)
            | ContentBlock::RedactedThinking(_)
            | ContentBlock::ToolUse(_)
            | ContentBlock::ToolResult(_)
            | ContentBlock::ServerToolUse(_)
            | ContentBlock::ServerToolResult(_) => {
                self.drop_block(block, "a tool result cannot hold it")
            }
        }
    }

    /// Writes a block whose wire form is a text; `None`, without a note, for any other.
    fn text(&mut self, role: Role, block: &ContentBlock) -> Option<Tree> {
        let (text, extra) = wire_text(role, block)?;
        Some(self.finish(Object::typed("text").with("text", text), extra))
    }

    fn image(&mut self, image: &Image) -> Option<Tree> {
        let source = self.source("image", &image.source, Medium::Image, &image.extra)?;
        Some(self.finish(Object::typed("image").with("source", source), &image.extra))
    }

    fn document(&mut self, document: &Document) -> Option<Tree> {
        let Document { source, title, context, extra } = document;
        let written = self.source("document", source, Medium::Document, extra)?;
        if media::is_flattened(source) {
            self.notes.note(Change::BlockAsText { kind: "document".into() });
        }
        let mut object = Object::typed("document").with("source", written);
        object.set_some("title", title.clone());
        object.set_some("context", context.clone());
        forms::set_spelled(&mut object, extra, "title", forms::TITLE);
        forms::set_spelled(&mut object, extra, "context", forms::CONTEXT);
        Some(self.finish(object, extra))
    }

    fn source(
        &mut self,
        kind: &str,
        source: &MediaSource,
        medium: Medium,
        extra: &Extra,
    ) -> Option<Tree> {
        let other = extra.codec().is_some_and(|codec| codec != NAME);
        let written = match source {
            MediaSource::File { .. } if other => Err("its file is in another provider's store"),
            MediaSource::File { .. }
            | MediaSource::Base64 { .. }
            | MediaSource::Url { .. }
            | MediaSource::Text { .. }
            | MediaSource::Opaque { .. } => media::write(source, medium),
        };
        written.map_err(|reason| self.notes.drop_block(kind, reason)).ok()
    }

    fn thinking(&mut self, thinking: &Thinking, fault: Option<&'static str>) -> Option<Tree> {
        let signature = thinking.signature.clone().filter(|signature| !signature.is_empty());
        let unsigned = signature.is_none().then_some("it is not signed");
        check_reasoning(fault.or(unsigned), &thinking.extra, &mut self.notes)?;
        let mut object = Object::typed("thinking").with("thinking", thinking.text.clone());
        object.set_some("signature", signature);
        Some(self.finish(object, &thinking.extra))
    }

    fn tool_use(&mut self, call: &ToolUse) -> Tree {
        let object = Object::typed("tool_use")
            .with("id", self.ids.written(&call.id))
            .with("name", call.name.clone())
            .with("input", input_object(call, &mut self.notes));
        self.finish(object, &call.extra)
    }

    fn tool_result(&mut self, result: &ToolResult) -> Tree {
        let mut object =
            Object::typed("tool_result").with("tool_use_id", self.ids.written(&result.tool_use_id));
        let bodies: Vec<Tree> =
            result.content.iter().filter_map(|block| self.nested(block)).collect();
        if !bodies.is_empty() {
            object.set("content", draft::content(bodies, forms::came_as_string(&result.extra)));
        }
        if result.is_error {
            object.set("is_error", true);
        }
        forms::set_spelled(&mut object, &result.extra, "is_error", forms::IS_ERROR);
        self.finish(object, &result.extra)
    }

    fn server_tool_use(&mut self, call: &ServerToolUse) -> Option<Tree> {
        check_server_call(&self.foreign_calls, "server_tool_use", &call.id, &mut self.notes)?;
        let kind = match call.extra.get(NAME, forms::TYPE) {
            Some(kind) => kind.clone().into(),
            None => Tree::Word("server_tool_use"),
        };
        let object = Object::default()
            .with("type", kind)
            .with("id", self.ids.written(&call.id))
            .with("name", call.name.clone())
            .with("input", call.input.clone());
        Some(self.finish(object, &call.extra))
    }

    fn server_tool_result(&mut self, result: &ServerToolResult) -> Option<Tree> {
        check_server_call(
            &self.foreign_calls,
            "server_tool_result",
            &result.tool_use_id,
            &mut self.notes,
        )?;
        let mut object = Object::default()
            .with("type", result.kind.clone())
            .with("tool_use_id", self.ids.written(&result.tool_use_id));
        let absent =
            result.content == Json::default() && result.extra.get(NAME, forms::CONTENT).is_some();
        if !absent {
            object.set("content", result.content.clone());
        }
        Some(self.finish(object, &result.extra))
    }

    fn drop_block(&mut self, block: &ContentBlock, reason: &str) -> Option<Tree> {
        self.notes.drop_block(block.kind(), reason);
        None
    }

    fn finish(&mut self, mut object: Object, extra: &Extra) -> Tree {
        forms::add_rest(&mut object, self.notes.own_fields(extra));
        object.into()
    }
}

/// Returns why the reasoning of a message would be refused, if it would.
fn reasoning_fault(message: &Message, binds_reasoning: bool) -> Option<&'static str> {
    let other = message.origin.as_ref().is_some_and(|origin| origin.provider != NAME);
    if other {
        return Some("another provider signed it");
    }
    (binds_reasoning && message.prefix_rewritten).then_some("what it was thought on was rewritten")
}
