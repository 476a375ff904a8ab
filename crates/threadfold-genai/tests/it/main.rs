//! The tests, as one program.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one thing")]

mod answers;
mod failures;
mod properties;
mod session;
mod support;
