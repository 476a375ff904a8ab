//! Request bodies and stored plans: `cargo +nightly fuzz run wire_decode`.

#![no_main]

use threadfold_testing::shared::fuzz::wire_decode;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wire_decode::check(bytes));
