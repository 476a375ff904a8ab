//! Threads, ranges and stored plans: `cargo +nightly fuzz run compact`.

#![no_main]

use threadfold_testing::shared::fuzz::compact;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| compact::check(bytes));
