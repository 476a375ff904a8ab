//! Edit scripts over files: `cargo +nightly fuzz run edl`.

#![no_main]

#[path = "../../tests/it/fuzz_cases/edl.rs"]
mod edl;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edl::check(bytes));
