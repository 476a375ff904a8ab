//! Reasoning that is bound to what came before it.
//!
//! The prefix of a piece of reasoning is everything before it that is no reasoning: head, messages,
//! results. It is kept as one hash. A compaction that the vendor made stands for the messages that it
//! replaced, so the prefix of what follows it is the same as if they were still there.

use std::collections::HashMap;

use super::{
    numbers::chain,
    piece::{Kind, Piece, Place},
};

/// What the vendor remembers, or has written into signatures.
#[derive(Clone, Debug, Default)]
pub(super) struct Bound {
    reasoning: HashMap<String, Made>,
    compactions: HashMap<String, Covers>,
    /// The reasoning that led to an item, by the id of the item.
    led: HashMap<String, Vec<String>>,
    /// The pieces of reasoning of each answer, by its number.
    sizes: Vec<usize>,
}

/// A piece of reasoning when it was made.
#[derive(Clone, Debug)]
pub(super) struct Made {
    prefix: u64,
    /// The reasoning before it.
    before: Option<String>,
    pub(super) model: String,
    /// The hash of its content.
    pub(super) content: u64,
    /// The answer that it is a part of, and its place there.
    pub(super) reply: usize,
    pub(super) place: usize,
}

/// What a compaction stands for.
#[derive(Clone, Debug)]
struct Covers {
    end: End,
    /// The model binds reasoning.
    by_binding_model: bool,
}

/// The end of a prompt.
#[derive(Clone, Debug)]
pub(super) struct End {
    head: u64,
    prefix: u64,
    last: Place,
    before: Option<String>,
}

/// Why a piece of reasoning is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoidReason {
    /// What comes before it differs from what came before it when it was made.
    Prefix,
    /// Another model made it.
    Model,
}

impl VoidReason {
    /// The word of a vendor for it.
    pub(super) fn word(self, prefix: &'static str, model: &'static str) -> &'static str {
        match self {
            Self::Prefix => prefix,
            Self::Model => model,
        }
    }
}

/// How strictly reasoning is checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strictness {
    /// Its prefix must be unchanged.
    pub(super) prefix: bool,
    /// No other reasoning between two pieces may be missing.
    pub(super) gaps: bool,
    /// The message after a compaction must be of another role than the last that it replaced.
    pub(super) roles: bool,
}

/// What a check of a prompt found.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    /// The pieces of reasoning that are void, by their number in the prompt.
    pub(super) void: Vec<(usize, VoidReason)>,
    /// What is about to be answered.
    pub(super) end: End,
}

impl Bound {
    /// The reasoning with this signature or id.
    pub(super) fn made(&self, key: &str) -> Option<&Made> {
        self.reasoning.get(key)
    }

    pub(super) fn is_compaction(&self, key: &str) -> bool {
        self.compactions.contains_key(key)
    }

    /// The number of pieces of reasoning in an answer.
    pub(super) fn pieces_of(&self, reply: usize) -> usize {
        self.sizes.get(reply).copied().unwrap_or(0)
    }

    /// Checks a prompt for a model that can read the reasoning of some others.
    pub(super) fn check(
        &self,
        pieces: &[Piece],
        strictness: Strictness,
        reads: impl Fn(&str) -> bool,
    ) -> Checked {
        let mut void: Vec<(usize, VoidReason)> = Vec::new();
        let mut end = End { head: 0, prefix: 0, last: Place::Head, before: None };
        for (index, piece) in pieces.iter().enumerate() {
            match &piece.kind {
                Kind::Aside => continue,
                Kind::Content => {
                    end.prefix = chain(end.prefix, piece.hash);
                    if piece.place == Place::Head {
                        end.head = end.prefix;
                    }
                }
                Kind::Compaction(key) => {
                    let next = pieces.get(index + 1).map(|piece| piece.place);
                    let covered = self.compactions.get(key).filter(|covers| {
                        let joins = next == Some(covers.end.last) || next == Some(Place::System);
                        covers.by_binding_model
                            && covers.end.head == end.head
                            && !(strictness.roles && joins)
                    });
                    match covered {
                        Some(covers) => end = covers.end.clone(),
                        None => end.prefix = chain(end.prefix, piece.hash),
                    }
                    // What it replaced is not sent, so nothing of it can be missing.
                    end.before = None;
                }
                Kind::Reasoning(key) => {
                    let reason = self.reasoning.get(key).and_then(|made| {
                        let is_changed = made.prefix != end.prefix
                            || (strictness.gaps
                                && end.before.is_some()
                                && end.before != made.before);
                        if !reads(&made.model) {
                            return Some(VoidReason::Model);
                        }
                        (strictness.prefix && is_changed).then_some(VoidReason::Prefix)
                    });
                    // The rest of a run goes with its first.
                    let run = void.last().filter(|(last, _)| Some(*last) == index.checked_sub(1));
                    void.extend(reason.or(run.map(|(_, reason)| *reason)).map(|why| (index, why)));
                    end.before = Some(key.clone());
                }
            }
            end.last = piece.place;
        }
        Checked { void, end }
    }

    /// The number of the answer that is made now.
    pub(super) fn begin_reply(&mut self) -> usize {
        self.sizes.push(0);
        self.sizes.len() - 1
    }

    /// Remembers a piece of reasoning by its names. `end` is what stands before it, and stands for
    /// what comes after it.
    pub(super) fn remember(
        &mut self,
        names: &[String],
        end: &mut End,
        (model, content): (&str, u64),
        reply: usize,
    ) {
        let Some(size) = self.sizes.get_mut(reply) else { return };
        let place = *size;
        *size += 1;
        let made = Made {
            prefix: end.prefix,
            before: end.before.clone(),
            model: model.to_owned(),
            content,
            reply,
            place,
        };
        for name in names {
            self.reasoning.insert(name.clone(), made.clone());
        }
        end.before = names.first().cloned();
    }

    /// Remembers that an item with this id came from reasoning with these names.
    pub(super) fn remember_led(&mut self, id: &str, names: &[String]) {
        self.led.insert(id.to_owned(), names.to_vec());
    }

    /// The names of the reasoning that led to an item.
    pub(super) fn led_to(&self, id: &str) -> Option<&[String]> {
        self.led.get(id).map(Vec::as_slice)
    }

    pub(super) fn remember_compaction(&mut self, key: &str, end: End, by_binding_model: bool) {
        self.compactions.insert(key.to_owned(), Covers { end, by_binding_model });
    }
}

impl End {
    /// The end after a further piece that is no reasoning.
    pub(super) fn add(&mut self, piece: &Piece) {
        self.prefix = chain(self.prefix, piece.hash);
        self.last = piece.place;
    }
}
