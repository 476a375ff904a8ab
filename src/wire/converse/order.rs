//! Who speaks first, who speaks last, what comes first in a turn, and what may stand together.

use super::{
    blocks::CACHE_POINT,
    draft::{Block, Draft},
    target::Target,
};
use crate::{
    message::Role,
    wire::{
        contract::Change,
        notes::{BEGIN, CONTINUE, Notes},
    },
};

/// What stands beside documents that came alone.
const BESIDE_DOCUMENTS: &str = "See the documents.";

/// What decides about the end of a body.
#[derive(Debug)]
pub(super) struct Ending {
    /// The index behind the last message of the request.
    pub(super) at: usize,
    /// The model may be given the beginning of its answer.
    pub(super) prefill: bool,
    /// The beginning of an answer may hold no reasoning, because thinking is off.
    pub(super) thoughtless: bool,
}

/// Puts the results of each user turn before everything else in it. A cache point goes where the
/// block before it goes.
pub(super) fn results_first(drafts: &mut [Draft], notes: &mut Notes) {
    for draft in drafts.iter_mut().filter(|draft| draft.role == Role::User) {
        let lead = |block: &Block| block.is_result() || block.has(CACHE_POINT);
        let first_other = draft.blocks.iter().position(|block| !lead(block));
        let Some(first) = first_other else { continue };
        if !draft.blocks.iter().skip(first).any(Block::is_result) {
            continue;
        }
        let mut results: Vec<Block> = Vec::new();
        let mut others: Vec<Block> = Vec::new();
        let mut to_results = true;
        for (index, block) in std::mem::take(&mut draft.blocks).into_iter().enumerate() {
            if !block.has(CACHE_POINT) {
                to_results = block.is_result();
            }
            if index > first && block.is_result() {
                let reason = "results come first in the turn that answers".into();
                notes.turn_to(block.at);
                notes.note(Change::BlockMoved { kind: block.kind.into(), reason });
            }
            if to_results { results.push(block) } else { others.push(block) }
        }
        results.extend(others);
        draft.blocks = results;
    }
}

/// Puts what may not stand beside results into the last of them.
pub(super) fn only_results(drafts: &mut [Draft], target: &Target, notes: &mut Notes) {
    const KEYS: [&str; 5] = ["text", "image", "document", "video", "searchResult"];
    let may_stay = |block: &Block| {
        let mut keys = KEYS.into_iter().filter(|key| block.has(key));
        keys.all(|key| target.accepts_beside_results(key))
    };
    for draft in drafts.iter_mut().filter(|draft| draft.role == Role::User) {
        let takes = draft.blocks.iter_mut().any(|block| block.result_content().is_some());
        if !takes || draft.blocks.iter().all(may_stay) {
            continue;
        }
        let (mut stay, moved): (Vec<Block>, Vec<Block>) =
            std::mem::take(&mut draft.blocks).into_iter().partition(may_stay);
        if let Some(items) = stay.iter_mut().rev().find_map(Block::result_content) {
            for block in moved {
                let reason = "this model takes nothing of the kind beside results".into();
                notes.turn_to(block.at);
                notes.note(Change::BlockMoved { kind: block.kind.into(), reason });
                items.push(block.body);
            }
        }
        draft.blocks = stay;
    }
}

/// Puts a text beside documents that have none: the provider demands one.
pub(super) fn text_beside_documents(drafts: &mut [Draft], notes: &mut Notes) {
    for draft in drafts.iter_mut() {
        let has = |key| draft.blocks.iter().any(|block| block.has(key));
        if has("document") && !has("text") {
            draft.at_work(notes);
            notes.note(Change::TextInserted);
            draft.blocks.push(Block::text(draft.at, BESIDE_DOCUMENTS));
        }
    }
}

/// Puts a short user message before a thread that may not begin as it does.
pub(super) fn begin_well(drafts: &mut Vec<Draft>, target: &Target, end: usize, notes: &mut Notes) {
    let first = drafts.iter().find(|draft| draft.role != Role::System);
    let (at, text) = match first {
        Some(draft) if draft.role == Role::User || target.may_begin_with_answer() => return,
        Some(draft) => (draft.at, BEGIN),
        None => (end, CONTINUE),
    };
    notes.turn_to(at);
    notes.note(Change::UserInserted);
    drafts.insert(0, Draft::user(at, text));
}

/// Ends the thread as the model demands it: with a user message, or with an answer to go on with.
pub(super) fn end_well(drafts: &mut Vec<Draft>, ending: &Ending, notes: &mut Notes) {
    if ending.prefill && ending.thoughtless {
        drop_last_reasoning(drafts, notes);
    }
    let last = drafts.iter_mut().rev().find(|draft| draft.role != Role::System);
    let Some(last) = last.filter(|draft| draft.role == Role::Assistant) else { return };
    if ending.prefill {
        trim_end(last, notes);
    } else {
        notes.turn_to(ending.at);
        notes.note(Change::UserInserted);
        drafts.push(Draft::user(ending.at, CONTINUE));
    }
}

fn drop_last_reasoning(drafts: &mut Vec<Draft>, notes: &mut Notes) {
    let Some(last) = drafts.last_mut().filter(|draft| draft.role == Role::Assistant) else {
        return;
    };
    last.blocks.retain(|block| {
        if block.is_reasoning() {
            let reason = "thinking is off and the answer is the last message".into();
            notes.turn_to(block.at);
            notes.note(Change::ReasoningDropped { reason });
        }
        !block.is_reasoning()
    });
    // Points behind nothing go too, and must not go last: the thread would be empty.
    if last.blocks.iter().all(|block| block.has(CACHE_POINT)) && !last.blocks.is_empty() {
        last.at_work(notes);
        notes.note(Change::CacheMarksDropped { count: last.blocks.len() });
        last.blocks.clear();
    }
    drafts.retain(|draft| !draft.blocks.is_empty());
}

fn trim_end(draft: &mut Draft, notes: &mut Notes) {
    let at = draft.at;
    let Some(text) = draft.blocks.last_mut().and_then(Block::text_mut) else { return };
    let trimmed = text.trim_end();
    if trimmed.len() < text.len() {
        *text = trimmed.into();
        notes.turn_to(at);
        notes.drop_block("white_space", "an answer to go on with may not end in it");
    }
}

/// Whether the thread ends in results of a tool loop that has no reasoning. Claude demands that
/// such a loop begins with some. Where reasoning stands in it, but not at its beginning, the
/// request is left as it is: without thinking that reasoning would be refused.
pub(super) fn loop_has_no_reasoning(drafts: &[Draft]) -> bool {
    let has_result = |draft: &&Draft| draft.blocks.iter().any(Block::is_result);
    let mut turns = drafts.iter().filter(|draft| draft.role != Role::System).rev();
    if !turns.next().as_ref().is_some_and(has_result) {
        return false;
    }
    let is_loop = |draft: &&Draft| draft.role == Role::Assistant || has_result(draft);
    let mut answers = turns.take_while(is_loop).peekable();
    answers.peek().is_some() && !answers.any(|draft| draft.blocks.iter().any(Block::is_reasoning))
}
