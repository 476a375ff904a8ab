//! Writing the messages of a thread, one by one, and merging neighbours.

use std::{borrow::Cow, collections::HashMap};

use super::{
    blocks::CACHE_POINT,
    draft::{Block, Draft},
    forms::{self, NAME},
    write::Writer,
};
use crate::{
    message::{Message, Role, Text, markup},
    wire::{
        contract::Change,
        notes::Notes,
        texts::wire_text,
        tree::{Object, Tree},
    },
};

/// Writes the messages. Those of which nothing is left are left out, and neighbours of one role
/// become one: the provider demands that user and assistant take turns.
pub(super) fn write(messages: &[(usize, Message)], writer: &mut Writer<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::with_capacity(messages.len());
    let mut known = Known::default();
    for (at, message) in messages {
        writer.notes.turn_to(*at);
        let before = drafts.last().map(|draft| draft.role);
        let stays = message.role != Role::System || may_stay(message, before, writer);
        let draft = if stays {
            write_message(*at, message, writer)
        } else {
            write_as_user(*at, message, writer)
        };
        // Cache points alone say nothing.
        let points = draft.blocks.len();
        if draft.blocks.iter().all(|block| block.has(CACHE_POINT)) {
            if points > 0 {
                writer.notes.note(Change::CacheMarksDropped { count: points });
            }
            continue;
        }
        match drafts.last_mut().filter(|last| last.role == draft.role) {
            Some(last) => known.merge(last, draft, &mut writer.notes),
            None => {
                known = Known(draft.fields.clone().into_iter().collect());
                drafts.push(draft);
            }
        }
    }
    drafts
}

/// Whether a system message may stay within the thread: the model accepts those behind a user
/// turn, or the body goes back to the model that accepted this one.
fn may_stay(message: &Message, before: Option<Role>, writer: &Writer<'_>) -> bool {
    let came_so = message.extra.get(NAME, forms::ROLE).is_some();
    let behind_user = matches!(before, Some(Role::User | Role::System));
    let target = writer.target;
    (target.is_same && came_so) || (target.traits.accepts_inner_system && behind_user)
}

fn write_message(at: usize, message: &Message, writer: &mut Writer<'_>) -> Draft {
    let mut draft = Draft::new(at, message.role, writer.blocks(at, message));
    forms::add_rest(&mut draft.fields, writer.notes.own_fields(&message.extra));
    draft
}

/// Writes a system message as one of the user, each text in the tag of a reminder.
fn write_as_user(at: usize, message: &Message, writer: &mut Writer<'_>) -> Draft {
    writer.notes.note(Change::SystemMoved);
    let mut draft = Draft::new(at, Role::User, Vec::new());
    for block in &message.content {
        let Some((text, extra)) = wire_text(Role::System, block) else {
            writer.notes.drop_block(block.kind(), "only a system message holds it");
            continue;
        };
        let mut object = Object::default().with("text", markup::reminder(&text));
        forms::add_rest(&mut object, writer.notes.own_fields(extra));
        draft.blocks.push(Block { at, kind: block.kind(), body: Tree::from(object) });
    }
    forms::add_rest(&mut draft.fields, writer.notes.own_fields(&message.extra));
    draft
}

/// The unknown fields of the message at work, by name: neighbours may bring very many.
#[derive(Default)]
struct Known(HashMap<Cow<'static, str>, Tree>);

impl Known {
    /// Merges a message into the one before it. Of fields that clash the first stays.
    fn merge(&mut self, last: &mut Draft, draft: Draft, notes: &mut Notes) {
        notes.note(Change::Merged);
        last.blocks.extend(draft.blocks);
        let mut fields: Vec<Text> = Vec::new();
        for (key, value) in draft.fields {
            match self.0.get(&key) {
                None => {
                    self.0.insert(key.clone(), value.clone());
                    last.fields.push(key, value);
                }
                Some(kept) if *kept == value => {}
                Some(_) => fields.push(key.into()),
            }
        }
        if !fields.is_empty() {
            notes.note(Change::FieldsDropped { codec: NAME.into(), fields });
        }
    }
}
