//! The tests of the server, as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests and their helpers may panic"
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
