//! Which blocks of a thread a provider takes, and in which form, for the dialects whose messages have
//! a role and blocks.

use std::collections::HashSet;

use super::{
    contract::{Change, ModelTraits},
    foreign::{check_opaque, check_reasoning, check_server_call},
    normal::{Thread, as_user, fit, own_fields, own_message_fields},
    notes::{Fitted, Notes, with_object},
    texts::wire_text,
};
use threadfold_core::message::{
    ContentBlock, Document, Image, MediaSource, Message, Role, Text, Thinking, ToolResult,
};

/// What a source is the source of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    Image,
    Document,
}

/// Returns a source that can be written, nothing where it is one itself, or why there is none. The
/// last says whether it is in the store of another provider, if it is in one.
pub(super) type FitSource =
    fn(&MediaSource, Medium, bool) -> Result<Option<MediaSource>, &'static str>;

/// The rules of a provider for a thread.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) source: FitSource,
    /// Whether the text of a document becomes plain text.
    pub(super) is_flattened: fn(&MediaSource) -> bool,
    /// What becomes of a block that is written as a text, and of the rest of a result.
    pub(super) text: fn(Role, &ContentBlock, &mut Notes) -> Option<ContentBlock>,
    pub(super) result: fn(&Rules, &mut ToolResult, &mut Notes) -> bool,
    pub(super) traits: ModelTraits,
    /// The note on system messages that stood within the thread, if the body goes back to the model
    /// that accepted them.
    pub(super) inner_system: Option<&'static str>,
    /// Whether pictures of this provider's models go back.
    pub(super) takes_pictures_back: bool,
    /// Whether reasoning of this provider's models goes back without a signature.
    pub(super) takes_unsigned_back: bool,
    /// Whether results may say that they failed.
    pub(super) takes_status: bool,
    /// The server calls that another provider made or answered.
    pub(super) foreign_calls: HashSet<Text>,
}

impl Rules {
    /// Returns the messages as the provider takes them. Those of which nothing is left are left out.
    pub(super) fn thread(&self, messages: Thread, notes: &mut Notes) -> Thread {
        let mut thread: Thread = Vec::with_capacity(messages.len());
        for (at, message) in messages {
            notes.turn_to(at);
            let before = thread.last().map(|(_, last)| last.role);
            let stays = message.role != Role::System || self.may_stay(&message, before, notes);
            let message =
                if stays { self.message(message, notes) } else { as_user(&message, notes) };
            thread.extend(Some((at, message)).filter(|(_, it)| !it.content.is_empty()));
        }
        thread
    }

    /// Returns the system prompt as the provider takes it, without blank texts.
    pub(super) fn system(&self, system: &[Message], notes: &mut Notes) -> Vec<Message> {
        let mut fitted = system.to_vec();
        for message in &mut fitted {
            own_message_fields(message, notes);
            let changed = fit(&message.content, |block| {
                if block.as_text().is_some_and(|text| text.is_blank()) {
                    return Err(notes.leave_out(block.kind(), "blank text"));
                }
                self.system_block(block, notes)
            });
            if let Some(content) = changed {
                *message = message.with_content(content);
            }
        }
        fitted
    }

    /// Whether a system message may stay within the thread: the model accepts those behind a user
    /// turn, or the body goes back to the model that accepted this one.
    fn may_stay(&self, message: &Message, before: Option<Role>, notes: &Notes) -> bool {
        let came_so = |note| message.extra.get(notes.codec(), note).is_some();
        let behind_user = matches!(before, Some(Role::User | Role::System));
        self.inner_system.is_some_and(came_so) || (self.traits.accepts_inner_system && behind_user)
    }

    fn message(&self, mut message: Message, notes: &mut Notes) -> Message {
        let changed = fit(&message.content, |block| match message.role {
            Role::System => self.system_block(block, notes),
            Role::User | Role::Assistant => {
                let fitted = self.block(&message, block, notes)?;
                Ok(own_fields(block, fitted, notes))
            }
        });
        if let Some(content) = changed {
            message = message.with_content(content);
        }
        own_message_fields(&mut message, notes);
        message
    }

    /// What becomes of a block of a system message, which holds text and what only this provider
    /// knows.
    fn system_block(&self, block: &ContentBlock, notes: &mut Notes) -> Fitted {
        if let ContentBlock::Opaque(opaque) = block {
            return check_opaque(opaque, notes);
        }
        if wire_text(Role::System, block).is_none() {
            return Err(notes.leave_out(block.kind(), "a system message is text"));
        }
        let fitted = (self.text)(Role::System, block, notes);
        Ok(own_fields(block, fitted, notes))
    }

    fn block(&self, message: &Message, block: &ContentBlock, notes: &mut Notes) -> Fitted {
        let is_own = is_made_by(message, notes.codec());
        match block {
            ContentBlock::Text(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_) => return Ok((self.text)(message.role, block, notes)),
            ContentBlock::Image(image)
                if message.role == Role::User || (is_own && self.takes_pictures_back) =>
            {
                return self.image(image, notes);
            }
            ContentBlock::Document(document) if message.role == Role::User => {
                return self.document(document, notes);
            }
            ContentBlock::Image(_) | ContentBlock::Document(_) => {
                return Err(notes.leave_out(block.kind(), "only users send it"));
            }
            ContentBlock::Thinking(Thinking { signature, extra, .. }) => {
                let is_signed = signature.as_ref().is_some_and(|it| !it.is_empty());
                let may_lack = is_own && self.takes_unsigned_back;
                let unsigned = (!is_signed && !may_lack).then_some("it is not signed");
                let fault = self.reasoning_fault(message, notes.codec()).or(unsigned);
                check_reasoning(fault, extra, notes)?;
            }
            ContentBlock::RedactedThinking(redacted) => {
                let fault = self.reasoning_fault(message, notes.codec());
                check_reasoning(fault, &redacted.extra, notes)?;
            }
            ContentBlock::ToolUse(call) => {
                return Ok(with_object(call, notes).map(ContentBlock::ToolUse));
            }
            ContentBlock::ToolResult(result) => return Ok(self.tool_result(result, notes)),
            ContentBlock::ServerToolUse(call) => {
                check_server_call(&self.foreign_calls, block.kind(), &call.id, notes)?;
            }
            ContentBlock::ServerToolResult(result) => {
                check_server_call(&self.foreign_calls, block.kind(), &result.tool_use_id, notes)?;
            }
            ContentBlock::Opaque(opaque) => return check_opaque(opaque, notes),
        }
        Ok(None)
    }

    fn tool_result(&self, result: &ToolResult, notes: &mut Notes) -> Option<ContentBlock> {
        let content = fit(&result.content, |block| {
            let fitted = self.nested(block, notes)?;
            Ok(own_fields(block, fitted, notes))
        });
        let mut changed = content.is_some();
        let mut result = ToolResult {
            content: content.unwrap_or_else(|| result.content.clone()),
            ..result.clone()
        };
        changed |= (self.result)(self, &mut result, notes);
        changed.then(|| result.into())
    }

    /// What becomes of a block of a tool result.
    fn nested(&self, block: &ContentBlock, notes: &mut Notes) -> Fitted {
        match block {
            ContentBlock::Text(text) if text.text.is_blank() => {
                Err(notes.leave_out(block.kind(), "blank text"))
            }
            ContentBlock::Text(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_) => Ok((self.text)(Role::User, block, notes)),
            ContentBlock::Image(image) => self.image(image, notes),
            ContentBlock::Document(document) => self.document(document, notes),
            ContentBlock::Opaque(opaque) => check_opaque(opaque, notes),
            ContentBlock::Thinking(_)
            | ContentBlock::RedactedThinking(_)
            | ContentBlock::ToolUse(_)
            | ContentBlock::ToolResult(_)
            | ContentBlock::ServerToolUse(_)
            | ContentBlock::ServerToolResult(_) => {
                Err(notes.leave_out(block.kind(), "a tool result cannot hold it"))
            }
        }
    }

    fn image(&self, image: &Image, notes: &mut Notes) -> Fitted {
        let is_foreign = image.extra.codec().is_some_and(|codec| codec != notes.codec());
        let source = (self.source)(&image.source, Medium::Image, is_foreign);
        let source = source.map_err(|reason| notes.leave_out("image", reason))?;
        Ok(source.map(|source| Image { source, ..image.clone() }.into()))
    }

    fn document(&self, document: &Document, notes: &mut Notes) -> Fitted {
        let is_foreign = document.extra.codec().is_some_and(|codec| codec != notes.codec());
        let source = (self.source)(&document.source, Medium::Document, is_foreign);
        let source = source.map_err(|reason| notes.leave_out("document", reason))?;
        if (self.is_flattened)(&document.source) {
            notes.note(Change::BlockAsText { kind: "document".into() });
        }
        Ok(source.map(|source| Document { source, ..document.clone() }.into()))
    }

    /// Why the reasoning of a message would be refused, if it would.
    fn reasoning_fault(&self, message: &Message, codec: &str) -> Option<&'static str> {
        if message.origin.is_some() && !is_made_by(message, codec) {
            return Some("another provider signed it");
        }
        if message.role != Role::Assistant {
            return Some("only the model thinks");
        }
        let bound = self.traits.binds_reasoning && message.prefix_rewritten;
        bound.then_some("what it was thought on was rewritten")
    }
}

/// Whether the provider of this codec made a message.
fn is_made_by(message: &Message, codec: &str) -> bool {
    message.origin.as_ref().is_some_and(|origin| origin.provider == codec)
}

/// The media type and the data of a URI that holds its data in Base64, its parameters left out.
pub(super) fn data_uri(uri: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = uri.split_once(':')?;
    let (head, data) = rest.split_once(',')?;
    let (kind, coding) = head.rsplit_once(';')?;
    let media_type = kind.split(';').next()?.trim();
    let is_data = scheme.eq_ignore_ascii_case("data") && coding.eq_ignore_ascii_case("base64");
    is_data.then_some((media_type, data))
}
