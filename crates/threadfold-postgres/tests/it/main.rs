//! Postgres as a store: the suites, the bytes in the tables, crashes, processes and workers at
//! once.
//!
//! The tests start a server of their own. If none can be started they are skipped with a line that
//! says why, unless `THREADFOLD_REQUIRE_POSTGRES` is set.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests and their helpers may panic"
)]

mod databases;
#[cfg(feature = "tls")]
mod encryption;
mod kills;
mod suites;
mod support;
