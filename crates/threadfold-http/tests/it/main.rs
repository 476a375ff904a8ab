//! The tests of the adapter, as one program: over local sockets, and against a real model.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests and their helpers may panic"
)]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one thing")]

mod conforms;
mod dialects;
mod held;
mod http;
mod real_model;
mod runtime;
