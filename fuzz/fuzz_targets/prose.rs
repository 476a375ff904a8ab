//! Language of any kind, through all that reads it: `cargo +nightly fuzz run prose`.

#![no_main]

#[path = "../../tests/it/fuzz_cases/prose.rs"]
mod prose;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| prose::check(bytes));
