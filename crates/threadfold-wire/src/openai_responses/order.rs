//! The items to be written, and the rules on their order: an id occurs once, an answer follows its
//! call, reasoning directly precedes the item that it led to, and a compaction trigger is last.

use std::collections::HashSet;

use super::{kinds, kinds::*, read_items::ProviderCalls};
use crate::kit::*;

/// One item to be written.
#[derive(Debug)]
pub(super) struct Item {
    /// The index of the message that it comes from.
    pub(super) at: usize,
    /// The fields that identify the item. The `call_id` of a call is its id before ids were
    /// rewritten.
    pub(super) label: Label,
    /// Whether it is an opaque item: it is written unchanged or left out.
    pub(super) is_whole: bool,
    pub(super) body: Tree,
    /// The id of the reasoning that led to it; empty if that reasoning had none.
    pub(super) led: Option<Text>,
    /// The identity of the item that this reasoning led to.
    pub(super) next: Option<Text>,
}

impl Item {
    /// Returns an item of these fields.
    pub(super) fn new(at: usize, object: Object, led: Option<Text>) -> Self {
        let label = Label::find(|key| object.get(key)?.text());
        Self { at, label, is_whole: false, body: object.into(), led, next: None }
    }

    /// Returns an opaque item.
    pub(super) fn whole(at: usize, json: Json, led: Option<Text>) -> Self {
        let label = Label::read(Raw::of(&json));
        Self { at, label, is_whole: true, body: json.into(), led, next: None }
    }

    fn is_reasoning(&self) -> bool {
        !self.is_whole && self.label.kind == kinds::REASONING
    }

    /// Mends an item that a rule rejects for this reason: it loses its id, or it is left out if it
    /// is invalid without one. Returns whether it stays.
    fn mend(&mut self, reason: &str, notes: &mut Notes) -> bool {
        notes.turn_to(self.at);
        if self.is_reasoning() {
            notes.drop_reasoning(reason);
        } else if self.is_whole {
            notes.drop_block("opaque", reason);
        } else {
            self.label.id = None;
            if let Tree::Object(object) = &mut self.body {
                object.remove("id");
            }
            notes.drop_fields(["id"]);
            return true;
        }
        false
    }
}

/// The conditions on which the rules for the end of an input depend.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// The model continues a stored response, which may hold the calls of results in the input.
    pub(super) is_chained: bool,
    /// The body asks no model, so open calls at the end stay open.
    pub(super) at_rest: bool,
}

/// Why an item must change; `None` if it may stay.
type Fault = Option<&'static str>;

/// Makes the items legal in their order.
///
/// A rule may remove items on which a later rule depends, so their order matters: repeated ids,
/// then calls without an answer, then reasoning that the item it led to does not follow, then ids
/// of items whose reasoning is gone, then answers whose call is gone. At the end a compaction
/// trigger must be the last of the remaining items.
pub(super) fn arrange(items: &mut Vec<Item>, ending: Ending, notes: &mut Notes) {
    apply(items, repeated(), notes);
    if !ending.at_rest {
        apply_from_the_end(items, unanswered(), notes);
    }
    apply_from_the_end(items, lone_reasoning(ending.at_rest), notes);
    apply(items, without_reasoning(), notes);
    apply(items, orphan(ending.is_chained), notes);
    apply(items, early_trigger(items.len()), notes);
}

/// Applies a rule to each item, from the first to the last.
fn apply(items: &mut Vec<Item>, mut rule: impl FnMut(&Item) -> Fault, notes: &mut Notes) {
    items.retain_mut(|item| rule(item).is_none_or(|reason| item.mend(reason, notes)));
}

/// Applies a rule to each item, from the last to the first. Reports its findings in the order of
/// the items.
fn apply_from_the_end(items: &mut Vec<Item>, rule: impl FnMut(&Item) -> Fault, notes: &mut Notes) {
    let mut faults: Vec<Fault> = items.iter().rev().map(rule).collect();
    apply(items, |_| faults.pop().flatten(), notes);
}

/// Finds ids that an earlier item has.
fn repeated() -> impl FnMut(&Item) -> Fault {
    let (mut ids, mut called) = (HashSet::new(), HashSet::new());
    move |Item { label, is_whole, .. }| {
        let call_id = label.call_id.as_ref().filter(|_| label.is_call());
        let is_new = call_id.is_none_or(|id| called.insert(id.clone()));
        if !is_new && *is_whole {
            return Some("a call of its id stands before it");
        }
        let id = label.id.clone().filter(|_| label.kind != kinds::REFERENCE)?;
        (!ids.insert(id)).then_some("an item of its id stands before it")
    }
}

/// Finds opaque calls without an answer. Runs from the end.
fn unanswered() -> impl FnMut(&Item) -> Fault {
    let mut answers = HashSet::new();
    move |Item { label, is_whole, .. }| {
        let id = label.call_id.as_ref().filter(|_| *is_whole)?;
        if label.is_output() {
            answers.insert(id.clone());
        }
        (label.is_call() && !answers.remove(id)).then_some("its answer is not there")
    }
}

/// Finds reasoning with an id that the item it led to does not follow. Runs from the end.
fn lone_reasoning(at_rest: bool) -> impl FnMut(&Item) -> Fault {
    let mut next: Option<Text> = None;
    let mut is_last = true;
    move |item| {
        if kinds::is_setting(&item.label.kind) {
            return None;
        }
        let is_followed = match &item.next {
            None => is_last && at_rest,
            wanted => *wanted == next,
        };
        if item.is_reasoning() && item.label.id.is_some() && !is_followed {
            return Some("what it led to does not follow");
        }
        next = item.label.is_of_model().then(|| item.label.identity());
        is_last = false;
        None
    }
}

/// Finds ids of items whose reasoning is gone: the provider demands the reasoning of items that
/// have an id.
fn without_reasoning() -> impl FnMut(&Item) -> Fault {
    let mut trail = Trail::default();
    move |item| {
        let Item { label, led, .. } = item;
        trail.pass(label, item.is_reasoning());
        let is_missing = label.id.is_some() && led.is_some() && *led != trail.0;
        is_missing.then_some("the reasoning that led to it is gone")
    }
}

/// Finds opaque answers without a call.
fn orphan(mut is_chained: bool) -> impl FnMut(&Item) -> Fault {
    let mut called: HashSet<Text> = HashSet::new();
    let mut of_provider = ProviderCalls::default();
    move |Item { label, is_whole, .. }| {
        is_chained |= label.kind == kinds::REFERENCE;
        let is_answer = label.is_output() || label.kind == kinds::APPROVAL;
        let answers = label.call_id.as_ref().filter(|_| is_answer && *is_whole && !is_chained);
        let is_missing = if label.is_of_providers_answer() {
            of_provider.lacks(label)
        } else {
            answers.is_some_and(|id| !called.remove(id))
        };
        if label.is_of_provider {
            of_provider.add(label);
        } else if label.is_call() {
            called.extend(label.call_id.clone());
        } else if label.kind == kinds::APPROVAL_REQUEST {
            called.extend(label.id.clone());
        }
        (is_missing && !is_chained).then_some("its call is not there")
    }
}

/// Finds compaction triggers that are not last of this many items.
fn early_trigger(count: usize) -> impl FnMut(&Item) -> Fault {
    let mut places = 1..;
    move |item| {
        let is_last = places.next() == Some(count);
        let is_early = item.label.kind == kinds::TRIGGER && !is_last;
        is_early.then_some("a compaction is triggered at the end alone")
    }
}
