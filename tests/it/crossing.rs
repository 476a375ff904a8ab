//! Threads that move from one dialect to another. The content that arrives is legal and readable;
//! the lost content is listed in the adjustments; content that only its provider understands is
//! sent to no other; and a second move changes nothing.

use proptest::prelude::*;
use serde_json::json;
use threadfold::{
    Message, Request, legality,
    message::ToolSpec,
    wire::{Adjustment, Change, DecodeOptions, Dialect, EncodeOptions, Encoded},
};
use threadfold_testing::generate::{junk_thread, legal_thread};

use crate::support::{
    pieces::{Held, Kind, Piece, marked, pieces as pieces_of},
    recorded::{self, FORMATS},
    tries::tries,
};

fn codecs() -> impl Iterator<Item = Dialect> {
    FORMATS.into_iter().map(|(_, codec)| codec)
}

fn encode(codec: Dialect, request: &Request) -> Encoded {
    codec.encode(request, &EncodeOptions::default())
}

fn decode(codec: Dialect, body: &Encoded) -> Request {
    let read = codec.decode_slice(body.body.as_str().as_bytes(), &DecodeOptions::default());
    read.unwrap_or_else(|error| panic!("{}: {error}: {}", codec.name(), body.body))
}

fn request(thread: Vec<Message>) -> Request {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tools = vec![ToolSpec::new("read_file", "Reads a file.", schema)];
    Request { tools: tools.into(), ..Request::new(marked(thread)) }.with_system("Be kind.")
}

/// Whether a change can be why pieces of these kinds do not arrive.
fn explains(change: &Change, missing: &[Piece]) -> bool {
    let all = |kinds: &[Kind]| missing.iter().all(|piece| kinds.contains(&piece.kind));
    match change {
        Change::BlockDropped { .. } | Change::Repaired { .. } => true,
        Change::ReasoningDropped { .. } => all(&[Kind::Thought, Kind::Sealed]),
        Change::NameRewritten { .. } => all(&[Kind::Name]),
        _ => false,
    }
}

/// Checks that the body holds everything in the request, or that the loss is listed.
fn check_losses(codec: Dialect, request: &Request, sent: &Encoded) {
    let held = Held::of(&sent.body);
    for (index, message) in request.messages.iter().enumerate() {
        let of_it = |adjustment: &&Adjustment| adjustment.message == Some(index);
        let mut listed: Vec<&Change> =
            sent.adjustments.iter().filter(of_it).map(|adjustment| &adjustment.change).collect();
        // Changes that explain the fewest losses are matched first, so that every one is used.
        listed.sort_by_key(|change| {
            matches!(change, Change::BlockDropped { .. } | Change::Repaired { .. })
        });
        for block in &message.content {
            let mut missing = pieces_of(block);
            missing.retain(|piece| !held.has(piece));
            if missing.is_empty() {
                continue;
            }
            let reason = listed.iter().position(|change| explains(change, &missing));
            let Some(reason) = reason else {
                panic!(
                    "-> {}: message {index} lost {missing:?} of {block:?}, and says {:?}\n{}",
                    codec.name(),
                    sent.adjustments,
                    sent.body
                );
            };
            listed.remove(reason);
        }
    }
}

/// Checks that sealed content and reasoning are in no body of another provider.
fn check_sealed(request: &Request, sent: &Encoded) {
    let held = Held::of(&sent.body);
    for block in request.messages.iter().flat_map(|message| &message.content) {
        let sealed = |piece: &Piece| matches!(piece.kind, Kind::Sealed | Kind::Thought);
        let crossed = pieces_of(block).into_iter().find(|piece| sealed(piece) && held.has(piece));
        assert!(crossed.is_none(), "{crossed:?} crossed: {}", sent.body);
    }
}

/// Sends a body to another dialect and back.
fn journey(from: Dialect, to: Dialect, home: &Encoded) -> Encoded {
    let read = decode(from, home);
    let there = encode(to, &read);
    check_losses(to, &read, &there);
    check_sealed(&read, &there);
    let arrived = decode(to, &there);
    assert_eq!(legality::violations(&arrived.messages), [], "{}: {}", to.name(), there.body);
    let again = encode(to, &arrived);
    assert_eq!(again.adjustments, [], "{} -> {}: {}", from.name(), to.name(), there.body);
    assert_eq!(again.body.to_value().unwrap(), there.body.to_value().unwrap());
    encode(from, &arrived)
}

/// Whether a change may leave nothing of a message.
fn drops(change: &Change) -> bool {
    matches!(change, Change::BlockDropped { .. } | Change::ReasoningDropped { .. })
}

/// Sends a request from a dialect to each other one and back, until that loses nothing.
fn travel(request: &Request) {
    for from in codecs() {
        let home = encode(from, request);
        check_losses(from, request, &home);
        let own = encode(from, &decode(from, &home));
        assert_eq!(own.adjustments, [], "{}: {}", from.name(), home.body);
        assert_eq!(own.body.to_value().unwrap(), home.body.to_value().unwrap());
        for to in codecs().filter(|to| to.name() != from.name()) {
            let mut back = journey(from, to, &home);
            if back.adjustments.iter().any(|it| drops(&it.change)) {
                // The neighbours of an omitted message may merge in the next crossing.
                back = journey(from, to, &back);
            }
            let again = journey(from, to, &back);
            assert_eq!(
                again.body.to_value().unwrap(),
                back.body.to_value().unwrap(),
                "{} -> {} -> {0}",
                from.name(),
                to.name()
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..tries(24) })]

    #[test]
    fn legal_threads_cross_dialects_without_unlisted_losses(thread in legal_thread(0..8)) {
        travel(&request(thread));
    }

    #[test]
    fn junk_crosses_dialects_without_unlisted_losses(thread in junk_thread(0..6)) {
        travel(&request(thread));
    }
}

#[test]
fn real_threads_cross_dialects_without_unlisted_losses() {
    for (name, _, request) in recorded::requests() {
        println!("{name}");
        travel(&request);
    }
}
