//! The tests of the server, as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic, and so may what it calls"
)]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one thing")]

mod client;
mod crowd;
mod file;
mod judge;
mod leaving;
mod page;
mod processes;
mod shared;
