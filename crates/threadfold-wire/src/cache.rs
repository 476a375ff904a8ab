//! Cache marks: at most four in a body, each on the tool or block up to which the provider caches.

use std::collections::{BTreeMap, BTreeSet};

use super::{contract::Change, extras::*, json::*, normal::*, notes::*};
use threadfold_core::message::{ContentBlock, Extra, Json, Message, Role, ToolSpec};

/// The cache marks of a dialect.
#[derive(Debug)]
pub(super) struct CacheRules {
    /// The key of a mark in an [`Extra`].
    pub(super) key: &'static str,
    /// The type of a mark.
    pub(super) kind: &'static str,
    /// The key of the inner object that holds type and lifetime; `None` if the mark itself holds
    /// them.
    pub(super) within: Option<&'static str>,
    /// Whether a block of the thread may get a requested mark.
    pub(super) takes: fn(&ContentBlock) -> bool,
    /// Whether a requested mark is set on the user's last block instead of the last block of the
    /// thread.
    pub(super) of_user: bool,
    /// Whether requested marks are set on thread and system prompt, and whether they are set on the
    /// tools.
    pub(super) marks: (bool, bool),
}

/// The parts of a body that can carry marks, in the order in which they are cached: the tools, the
/// system prompt and the thread.
type Parts<'a> = (&'a mut [ToolSpec], &'a mut [Message], &'a mut Thread);

/// The maximum number of marks in a body.
const MAX: usize = 4;
/// The longer of the two lifetimes of a mark; the default is five minutes.
const HOUR: &str = "1h";

/// Adds the requested marks if `is_asked`, and removes the earliest of the others if there are too
/// many.
pub(super) fn fit(parts: Parts<'_>, rules: &CacheRules, is_asked: bool, notes: &mut Notes) {
    let codec = notes.codec();
    let (mut slots, wanted) = slots(parts, rules);
    let places = slots.iter().enumerate();
    let marks = places.filter_map(|(place, slot)| Some((place, slot.mark(codec, rules.key)?)));
    let marks: BTreeMap<usize, Json> = marks.collect();
    let mut requested = BTreeSet::new();
    for (number, place) in wanted.into_iter().enumerate() {
        // The last slot gets a mark only if the limit allows it.
        let fits = number < MAX - 1 || marks.len() + requested.len() < MAX;
        requested.extend(place.filter(|at| is_asked && fits && !marks.contains_key(at)));
    }
    let excess = (marks.len() + requested.len()).saturating_sub(MAX);
    if excess > 0 {
        notes.turn_to(None).note(Change::CacheMarksDropped { count: excess });
    }
    let first_kept = marks.keys().nth(excess).copied().unwrap_or(usize::MAX);
    let mut lives_long = false;
    for (place, slot) in slots.iter_mut().enumerate().rev() {
        if let Some(mark) = marks.get(&place) {
            lives_long |= place >= first_kept && is_long(mark, rules.within);
            if place < first_kept {
                slot.set(codec, rules.key, None);
            }
        } else if requested.contains(&place) {
            // The provider refuses a mark that lives longer than one before it.
            let mut object = Object::typed(rules.kind);
            object.set_some("ttl", lives_long.then_some(HOUR));
            if let Some(key) = rules.within {
                object = Object::of(key, object);
            }
            slot.set(codec, rules.key, Some(object.into_json()));
        }
    }
}

/// A tool, a result or another block, which may carry a mark.
enum Slot<'a> {
    Extra(&'a mut Extra),
    Block(&'a mut ContentBlock),
}

impl Slot<'_> {
    fn mark(&self, codec: &str, key: &str) -> Option<Json> {
        match self {
            Self::Extra(extra) => mark_of(extra, codec, key),
            Self::Block(block) => mark(block, codec, key),
        }
    }

    fn set(&mut self, codec: &'static str, key: &str, mark: Option<Json>) {
        match self {
            Self::Extra(extra) => set_field(extra, codec, key, mark),
            Self::Block(block) => set(block, codec, key, mark),
        }
    }
}

/// Returns the slots that may carry a mark, in the order of caching, and those for requested marks:
/// the last tool, the last block of the system prompt, the last block of the thread, and the last
/// block of the previous request. The last one is needed because a provider searches only about 20
/// blocks back from a mark, and a round of tools may have more.
fn slots<'a>(
    (tools, system, thread): Parts<'a>,
    rules: &CacheRules,
) -> (Vec<Slot<'a>>, [Option<usize>; MAX]) {
    let mut slots: Vec<_> = tools.iter_mut().map(|tool| Slot::Extra(&mut tool.extra)).collect();
    let of_tools = slots.len();
    for block in system.iter_mut().flat_map(|message| &mut message.make_mut().content) {
        add(&mut slots, block);
    }
    let of_system = slots.len();
    let (mut last, mut last_of_user, mut before) = (None, None, None);
    for (_, message) in thread {
        let parts = message.make_mut();
        if parts.role == Role::Assistant {
            before = last_of_user;
        }
        for block in &mut parts.content {
            let takes = (rules.takes)(block);
            add(&mut slots, block);
            let place = slots.len().checked_sub(1).filter(|_| takes);
            last = place.or(last);
            last_of_user = place.filter(|_| parts.role == Role::User).or(last_of_user);
        }
    }
    let tool = of_tools.checked_sub(1).filter(|_| rules.marks.1);
    let system = of_system.checked_sub(1).filter(|_| of_system > of_tools);
    let last = if rules.of_user { last_of_user } else { last };
    let [system, last, before] = [system, last, before].map(|it| it.filter(|_| rules.marks.0));
    (slots, [tool, system, last, before])
}

fn add<'a>(slots: &mut Vec<Slot<'a>>, block: &'a mut ContentBlock) {
    if let ContentBlock::ToolResult(result) = block {
        slots.extend(result.content.iter_mut().map(Slot::Block));
        slots.push(Slot::Extra(&mut result.extra));
    } else {
        slots.push(Slot::Block(block));
    }
}

/// The mark of a block, if it has one.
pub(super) fn mark(block: &ContentBlock, codec: &str, key: &str) -> Option<Json> {
    if let ContentBlock::Opaque(opaque) = block {
        let mark = Fields::parse(opaque.value.as_str())?.take_json(key);
        return mark.filter(|mark| *mark != Json::default());
    }
    mark_of(extra(block)?, codec, key)
}

fn mark_of(extra: &Extra, codec: &str, key: &str) -> Option<Json> {
    extra.get(codec, key).filter(|mark| **mark != Json::default()).cloned()
}

/// Whether the cached part is kept for an hour.
fn is_long(mark: &Json, within: Option<&str>) -> bool {
    let mark = Fields::parse(mark.as_str());
    let inner = match within {
        Some(key) => mark.and_then(|mark| Fields::of(mark.get(key)?)),
        None => mark,
    };
    inner.and_then(|mut inner| inner.take_text("ttl")).is_some_and(|ttl| ttl == HOUR)
}

/// Sets or removes the mark of a block.
pub(super) fn set(block: &mut ContentBlock, codec: &'static str, key: &str, mark: Option<Json>) {
    if let ContentBlock::Opaque(opaque) = block {
        let mut object = reopen(Some(&opaque.value));
        object.remove(key);
        if let Some(mark) = mark {
            object.push(key.to_owned(), mark);
        }
        opaque.value = object.into_json();
    } else if let Some(extra) = extra_mut(block) {
        set_field(extra, codec, key, mark);
    }
}
