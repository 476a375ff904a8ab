//! The tests, as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic, and so may what it calls"
)]

mod conformance;
