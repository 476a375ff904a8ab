//! Stored logs: `cargo +nightly fuzz run log_read`.

#![no_main]

use threadfold_testing::shared::fuzz::log_read;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| log_read::check(bytes));
