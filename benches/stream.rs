//! From the bytes of a streamed answer to the answer, in every dialect, for answers of 1,000,
//! 10,000 and 100,000 events with 20 bytes of text each.
//!
//! `cargo bench --bench stream` prints the table that `benches/README.md` explains, for each
//! dialect relative to parsing the data of each event to `serde_json::Value` and to a copy of the
//! bytes, which arrive in pieces of 1,400.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use threadfold::{
    Answer,
    wire::{Dialect, SseParser},
};
use yardstick::{
    Tables, is_test, memcpy_of, rounds, row, values,
    wire::{CODECS, data, stream},
};

/// About the size of a network packet.
const PACKET: usize = 1_400;

fn main() {
    let sizes: &[usize] = if is_test() { &[100] } else { &[1_000, 10_000, 100_000] };
    for codec in CODECS {
        let mut tables = Tables::default();
        sizes.iter().for_each(|events| measure(&mut tables, codec, *events));
    }
}

fn measure(tables: &mut Tables, codec: Dialect, events: usize) {
    let stream = stream(codec, events);
    let data = data(&stream);
    let turn = answer(codec, stream.as_bytes());
    assert!(turn.text().len() >= events * 19, "{}: all of the text", codec.name());
    let repetitions = (300_000 / events.max(1)).clamp(3, 50);
    let rows = rounds(repetitions, |repetitions| {
        vec![
            values(data.as_bytes(), repetitions),
            memcpy_of(stream.as_bytes(), repetitions),
            row("find the events", repetitions, || (), |()| events_of(stream.as_bytes())),
            row("build the answer", repetitions, || (), |()| answer(codec, stream.as_bytes())),
        ]
    });
    println!("{}", codec.name());
    tables.print("events", events, stream.len(), rows);
}

fn answer(codec: Dialect, stream: &[u8]) -> Answer {
    let (mut parser, mut builder) = (SseParser::default(), codec.answer_builder());
    for packet in stream.chunks(PACKET) {
        parser.push(packet);
        while let Some(event) = parser.next_event().expect("short events") {
            builder.handle(&event.0, &event.1).expect("an event of an answer");
        }
    }
    builder.finish().expect("a whole answer")
}

fn events_of(stream: &[u8]) -> usize {
    let (mut parser, mut events) = (SseParser::default(), 0);
    for packet in stream.chunks(PACKET) {
        parser.push(packet);
        while parser.next_event().expect("short events").is_some() {
            events += 1;
        }
    }
    events
}
