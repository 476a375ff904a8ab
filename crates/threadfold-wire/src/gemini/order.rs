//! Who speaks first and last, what stands in one content, and the order of results.

use super::draft::{Draft, Written};
use crate::{
    contract::Change,
    notes::{BEGIN, CONTINUE, Notes},
};
use threadfold_core::message::{Role, Text};

/// Arranges the contents of each turn: those that came so stay, of others the answers are merged,
/// and the results go before everything else, in a content of their own.
pub(super) fn arrange(drafts: Vec<Draft>, notes: &mut Notes) -> Vec<Draft> {
    let mut turns: Vec<Vec<Draft>> = Vec::new();
    for draft in drafts.into_iter().filter(|draft| !draft.parts.is_empty()) {
        match turns.last_mut().filter(|turn| turn.iter().any(|last| last.role == draft.role)) {
            Some(turn) => turn.push(draft),
            None => turns.push(vec![draft]),
        }
    }
    let mut arranged = Vec::new();
    for turn in turns {
        let answers = turn.iter().all(|draft| draft.role == Role::Assistant);
        arranged.extend(if answers { answer(turn, notes) } else { user(turn, notes) });
    }
    arranged
}

/// Puts a short user message before a thread that does not begin with one, and behind one that
/// ends with an answer, unless that may come last.
pub(super) fn begin_and_end(
    drafts: &mut Vec<Draft>,
    end: usize,
    answer_may_end: bool,
    notes: &mut Notes,
) {
    let is_answer = |draft: &Draft| draft.role == Role::Assistant;
    if let Some(first) = drafts.first().filter(|draft| is_answer(draft)).map(|draft| draft.at) {
        notes.turn_to(first);
        notes.note(Change::UserInserted);
        drafts.insert(0, Draft::user(first, BEGIN));
    }
    if drafts.last().is_none_or(|last| is_answer(last) && !answer_may_end) {
        notes.turn_to(end);
        notes.note(Change::UserInserted);
        drafts.push(Draft::user(end, CONTINUE));
    }
}

fn answer(turn: Vec<Draft>, notes: &mut Notes) -> Vec<Draft> {
    let mut merged: Vec<Draft> = Vec::new();
    for draft in turn {
        match merged.last_mut().filter(|_| !draft.beside) {
            Some(last) => merge(last, draft, notes),
            None => merged.push(draft),
        }
    }
    merged
}

fn user(turn: Vec<Draft>, notes: &mut Notes) -> Vec<Draft> {
    let mut made = Turn::default();
    for draft in turn {
        notes.turn_to(draft.at);
        if draft.placed {
            made.others = made.others || !draft.is_results();
            made.contents.push(draft);
            made.heads += usize::from(!made.others);
        } else {
            made.add(draft, notes);
        }
    }
    sort_results(&mut made.contents, notes);
    made.contents
}

/// A user turn in the making.
#[derive(Default)]
struct Turn {
    contents: Vec<Draft>,
    /// How many of the contents, from the first, hold results only.
    heads: usize,
    /// Whether anything but a result has come.
    others: bool,
}

impl Turn {
    fn add(&mut self, mut draft: Draft, notes: &mut Notes) {
        let first_other = draft.parts.iter().position(|part| !part.is_result());
        let in_time = if self.others { 0 } else { first_other.unwrap_or(draft.parts.len()) };
        for part in draft.parts.iter().skip(in_time).filter(|part| part.is_result()) {
            let reason = "results come first in the turn that answers".into();
            notes.note(Change::BlockMoved { kind: part.kind.into(), reason });
        }
        let (results, others): (Vec<Written>, Vec<Written>) =
            std::mem::take(&mut draft.parts).into_iter().partition(Written::is_result);
        if results.is_empty() {
            draft.parts = others;
            return self.add_others(draft, notes);
        }
        let (at, role) = (draft.at, draft.role);
        draft.parts = results;
        self.add_results(draft, notes);
        if !others.is_empty() {
            self.add_others(Draft { parts: others, ..Draft::empty(at, role) }, notes);
        }
    }

    fn add_results(&mut self, draft: Draft, notes: &mut Notes) {
        let before = self.heads.checked_sub(1).and_then(|last| self.contents.get_mut(last));
        match before.filter(|before| !draft.beside && !before.placed) {
            Some(before) => merge(before, draft, notes),
            None => {
                self.contents.insert(self.heads, draft);
                self.heads += 1;
            }
        }
    }

    fn add_others(&mut self, draft: Draft, notes: &mut Notes) {
        let last = self.contents.last_mut().filter(|_| self.others);
        self.others = true;
        match last.filter(|last| !draft.beside && !last.placed) {
            Some(last) => merge(last, draft, notes),
            None => self.contents.push(draft),
        }
    }
}

/// Puts the parts of a content behind those of the one before it. The fields of the first stay.
fn merge(into: &mut Draft, draft: Draft, notes: &mut Notes) {
    notes.turn_to(draft.at);
    if into.at != draft.at {
        notes.note(Change::Merged);
    }
    let fields: Vec<Text> = draft.fields.into_iter().map(|(key, _)| Text::from(key)).collect();
    if !fields.is_empty() {
        notes.note(Change::FieldsDropped { codec: super::marks::CODEC.into(), fields });
    }
    into.parts.extend(draft.parts);
}

/// Puts the results that go by order in the order of their calls, if those of one function are not.
fn sort_results(turn: &mut [Draft], notes: &mut Notes) {
    let parts = turn.iter().flat_map(|draft| &draft.parts);
    let calls = parts.filter(|part| goes_by_order(part)).filter_map(|part| part.call.as_ref());
    let mut by_name: Vec<(Text, usize)> =
        calls.map(|call| (call.name.clone(), call.number)).collect();
    by_name.sort_by(|one, other| one.0.cmp(&other.0));
    if by_name.is_sorted() {
        return;
    }
    let mut results: Vec<Written> = Vec::new();
    let mut places = Vec::new();
    for (content, draft) in turn.iter_mut().enumerate() {
        let mut kept = Vec::with_capacity(draft.parts.len());
        for (place, part) in std::mem::take(&mut draft.parts).into_iter().enumerate() {
            if goes_by_order(&part) {
                notes.turn_to(draft.at);
                let reason = "results without ids stand in the order of their calls".into();
                notes.note(Change::BlockMoved { kind: part.kind.into(), reason });
                places.push((content, place));
                results.push(part);
            } else {
                kept.push(part);
            }
        }
        draft.parts = kept;
    }
    results.sort_by_key(|part| part.call.as_ref().map(|call| call.number));
    for ((content, place), result) in places.into_iter().zip(results) {
        if let Some(draft) = turn.get_mut(content) {
            let place = place.min(draft.parts.len());
            draft.parts.insert(place, result);
        }
    }
}

fn goes_by_order(part: &Written) -> bool {
    part.is_result() && part.call.as_ref().is_some_and(|call| call.unnamed)
}
