//! What a session promises to every host, without conditions: whatever the strategy, the window, the
//! clock and the provider are. Each test goes through the public API and looks at the requests that
//! the model received.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one thing")]

#[path = "../support/bench.rs"]
mod bench;
#[path = "../../examples/simulation/hosts.rs"]
mod hosts;
mod provider;

mod asked_for;
mod floor;
mod marks;
mod refusals;
mod targets;
mod told;
mod trigger;
mod windows;
