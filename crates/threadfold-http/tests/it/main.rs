//! The tests of the adapter, as one program: over local sockets, and against a real model.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests and their helpers may panic"
)]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one thing")]

#[path = "../../../../crates/threadfold-edl/tests/it/cases.rs"]
#[allow(dead_code, reason = "the cases of other dialects have more sections")]
mod cases;
mod conforms;
mod dialects;
mod http;
mod real_model;
mod runtime;
