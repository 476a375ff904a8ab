//! Cache marks: at most four in a body, each on the tool or block up to which the provider caches.

use super::{contract::Change, extras::reopen, json::*, normal::*, notes::*};
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
    /// Whether a requested mark goes to the last block of the user instead of the last of the thread.
    pub(super) of_user: bool,
    /// Whether requested marks go on thread and system prompt, and whether they go on the tools.
    pub(super) marks: (bool, bool),
}

/// The parts of a body that can carry marks, in the order in which they are cached.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) tools: &'a mut [ToolSpec],
    pub(super) system: &'a mut [Message],
    pub(super) thread: &'a mut Thread,
    pub(super) rules: CacheRules,
}

/// A cache mark, from the body or requested by the host.
#[derive(Clone, Copy, Debug)]
struct Mark {
    place: Place,
    /// Whether the host requested it; otherwise the body had it.
    is_requested: bool,
    /// Whether the cached part is kept for an hour.
    is_long: bool,
}

/// How many marks a body may carry.
const MAX: usize = 4;
/// The longer of the two lifetimes of a mark; the default is five minutes.
const HOUR: &str = "1h";

/// The position of a mark. The order of positions is the order of caching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Tool(usize),
    /// A message of the system prompt or, counted on, of the thread; a block of it; and a block of
    /// that tool result, or [`ITSELF`] for the outer block.
    Block(usize, usize, usize),
}

const ITSELF: usize = usize::MAX;

impl Parts<'_> {
    /// Adds the requested marks, and removes marks over the limit.
    pub(super) fn mark(mut self, is_asked: bool, notes: &mut Notes) {
        let mut marks = self.marks(notes.codec());
        if is_asked {
            self.add_requested(&mut marks);
        }
        marks.sort_by_key(|mark| mark.place);
        self.drop_earliest(&mut marks, notes);
        let mut is_long = false;
        for mark in marks.iter().rev() {
            is_long |= mark.is_long;
            if mark.is_requested {
                // The provider refuses a mark that lives longer than one before it.
                let mut object = Object::typed(self.rules.kind);
                object.set_some("ttl", is_long.then_some(HOUR));
                if let Some(key) = self.rules.within {
                    object = Object::of(key, object);
                }
                self.set(mark.place, Some(object.into_json()), notes.codec());
            }
        }
    }

    /// Removes the earliest marks if there are too many. Requested marks stay: there are no more of
    /// them than the limit.
    fn drop_earliest(&mut self, marks: &mut Vec<Mark>, notes: &mut Notes) {
        let mut excess = marks.len().saturating_sub(MAX);
        if excess > 0 {
            notes.turn_to(None).note(Change::CacheMarksDropped { count: excess });
        }
        marks.retain(|mark| {
            let goes = excess > 0 && !mark.is_requested;
            if goes {
                excess -= 1;
                self.set(mark.place, None, notes.codec());
            }
            !goes
        });
    }

    fn marks(&self, codec: &str) -> Vec<Mark> {
        let key = self.rules.key;
        let mut found = Vec::new();
        for (index, tool) in self.tools.iter().enumerate() {
            found.extend(mark_of(&tool.extra, codec, key).map(|mark| (Place::Tool(index), mark)));
        }
        let messages = self.system.iter().chain(self.thread.iter().map(|(_, message)| message));
        for (index, message) in messages.enumerate() {
            for (place, block) in message.content.iter().enumerate() {
                if let ContentBlock::ToolResult(result) = block {
                    for (inner, block) in result.content.iter().enumerate() {
                        let place = Place::Block(index, place, inner);
                        found.extend(mark(block, codec, key).map(|mark| (place, mark)));
                    }
                }
                let place = Place::Block(index, place, ITSELF);
                found.extend(mark(block, codec, key).map(|mark| (place, mark)));
            }
        }
        let marks = found.into_iter().map(|(place, mark)| {
            let is_long = is_long(&mark, self.rules.within);
            Mark { place, is_requested: false, is_long }
        });
        marks.collect()
    }

    /// Requests marks on the last tool, the last block of the system prompt and the last block of
    /// the thread, unless they have one. If the limit allows one more, it goes on the last block of
    /// the previous request: a provider searches about 20 blocks back from a mark, and a round of
    /// tools may have more.
    fn add_requested(&self, marks: &mut Vec<Mark>) {
        let (of_thread, of_tools) = self.rules.marks;
        let tool = self.tools.len().checked_sub(1).map(Place::Tool).filter(|_| of_tools);
        let mut system = self.system.iter().enumerate().rev();
        let system = system.find_map(|(index, message)| {
            Some(Place::Block(index, message.content.len().checked_sub(1)?, ITSELF))
        });
        let block = self.last_block(self.thread.len(), self.rules.of_user);
        let answer = self.thread.iter().rposition(|(_, it)| it.role == Role::Assistant);
        let block_before = answer.and_then(|answer| self.last_block(answer, true));
        tool.into_iter().for_each(|place| request(marks, place));
        if of_thread {
            [system, block].into_iter().flatten().for_each(|place| request(marks, place));
            if marks.len() < MAX {
                block_before.into_iter().for_each(|place| request(marks, place));
            }
        }
    }

    /// The last block that may be marked, in the first `count` messages of the thread.
    fn last_block(&self, count: usize, of_user: bool) -> Option<Place> {
        let messages = self.thread.iter().enumerate().take(count).rev();
        let mut wanted = messages.filter(|(_, (_, it))| it.role == Role::User || !of_user);
        wanted.find_map(|(index, (_, message))| {
            let place = message.content.iter().rposition(self.rules.takes)?;
            Some(Place::Block(self.system.len() + index, place, ITSELF))
        })
    }

    fn set(&mut self, place: Place, mark: Option<Json>, codec: &'static str) {
        let key = self.rules.key;
        let (index, place, inner) = match place {
            Place::Tool(index) => {
                let tool = self.tools.get_mut(index);
                tool.into_iter().for_each(|tool| set_in(&mut tool.extra, codec, key, mark.clone()));
                return;
            }
            Place::Block(index, place, inner) => (index, place, inner),
        };
        let message = match index.checked_sub(self.system.len()) {
            Some(index) => self.thread.get_mut(index).map(|(_, message)| message),
            None => self.system.get_mut(index),
        };
        let block = message.and_then(|message| message.make_mut().content.get_mut(place));
        let block = match block {
            Some(ContentBlock::ToolResult(result)) if inner != ITSELF => {
                result.content.get_mut(inner)
            }
            block => block,
        };
        block.into_iter().for_each(|block| set(block, codec, key, mark.clone()));
    }
}

/// Requests a mark, unless there is one already.
fn request(marks: &mut Vec<Mark>, place: Place) {
    if marks.iter().all(|mark| mark.place != place) {
        marks.push(Mark { place, is_requested: true, is_long: false });
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
        set_in(extra, codec, key, mark);
    }
}

/// Sets or removes a mark in an [`Extra`].
pub(super) fn set_in(extra: &mut Extra, codec: &'static str, key: &str, mark: Option<Json>) {
    let others = extra.of(codec).filter(|(name, _)| *name != key);
    let others = others.map(|(name, json)| (name, json.clone()));
    *extra = Extra::new(codec, others.chain(mark.map(|mark| (key, mark))));
}
