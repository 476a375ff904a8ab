//! Properties of every thread, on generated legal threads and on junk.
//!
//! `model.rs` is a second, slow and simple implementation of compaction, with which the others
//! compare.

mod anybody;
mod model;
mod plans;
mod repairs;
mod stored;
mod strategies;

use std::ops::Range;

use proptest::{collection::vec, prelude::*, sample::Index};
use threadfold::{
    CheckpointId, ContentBlock, Message, Replacement, Role,
    compact::{CompactOptions, Position},
    message::Summary,
};

/// Positions in a thread that is not known yet, in pairs, with the text to insert between them.
type Picks = Vec<(Index, Index, String)>;

fn picks() -> impl Strategy<Value = Picks> {
    let summary = prop_oneof![3 => Just("It went well."), 1 => Just(""), 1 => Just(" \n")];
    vec((any::<Index>(), any::<Index>(), summary.prop_map(str::to_owned)), 1..4)
}

fn options() -> impl Strategy<Value = CompactOptions> {
    any::<[bool; 3]>().prop_map(|[reminders, thinking, keep_open_loop]| CompactOptions {
        strip_reminders: reminders,
        strip_thinking: thinking,
        keep_open_loop,
        compaction: None,
    })
}

/// The positions after the checkpoints of a thread, in order.
fn checkpoints(thread: &[Message]) -> Vec<(CheckpointId, Position)> {
    let mut found = Vec::new();
    for (message, candidate) in thread.iter().enumerate() {
        for (block, content) in candidate.content.iter().enumerate() {
            if let ContentBlock::Checkpoint(checkpoint) = content {
                found.push((checkpoint.id, Position { message, block: block + 1 }));
            }
        }
    }
    found
}

/// Ranges between checkpoints, each with its positions. They do not overlap; some adjoin.
fn ranges(thread: &[Message], picks: &Picks) -> Vec<(Replacement, Range<Position>)> {
    let markers = checkpoints(thread);
    let last = markers.len() + 1;
    let place = |number: usize| match number {
        0 => (None, Position::before(0)),
        end if end == last => (None, Position::before(thread.len())),
        marker => (Some(markers[marker - 1].0), markers[marker - 1].1),
    };
    let pairs = picks.iter().map(|(a, b, text)| (a.index(last + 1), b.index(last + 1), text));
    let mut pairs: Vec<_> = pairs.map(|(a, b, text)| (a.min(b), a.max(b), text)).collect();
    pairs.sort();
    let mut next = 0;
    let mut ranges = Vec::new();
    for (from, to, text) in pairs {
        let from = from.max(next);
        if from < to {
            next = to;
            let ((from, start), (to, end)) = (place(from), place(to));
            let mut replacement = Replacement::new(text.as_str());
            (replacement.from, replacement.to) = (from, to);
            ranges.push((replacement, start..end));
        }
    }
    ranges
}

fn replacements(thread: &[Message], picks: &Picks) -> Vec<Replacement> {
    ranges(thread, picks).into_iter().map(|(replacement, _)| replacement).collect()
}

/// Edits between any two blocks that do not overlap; each inserts a summary of any role, a message
/// of the thread, or nothing.
fn edits(thread: &[Message], picks: &Picks) -> Vec<(Range<Position>, Vec<Message>)> {
    let mut places: Vec<Position> = vec![Position::before(thread.len())];
    for (message, content) in thread.iter().enumerate() {
        places.extend((0..=content.content.len()).map(|block| Position { message, block }));
    }
    places.sort();
    let mut pairs: Vec<_> = picks
        .iter()
        .map(|(a, b, text)| (a.index(places.len()), b.index(places.len().min(12)), text))
        .collect();
    pairs.sort();
    let mut next = 0;
    let mut edits = Vec::new();
    for (from, length, text) in pairs {
        let from = from.max(next);
        let to = (from + length).min(places.len() - 1);
        next = to;
        let role = [Role::User, Role::Assistant, Role::System][(from + length) % 3];
        let insert = match text.trim() {
            "" => Vec::new(),
            text => vec![Message::summary(role, Summary::new(text))],
        };
        edits.push((places[from]..places[to], insert));
    }
    edits
}
