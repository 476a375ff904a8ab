//! Answers that arrive in pieces: `cargo +nightly fuzz run stream`.

#![no_main]

use threadfold_testing::shared::fuzz::stream;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stream::check(bytes));
