//! Edit scripts over files: `cargo +nightly fuzz run edl`.

#![no_main]

use threadfold_testing::shared::fuzz::edl;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edl::check(bytes));
