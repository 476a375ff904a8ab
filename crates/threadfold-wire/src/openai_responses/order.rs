//! Items in the making, and the rules on their order: an id occurs once, an answer follows its call, reasoning precedes
//! what it led to, and a compaction trigger is last.

use std::collections::HashSet;

use super::{
    kinds::{self, Label},
    marks::*,
    read_items::ProviderCalls,
};
use crate::kit::*;

/// One item in the making.
#[derive(Debug)]
pub(super) struct Item {
    /// The message that it comes from.
    pub(super) at: usize,
    pub(super) kind: Kind,
    pub(super) body: Tree,
    /// The provider's id of it.
    pub(super) id: Option<Text>,
    /// The reasoning that led to it: its id, or nothing where it had none.
    pub(super) led: Option<Text>,
}

/// What an item is.
#[derive(Debug)]
pub(super) enum Kind {
    /// A message of the user or of the host.
    Said,
    /// A message of the model.
    Answer,
    /// A call that the host answers: its id before it was shortened.
    Call(Text),
    /// The answer to a call.
    Output,
    /// Reasoning, and what identifies the item that it led to.
    Reasoning(Option<Text>),
    /// An item that is kept whole: it is written unchanged or left out.
    Whole(Label),
}

impl Item {
    /// Returns an item of these fields.
    pub(super) fn new(at: usize, kind: Kind, object: Object, led: Option<Text>) -> Self {
        let id = object.get("id").and_then(Tree::text).filter(|id| !id.is_empty());
        Self { at, kind, body: object.into(), id, led }
    }

    /// Returns an item that is kept whole.
    pub(super) fn whole(at: usize, json: Json, led: Option<Text>) -> Self {
        let label = Label::read(Raw::of(&json));
        let id = label.id.clone();
        Self { at, kind: Kind::Whole(label), body: json.into(), id, led }
    }

    /// What identifies the item among others.
    pub(super) fn identity(&self) -> Option<Text> {
        match &self.kind {
            Kind::Said | Kind::Output => None,
            Kind::Answer => Some(self.id.clone().unwrap_or_else(|| "message".into())),
            Kind::Call(call_id) => Some(self.id.clone().unwrap_or_else(|| call_id.clone())),
            Kind::Reasoning(_) => Some(self.id.clone().unwrap_or_else(|| "reasoning".into())),
            Kind::Whole(label) if label.is_of_model() => Some(label.identity()),
            Kind::Whole(_) => None,
        }
    }

    /// Takes the provider's id of it away.
    fn forget_id(&mut self) {
        self.id = None;
        if let Tree::Object(object) = &mut self.body {
            object.remove("id");
        }
    }
}

/// What decides about the end of an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// The model continues a stored response, which may hold the calls of results in the input.
    pub(super) is_chained: bool,
    /// No model is asked to continue: open calls at the end stay open.
    pub(super) at_rest: bool,
}

/// Makes the items legal in their order.
pub(super) fn arrange(items: &mut Vec<Item>, ending: Ending, notes: &mut Notes) {
    drop_repeated(items, notes);
    drop_unanswered(items, ending, notes);
    drop_lone_reasoning(items, ending, notes);
    forget_ids_without_reasoning(items, notes);
    drop_orphans(items, ending, notes);
    end_with_trigger(items, notes);
}

/// Removes ids that an earlier item has.
fn drop_repeated(items: &mut Vec<Item>, notes: &mut Notes) {
    let mut seen: HashSet<Text> = HashSet::new();
    let mut called: HashSet<Text> = HashSet::new();
    items.retain_mut(|item| {
        let call_id = match &item.kind {
            Kind::Call(id) => Some(id),
            Kind::Whole(label) => label.call_id.as_ref().filter(|_| label.is_call()),
            Kind::Said | Kind::Answer | Kind::Output | Kind::Reasoning(_) => None,
        };
        let is_new = call_id.is_none_or(|id| called.insert(id.clone()));
        if !is_new && matches!(item.kind, Kind::Whole(_)) {
            notes.turn_to(item.at).drop_block("opaque", "a call of its id stands before it");
            return false;
        }
        let Some(id) = item.id.clone() else { return true };
        if matches!(&item.kind, Kind::Whole(label) if label.kind == "item_reference") {
            return true;
        }
        seen.insert(id) || without_id(item, "an item of its id stands before it", notes)
    });
}

/// Removes the id of an item; `false` if the item is invalid without it.
fn without_id(item: &mut Item, reason: &str, notes: &mut Notes) -> bool {
    notes.turn_to(item.at);
    match &item.kind {
        Kind::Reasoning(_) => notes.note(Change::ReasoningDropped { reason: reason.into() }),
        Kind::Whole(_) => notes.drop_block("opaque", reason),
        Kind::Said | Kind::Answer | Kind::Call(_) | Kind::Output => {
            item.forget_id();
            let (codec, fields) = (CODEC.into(), vec!["id".into()]);
            notes.note(Change::FieldsDropped { codec, fields });
            return true;
        }
    }
    false
}

/// Drops calls that are kept whole, and whose answer does not come.
fn drop_unanswered(items: &mut Vec<Item>, ending: Ending, notes: &mut Notes) {
    if ending.at_rest {
        return;
    }
    let mut answers: HashSet<Text> = HashSet::new();
    let has_answer = |item: &Item| {
        let Kind::Whole(label) = &item.kind else { return true };
        if label.is_output() {
            answers.extend(label.call_id.clone());
        }
        !label.is_call() || label.call_id.as_ref().is_none_or(|id| answers.remove(id))
    };
    retain_from_the_end(items, has_answer, |item| {
        notes.turn_to(item.at).drop_block("opaque", "its answer is not there");
    });
}

/// Keeps the items for which `stays` is true, asking from the last to the first, and notes the
/// others in order.
fn retain_from_the_end(
    items: &mut Vec<Item>,
    stays: impl FnMut(&Item) -> bool,
    mut note: impl FnMut(&Item),
) {
    let mut stays: Vec<bool> = items.iter().rev().map(stays).collect();
    items.retain(|item| {
        let kept = stays.pop().unwrap_or(true);
        if !kept {
            note(item);
        }
        kept
    });
}

/// Drops answers that are kept whole, and whose call is not there.
fn drop_orphans(items: &mut Vec<Item>, ending: Ending, notes: &mut Notes) {
    let mut called: HashSet<Text> = HashSet::new();
    let mut of_provider = ProviderCalls::default();
    let mut is_chained = ending.is_chained;
    items.retain(|item| {
        let label = match &item.kind {
            Kind::Call(id) => {
                called.insert(id.clone());
                return true;
            }
            Kind::Whole(label) => label,
            Kind::Said | Kind::Answer | Kind::Output | Kind::Reasoning(_) => return true,
        };
        is_chained |= label.kind == "item_reference";
        let stays = is_chained
            || match label.kind.as_str() {
                _ if label.is_of_providers_answer() => !of_provider.lacks(label),
                _ if label.is_output() => label.call_id.as_ref().is_none_or(|id| called.remove(id)),
                // The call that was approved names the request too, and answers nothing.
                "mcp_approval_response" => {
                    label.request_id.as_ref().is_none_or(|id| called.remove(id))
                }
                _ => true,
            };
        if label.is_of_provider {
            label.provider_id().into_iter().for_each(|id| of_provider.add(&label.kind, id));
        } else if label.is_call() {
            called.extend(label.call_id.clone());
        } else if label.kind == "mcp_approval_request" {
            called.extend(label.id.clone());
        }
        if !stays {
            notes.turn_to(item.at).drop_block("opaque", "its call is not there");
        }
        stays
    });
}

/// Drops reasoning with an id that is not followed by what it led to.
fn drop_lone_reasoning(items: &mut Vec<Item>, ending: Ending, notes: &mut Notes) {
    let mut next_item: Option<Text> = None;
    let mut is_last = true;
    let is_followed = |item: &Item| {
        let kept = match &item.kind {
            Kind::Reasoning(None) => item.id.is_none() || (is_last && ending.at_rest),
            Kind::Reasoning(next) => item.id.is_none() || *next == next_item,
            Kind::Said | Kind::Answer | Kind::Call(_) | Kind::Output | Kind::Whole(_) => true,
        };
        if kept {
            next_item = item.identity();
            is_last = false;
        }
        kept
    };
    retain_from_the_end(items, is_followed, |item| {
        notes.turn_to(item.at).drop_reasoning("what it led to does not follow");
    });
}

/// Removes the ids of items whose reasoning is gone: the provider demands it for items that it
/// knows by id.
fn forget_ids_without_reasoning(items: &mut Vec<Item>, notes: &mut Notes) {
    let mut latest: Option<Text> = None;
    items.retain_mut(|item| {
        match &item.kind {
            Kind::Said => latest = None,
            Kind::Reasoning(_) => latest = Some(item.id.clone().unwrap_or_default()),
            Kind::Whole(label) => latest = label.referred_reasoning().or(latest.take()),
            Kind::Answer | Kind::Call(_) | Kind::Output => {}
        }
        let misses = item.id.is_some() && item.led.is_some() && item.led != latest;
        !misses || without_id(item, "the reasoning that led to it is gone", notes)
    });
}

/// Drops triggers of the provider's compaction that are not last.
fn end_with_trigger(items: &mut Vec<Item>, notes: &mut Notes) {
    let last = items.len();
    let mut index = 0;
    items.retain(|item| {
        index += 1;
        let trigger = matches!(&item.kind, Kind::Whole(label) if label.kind == kinds::TRIGGER);
        if !trigger || index == last {
            return true;
        }
        notes.turn_to(item.at).drop_block("opaque", "a compaction is triggered at the end alone");
        false
    });
}
