//! The test kit of [`threadfold`]: the tools of its own tests, for tests of adapters, stores and
//! strategies.
//!
//! | you need | use |
//! |---|---|
//! | tests for your adapter | [`conformance`] |
//! | generated threads | [`generate`] |
//! | threads as text, in test cases and failure messages | [`notation`] |
//! | a deterministic clock that does not wait | [`TestClock`] |
//! | a store whose appends fail on request | [`faulty_store`] |
//! | a provider that judges requests and answers by a script | [`rulebook`] |
//!
//! Models that answer from a script, misbehave, or summarise offline are in the library itself,
//! under its feature `testing`, which this crate enables: see [`threadfold::testing`].

#![forbid(unsafe_code)]

pub mod conformance;
mod faulty_store;
pub mod generate;
pub mod notation;
pub mod rulebook;
#[doc(hidden)]
pub mod shared;
mod splitmix;
mod test_clock;

pub use faulty_store::faulty_store;
pub use test_clock::TestClock;

/// Compiles and runs the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
