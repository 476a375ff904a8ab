//! Writing assistant messages.

use std::{borrow::Cow, collections::HashMap};

use super::{calls, draft::Draft, marks::CODEC};
use crate::{
    contract::Change,
    fields::items,
    ids::Ids,
    notes::Notes,
    openai_content::Piece,
    raw::Raw,
    tree::{Object, Tree},
};
use threadfold_core::message::{Message, Text, ToolUse};

/// Returns the messages of a run of assistant messages, and the call of the deprecated form if the
/// run makes no other.
pub(super) fn write<'m>(
    run: &'m [(usize, Message)],
    ids: &Ids,
    notes: &mut Notes,
) -> (Vec<Object>, Option<&'m ToolUse>) {
    let mut drafts = Vec::new();
    let deprecated = only_call(run).filter(|call| calls::is_deprecated(call));
    for (index, message) in run {
        notes.turn_to(*index);
        let mut draft = Draft::new(*index, message, notes);
        for block in &message.content {
            draft.add(block, deprecated.is_some(), ids, notes);
        }
        if !draft.is_empty() {
            drafts.push(draft);
        }
    }
    let written = merge(drafts, notes).into_iter().map(Draft::into_object).collect();
    (written, deprecated)
}

/// The call of a run that makes only one.
fn only_call(run: &[(usize, Message)]) -> Option<&ToolUse> {
    let mut calls = run.iter().flat_map(|(_, message)| message.tool_uses());
    calls.next().filter(|_| calls.next().is_none())
}

/// Merges from the first message that calls to the end of the run, because the answers must come
/// right behind the message that calls. Messages of text only may stand side by side.
fn merge(mut drafts: Vec<Draft>, notes: &mut Notes) -> Vec<Draft> {
    let first = drafts.iter().position(Draft::calls).unwrap_or(drafts.len());
    let mut tail = drafts.drain(first..);
    let Some(mut merged) = tail.next() else {
        drop(tail);
        return drafts;
    };
    let others: Vec<Draft> = tail.collect();
    if !others.is_empty() {
        let mut fields = Joined::default();
        fields.add(std::mem::take(&mut merged.fields), notes);
        for mut other in others {
            notes.turn_to(other.index);
            notes.note(Change::Merged);
            fields.add(std::mem::take(&mut other.fields), notes);
            absorb(&mut merged, other, notes);
        }
        merged.fields = fields.into_object();
    }
    drafts.push(merged);
    drafts
}

/// Takes in the message that follows, but for its unknown fields.
fn absorb(merged: &mut Draft, other: Draft, notes: &mut Notes) {
    merged.pieces.extend(other.pieces);
    merged.thoughts.extend(other.thoughts);
    match (&merged.refusal, other.refusal) {
        (None, refusal) => merged.refusal = refusal,
        (Some(_), refusal) => merged.pieces.extend(refusal.map(Piece::Plain)),
    }
    merged.calls.extend(other.calls);
    let fields =
        [(&mut merged.function_call, other.function_call), (&mut merged.audio, other.audio)];
    for (field, second) in fields {
        if field.is_some() && second.is_some() {
            notes.drop_block("opaque", "the message that it was merged with has one already");
        }
        *field = field.take().or(second);
    }
}

/// Unknown fields of messages that become one.
#[derive(Default)]
struct Joined {
    fields: Vec<(Cow<'static, str>, Tree)>,
    places: HashMap<Cow<'static, str>, usize>,
}

impl Joined {
    /// Adds the fields of one more message. Arrays of reasoning go one behind the other; of other
    /// fields the first stays, and a second one that differs is noted as left out.
    fn add(&mut self, fields: Object, notes: &mut Notes) {
        let mut clashes = Vec::new();
        for (key, value) in fields.into_fields() {
            let place = self.places.get(&key).and_then(|place| self.fields.get_mut(*place));
            let Some((_, before)) = place else {
                self.places.insert(key.clone(), self.fields.len());
                self.fields.push((key, value));
                continue;
            };
            if key == "reasoning_details" && append(before, &value) {
                continue;
            }
            if *before != value {
                clashes.push(Text::from(key));
            }
        }
        if !clashes.is_empty() {
            notes.note(Change::FieldsDropped { codec: CODEC.into(), fields: clashes });
        }
    }

    fn into_object(self) -> Object {
        let mut object = Object::default();
        for (key, value) in self.fields {
            object.push(key, value);
        }
        object
    }
}

/// Appends one array to another; `false` if either is none.
fn append(before: &mut Tree, value: &Tree) -> bool {
    let items = |tree: &Tree| {
        let Tree::Raw(json) = tree else { return None };
        let items = items(Raw::of(json))?;
        Some(items.into_iter().map(|raw| Tree::Raw(raw.json())).collect())
    };
    let Some(more) = items(value) else { return false };
    let more: Vec<Tree> = more;
    if let Some(first) = items(before) {
        *before = Tree::Array(first);
    }
    let Tree::Array(all) = before else { return false };
    all.extend(more);
    true
}
