//! Cache points: marks of their own behind what is to be cached.
//!
//! Where they stand in a body they are kept. None may come first in a message, behind a document,
//! a video or reasoning, or behind another one, and there may be four in a body.

use super::{
    blocks::CACHE_POINT,
    draft::{Block, Draft},
    target::Target,
};
use crate::{
    message::{CacheMarks, Role},
    wire::{
        contract::Change,
        fields::Fields,
        notes::Notes,
        tree::{Object, Tree},
    },
};

/// The parts of a body that can hold cache points, in the order in which they are cached.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) tools: &'a mut Vec<Tree>,
    pub(super) system: &'a mut Vec<Tree>,
    pub(super) drafts: &'a mut Vec<Draft>,
}

/// How many a body may hold.
const MAX: usize = 4;
/// The longer of the two lives of a cache point; without one it lives five minutes.
const HOUR: &str = "1h";

impl Parts<'_> {
    /// Places cache points if asked to, and takes out what may not be there.
    pub(super) fn mark(mut self, marks: CacheMarks, target: &Target, notes: &mut Notes) {
        self.tidy(notes);
        match marks {
            CacheMarks::Off => {}
            CacheMarks::Auto => self.place(target),
        }
        let excess = self.count().saturating_sub(MAX);
        if excess > 0 {
            self.drop_earliest(excess);
            notes.turn_to(None);
            notes.note(Change::CacheMarksDropped { count: excess });
        }
        self.lengthen_placed();
    }

    /// Takes out the points that stand where none may.
    fn tidy(&mut self, notes: &mut Notes) {
        notes.turn_to(None);
        for list in [&mut *self.tools, &mut *self.system] {
            let before = list.len();
            let mut last_takes = false;
            list.retain(|tree| {
                let stays = !is_point(tree) || last_takes;
                last_takes = !is_point(tree);
                stays
            });
            note_dropped(before - list.len(), notes);
        }
        for draft in self.drafts.iter_mut() {
            let before = draft.blocks.len();
            let mut last_takes = false;
            draft.blocks.retain(|block| {
                let stays = !block.has(CACHE_POINT) || last_takes;
                last_takes = takes_point(block);
                stays
            });
            draft.at_work(notes);
            note_dropped(before - draft.blocks.len(), notes);
        }
        self.drafts.retain(|draft| !draft.blocks.is_empty());
    }

    /// Puts a point behind the tools, the system prompt and the last message of the user.
    fn place(&mut self, target: &Target) {
        let (thread, tools) = target.caches();
        if tools && self.tools.last().is_some_and(|last| !is_point(last)) {
            self.tools.push(point());
        }
        if thread && self.system.last().is_some_and(|last| !is_point(last)) {
            self.system.push(point());
        }
        let last = self.drafts.iter_mut().rev().find(|draft| draft.role == Role::User);
        let Some(draft) = last.filter(|_| thread) else { return };
        let Some(index) = draft.blocks.iter().rposition(takes_point) else { return };
        if draft.blocks.get(index + 1).is_none_or(|next| !next.has(CACHE_POINT)) {
            draft
                .blocks
                .insert(index + 1, Block { at: draft.at, kind: "cache_point", body: point() });
        }
    }

    fn count(&mut self) -> usize {
        let mut count = 0;
        self.each(&mut |_| {
            count += 1;
            true
        });
        count
    }

    /// Takes the earliest points out. Those that were just placed are asked for, and stay: there
    /// are fewer of them than may be.
    fn drop_earliest(&mut self, mut excess: usize) {
        self.each(&mut |tree| {
            let goes = excess > 0 && !is_placed(tree);
            excess -= usize::from(goes);
            !goes
        });
    }

    /// Gives points that were just placed the longest life of those behind them: the provider
    /// refuses one that lives longer than one before it.
    fn lengthen_placed(&mut self) {
        let (mut index, mut last_hour) = (0_usize, None);
        self.each(&mut |tree| {
            if lives_an_hour(tree) {
                last_hour = Some(index);
            }
            index += 1;
            true
        });
        let mut index = 0_usize;
        self.each(&mut |tree| {
            if last_hour.is_some_and(|last| index < last)
                && is_placed(tree)
                && let Tree::Object(outer) = tree
                && let Some(Tree::Object(point)) = outer.get_mut(CACHE_POINT)
            {
                point.set("ttl", HOUR);
            }
            index += 1;
            true
        });
    }

    /// Visits the points in order; those for which the visit says no are taken out.
    fn each(&mut self, visit: &mut impl FnMut(&mut Tree) -> bool) {
        for list in [&mut *self.tools, &mut *self.system] {
            list.retain_mut(|tree| !is_point(tree) || visit(tree));
        }
        for draft in self.drafts.iter_mut() {
            draft.blocks.retain_mut(|block| !is_point(&block.body) || visit(&mut block.body));
        }
    }
}

fn note_dropped(count: usize, notes: &mut Notes) {
    if count > 0 {
        notes.note(Change::CacheMarksDropped { count });
    }
}

fn point() -> Tree {
    Object::default().with(CACHE_POINT, Object::default().with("type", "default")).into()
}

fn is_point(tree: &Tree) -> bool {
    matches!(tree, Tree::Object(object) if object.get(CACHE_POINT).is_some())
}

/// Whether a point was placed here, not read.
fn is_placed(tree: &Tree) -> bool {
    let Tree::Object(outer) = tree else { return false };
    matches!(outer.get(CACHE_POINT), Some(Tree::Object(_)))
}

/// Whether what stands before the point stays in the cache for an hour.
fn lives_an_hour(tree: &Tree) -> bool {
    let Tree::Object(outer) = tree else { return false };
    let Some(Tree::Raw(point)) = outer.get(CACHE_POINT) else { return false };
    let ttl = Fields::parse(point.as_str()).and_then(|mut fields| fields.take_text("ttl"));
    ttl.is_some_and(|ttl| ttl == HOUR)
}

/// Whether a point may stand behind a block.
fn takes_point(block: &Block) -> bool {
    !["document", "video", CACHE_POINT].into_iter().any(|key| block.has(key))
        && !block.is_reasoning()
}
