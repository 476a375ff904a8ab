//! Stored logs: `cargo +nightly fuzz run log_read`.

#![no_main]

#[path = "../../tests/it/fuzz_cases/log_read.rs"]
mod log_read;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| log_read::check(bytes));
