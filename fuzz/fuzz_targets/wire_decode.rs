//! Request bodies and stored plans: `cargo +nightly fuzz run wire_decode`.

#![no_main]

#[path = "../../tests/it/fuzz_cases/wire_decode.rs"]
mod wire_decode;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wire_decode::check(wire_decode::CODECS, bytes));
