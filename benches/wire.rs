//! Reading and writing request bodies in every dialect, at 1,000, 10,000 and 100,000 messages.
//!
//! `cargo bench --bench wire` prints the table that `benches/README.md` explains, for each dialect
//! relative to parsing the same body to `serde_json::Value` and to a copy of it. The written
//! requests were read from a body of the same dialect, so nothing must be adjusted.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use threadfold::{
    Message,
    wire::{DecodeOptions, Dialect, EncodeOptions},
};
use yardstick::{
    Tables, is_test, memcpy_of, rounds, row, thread, values,
    wire::{CODECS, body},
};

fn main() {
    let sizes: &[usize] = if is_test() { &[100] } else { &[1_000, 10_000, 100_000] };
    let threads: Vec<Vec<Message>> = sizes.iter().map(|count| thread::thread(*count)).collect();
    for codec in CODECS {
        let mut tables = Tables::default();
        threads.iter().for_each(|messages| measure(&mut tables, codec, messages));
    }
}

fn measure(tables: &mut Tables, codec: Dialect, messages: &[Message]) {
    let body = body(codec, messages);
    let bytes = body.as_str().as_bytes();
    let (read, write) = (DecodeOptions::default(), EncodeOptions::default());
    let request = codec.decode_slice(bytes, &read).expect("what was written is read");
    let repetitions = (300_000 / messages.len().max(1)).clamp(3, 50);
    let rows = rounds(repetitions, |repetitions| {
        vec![
            values(bytes, repetitions),
            memcpy_of(bytes, repetitions),
            row("decode", repetitions, || (), |()| codec.decode_slice(bytes, &read)),
            row("encode", repetitions, || (), |()| codec.encode(&request, &write)),
        ]
    });
    println!("{}", codec.name());
    tables.print("messages, as a body", messages.len(), bytes.len(), rows);
}
