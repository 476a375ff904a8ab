//! Language of any kind, through all that reads it: `cargo +nightly fuzz run prose`.

#![no_main]

use threadfold_testing::shared::fuzz::prose;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| prose::check(bytes));
