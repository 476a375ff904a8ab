//! Answers that arrive in pieces: `cargo +nightly fuzz run stream`.

#![no_main]

#[path = "../../tests/it/fuzz_cases/stream.rs"]
mod stream;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stream::check(stream::CODECS, bytes));
