//! What of a thread this provider takes, and in which form.

use std::collections::HashSet;

use super::{
    forms::{self, NAME},
    media::{self, Medium},
    target::Target,
};
use crate::{
    message::{ContentBlock, Document, Extra, Image, MediaSource, Message, Role, Text, ToolResult},
    wire::{
        contract::Change,
        foreign::{check_opaque, check_reasoning, check_server_call},
        normal::{Fitted, Kinds, Thread, as_user, fit, own_fields, own_message_fields},
        notes::{Notes, with_object},
        texts::wire_text,
    },
};

pub(super) const KINDS: Kinds = Kinds {
    is_result: |block| matches!(block, ContentBlock::ToolResult(_)),
    is_reasoning: ContentBlock::is_reasoning,
    follows: |_| false,
};

/// The rules for the blocks of a thread.
#[derive(Debug)]
pub(super) struct Rules<'a> {
    pub(super) target: &'a Target,
    /// The server calls that another provider made or answered.
    pub(super) foreign_calls: HashSet<Text>,
    pub(super) notes: &'a mut Notes,
}

impl Rules<'_> {
    /// Returns the messages as the provider takes them. Those of which nothing is left are left out.
    pub(super) fn thread(&mut self, messages: Thread) -> Thread {
        let mut thread: Thread = Vec::with_capacity(messages.len());
        for (at, message) in messages {
            self.notes.turn_to(at);
            let before = thread.last().map(|(_, last)| last.role);
            let stays = message.role != Role::System || self.may_stay(&message, before);
            let message = if stays { self.message(message) } else { as_user(&message, self.notes) };
            thread.extend(Some((at, message)).filter(|(_, it)| !it.content.is_empty()));
        }
        thread
    }

    /// Whether a system message may stay within the thread: the model accepts those behind a user
    /// turn, or the body goes back to the model that accepted this one.
    fn may_stay(&self, message: &Message, before: Option<Role>) -> bool {
        let came_so = message.extra.get(NAME, forms::ROLE).is_some();
        let behind_user = matches!(before, Some(Role::User | Role::System));
        (self.target.is_same && came_so) || (self.target.traits.accepts_inner_system && behind_user)
    }

    fn message(&mut self, mut message: Message) -> Message {
        let fault = reasoning_fault(&message, self.target.traits.binds_reasoning);
        let changed = fit(&message.content, |block| match message.role {
            Role::System => system_block(block, self.notes),
            Role::User | Role::Assistant => {
                let fitted = self.block(message.role, block, fault)?;
                Ok(own_fields(block, fitted, self.notes))
            }
        });
        if let Some(content) = changed {
            message = message.with_content(content);
        }
        own_message_fields(&mut message, self.notes);
        message
    }

    fn block(&mut self, role: Role, block: &ContentBlock, fault: Option<&'static str>) -> Fitted {
        match block {
            ContentBlock::Text(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_) => Ok(None),
            ContentBlock::Image(_) | ContentBlock::Document(_) if role != Role::User => {
                Err(self.notes.leave_out(block.kind(), "only users send it"))
            }
            ContentBlock::Image(image) => self.image(image),
            ContentBlock::Document(document) => self.document(document),
            ContentBlock::Thinking(thinking) => {
                let signature = thinking.signature.as_ref().filter(|it| !it.is_empty());
                let unsigned = signature.is_none().then_some("it is not signed");
                check_reasoning(fault.or(unsigned), &thinking.extra, self.notes)?;
                Ok(None)
            }
            ContentBlock::RedactedThinking(redacted) => {
                check_reasoning(fault, &redacted.extra, self.notes)?;
                Ok(None)
            }
            ContentBlock::ToolUse(call) => {
                Ok(with_object(call, self.notes).map(ContentBlock::ToolUse))
            }
            ContentBlock::ToolResult(result) => {
                let nested = fit(&result.content, |block| {
                    let fitted = self.nested(block)?;
                    Ok(own_fields(block, fitted, self.notes))
                });
                Ok(nested.map(|content| ToolResult { content, ..result.clone() }.into()))
            }
            ContentBlock::ServerToolUse(call) => {
                check_server_call(&self.foreign_calls, block.kind(), &call.id, self.notes)?;
                Ok(None)
            }
            ContentBlock::ServerToolResult(result) => {
                let id = &result.tool_use_id;
                check_server_call(&self.foreign_calls, block.kind(), id, self.notes)?;
                Ok(None)
            }
            ContentBlock::Opaque(opaque) => check_opaque(opaque, self.notes),
        }
    }

    /// What becomes of a block of a tool result.
    fn nested(&mut self, block: &ContentBlock) -> Fitted {
        match block {
            ContentBlock::Text(text) if text.text.is_blank() => {
                Err(self.notes.leave_out(block.kind(), "blank text"))
            }
            ContentBlock::Text(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_) => Ok(None),
            ContentBlock::Image(image) => self.image(image),
            ContentBlock::Document(document) => self.document(document),
            ContentBlock::Opaque(opaque) => check_opaque(opaque, self.notes),
            ContentBlock::Thinking(_)
            | ContentBlock::RedactedThinking(_)
            | ContentBlock::ToolUse(_)
            | ContentBlock::ToolResult(_)
            | ContentBlock::ServerToolUse(_)
            | ContentBlock::ServerToolResult(_) => {
                Err(self.notes.leave_out(block.kind(), "a tool result cannot hold it"))
            }
        }
    }

    fn image(&mut self, image: &Image) -> Fitted {
        let source = media::fit(&image.source, Medium::Image, is_foreign(&image.extra));
        let source = source.map_err(|reason| self.notes.leave_out("image", reason))?;
        Ok(source.map(|source| Image { source, ..image.clone() }.into()))
    }

    fn document(&mut self, document: &Document) -> Fitted {
        let source = media::fit(&document.source, Medium::Document, is_foreign(&document.extra));
        let source = source.map_err(|reason| self.notes.leave_out("document", reason))?;
        if matches!(source, Some(MediaSource::Text { .. })) {
            self.notes.note(Change::BlockAsText { kind: "document".into() });
        }
        Ok(source.map(|source| Document { source, ..document.clone() }.into()))
    }
}

/// What becomes of a block of a system message, which holds text and what only this provider knows.
pub(super) fn system_block(block: &ContentBlock, notes: &mut Notes) -> Fitted {
    if let ContentBlock::Opaque(opaque) = block {
        return check_opaque(opaque, notes);
    }
    if wire_text(Role::System, block).is_none() {
        return Err(notes.leave_out(block.kind(), "a system message is text"));
    }
    Ok(own_fields(block, None, notes))
}

fn is_foreign(extra: &Extra) -> bool {
    extra.codec().is_some_and(|codec| codec != NAME)
}

/// Returns why the reasoning of a message would be refused, if it would.
fn reasoning_fault(message: &Message, binds_reasoning: bool) -> Option<&'static str> {
    let other = message.origin.as_ref().is_some_and(|origin| origin.provider != NAME);
    if other {
        return Some("another provider signed it");
    }
    (binds_reasoning && message.prefix_rewritten).then_some("what it was thought on was rewritten")
}
