//! Generators of threads, for property tests and benchmarks.
//!
//! | to have | there is |
//! |---|---|
//! | threads that every provider's pairing rules accept, with everything that real ones hold | [`legal_thread`] |
//! | threads of which nothing can be said | [`junk_thread`] |
//! | one long thread like those of coding agents, fast, the same for the same seed | [`legal_thread_from`] |
//!
//! The first two are `proptest` strategies and shrink to small threads.

mod blocks;
mod corpus;
mod junk;
mod legal;

pub use corpus::legal_thread_from;
pub use junk::junk_thread;
pub use legal::legal_thread;
