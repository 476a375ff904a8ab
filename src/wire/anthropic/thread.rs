//! Writing the messages of a thread, one by one.

use super::{
    draft::{Block, Draft},
    forms::{self, NAME},
    target::Target,
    write::Writer,
};
use crate::{
    message::{Message, Role, markup},
    wire::{
        contract::Change,
        texts::wire_text,
        tree::{Object, Tree},
    },
};

/// Writes the messages. Those of which nothing is left are left out.
pub(super) fn write(
    messages: &[(usize, Message)],
    target: &Target,
    writer: &mut Writer,
) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::with_capacity(messages.len());
    for (at, message) in messages {
        writer.notes.turn_to(*at);
        let before = drafts.last().map(|draft| draft.role);
        let stays = message.role != Role::System || may_stay(message, before, target);
        let draft = if stays {
            write_message(*at, message, writer)
        } else {
            write_as_user(*at, message, writer)
        };
        drafts.extend(Some(draft).filter(|draft| !draft.blocks.is_empty()));
    }
    drafts
}

/// Whether a system message may stay within the thread: the model accepts those behind a user
/// turn, or the body goes back to the model that accepted this one.
fn may_stay(message: &Message, before: Option<Role>, target: &Target) -> bool {
    let came_so = message.extra.get(NAME, forms::ROLE).is_some();
    let behind_user = matches!(before, Some(Role::User | Role::System));
    (target.is_same && came_so) || (target.traits.accepts_inner_system && behind_user)
}

fn write_message(at: usize, message: &Message, writer: &mut Writer) -> Draft {
    let mut draft = Draft::new(at, message.role, writer.blocks(message));
    draft.as_string = forms::came_as_string(&message.extra);
    forms::add_rest(&mut draft.fields, writer.notes.own_fields(&message.extra));
    draft
}

/// Writes a system message as one of the user, each text in the tag of a reminder.
fn write_as_user(at: usize, message: &Message, writer: &mut Writer) -> Draft {
    writer.notes.note(Change::SystemMoved);
    let mut draft = Draft::new(at, Role::User, Vec::new());
    for block in &message.content {
        let Some((text, extra)) = wire_text(Role::System, block) else {
            writer.notes.drop_block(block.kind(), "only a system message holds it");
            continue;
        };
        let mut object = Object::typed("text").with("text", markup::reminder(&text));
        forms::add_rest(&mut object, writer.notes.own_fields(extra));
        draft.blocks.push(Block { kind: block.kind(), body: Tree::from(object) });
    }
    forms::add_rest(&mut draft.fields, writer.notes.own_fields(&message.extra));
    draft
}
