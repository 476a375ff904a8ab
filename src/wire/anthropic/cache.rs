//! Cache marks: at most four in a body, none on reasoning.

use super::draft::{Block, Draft};
use crate::{
    message::CacheMarks,
    wire::{
        contract::Change,
        fields::Fields,
        notes::Notes,
        tree::{Object, Tree},
    },
};

/// The parts of a body that can carry marks, in the order in which they are cached.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) tools: &'a mut [Tree],
    pub(super) system: &'a mut [Tree],
    pub(super) drafts: &'a mut [Draft],
}

/// How many marks a body may carry.
const MAX: usize = 4;
const MARK: &str = "cache_control";
/// The longer of the two lives of a mark; without one it lives five minutes.
const HOUR: &str = "1h";

impl Parts<'_> {
    /// Places marks if asked to, and takes out what may not be there.
    pub(super) fn mark(mut self, marks: CacheMarks, notes: &mut Notes) {
        self.clear_reasoning(notes);
        match marks {
            CacheMarks::Off => {}
            CacheMarks::Auto => self.place(),
        }
        let mut found: usize = 0;
        self.each(&mut |_| found += 1);
        let excess = found.saturating_sub(MAX);
        if excess > 0 {
            self.drop_earliest(excess);
            notes.turn_to(None);
            notes.note(Change::CacheMarksDropped { count: excess });
        }
        self.lengthen_placed();
    }

    /// Gives marks that were just placed the longest life of those behind them: the provider
    /// refuses a mark that lives longer than one before it.
    fn lengthen_placed(&mut self) {
        let mut last_hour = None;
        let mut count = 0_usize;
        self.each(&mut |object| {
            if lives_an_hour(object) {
                last_hour = Some(count);
            }
            count += 1;
        });
        let mut index = 0;
        self.each(&mut |object| {
            if last_hour.is_some_and(|last| index < last)
                && let Some(Tree::Object(mark)) = object.get_mut(MARK)
            {
                mark.set("ttl", HOUR);
            }
            index += 1;
        });
    }

    fn clear_reasoning(&mut self, notes: &mut Notes) {
        for draft in self.drafts.iter_mut() {
            let reasoning = draft.blocks.iter_mut().filter(|block| block.is_reasoning());
            let marked = reasoning.filter_map(|block| block.object_mut()?.remove(MARK)).count();
            if marked > 0 {
                draft.at_work(notes);
                notes.note(Change::CacheMarksDropped { count: marked });
            }
        }
    }

    /// Marks the last tool, the last block of the system prompt and the last block of the thread.
    fn place(&mut self) {
        let last_tool = self.tools.last_mut().and_then(object);
        let last_system = self.system.last_mut().and_then(object);
        let blocks = self.drafts.last_mut().into_iter().flat_map(|draft| &mut draft.blocks);
        let last_block = blocks.filter(|block| takes_mark(block)).last();
        let last_block = last_block.and_then(Block::object_mut);
        for object in [last_tool, last_system, last_block].into_iter().flatten() {
            if !has_mark(object) {
                object.set(MARK, Object::typed("ephemeral"));
            }
        }
    }

    /// Takes the earliest marks out. Those that were just placed are asked for, and stay: there are
    /// fewer of them than may be.
    fn drop_earliest(&mut self, mut excess: usize) {
        self.each(&mut |object| {
            let placed = matches!(object.get(MARK), Some(Tree::Object(_)));
            if excess > 0 && !placed {
                object.remove(MARK);
                excess -= 1;
            }
        });
    }

    fn each(&mut self, visit: &mut impl FnMut(&mut Object)) {
        for tree in self.tools.iter_mut().chain(self.system.iter_mut()) {
            each_within(tree, visit);
        }
        for block in self.drafts.iter_mut().flat_map(|draft| &mut draft.blocks) {
            each_within(&mut block.body, visit);
        }
    }
}

/// Whether what is marked stays in the cache for an hour.
fn lives_an_hour(object: &Object) -> bool {
    let Some(Tree::Raw(mark)) = object.get(MARK) else { return false };
    let ttl = Fields::parse(mark.as_str()).and_then(|mut fields| fields.take_text("ttl"));
    ttl.is_some_and(|ttl| ttl == HOUR)
}

/// Visits what is marked in a block: the blocks of its content first, then itself. Contents of
/// results are the only ones that are not raw, so this goes one level deep.
fn each_within(tree: &mut Tree, visit: &mut impl FnMut(&mut Object)) {
    let Some(object) = object(tree) else { return };
    if let Some(Tree::Array(items)) = object.get_mut("content") {
        for item in items.iter_mut().filter_map(self::object).filter(|item| has_mark(item)) {
            visit(item);
        }
    }
    if has_mark(object) {
        visit(object);
    }
}

fn object(tree: &mut Tree) -> Option<&mut Object> {
    if let Tree::Object(object) = tree { Some(object) } else { None }
}

fn has_mark(object: &Object) -> bool {
    match object.get(MARK) {
        None | Some(Tree::Null) => false,
        Some(Tree::Raw(json)) => json.as_str() != "null",
        Some(
            Tree::Bool(_)
            | Tree::Number(_)
            | Tree::Text(_)
            | Tree::Word(_)
            | Tree::Array(_)
            | Tree::Object(_),
        ) => true,
    }
}

fn takes_mark(block: &Block) -> bool {
    !block.is_reasoning() && !matches!(block.kind, "opaque")
}
