//! Threads, ranges and stored plans: `cargo +nightly fuzz run compact`.

#![no_main]

#[path = "../../tests/it/fuzz_cases/compact.rs"]
mod compact;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| compact::check(bytes));
