//! Who speaks first, who speaks last, and what comes first in a turn.

use super::draft::{Block, Draft};
use crate::{
    message::Role,
    wire::{
        contract::Change,
        notes::{BEGIN, CONTINUE, Notes},
        tree::Tree,
    },
};

/// What decides about the end of a body.
#[derive(Debug)]
pub(super) struct Ending {
    /// The index behind the last message of the request.
    pub(super) at: usize,
    /// The last answer goes back as it is: the provider paused it, or its calls stay open.
    pub(super) stays: bool,
    /// The model may be given the beginning of its answer.
    pub(super) prefill: bool,
    /// The beginning of an answer may hold no reasoning, because thinking is off.
    pub(super) thoughtless: bool,
}

/// Puts the results of each user turn before everything else in it.
pub(super) fn results_first(drafts: &mut Vec<Draft>, notes: &mut Notes) {
    for turn in drafts.chunk_by_mut(|left, right| left.role == right.role) {
        if turn.first().is_some_and(|draft| draft.role == Role::User) {
            lift_results(turn, notes);
        }
    }
    drafts.retain(|draft| !draft.blocks.is_empty());
}

fn lift_results(turn: &mut [Draft], notes: &mut Notes) {
    // The first block of the turn that is no result: late results go before it.
    let first_other = turn.iter().enumerate().find_map(|(index, draft)| {
        Some((index, draft.blocks.iter().position(|block| !block.is_result())?))
    });
    let Some((index, block)) = first_other else { return };
    let mut late = Vec::new();
    for (offset, draft) in turn.iter_mut().skip(index).enumerate() {
        let from = if offset == 0 { block } else { 0 };
        if !draft.blocks.iter().skip(from).any(Block::is_result) {
            continue;
        }
        let rest = draft.blocks.split_off(from);
        let (results, others): (Vec<Block>, Vec<Block>) =
            rest.into_iter().partition(Block::is_result);
        draft.blocks.extend(others);
        draft.at_work(notes);
        for result in &results {
            let reason = "results come first in the turn that answers".into();
            notes.note(Change::BlockMoved { kind: result.kind.into(), reason });
        }
        late.extend(results);
    }
    if let Some(draft) = turn.get_mut(index) {
        draft.blocks.splice(block..block, late);
    }
}

/// Puts a short user message before a thread that does not begin with one.
pub(super) fn begin_with_user(drafts: &mut Vec<Draft>, end: usize, notes: &mut Notes) {
    let first = drafts.iter().find(|draft| draft.role != Role::System);
    let (at, text) = match first {
        Some(draft) if draft.role == Role::User || begins_with_compaction(draft) => return,
        Some(draft) => (draft.at, BEGIN),
        None => (end, CONTINUE),
    };
    notes.turn_to(at);
    notes.note(Change::UserInserted);
    drafts.insert(0, Draft::user(at, text));
}

/// Whether the provider's own compaction opens the message: then it may come first.
fn begins_with_compaction(draft: &Draft) -> bool {
    let Some(Block { body: Tree::Object(object), .. }) = draft.blocks.first() else { return false };
    matches!(object.get("type"), Some(Tree::Raw(kind)) if kind.as_str() == "\"compaction\"")
}

/// Ends the thread as the model demands it: with a user message, or with an answer to go on with.
pub(super) fn end_well(drafts: &mut Vec<Draft>, ending: &Ending, notes: &mut Notes) {
    if ending.prefill && ending.thoughtless && !ending.stays {
        drop_last_reasoning(drafts, notes);
    }
    let last = drafts.iter_mut().rev().find(|draft| draft.role != Role::System);
    let Some(last) = last.filter(|draft| draft.role == Role::Assistant) else { return };
    if ending.stays {
        // It goes back as it came.
    } else if ending.prefill {
        trim_end(last, notes);
    } else {
        notes.turn_to(ending.at);
        notes.note(Change::UserInserted);
        drafts.push(Draft::user(ending.at, CONTINUE));
    }
}

fn drop_last_reasoning(drafts: &mut Vec<Draft>, notes: &mut Notes) {
    for draft in drafts.iter_mut().rev().take_while(|draft| draft.role == Role::Assistant) {
        draft.at_work(notes);
        draft.blocks.retain(|block| {
            if block.is_reasoning() {
                let reason = "thinking is off and the answer is the last message".into();
                notes.note(Change::ReasoningDropped { reason });
            }
            !block.is_reasoning()
        });
    }
    drafts.retain(|draft| !draft.blocks.is_empty());
}

fn trim_end(draft: &mut Draft, notes: &mut Notes) {
    let Some(object) = draft.blocks.last_mut().and_then(Block::object_mut) else { return };
    if object.get("type") != Some(&Tree::Word("text")) {
        return;
    }
    let Some(Tree::Text(text)) = object.get_mut("text") else { return };
    let trimmed = text.trim_end();
    if trimmed.len() < text.len() {
        *text = trimmed.into();
        draft.at_work(notes);
        notes.drop_block("white_space", "an answer to go on with may not end in it");
    }
}
