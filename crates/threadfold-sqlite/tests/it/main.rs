//! SQLite as a store: the suites, the bytes in the files, crashes, processes and workers at once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests and their helpers may panic"
)]

mod files;
mod kills;
mod processes;
mod suites;
mod support;
mod workers;
