//! What of a thread this provider takes, and in which form.

use std::collections::HashSet;

use super::{
    blocks::{self, CACHE_POINT},
    forms::{self, NAME},
    media::{self, Medium, WRAPS},
    target::Target,
};
use crate::{
    message::{
        ContentBlock, Document, Image, Message, Role, Text, TextBlock, Thinking, ToolResult,
    },
    wire::{
        contract::Change,
        extras::without,
        fields::Fields,
        foreign::{check_opaque, check_reasoning, check_server_call},
        normal::{Fitted, Kinds, Thread, as_user, extra_mut, fit, own_fields, own_message_fields},
        notes::{Notes, with_object},
        raw::Raw,
        texts::wire_text,
    },
};

pub(super) const KINDS: Kinds = Kinds {
    is_result: |block| key(block) == Some("toolResult"),
    is_reasoning: |block| key(block) == Some("reasoningContent"),
    follows: is_point,
};

/// What a result says of which nothing is left: the provider refuses an empty text.
const NOTHING: &str = "(no output)";

/// What stands beside documents that came alone.
const BESIDE_DOCUMENTS: &str = "See the documents.";

/// The key under which a block is written; `None` for one that no rule knows.
pub(super) fn key(block: &ContentBlock) -> Option<&'static str> {
    match block {
        ContentBlock::Text(TextBlock { extra, .. }) => {
            WRAPS.into_iter().find(|key| extra.get(NAME, key).is_some()).or(Some("text"))
        }
        ContentBlock::SystemReminder(_)
        | ContentBlock::ContextUpdate(_)
        | ContentBlock::Checkpoint(_)
        | ContentBlock::Summary(_) => Some("text"),
        ContentBlock::Image(_) => Some("image"),
        ContentBlock::Document(_) => Some("document"),
        ContentBlock::Thinking(_) | ContentBlock::RedactedThinking(_) => Some("reasoningContent"),
        ContentBlock::ToolUse(_) | ContentBlock::ServerToolUse(_) => Some("toolUse"),
        ContentBlock::ToolResult(_) | ContentBlock::ServerToolResult(_) => Some("toolResult"),
        ContentBlock::Opaque(opaque) => blocks::key(&Fields::parse(opaque.value.as_str())?),
    }
}

/// Whether a block is a mark for the cache.
pub(super) fn is_point(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Opaque(_)) && key(block) == Some(CACHE_POINT)
}

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
            // Cache points alone say nothing.
            let points = message.content.len();
            if !message.content.iter().all(is_point) {
                thread.push((at, message));
            } else if points > 0 {
                self.notes.note(Change::CacheMarksDropped { count: points });
            }
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
        let changed = fit(&message.content, |block| match message.role {
            Role::System => system_block(block, self.notes),
            Role::User | Role::Assistant => {
                let fitted = self.block(&message, block)?;
                Ok(own_fields(block, fitted, self.notes))
            }
        });
        if let Some(content) = changed {
            message = message.with_content(content);
        }
        own_message_fields(&mut message, self.notes);
        message
    }

    fn block(&mut self, message: &Message, block: &ContentBlock) -> Fitted {
        match block {
            ContentBlock::Text(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_) => Ok(unwrapped(message.role, block, self.notes)),
            // Models that paint answer with pictures, so those of this provider go back.
            ContentBlock::Image(image) if message.role == Role::User || is_own(message) => {
                self.image(image)
            }
            ContentBlock::Document(document) if message.role == Role::User => {
                self.document(document)
            }
            ContentBlock::Image(_) | ContentBlock::Document(_) => {
                Err(self.notes.leave_out(block.kind(), "only users send it"))
            }
            ContentBlock::Thinking(thinking) => self.thinking(message, thinking),
            ContentBlock::RedactedThinking(redacted) => {
                check_reasoning(self.reasoning_fault(message), &redacted.extra, self.notes)?;
                Ok(None)
            }
            ContentBlock::ToolUse(call) => {
                Ok(with_object(call, self.notes).map(ContentBlock::ToolUse))
            }
            ContentBlock::ToolResult(result) => Ok(self.result(result)),
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
            | ContentBlock::Summary(_) => Ok(unwrapped(Role::User, block, self.notes)),
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

    fn result(&mut self, result: &ToolResult) -> Option<ContentBlock> {
        let mut content = fit(&result.content, |block| {
            let fitted = self.nested(block)?;
            Ok(own_fields(block, fitted, self.notes))
        });
        let came_empty =
            result.content.is_empty() && result.extra.get(NAME, forms::CONTENT).is_some();
        if content.as_ref().unwrap_or(&result.content).is_empty() && !came_empty {
            self.notes.note(Change::TextInserted);
            content = Some(vec![ContentBlock::text(NOTHING)]);
        }
        let has_status = result.is_error || result.extra.get(NAME, forms::STATUS).is_some();
        let loses_status = has_status && !self.target.accepts_status();
        if content.is_none() && !loses_status {
            return None;
        }
        let mut result = result.clone();
        result.content = content.unwrap_or(result.content);
        if loses_status {
            drop_field("status", self.notes);
            result.is_error = false;
            result.extra = without(NAME, &result.extra, forms::STATUS);
        }
        Some(result.into())
    }

    fn image(&mut self, image: &Image) -> Fitted {
        let source = media::fit(&image.source, Medium::Image);
        let source = source.map_err(|reason| self.notes.leave_out("image", reason))?;
        Ok(source.map(|source| Image { source, ..image.clone() }.into()))
    }

    fn document(&mut self, document: &Document) -> Fitted {
        let source = media::fit(&document.source, Medium::Document);
        let source = source.map_err(|reason| self.notes.leave_out("document", reason))?;
        if media::is_flattened(&document.source) {
            self.notes.note(Change::BlockAsText { kind: "document".into() });
        }
        Ok(source.map(|source| Document { source, ..document.clone() }.into()))
    }

    fn thinking(&mut self, message: &Message, thinking: &Thinking) -> Fitted {
        let is_signed = thinking.signature.as_ref().is_some_and(|it| !it.is_empty());
        // Models of some families sign nothing, so what came from here goes back.
        let may_lack = is_own(message) && !self.target.signs_reasoning();
        let unsigned = (!is_signed && !may_lack).then_some("it is not signed");
        let fault = self.reasoning_fault(message).or(unsigned);
        check_reasoning(fault, &thinking.extra, self.notes)?;
        Ok(None)
    }

    /// Why the reasoning of a message would be refused, if it would.
    fn reasoning_fault(&self, message: &Message) -> Option<&'static str> {
        if message.origin.is_some() && !is_own(message) {
            return Some("another provider signed it");
        }
        if message.role != Role::Assistant {
            return Some("only the model thinks");
        }
        let bound = self.target.traits.binds_reasoning && message.prefix_rewritten;
        bound.then_some("what it was thought on was rewritten")
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
    let fitted = unwrapped(Role::System, block, notes);
    Ok(own_fields(block, fitted, notes))
}

/// Whether this provider made the message.
fn is_own(message: &Message) -> bool {
    message.origin.as_ref().is_some_and(|origin| origin.provider == NAME)
}

/// Takes the citations or the guard of a text away that says something else than it came with.
fn unwrapped(role: Role, block: &ContentBlock, notes: &mut Notes) -> Option<ContentBlock> {
    let (text, extra) = wire_text(role, block)?;
    let has_changed = |key: &&str| {
        let raw = extra.get(NAME, key);
        raw.is_some_and(|raw| media::wrapped_text(key, Raw::of(raw)).as_ref() != Some(&text))
    };
    let key = WRAPS.into_iter().find(has_changed)?;
    drop_field(key, notes);
    let mut block = block.clone();
    if let Some(extra) = extra_mut(&mut block) {
        *extra = without(NAME, extra, key);
    }
    Some(block)
}

fn drop_field(name: &str, notes: &mut Notes) {
    notes.note(Change::FieldsDropped { codec: NAME.into(), fields: vec![name.into()] });
}

/// Puts what may not stand beside results into the last of them.
pub(super) fn only_results(thread: &mut Thread, target: &Target, notes: &mut Notes) {
    const KEYS: [&str; 5] = ["text", "image", "document", "video", "searchResult"];
    let may_stay = |block: &ContentBlock| {
        let key = key(block).filter(|key| KEYS.contains(key));
        key.is_none_or(|key| target.accepts_beside_results(key))
    };
    for turn in thread.chunk_by_mut(|(_, left), (_, right)| left.role == right.role) {
        let is_user = turn.first().is_some_and(|(_, message)| message.role == Role::User);
        let has_results = turn.iter().any(|(_, message)| message.tool_results().next().is_some());
        if !is_user || !has_results {
            continue;
        }
        let mut moved = Vec::new();
        for (at, message) in turn.iter_mut() {
            if message.content.iter().all(may_stay) {
                continue;
            }
            notes.turn_to(*at);
            let (stay, gone): (Vec<_>, Vec<_>) =
                message.content.iter().cloned().partition(may_stay);
            for block in gone {
                notes.moved(block.kind(), "this model takes nothing of the kind beside results");
                moved.push(block);
            }
            *message = message.with_content(stay);
        }
        let is_result = |it: &&mut ContentBlock| matches!(it, ContentBlock::ToolResult(_));
        let last = turn.iter_mut().rev().find(|(_, it)| it.tool_results().next().is_some());
        let content = last.filter(|_| !moved.is_empty()).map(|(_, it)| &mut it.make_mut().content);
        let result = content.and_then(|content| content.iter_mut().rev().find(is_result));
        if let Some(ContentBlock::ToolResult(result)) = result {
            result.content.extend(moved);
        }
    }
    thread.retain(|(_, message)| !message.content.is_empty());
}

/// Puts a text beside documents that have none: the provider demands one.
pub(super) fn text_beside_documents(thread: &mut Thread, notes: &mut Notes) {
    for (at, message) in thread {
        let has = |wanted| message.content.iter().any(|block| key(block) == Some(wanted));
        if has("document") && !has("text") {
            notes.turn_to(*at);
            notes.note(Change::TextInserted);
            message.make_mut().content.push(ContentBlock::text(BESIDE_DOCUMENTS));
        }
    }
}
