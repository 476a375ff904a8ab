//! Writing content blocks.

use std::collections::HashSet;

use super::{
    blocks::{self, RESULT},
    draft::Block,
    foreign,
    forms::{self, BESIDE, NAME},
    media::{self, Medium},
    names::Names,
    target::Target,
};
use crate::{
    message::{
        ContentBlock, Document, Extra, Image, Json, Message, Opaque, Role, ServerToolResult,
        ServerToolUse, Text, TextBlock, Thinking, ToolResult, ToolUse,
    },
    wire::{
        contract::Change,
        fields::Fields,
        foreign::{check_reasoning, check_server_call, write_opaque},
        notes::{Notes, input_object},
        raw::Raw,
        texts::wire_text,
        tree::{Object, Tree},
    },
};

/// What a result says of which nothing is left: the provider refuses an empty text.
const NOTHING: &str = "(no output)";

/// The keys of blocks that are a text with more around it.
const WRAPS: [&str; 2] = ["citationsContent", "guardContent"];

/// Writes blocks, and notes what it leaves out.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    pub(super) notes: Notes,
    pub(super) names: Names,
    /// The server calls that another provider made or answered.
    pub(super) foreign_calls: HashSet<Text>,
    pub(super) target: &'a Target,
}

impl Writer<'_> {
    /// Writes the blocks of a message within the thread.
    pub(super) fn blocks(&mut self, at: usize, message: &Message) -> Vec<Block> {
        let write = |block| {
            let body = match message.role {
                Role::System => self.system_block(block),
                Role::User | Role::Assistant => self.block(message, block),
            };
            Some(Block { at, kind: block.kind(), body: body? })
        };
        message.content.iter().filter_map(write).collect()
    }

    /// Writes a block of a system message, which holds text and what only this provider knows.
    pub(super) fn system_block(&mut self, block: &ContentBlock) -> Option<Tree> {
        if let ContentBlock::Opaque(opaque) = block {
            return self.opaque(opaque);
        }
        self.text(Role::System, block)
            .or_else(|| self.drop_block(block, "a system message is text"))
    }

    fn block(&mut self, message: &Message, block: &ContentBlock) -> Option<Tree> {
        match block {
            ContentBlock::Text(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_) => self.text(message.role, block),
            // Models that paint answer with pictures, so those of this provider go back.
            ContentBlock::Image(image)
                if message.role == Role::User || foreign::came_from_here(message) =>
            {
                self.image(image)
            }
            ContentBlock::Document(document) if message.role == Role::User => {
                self.document(document)
            }
            ContentBlock::Image(_) | ContentBlock::Document(_) => {
                self.drop_block(block, "only users send it")
            }
            ContentBlock::Thinking(thinking) => self.thinking(message, thinking),
            ContentBlock::RedactedThinking(redacted) => {
                let fault = foreign::reasoning_fault(message, self.target);
                check_reasoning(fault, &redacted.extra, &mut self.notes).ok()?;
                let inner = Object::default().with("redactedContent", redacted.data.clone());
                Some(self.finish("reasoningContent", inner, &redacted.extra))
            }
            ContentBlock::ToolUse(call) => Some(self.tool_use(call)),
            ContentBlock::ToolResult(result) => Some(self.tool_result(result)),
            ContentBlock::ServerToolUse(call) => self.server_tool_use(call),
            ContentBlock::ServerToolResult(result) => self.server_tool_result(result),
            ContentBlock::Opaque(opaque) => self.opaque(opaque),
        }
    }

    /// Writes a block of a tool result.
    fn nested(&mut self, block: &ContentBlock) -> Option<Tree> {
        match block {
            ContentBlock::Text(text) if text.text.is_blank() => {
                self.drop_block(block, "blank text")
            }
            ContentBlock::Text(text) if text.extra.get(NAME, forms::JSON).is_some() => {
                Some(self.json(text))
            }
            ContentBlock::Text(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_) => self.text(Role::User, block),
            ContentBlock::Image(image) => self.image(image),
            ContentBlock::Document(document) => self.document(document),
            ContentBlock::Opaque(opaque) => self.opaque(opaque),
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
        let mut object = Object::default();
        // A text that came with its citations, or guarded, goes back with them while it is the same.
        let wrapped = WRAPS.into_iter().find_map(|key| {
            let raw = extra.get(NAME, key)?;
            let is_same = media::wrapped_text(key, Raw::of(raw)).as_ref() == Some(&text);
            is_same.then_some((key, raw))
        });
        match wrapped {
            Some((key, raw)) => object.set(key, raw.clone()),
            None => object.set("text", text),
        }
        let is_wrap = |key: &str| WRAPS.contains(&key);
        let rest = self.notes.own_fields(extra);
        forms::add_rest(&mut object, rest.filter(|(key, _)| !is_wrap(key)));
        let lost = extra.of(NAME).map(|(key, _)| key).find(|key| is_wrap(key));
        if let Some(key) = lost.filter(|_| wrapped.is_none()) {
            let fields = vec![key.into()];
            self.notes.note(Change::FieldsDropped { codec: NAME.into(), fields });
        }
        Some(object.into())
    }

    /// Writes a text that came as JSON: as JSON if it still is some.
    fn json(&mut self, text: &TextBlock) -> Tree {
        let mut object = Object::default();
        match Json::parse(&text.text) {
            Ok(json) => object.set("json", json),
            Err(_) => object.set("text", text.text.clone()),
        }
        forms::add_rest(&mut object, self.notes.own_fields(&text.extra));
        object.into()
    }

    fn image(&mut self, image: &Image) -> Option<Tree> {
        let written = media::write(&image.source, Medium::Image, &image.extra);
        let inner = written.map_err(|reason| self.notes.drop_block("image", reason)).ok()?;
        Some(self.finish("image", inner, &image.extra))
    }

    fn document(&mut self, document: &Document) -> Option<Tree> {
        let Document { source, title, context, extra } = document;
        let written = media::write(source, Medium::Document, extra);
        let written = written.map_err(|reason| self.notes.drop_block("document", reason)).ok()?;
        if media::is_flattened(source) {
            self.notes.note(Change::BlockAsText { kind: "document".into() });
        }
        let name =
            title.as_ref().map_or_else(|| "document".into(), |title| self.names.document(title));
        let mut inner = Object::default().with("name", name);
        inner.extend_unset(written);
        inner.set_some("context", context.clone());
        Some(self.finish("document", inner, extra))
    }

    fn thinking(&mut self, message: &Message, thinking: &Thinking) -> Option<Tree> {
        let unsigned = || foreign::unsigned_fault(message, self.target);
        let fault = foreign::reasoning_fault(message, self.target);
        let signature = thinking.signature.clone();
        let is_signed = signature.as_ref().is_some_and(|signature| !signature.is_empty());
        let fault = fault.or_else(|| if is_signed { None } else { unsigned() });
        check_reasoning(fault, &thinking.extra, &mut self.notes).ok()?;
        let mut parts = Object::default().with("text", thinking.text.clone());
        parts.set_some("signature", signature);
        parts.extend_unset(forms::reopen(thinking.extra.get(NAME, "reasoningText")));
        let inner = Object::default().with("reasoningText", parts);
        Some(self.finish("reasoningContent", inner, &thinking.extra))
    }

    fn tool_use(&mut self, call: &ToolUse) -> Tree {
        let inner = Object::default()
            .with("toolUseId", self.names.id(&call.id))
            .with("name", call.name.clone())
            .with("input", input_object(call, &mut self.notes));
        self.finish("toolUse", inner, &call.extra)
    }

    fn tool_result(&mut self, result: &ToolResult) -> Tree {
        let mut items: Vec<Tree> =
            result.content.iter().filter_map(|block| self.nested(block)).collect();
        let came_empty =
            result.content.is_empty() && result.extra.get(NAME, forms::CONTENT).is_some();
        if items.is_empty() && !came_empty {
            self.notes.note(Change::TextInserted);
            items.push(Object::default().with("text", NOTHING).into());
        }
        let mut inner = Object::default()
            .with("toolUseId", self.names.id(&result.tool_use_id))
            .with("content", items);
        let spelled = result.extra.get(NAME, forms::STATUS).cloned().map(Tree::Raw);
        let status = if result.is_error { Some(Tree::Word("error")) } else { spelled };
        if self.target.accepts_status() {
            inner.set_some("status", status);
        } else if status.is_some() {
            let fields = vec!["status".into()];
            self.notes.note(Change::FieldsDropped { codec: NAME.into(), fields });
        }
        self.finish("toolResult", inner, &result.extra)
    }

    fn server_tool_use(&mut self, call: &ServerToolUse) -> Option<Tree> {
        check_server_call(&self.foreign_calls, "server_tool_use", &call.id, &mut self.notes)
            .ok()?;
        let kind = call.extra.get(NAME, forms::TYPE).cloned().map(Tree::Raw);
        let inner = Object::default()
            .with("toolUseId", self.names.id(&call.id))
            .with("name", call.name.clone())
            .with("input", call.input.clone())
            .with("type", kind.unwrap_or(Tree::Word("server_tool_use")));
        Some(self.finish("toolUse", inner, &call.extra))
    }

    fn server_tool_result(&mut self, result: &ServerToolResult) -> Option<Tree> {
        check_server_call(
            &self.foreign_calls,
            "server_tool_result",
            &result.tool_use_id,
            &mut self.notes,
        )
        .ok()?;
        let mut inner = Object::default()
            .with("toolUseId", self.names.id(&result.tool_use_id))
            .with("content", result.content.clone());
        let told = result.kind != RESULT || result.extra.get(NAME, forms::TYPE).is_some();
        inner.set_some("type", told.then(|| result.kind.clone()));
        Some(self.finish("toolResult", inner, &result.extra))
    }

    /// Writes a block that only this provider knows. One of two kinds at once is of none, so no rule
    /// may look into it.
    fn opaque(&mut self, opaque: &Opaque) -> Option<Tree> {
        let written = write_opaque(opaque, &mut self.notes)?;
        let fields = Fields::parse(opaque.value.as_str());
        let is_one = fields.is_some_and(|fields| blocks::key(&fields).is_some());
        Some(if is_one { written } else { opaque.value.clone().into() })
    }

    fn drop_block(&mut self, block: &ContentBlock, reason: &str) -> Option<Tree> {
        self.notes.drop_block(block.kind(), reason);
        None
    }

    /// Returns the block of this key, with the unknown fields in it and beside it.
    pub(super) fn finish(&mut self, key: &'static str, mut inner: Object, extra: &Extra) -> Tree {
        forms::add_rest(&mut inner, self.notes.own_fields(extra));
        let mut outer = Object::default().with(key, inner);
        outer.extend_unset(forms::reopen(extra.get(NAME, BESIDE)));
        outer.into()
    }
}
