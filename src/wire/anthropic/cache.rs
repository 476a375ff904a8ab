//! Cache marks: at most four in a body, none on reasoning.

use super::forms::NAME;
use crate::{
    message::{CacheMarks, ContentBlock, Extra, Json, Message, ToolSpec},
    wire::{
        contract::Change,
        extras::reopen,
        fields::Fields,
        normal::{CacheMark, Thread, extra, extra_mut, settle_marks},
        notes::Notes,
        tree::{Object, Tree},
    },
};

/// The parts of a body that can carry marks, in the order in which they are cached.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) tools: &'a mut [ToolSpec],
    pub(super) system: &'a mut [Message],
    pub(super) thread: &'a mut Thread,
}

const MARK: &str = "cache_control";
/// The longer of the two lives of a mark; without one it lives five minutes.
const HOUR: &str = "1h";

/// Where a mark stands, in the order in which marks are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Tool(usize),
    System(usize, usize),
    /// A message, a block of it, and a block of that result; the last possible for itself.
    Block(usize, usize, usize),
}

const ITSELF: usize = usize::MAX;

impl Parts<'_> {
    /// Places marks if asked to, and takes out what may not be there.
    pub(super) fn mark(mut self, asked: CacheMarks, notes: &mut Notes) {
        self.clear_reasoning(notes);
        let mut marks = self.marks();
        match asked {
            CacheMarks::Off => {}
            CacheMarks::Auto => self.add_wishes(&mut marks),
        }
        for place in settle_marks(&mut marks, notes) {
            self.set(place, None);
        }
        for mark in marks.iter().filter(|mark| mark.is_wish) {
            let mut object = Object::typed("ephemeral");
            object.set_some("ttl", mark.is_long.then_some(HOUR));
            self.set(mark.place, Some(Tree::from(object).into_json()));
        }
    }

    fn clear_reasoning(&mut self, notes: &mut Notes) {
        for (at, message) in self.thread.iter_mut() {
            let is_marked = |block: &&ContentBlock| block.is_reasoning() && mark(block).is_some();
            let count = message.content.iter().filter(is_marked).count();
            if count > 0 {
                notes.turn_to(*at);
                notes.note(Change::CacheMarksDropped { count });
                let content = &mut message.make_mut().content;
                content.iter_mut().filter(|it| it.is_reasoning()).for_each(|it| set(it, None));
            }
        }
    }

    fn marks(&self) -> Vec<CacheMark<Place>> {
        let mut found = Vec::new();
        let mut add = |place, mark: Option<Json>| {
            let found_mark = |mark| CacheMark { place, is_wish: false, is_long: is_long(&mark) };
            found.extend(mark.map(found_mark));
        };
        for (index, tool) in self.tools.iter().enumerate() {
            add(Place::Tool(index), mark_of(&tool.extra));
        }
        for (index, message) in self.system.iter().enumerate() {
            for (place, block) in message.content.iter().enumerate() {
                add(Place::System(index, place), mark(block));
            }
        }
        for (index, (_, message)) in self.thread.iter().enumerate() {
            for (place, block) in message.content.iter().enumerate() {
                if let ContentBlock::ToolResult(result) = block {
                    for (inner, block) in result.content.iter().enumerate() {
                        add(Place::Block(index, place, inner), mark(block));
                    }
                }
                add(Place::Block(index, place, ITSELF), mark(block));
            }
        }
        found
    }

    /// Wishes for marks on the last tool, the last block of the system prompt and the last block of
    /// the thread, where none stand.
    fn add_wishes(&self, marks: &mut Vec<CacheMark<Place>>) {
        let last = |content: &[ContentBlock]| {
            let takes =
                |it: &ContentBlock| !it.is_reasoning() && !matches!(it, ContentBlock::Opaque(_));
            content.iter().rposition(takes)
        };
        let tool = self.tools.len().checked_sub(1).map(Place::Tool);
        let mut system = self.system.iter().enumerate().rev();
        let system = system.find_map(|(index, message)| {
            Some(Place::System(index, message.content.len().checked_sub(1)?))
        });
        let block = self.thread.len().checked_sub(1).and_then(|index| {
            let (_, message) = self.thread.get(index)?;
            Some(Place::Block(index, last(&message.content)?, ITSELF))
        });
        for place in [tool, system, block].into_iter().flatten() {
            if marks.iter().all(|mark| mark.place != place) {
                marks.push(CacheMark { place, is_wish: true, is_long: false });
            }
        }
    }

    fn set(&mut self, place: Place, mark: Option<Json>) {
        match place {
            Place::Tool(index) => {
                if let Some(tool) = self.tools.get_mut(index) {
                    set_in(&mut tool.extra, mark);
                }
            }
            Place::System(index, place) => {
                let message = self.system.get_mut(index).map(Message::make_mut);
                if let Some(block) = message.and_then(|parts| parts.content.get_mut(place)) {
                    set(block, mark);
                }
            }
            Place::Block(index, place, inner) => {
                let message = self.thread.get_mut(index).map(|(_, message)| message.make_mut());
                let Some(block) = message.and_then(|parts| parts.content.get_mut(place)) else {
                    return;
                };
                match block {
                    ContentBlock::ToolResult(result) if inner != ITSELF => {
                        result
                            .content
                            .get_mut(inner)
                            .into_iter()
                            .for_each(|it| set(it, mark.clone()));
                    }
                    block => set(block, mark),
                }
            }
        }
    }
}

/// The mark of a block, if it has one.
fn mark(block: &ContentBlock) -> Option<Json> {
    if let ContentBlock::Opaque(opaque) = block {
        let mark = Fields::parse(opaque.value.as_str())?.take_json(MARK);
        return mark.filter(|mark| *mark != Json::default());
    }
    extra(block).and_then(mark_of)
}

fn mark_of(extra: &Extra) -> Option<Json> {
    extra.get(NAME, MARK).filter(|mark| **mark != Json::default()).cloned()
}

/// Whether what is marked stays in the cache for an hour.
fn is_long(mark: &Json) -> bool {
    let ttl = Fields::parse(mark.as_str()).and_then(|mut fields| fields.take_text("ttl"));
    ttl.is_some_and(|ttl| ttl == HOUR)
}

fn set(block: &mut ContentBlock, mark: Option<Json>) {
    if let ContentBlock::Opaque(opaque) = block {
        let mut object = reopen(Some(&opaque.value));
        object.remove(MARK);
        object.set_some(MARK, mark);
        opaque.value = Tree::from(object).into_json();
    } else if let Some(extra) = extra_mut(block) {
        set_in(extra, mark);
    }
}

fn set_in(extra: &mut Extra, mark: Option<Json>) {
    let others = extra.of(NAME).filter(|(key, _)| *key != MARK);
    let others = others.map(|(key, json)| (key, json.clone()));
    *extra = Extra::new(NAME, others.chain(mark.map(|mark| (MARK, mark))));
}
